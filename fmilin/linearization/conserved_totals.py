"""Stability on the set of states with the same conserved totals: closed networks without their zero eigenvalues.

A total that no motion changes belongs to an eigenvalue 0, which says nothing of stability: a closed network that is
disturbed from inside keeps its content. With the totals as constraints the other states are independent coordinates.
"""

from __future__ import annotations

from dataclasses import replace

from fmilin.diagnostics import Remark
from fmilin.errors import NumericalError, UsageError
from fmilin.linearization.suitability import RATES_FOR_TOTALS
from fmilin.manifold.totals import MAX_STATES, Totals, constrain_totals, search_totals
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.stepping import Stepped


def keep_totals_of_point(model: Model, point: OperatingPoint) -> tuple[Model, OperatingPoint]:
    """Return a model with its conserved totals as constraints, and the point with a note of them.

    The values of the totals are those of the point.

    Raises
    ------
    UsageError
        When the model is stepped: its rates cannot be evaluated.
    NumericalError
        When the model has too many states for that.
    """
    if isinstance(model, Stepped):
        raise UsageError(RATES_FOR_TOTALS)
    if len(model.states) > MAX_STATES:
        raise NumericalError(
            f"'{model.info.name}' has {len(model.states)} states, but conserved totals are computed for at "
            f"most {MAX_STATES}. Declare them as constraints at velocity level, and leave keep_totals= out."
        )
    totals = search_totals(model, point)
    note = describe_totals(totals)
    point = replace(point, remarks=(*point.remarks, note))
    return (model if totals is None else constrain_totals(model, totals)), point


def describe_totals(totals: Totals | None) -> Remark:
    """Return which totals are constant in the linear model."""
    if totals is None:
        return Remark(
            "conserved",
            "keep_totals=True changed nothing: every linear combination of the states can change, by a motion or by "
            "an input.",
        )
    plural = len(totals.names) > 1
    return Remark(
        "conserved",
        f"Neither a motion nor an input changes {'these totals' if plural else 'this total'}, so the linear model has "
        f"the motions that keep {'them' if plural else 'it'}: {totals}.",
    )
