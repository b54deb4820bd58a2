"""Whether an equilibrium is stable: eigenvalues of f_x on the manifold, as far as rounding leaves no doubt."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from fmilin.ground.errors import REFUSALS
from fmilin.ground.remarks import Remark
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import RANK, RANK_MEASURED
from fmilin.points.equations import Equations
from fmilin.points.solver import Solution
from fmilin.points.unknowns import Candidate

MOST_STATES = 400  # more take longer than the search
BLURRED = {True: 1e-13, False: 1e-6}  # relative error of exact slopes, and of those that were measured
CLEARLY = 30.0  # times what such errors move a real part, by which it has to be positive


def stability_remark(equations: Equations, solution: Solution, candidate: Candidate) -> Remark | None:
    """Return what is to be said of an unstable equilibrium; None where it is not, or where that is not cheap to say."""
    n = len(candidate.states)
    if not 0 < n <= MOST_STATES:
        return None
    try:
        slopes = _slopes(equations, solution, candidate)
    except REFUSALS:
        return None
    if slopes is None or not all(np.isfinite(part).all() for part in slopes):
        return None
    H, F = slopes
    S = equations.state_scales
    lengths = np.linalg.norm(H * S, axis=1, keepdims=True)
    V = linalg.null_space(H * S / np.where(lengths > 0, lengths, 1.0), RANK if solution.is_exact else RANK_MEASURED)
    count, fastest = _unstable(V.T @ (F * S / S[:, None]) @ V, BLURRED[solution.is_exact])
    if not count:
        return None
    verb = "has a positive real part" if count == 1 else "have positive real parts"
    return Remark(
        "unstable",
        f"The equilibrium is unstable: {count} of {V.shape[1]} eigenvalues {verb}, the largest {fastest:.4g} 1/s.",
    )


def _slopes(equations: Equations, solution: Solution, candidate: Candidate) -> tuple[FloatArray, FloatArray] | None:
    """Return the slopes of invariants (m, N) and rates (N, N) along all states."""
    n, columns = len(candidate.states), equations.unknowns.state_columns
    if len(columns) == n and len(equations.at_rest) == n:
        J = solution.J[:, columns] * equations.sizes[:, None] / equations.unknowns.scales[columns]
        return J[equations.kinds("constraint")], J[equations.kinds("rate")]
    slopes = equations.first_order_slopes(candidate, np.eye(n), np.zeros((len(candidate.inputs), n)))
    return None if slopes is None else slopes[:2]


def _unstable(A: FloatArray, blurred: float) -> tuple[int, float]:
    """Return how many eigenvalues have positive real parts whatever errors there are, and the largest real part."""
    if not A.size:
        return 0, 0.0
    random = np.random.default_rng(1892)
    sizes = np.abs(A).max(axis=1, keepdims=True)
    runs = [A, *(A + blurred * sizes * random.uniform(-1.0, 1.0, A.shape) for _ in range(3))]
    parts = np.array([np.sort(np.linalg.eigvals(run).real) for run in runs])
    spread = np.ptp(parts, axis=0)
    return int(np.count_nonzero(parts[0] > CLEARLY * spread)), float(parts[0][-1])
