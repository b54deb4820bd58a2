"""The equations of motion of a large numeric model at one point, in sparse matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fmilin.ground.signals import FloatArray

__all__ = ["SparseForm"]

Sparse = Any  # a scipy.sparse array: imported only where it is used


@dataclass(frozen=True, eq=False)
class SparseForm:
    """M v' + G' lambda = F(q, v, u), G v' + b(q, v) = 0 and g(q) = 0 with q' = v: n coordinates, m constraints.

    Parameters
    ----------
    residuals : array, shape (m,)
        g.
    accelerations, multipliers : array, shapes (n,) and (m,)
        v' and lambda.
    M, G : sparse, shapes (n, n) and (m, n)
    force_positions, force_velocities, force_inputs : sparse, shapes (n, n), (n, n) and (n, nu)
        Slopes of F - M v' - G' lambda, with v' and lambda held.
    rate_positions : sparse, shape (m, n)
        d(G v)/dq.
    bend_positions, bend_velocities : sparse, shape (m, n)
        Slopes of G v' + b, with v' held.
    """

    residuals: FloatArray
    accelerations: FloatArray
    multipliers: FloatArray
    M: Sparse
    G: Sparse
    force_positions: Sparse
    force_velocities: Sparse
    force_inputs: Sparse
    rate_positions: Sparse
    bend_positions: Sparse
    bend_velocities: Sparse
