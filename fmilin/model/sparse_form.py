"""The equations of motion of a large numeric model at one point, in sparse matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fmilin.ground.signals import FloatArray

__all__ = ["SparseForm"]

Sparse = Any  # a scipy.sparse array: imported only where it is used


@dataclass(frozen=True, eq=False)
class SparseForm:
    """M v' + G' lambda = F(q, v, u), G v' + b(q, v) = 0 and g(q) = 0 with q' = v: n coordinates, m constraints."""

    residuals: FloatArray  # (m,), g
    accelerations: FloatArray  # (n,), v'
    multipliers: FloatArray  # (m,), lambda
    M: Sparse  # shape (n, n)
    G: Sparse  # shape (m, n)
    # force_positions, force_velocities, force_inputs: slopes of F - M v' - G' lambda, with v' and lambda held
    force_positions: Sparse  # shape (n, n)
    force_velocities: Sparse  # shape (n, n)
    force_inputs: Sparse  # shape (n, nu)
    rate_positions: Sparse  # (m, n), d(G v)/dq
    # bend_positions, bend_velocities: (m, n), slopes of G v' + b, with v' held
    bend_positions: Sparse
    bend_velocities: Sparse
