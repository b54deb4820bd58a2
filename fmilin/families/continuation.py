"""From one trimmed point to the next, by the linear model of the one before.

Points that do not converge are left to the search of :mod:`fmilin.trimming`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fmilin.errors import FmilinError
from fmilin.families.branch_equations import (
    CHORD_RULES,
    BranchEquations,
    BranchRules,
    BranchSystem,
    NeighbourDerivatives,
)
from fmilin.linear_model.model import LinearModel
from fmilin.manifold.selection import Selection
from fmilin.model.capabilities import read_sparse_equations
from fmilin.model.interface import Model, OperatingPoint
from fmilin.signals import FloatArray
from fmilin.trimming.trim_request import TrimRequest


@dataclass(frozen=True)
class ContinuationPoint:
    """A point that others start from."""

    values: Mapping[str, float]  # what varies, there
    point: OperatingPoint
    linear: LinearModel  # with all inputs of the model
    selection: Selection | None  # its coordinates, to be carried on


def can_continue(model: Model, request: TrimRequest, predecessor: ContinuationPoint) -> bool:
    """Whether the linear model of a point has all that the equations of the next trimmed one need."""
    linear = predecessor.linear
    if predecessor.selection is None or read_sparse_equations(model) is not None:
        return False
    if predecessor.point.slope_changes is not None:
        return False  # several solutions meet there: each point says how far it may be
    if linear.sample_time != 0 or linear.inputs.names != model.inputs.names:
        return False
    are_free_inputs = all(model.inputs.has(name) for name in request.free)
    return request.is_plain and are_free_inputs and set(request.steady) <= set(linear.states.names)


def make_trim_equations(
    model: Model, request: TrimRequest, predecessor: ContinuationPoint, R: FloatArray, rules: BranchRules
) -> BranchEquations:
    """Return the equations of trimmed points near one with a linear model in coordinates y = R x."""
    linear = predecessor.linear
    return BranchEquations(
        model,
        predecessor.point,
        linear,
        R=R,
        fixed=[model.states.positions[name] for name in request.fixed if model.states.has(name)],
        resting=[i for i, name in enumerate(linear.states.names) if name not in request.steady],
        free=[model.inputs.positions[name] for name in request.free],
        rules=rules,
    )


def compute_volume(model: Model, request: TrimRequest, predecessor: ContinuationPoint) -> float:
    """Return the determinant of the equations at a trimmed point, which is zero at a fold; zero if it is unknown."""
    if predecessor.selection is None or not can_continue(model, request, predecessor):
        return 0.0
    return make_trim_equations(model, request, predecessor, predecessor.selection.coordinates.R, CHORD_RULES).volume


def correct_by_chord(model: Model, request: TrimRequest, predecessor: ContinuationPoint) -> OperatingPoint | None:
    """Return the trimmed point nearest to ``predecessor`` with what is fixed, None where the chord does not end.

    The request, at the new values, has neither free parameters nor bounds.
    """
    if predecessor.selection is None:
        return None
    point, inputs = predecessor.point, predecessor.point.inputs.copy()
    for name, value in request.fixed.items():
        if model.inputs.has(name):
            inputs[model.inputs.positions[name]] = value
    targets = np.array([value for name, value in request.fixed.items() if model.states.has(name)])
    equations = make_trim_equations(model, request, predecessor, predecessor.selection.coordinates.R, CHORD_RULES)
    try:
        derivatives = NeighbourDerivatives(model, point, predecessor.linear, inputs, equations)
        system = BranchSystem(equations, derivatives, inputs[None], targets[None])
        result = system.solve(point.states[None], inputs[None])
    except FmilinError:
        return None
    if not result.has_converged[0]:
        return None
    x, u = equations.split(result.z, inputs[None])
    x[:, equations.fixed] = targets  # exactly, not to rounding
    return OperatingPoint(point.time, x[0], u[0], dict(model.start.parameters))
