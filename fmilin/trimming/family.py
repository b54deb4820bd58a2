"""Whether a solution stands alone or is one of a family, and what leads through the family."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import linalg

from fmilin.manifold.rank import decide_rank
from fmilin.signals import FloatArray
from fmilin.tolerances import RANK, RANK_MEASURED, STAYS
from fmilin.trimming.equations import Equations
from fmilin.trimming.result import FreeDirection
from fmilin.trimming.solver import Solution

__all__ = ["free_directions"]

STEP = 1e-4
"""How far along a free direction the residual is looked at, in sizes of the unknowns."""


def free_directions(equations: Equations, solution: Solution, preferred: Sequence[str]) -> tuple[FreeDirection, ...]:
    """Return the null space of the Jacobian at a solution, each direction led by one unknown.

    Parameters
    ----------
    equations : Equations
    solution : Solution
    preferred : sequence of str
        Unknowns that should lead if they can.
    """
    unknowns = equations.unknowns
    inside = np.flatnonzero((solution.z > unknowns.low) & (solution.z < unknowns.high))
    J = solution.J[:, inside]
    norms = np.linalg.norm(J, axis=1, keepdims=True)
    Jn = J / np.where(norms > 1e-12 * max(float(np.max(norms, initial=0.0)), 1e-300), norms, np.inf)
    if not len(inside):
        return ()
    decision = decide_rank(Jn, RANK if solution.is_exact and not equations.moving else RANK_MEASURED)
    V = linalg.svd(Jn)[2][decision.rank :].T if len(Jn) else np.eye(len(inside))
    V = _confirmed(equations, solution, inside, V)
    if not V.shape[1]:
        return ()
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
    return tuple(found)


def _confirmed(equations: Equations, solution: Solution, inside: np.ndarray, V: FloatArray) -> FloatArray:
    """Return the directions along which the residual really stays: exact products may have claimed too much."""
    first = equations.first_order
    size = np.maximum(np.linalg.norm(solution.J, axis=1), 1.0)
    kept = []
    for v in V.T:
        step = np.zeros_like(solution.z)
        step[inside] = STEP * v
        change = (equations.values(solution.z + step) - equations.values(solution.z - step)) / (2 * STEP)
        if np.isfinite(change).all() and (np.abs(change) <= STAYS * size)[first].all():
            kept.append(v)
    return np.array(kept).T if kept else np.empty((len(inside), 0))
