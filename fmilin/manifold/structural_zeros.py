"""Which derivatives are zero at every point, so that no rounding error belongs to them.

The structure that a model declares says it. Exact derivatives of a model that declares none are evaluated at one more
point, in general position: a sum of products that is exactly zero there and at the point itself has no term that could
be anything else. An entry that vanishes at the point alone, such as a speed that is zero, is not one of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import FmilinError
from fmilin.manifold.invariants import Invariants
from fmilin.manifold.tangent_patterns import find_tangent_pattern
from fmilin.model.capabilities import read_discrete_states, read_event_indicators
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import OperatingPoint
from fmilin.model.memory import find_memory
from fmilin.numerics.differences.coloring import tangent_pattern
from fmilin.signals import FloatArray

Pattern = NDArray[np.bool_]

GENERAL_DISPLACEMENT_SIZE = (
    2.0**-7
)  # how far the other point is, in sizes of the variables: far beyond rounding, rarely beyond a limit


def find_structural_zeros(
    evaluator: PointEvaluator, point: OperatingPoint, invariants: Invariants, T: FloatArray, x_u: FloatArray
) -> Pattern:
    """Return which derivatives of rates and outputs, shape (N + ny, P + nu), are zero for all values of the states.

    They are derivatives along coordinates and inputs, which move the states by T (N, P) and x_u (N, nu).
    """
    model, connections = evaluator.model, invariants.connections
    if connections is None:  # the model computes its constraints: each may contain every state
        connections = np.ones((1, len(model.states)), dtype=bool)
    declared = find_tangent_pattern(model, connections, T, x_u)
    if declared is not None:
        return ~declared.depends
    n, k = x_u.shape
    directions = tangent_pattern(np.eye(n, n + k, dtype=bool), connections, T, x_u)
    nothing = np.zeros((n + len(model.outputs), directions.shape[1]), dtype=bool)
    # the other point may lie in another mode
    if len(read_event_indicators(model, point.time, point.states, point.inputs)):
        return nothing
    # Where derivatives were zero in general position, by the mode of a model and the directions: other points share it.
    patterns: dict[object, Pattern] = find_memory(model).setdefault("structural zeros", {})
    key = (tuple(read_discrete_states(model).items()), directions.tobytes())
    if key not in patterns:
        slopes = _evaluate_in_general_position(evaluator, point, directions)
        pattern = nothing if slopes is None else np.asarray(slopes == 0)
        pattern.setflags(write=False)
        patterns[key] = pattern
    return patterns[key]


def _evaluate_in_general_position(
    evaluator: PointEvaluator, point: OperatingPoint, directions: Pattern
) -> FloatArray | None:
    """Return exact derivatives near the point, (N + ny, P + nu), along full feasible directions; or None.

    ``directions`` (N, P + nu) says which states each coordinate and input may move.
    """
    random = np.random.default_rng(1966)
    k, count = len(point.inputs), directions.shape[1]
    dx = np.where(directions, random.uniform(0.5, 1.0, directions.shape), 0.0)
    du = np.eye(k, count, count - k)
    model = evaluator.model
    x = _move(point.states, model.states.scales(point.states), random)
    u = _move(point.inputs, model.inputs.scales(point.inputs), random)
    try:
        with np.errstate(all="ignore"):
            answer = evaluator.products(point.time, x, u, dx, du)
    except (FmilinError, np.linalg.LinAlgError):
        return None  # the model cannot be evaluated there
    return None if answer is None else np.concatenate((answer.derivatives, answer.outputs))


def _move(values: FloatArray, sizes: FloatArray, random: np.random.Generator) -> FloatArray:
    signs = random.choice([-1.0, 1.0], len(values))
    distances = GENERAL_DISPLACEMENT_SIZE * np.maximum(sizes, np.abs(values)) * random.uniform(0.5, 1.0, len(values))
    return np.asarray(values + signs * distances)
