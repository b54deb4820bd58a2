"""Newton's method that does not go where a solution is known already, by deflation.

The residual r(z) is multiplied by m(z) = prod_k (1/|z - z_k|^2 + 1), which grows without bounds at known solutions z_k.
The Newton step of m r is that of r times 1 / (1 - (grad m . d) / m) (Farrell, Birkisson and Funke, SIAM Journal on
Scientific Computing 37, 2015).
"""

from collections.abc import Sequence

import numpy as np

from fmilin.numerics.balanced import balanced
from fmilin.signals import FloatArray
from fmilin.trimming.equations import Equations
from fmilin.trimming.newton import DROP

ITERATIONS = 40
LONGEST = 2.0  # of a step, in sizes of the unknowns
CLOSE = 1e-6  # length of a step at which Newton's method without deflation takes over


def search_elsewhere(equations: Equations, z0: FloatArray, solutions: Sequence[FloatArray]) -> FloatArray | None:
    """Return where Newton's method from z0 (n,) goes when solutions are ``known``; None where it ends nowhere."""
    unknowns, z = equations.unknowns, z0
    if any(np.array_equal(z, each) for each in solutions):
        return None
    for _ in range(ITERATIONS):
        r = equations.values(z)
        J = equations.jacobian(z, quick=True)[0]
        if not (np.isfinite(J).all() and np.isfinite(r).all()):
            return None
        sizes = unknowns.sizes(z)
        newton = balanced(J).step(r, drop=DROP)
        slope = sum(_slope_of_factor((z - each) / sizes, newton / sizes) for each in solutions)
        denominator = 1.0 - slope
        step = newton / denominator if denominator != 0 else newton
        length = float(np.max(np.abs(step) / sizes, initial=0.0))
        if not np.isfinite(length):
            return None
        z = np.clip(z + step * min(1.0, LONGEST / length if length > 0 else 1.0), unknowns.low, unknowns.high)
        if length <= CLOSE:
            return z
    return None


def _slope_of_factor(away: FloatArray, step: FloatArray) -> float:
    """Return (grad m_k . step) / m_k of m_k = 1/|away|^2 + 1."""
    square = float(away @ away)
    return float(-2.0 * (away @ step) / (square * (1.0 + square))) if square > 0 else -np.inf
