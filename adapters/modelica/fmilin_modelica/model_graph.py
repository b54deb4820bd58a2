"""The graph of a walked model with its conditions at the start, and which start values and coordinates come first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca

from fmilin.models import DaeGraph
from fmilin.signals import Signal, Signals
from fmilin_modelica.aliases import Merged
from fmilin_modelica.declarations import LIBRARY_RANK
from fmilin_modelica.delays import add_sources
from fmilin_modelica.entries import Entry
from fmilin_modelica.equations import Equations

__all__ = ["build_graph", "list_conditions", "order_starts", "rank_coordinate"]

GENERIC_PART = 0.618  # of homotopy, at which no term of either side vanishes by chance
_ADVICE = {"Always": 0, "Prefer": 1, "Default": 2, "Avoid": 3, "Never": 4}


def list_conditions(equations: Equations, merged: Merged) -> tuple[Any, list[str]]:
    """Return what holds at the start: initial equations, and algebraic variables with a fixed start value."""
    fixed = [entry for entry in equations.algebraic if entry.fixed and entry.name not in merged.settled]
    residuals = [*equations.initial_residuals, *(entry.symbol - entry.start for entry in fixed)]
    names = equations.initial_names
    return _column(residuals), [*names, *(f"{entry.name} = {entry.start:g}" for entry in fixed)]


def build_graph(equations: Equations, merged: Merged) -> DaeGraph:
    """Return what the engine takes."""
    states, algebraic, inputs = merged.states, equations.algebraic, merged.inputs
    parameters = list(equations.parameters.values())
    parts = [] if equations.homotopy_part is None else [equations.homotopy_part]
    signals = [Signal(p.name, p.variable.unit, start=p.value, description=p.variable.description) for p in parameters]
    graph = DaeGraph(
        name=equations.flat["name"],
        residuals=_column(equations.residuals),
        x=_column([e.symbol for e in states]),
        dx=_column(equations.derivative_symbols()),
        z=_column([e.symbol for e in algebraic]),
        u=_column([*(e.symbol for e in inputs), *(delay.delayed for delay in equations.list_cut_delays())]),
        p=_column([*(p.symbol for p in parameters), *parts]),
        states=_signals(states),
        algebraic=_signals(algebraic),
        inputs=Signals([*_signals(inputs), *(Signal(delay.delayed.name()) for delay in equations.list_cut_delays())]),
        parameters=Signals([*signals, *(Signal(part.name(), start=GENERIC_PART) for part in parts)]),
        time=equations.time,
        outputs={name: value for name, _, value in equations.outputs},
        output_signals=Signals(
            Signal(name, variable.unit, description=variable.description) for name, variable, _ in equations.outputs
        ),
        equations=equations.names,
        fixed=tuple(e.name for e in states if e.fixed),
        notes=equations.notes(),
        ranges=tuple(equations.table_ranges.values()),
    )
    return add_sources(graph, list(equations.delays.values()))


def _column(items: Sequence[Any]) -> Any:
    return ca.vertcat(ca.SX(0, 1), *items)


def _signals(entries: Sequence[Entry]) -> Signals:
    return Signals(
        Signal(e.name, e.variable.unit, e.nominal, e.start, e.variable.description, e.aliases) for e in entries
    )


def order_starts(states: Sequence[Entry]) -> list[list[int]]:
    """Return the states in groups; the first one has those with start values that are kept first.

    Fixed ones; those with start values in the model itself, from outside inwards; those of joints, or all where
    the model prefers none; what a library fills in.
    """

    def importance(i: int) -> tuple[Any, ...]:
        entry = states[i]
        rank = LIBRARY_RANK if entry.rank is None else entry.rank
        return (not entry.fixed, rank, entry.start == 0.0, *rank_coordinate(entry))

    joints = [rank_coordinate(entry)[0] <= _ADVICE["Prefer"] for entry in states]
    order = sorted(range(len(states)), key=importance)
    fixed = [i for i in order if states[i].fixed]
    written = [i for i in order if i not in fixed and _is_written(states[i])]
    weaker = [i for i in order if i not in fixed and i not in written]
    inner = [i for i in weaker if joints[i] or states[i].start or not any(joints)]
    return [fixed, written, inner, [i for i in weaker if i not in inner]]


def _is_written(entry: Entry) -> bool:
    return entry.rank is not None and entry.rank < LIBRARY_RANK


def rank_coordinate(entry: Entry) -> tuple[Any, ...]:
    """Return how much a state is wished as a coordinate: what the model says, joints before bodies, fixed starts."""
    return (
        _ADVICE.get(entry.variable.attributes["state_select"], 2),
        "_rel" in entry.name,
        not entry.fixed,
        len(entry.variable.shape),
        entry.name.count("."),
    )
