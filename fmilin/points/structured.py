"""How much larger a box of parameters may be before a linear model in it is unstable, from both sides.

From below 1 / max mu(M_11(jw)) with the structured singular value's upper bound of Fan, Tits and Doyle (1991; SLICOT
AB13MD): every d on the diagonal counts as one of its own, and has a complex part of one in a hundred, without which mu
would be discontinuous in w (Packard and Pandey 1993). From above by the nearest unstable model along many directions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from fmilin.ground.errors import UsageError
from fmilin.ground.signals import FloatArray
from fmilin.linear_model.model import LinearModel

COMPLEX = 0.01  # size of the complex part of each real d
GRID, WIDER = 60, 30.0  # frequencies, and how far they reach beyond the eigenvalues
CORNERS, FACTORS, FARTHEST = 256, 60, 100.0  # directions and factors that are tried, up to the largest


@dataclass(frozen=True)
class RobustStability:
    """By which factor a box may grow around its middle: stable up to ``at_least``, unstable in it at ``at_most``."""

    at_least: float  # at the frequencies that were looked at
    at_most: float  # inf where no direction leads to an unstable model
    frequency: float  # in rad/s, at which ``at_least`` is smallest
    parameters: Mapping[str, float]  # with which the model stands at its limit, at ``at_most``


def robust_stability(
    nominal: LinearModel, M: LinearModel, k: int, box: Mapping[str, tuple[float, float]], n: int, seed: int
) -> RobustStability:
    """Return both sides for the first k channels of M, with n random directions beside the corners."""
    try:
        from slycot import ab13md
    except ImportError:
        raise UsageError(
            "The structured singular value is computed by slycot, which is not installed: pip install 'fmilin[robust]' "
            "(it is under the GPL). u.worst() looks for the worst parameters without it, by samples."
        ) from None
    values = nominal.eigenvalues()
    if nominal.sample_time or not (values.real < 0).all():
        raise UsageError("The linear model in the middle of the box is not stable, so the box has no margin.")
    kinds, sizes = np.repeat([1, 2], k), np.ones(2 * k, dtype=int)
    weights = np.outer(*[np.repeat([1.0, np.sqrt(COMPLEX)], k)] * 2)

    def mu(w: float) -> float:
        Z = M.C[:k] @ np.linalg.solve(1j * w * np.eye(len(M.A)) - M.A, M.B[:, :k]) + M.D[:k, :k]
        return float(ab13md(np.tile(Z, (2, 2)) * weights, sizes, kinds)[0]) if Z.any() else 0.0

    speeds = np.abs(values)
    grid = np.geomspace(speeds.min() / WIDER, speeds.max() * WIDER, GRID)
    grid = np.unique(np.concatenate(([0.0], grid, speeds, np.abs(values.imag))))
    sampled = [mu(float(w)) for w in grid]
    i = int(np.argmax(sampled))
    bounds = float(grid[max(i - 1, 0)]), float(grid[min(i + 1, len(grid) - 1)])
    refined = minimize_scalar(lambda w: -mu(float(w)), bounds=bounds, method="bounded", options={"maxiter": 25})
    peak, frequency = max((sampled[i], float(grid[i])), (-float(refined.fun), float(refined.x)))
    middle, half = (np.array([(b + sign * a) / 2 for a, b in box.values()]) for sign in (1, -1))
    slopes = np.array([h * d.A for h, d in zip(half, nominal.derivatives.values(), strict=True)])
    at_most, direction = _nearest_unstable(nominal.A, slopes, n, seed)
    worst = dict(zip(box, (middle + at_most * half * direction).tolist(), strict=True)) if np.isfinite(at_most) else {}
    return RobustStability(1 / peak if peak > 0 else np.inf, at_most, frequency, worst)


def _nearest_unstable(A: FloatArray, slopes: FloatArray, n: int, seed: int) -> tuple[float, FloatArray]:
    """Return the smallest factor of a direction on the box's boundary that makes A + sum f d_i A_i unstable."""
    corners = [c for c, _ in zip(product((-1.0, 1.0), repeat=len(slopes)), range(CORNERS), strict=False)]
    inside = np.random.default_rng(seed).uniform(-1, 1, (n, len(slopes)))
    directions = np.vstack((corners, inside / np.abs(inside).max(axis=1, keepdims=True)))
    factors = np.append(0.0, np.geomspace(1 / FARTHEST, FARTHEST, FACTORS))
    best, at = np.inf, directions[0]
    for d in directions:
        along = np.tensordot(d, slopes, 1)

        def growth(f: float, along: FloatArray = along) -> float:
            return float(np.linalg.eigvals(A + f * along).real.max())

        beyond = np.linalg.eigvals(A + factors[factors < best, None, None] * along).real.max(axis=1) >= 0
        if beyond.any():
            i = int(np.argmax(beyond))
            f = float(brentq(growth, factors[i - 1], factors[i], xtol=1e-12))
            best, at = min((best, at), (f, d), key=lambda pair: pair[0])
    return best, at
