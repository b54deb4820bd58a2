"""The start of a model along ``homotopy(actual, simplified)``: from the simplified equations to the actual ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fmilin.adapters import DaeEngine
from fmilin.errors import ConstraintError, NumericalError
from fmilin.models import DaeGraph
from fmilin.signals import Signals
from fmilin_modelica.aliases import merge_aliases
from fmilin_modelica.equations import HOMOTOPY_PARAMETER, Equations
from fmilin_modelica.model_graph import build_graph, list_conditions, order_starts
from fmilin_modelica.starting import Point, Starting

__all__ = ["follow_homotopy"]

FIRST_STEP = 0.25  # of the part of the actual equations
SHORTEST_STEP = 1e-3


def follow_homotopy(equations: Equations, graph: DaeGraph) -> DaeGraph | None:
    """Return the graph of equations with the start that the simplified ones lead to; None where they lead to none.

    The start of the simplified equations is followed while their part decreases from one to zero, in steps that are
    halved where none is found.
    """
    if not equations.has_homotopy:
        return None
    blended = equations.blend_homotopy()
    merged = merge_aliases(blended.residuals, blended.states, blended.algebraic, blended.inputs)
    other = build_graph(blended, merged)
    try:
        starting = Starting(DaeEngine(other), *list_conditions(blended, merged), blended.free)
        point = _follow(starting, order_starts(merged.states))
    except (NumericalError, ConstraintError, ValueError):
        return None
    values = dict(zip(other.states.names, point.x.tolist(), strict=True))
    values |= dict(zip(other.algebraic.names, starting.values_at(point, other.z.elements()), strict=True))
    values |= dict(zip(blended.free, point.free.tolist(), strict=True))
    return replace(
        graph,
        states=_set_starts(graph.states, values),
        algebraic=_set_starts(graph.algebraic, values),
        parameters=_set_starts(graph.parameters, values),
    )


def _follow(starting: Starting, order: Sequence[Sequence[int]]) -> Point:
    """Return the consistent start at the end of the path.

    Raises
    ------
    ConstraintError
        When the path ends before.
    """
    starting.set_parameter(HOMOTOPY_PARAMETER, 0.0)
    point = starting.consistent(order)
    reached, step = 0.0, FIRST_STEP
    while reached < 1.0:
        following = min(reached + step, 1.0)
        starting.set_parameter(HOMOTOPY_PARAMETER, following)
        try:
            point = starting.consistent(order, begin=point)
        except ConstraintError:
            if step < SHORTEST_STEP:
                raise
            step /= 2.0
            continue
        reached, step = following, 2.0 * step
    return point


def _set_starts(signals: Signals, values: Mapping[str, float]) -> Signals:
    return Signals(signal.with_start(values.get(signal.name, signal.start)) for signal in signals)
