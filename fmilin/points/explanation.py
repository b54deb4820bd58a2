"""That no solution was found: what was tried, the residuals that remain, and what might be freed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from fmilin.ground.errors import NumericalError
from fmilin.ground.signals import FloatArray, rate_unit
from fmilin.ground.tolerances import RANK_MEASURED
from fmilin.points.balance import balanced
from fmilin.points.equations import Equations, Row
from fmilin.points.request import TrimRequest, quantity
from fmilin.points.solver import Solution
from fmilin.points.unknowns import Place

__all__ = ["TrimError", "no_solution"]

SHOWN = 4

VANISHES = 1e-4
"""Part of what is left that a quantity leaves over, to first order, when freeing it helps."""


class TrimError(NumericalError):
    """No equilibrium or steady motion was found near the guess.

    ``residuals``: what remains of each equation at the best compromise, in the unit of the constraint or of the rate.
    ``point``: the states, inputs and parameters of that compromise.
    """

    def __init__(self, message: str, *, residuals: Mapping[str, float], point: Mapping[str, float]) -> None:
        super().__init__(message, variable=next(iter(residuals), None))
        self.residuals = dict(residuals)
        self.point = dict(point)


def no_solution(equations: Equations, best: Solution, request: TrimRequest) -> TrimError:
    """Return the error that says what remains at the best compromise, largest first."""
    unknowns = equations.unknowns
    place = unknowns.at(best.z)
    size = np.abs(best.residual)
    worth_saying = np.maximum(best.allowed, 1e-4 * float(np.max(size, initial=0.0)))
    order = sorted(np.flatnonzero(size > worth_saying), key=lambda i: -size[i])
    rows = [equations.rows[i] for i in order]
    values = [float(best.residual[i] * equations.rows[i].size) for i in order]
    residuals = {_name(row): value for row, value in zip(rows, values, strict=True)}
    listed = "; ".join(_sentence(row, value, place) for row, value in list(zip(rows, values, strict=True))[:SHOWN])
    more = f" (and {len(rows) - SHOWN} more)" if len(rows) > SHOWN else ""
    what = "steady motion" if equations.moving else "equilibrium"
    moving = f" in which only {', '.join(request.steady)} may move" if equations.moving else ""
    limits = _limits(equations, best)
    helpers = _what_would_help(equations, best, request)
    hint = f"Freeing {' or '.join(helpers)} would let it vanish, to first order. " if helpers else ""
    tried = f" Tried: {', '.join(best.tried)}." if best.tried else ""
    message = (
        f"Near the guess no {what}{moving} was found.{tried} The best compromise leaves {listed}{more}{limits}. {hint}"
        "Release a fixed quantity, free an input (--free), let a state move (--steady), or start elsewhere (--guess)."
    )
    names = (*place.model.states.names, *place.model.inputs.names)
    point = dict(zip(names, [*place.states.tolist(), *place.inputs.tolist()], strict=True)) | dict(place.parameters)
    return TrimError(message, residuals=residuals, point=point)


def _name(row: Row) -> str:
    return {"constraint": row.name, "rate": f"der({row.name})", "change of rate": f"der(der({row.name}))"}[row.kind]


def _sentence(row: Row, value: float, place: Place) -> str:
    if row.kind == "constraint":
        return f"the constraint '{row.name}' at {value:.6g} instead of 0"
    unit = place.model.states[place.model.states.positions[row.name]].unit
    unit = rate_unit(unit) if row.kind == "rate" else rate_unit(rate_unit(unit))
    return f"{_name(row)} = {value:.6g} {unit}".rstrip() + " instead of 0"


def _limits(equations: Equations, best: Solution) -> str:
    """Return which quantities the bounds stop."""
    unknowns, z = equations.unknowns, best.z
    margin = 1e-3 * np.maximum(np.abs(z), 1.0)
    stopped = np.flatnonzero((z - unknowns.low <= margin) | (unknowns.high - z <= margin))
    listed = [f"{unknowns.names[i]} = {z[i] * unknowns.scales[i]:.6g}" for i in stopped]
    return f", with {', '.join(listed[:SHOWN])} at a bound" if listed else ""


def _what_would_help(equations: Equations, best: Solution, request: TrimRequest) -> list[str]:
    """Return the held quantities each of which could make all residuals vanish, to first order."""
    place = equations.unknowns.at(best.z)
    model = place.model
    held = [name for name in (*model.inputs.names, *request.fixed) if name not in equations.unknowns.names]
    found = []
    for name in dict.fromkeys(held):
        column = _column(equations, place, name)
        if column is not None and _left(best, column) <= VANISHES * _left(best, np.zeros_like(column)):
            found.append(f"'{name}'")
    return found[:SHOWN]


def _column(equations: Equations, place: Place, name: str) -> FloatArray | None:
    """Return how the residuals change with a quantity that is held, over a step that shows; None where none does."""
    kind, i = quantity(place.model, name)
    value = place.parameters[name] if kind == "parameter" else (place.states if kind == "state" else place.inputs)[i]
    step = 1e-5 * max(abs(float(value)), 1.0)
    for _ in range(5 if kind == "input" else 1):
        ahead = equations.values_at(_moved(place, name, step))
        column = (ahead - equations.values_at(_moved(place, name, -step))) / 2
        if not np.isfinite(column).all():
            return None
        if np.max(np.abs(column), initial=0.0) > 1e-6:
            return column
        step *= 1e3
    return None


def _moved(place: Place, name: str, step: float) -> Place:
    kind, i = quantity(place.model, name)
    if kind == "parameter":
        changed = {name: place.parameters[name] + step}
        return replace(place, model=place.model.with_parameters(changed), parameters={**place.parameters, **changed})
    x, u = place.states.copy(), place.inputs.copy()
    (x if kind == "state" else u)[i] += step
    return replace(place, states=x, inputs=u)


def _left(best: Solution, column: FloatArray) -> float:
    """Return what a step along the unknowns and one more column cannot remove, rows in sizes of the Jacobian."""
    return float(np.linalg.norm(balanced(np.column_stack((best.J, column))).left(best.residual, RANK_MEASURED)))
