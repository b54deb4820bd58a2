"""Whether a solution stands alone or is one of a family, and what leads through the family."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import linalg

from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import RANK, RANK_MEASURED, STAYS
from fmilin.points.balance import balanced
from fmilin.points.equations import Equations
from fmilin.points.result import FreeDirection
from fmilin.points.solver import Solution

__all__ = ["free_directions"]

BESIDE = 1e-2
"""How far beside a solution slopes are looked at for their usual size, in sizes of the unknowns."""

STEP = 1e-4
"""How far along a free direction the residual is looked at, in sizes of the unknowns."""


def free_directions(
    equations: Equations, solution: Solution, preferred: Sequence[str]
) -> tuple[tuple[FreeDirection, ...], float]:
    """Return the null space of the Jacobian at a solution, each direction led by one unknown, and how regular it is.

    ``preferred``: unknowns that should lead if they can.
    """
    unknowns = equations.unknowns
    inside = np.flatnonzero((solution.z > unknowns.low) & (solution.z < unknowns.high))
    if not len(inside):
        return (), 1.0
    seen = _seen(equations, solution)
    J = balanced(solution.J[:, inside], seen[:, inside])
    limit = RANK if solution.is_exact and not equations.moving else RANK_MEASURED
    V = _confirmed(equations, solution, inside, J.columns[:, None] * J.null_space(limit), seen)
    if not V.shape[1]:
        return (), J.regularity
    weights = np.array([1.0 if unknowns.names[i] in preferred else 0.3 for i in inside])
    leaders = linalg.qr((V * weights[:, None]).T, mode="r", pivoting=True)[1][: V.shape[1]]
    basis = V @ np.linalg.inv(V[leaders])
    scales = unknowns.scales[inside]
    found = []
    for k in np.argsort(leaders):
        leader = int(leaders[k])
        direction = basis[:, k] * scales / scales[leader]
        others = [i for i in range(len(inside)) if i != leader and abs(basis[i, k]) > 1e-6]
        along = {unknowns.names[inside[i]]: float(direction[i]) for i in others}
        found.append(FreeDirection(unknowns.names[inside[leader]], along))
    return tuple(found), J.regularity


def _seen(equations: Equations, solution: Solution) -> FloatArray:
    """Return how large the entries of the Jacobian are here and a little beside, shape (m, n)."""
    if solution.seen is not None:
        return np.maximum(solution.seen, np.abs(solution.J))
    beside = solution.z + BESIDE * np.cos(np.arange(len(solution.z)) + 1.0)
    seen: FloatArray = np.fmax(np.abs(solution.J), equations.sizes_beside(beside))
    return seen


def _confirmed(
    equations: Equations, solution: Solution, inside: np.ndarray, V: FloatArray, seen: FloatArray
) -> FloatArray:
    """Return the directions along which the residual really stays: exact products may have claimed too much.

    A row's change is compared with what its other unknowns do, those moved in sizes that the Jacobian tells.
    """
    first = equations.first_order
    rows = balanced(solution.J, seen).rows
    size = np.where(rows > 0, 1.0 / np.where(rows > 0, rows, 1.0), 0.0)

    def stays(v: FloatArray) -> bool:
        step = np.zeros_like(solution.z)
        step[inside] = STEP * v / np.max(np.abs(v))
        change = np.abs(equations.balance(solution.z + step) - equations.balance(solution.z - step)) / (2 * STEP)
        return bool((change <= (STAYS * size + solution.allowed / STEP)[first]).all())  # NaN does not

    if V.shape[1] > 1 and stays(V @ np.cos(np.arange(V.shape[1]) + 1.0)):
        return V  # where a sum of all of them leads nowhere, none does
    kept = [v for v in V.T if stays(v)]
    return np.array(kept).T if kept else np.empty((len(inside), 0))
