"""Operating points on the manifold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fmilin.errors import UnknownNameError, UsageError
from fmilin.manifold import projection
from fmilin.manifold.invariants import Invariants
from fmilin.manifold.kinematics import kinematic_pairs
from fmilin.model.counting import RememberingModel
from fmilin.model.interface import Model, OperatingPoint
from fmilin.signals import FloatArray
from fmilin.tolerances import CONSISTENT

if TYPE_CHECKING:
    from fmilin.model.sparse_equations import SparseEquations

__all__ = ["consistent_states", "model_at", "operating_point", "require_sizes"]

WRONG = "The start values do not satisfy the constraints"
START = (
    "Either a constraint is wrong (a typo, a wrong parameter), or the start values are: name the states to keep with "
    "--set NAME=VALUE and the others are solved for, or ask for the nearest consistent point with --project."
)


def operating_point(
    model: Model,
    values: Mapping[str, float] | None = None,
    *,
    time: float | None = None,
    project: bool = False,
) -> OperatingPoint:
    """Assemble a consistent point: the named states held, the others solved for, nearest to their start values.

    Parameters
    ----------
    model : Model
    values : mapping of str to float, optional
        States and inputs by name, in the model's units.
    time : float, optional
        In seconds; the model's own start time by default.
    project : bool
        Accept start values that are off the manifold and take the nearest point. Without it, and when no
        state is named, the start values must satisfy the constraints within 1e-6.

    Raises
    ------
    UnknownNameError
        When a name is neither a state nor an input.
    ConstraintError
        When the start values violate the constraints, or no point satisfies them with the named states held.
    """
    values = values or {}
    t = model.start.time if time is None else float(time)
    x, u = model.start.states.copy(), model.start.inputs.copy()
    held: list[int] = []
    for name, value in values.items():
        if model.states.has(name):
            i = model.states.positions[name]
            x[i] = value
            held.append(i)
        elif model.inputs.has(name):
            u[model.inputs.positions[name]] = value
        else:
            known = [*model.states.positions, *model.inputs.positions]
            raise UnknownNameError.among(name, known, "a state or an input of the model")
    point = OperatingPoint(t, x, u, model.start.parameters)
    if not len(model.constraints):
        return point
    scales = model.states.scales(x)
    if (equations := model.sparse_equations()) is not None:
        projected = consistent_states(model, equations, t, x, u, held, project=project)
        return _adjusted(point, projected, scales)
    visited = RememberingModel(model)
    invariants = Invariants(visited, u, kinematic_pairs(visited, point), scales)
    if not held and not project:
        projection.require_on_manifold(invariants, t, x, nearer=CONSISTENT, otherwise=WRONG, advice=START)
    projected = projection.project(invariants, t, x, held)
    return _adjusted(point, projected, scales)


def _adjusted(point: OperatingPoint, projected: FloatArray, scales: FloatArray) -> OperatingPoint:
    """Return the point with projected states; its own where they differ by rounding alone."""
    moved = np.abs(projected - point.states) / scales
    if np.max(moved, initial=0.0) <= 1e-14:
        projected, moved = point.states, np.zeros_like(moved)
    return point.with_states(projected, adjusted=float(np.max(moved, initial=0.0)))


def consistent_states(
    model: Model,
    equations: SparseEquations,
    t: float,
    x: FloatArray,
    u: FloatArray,
    held: Sequence[int],
    *,
    project: bool,
) -> FloatArray:
    """Return the states of a large model on its manifold, nearest to x.

    Raises
    ------
    ConstraintError
        When nothing is held, ``project`` is not set and x is farther than 1e-6 away; when there is no such point.
    """
    if not held and not project:
        distance = equations.distance(x, u, t)
        if not distance <= CONSISTENT:
            gaps = equations.residuals(t, x, u)
            i = int(np.argmax(np.abs(gaps)))
            away = f"The nearest point is {distance:.3g} sizes of the states away."
            residual = {model.constraints.names[i]: float(gaps[i])}
            raise projection.not_on_manifold(residual, otherwise=WRONG, advice=f"{away} {START}")
        if distance <= 1e-14:
            return x
    return equations.projected(t, x, u, held)


def model_at(model: Model, point: OperatingPoint) -> Model:
    """Return ``model`` with the parameters of ``point``: a trimmed point may have others than the model.

    Raises
    ------
    UsageError
        When the source cannot change its parameters, or the point has other sizes than the model.
    """
    require_sizes(model, point)
    changed = {n: v for n, v in point.parameters.items() if model.start.parameters.get(n) != v}
    return model.with_parameters(changed) if changed else model


def require_sizes(model: Model, point: OperatingPoint) -> None:
    """Refuse a point of another model.

    Raises
    ------
    UsageError
        When the point has another number of states or inputs.
    """
    wanted, given = (len(model.states), len(model.inputs)), (len(point.states), len(point.inputs))
    if given != wanted:
        raise UsageError(
            f"The point has {given[0]} states and {given[1]} inputs, but '{model.info.name}' has {wanted[0]} and "
            f"{wanted[1]}: let fmilin.operating_point make it from values by name."
        )
