"""Lagrange's equations of a large model, in sparse matrices: what its procedures are written against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from fmilin.ground.signals import FloatArray

Sparse = Any  # a scipy.sparse array: imported only where it is used


class SparseEquations(Protocol):
    """W w = r with W = [[M, G'], [G, 0]], r = (F, -Gdot v), w = (v', lambda), q' = v, and 0 = g(q), 0 = G v.

    The states are (q, v), 2n of them; m constraints, which neither time nor inputs enter.
    """

    @property
    def n(self) -> int:
        """How many coordinates there are."""

    def matrix(self, t: float, x: FloatArray, u: FloatArray) -> tuple[Sparse, FloatArray]:
        """Return W, shape (n + m, n + m), and r, shape (n + m,)."""

    def solver(self, W: Sparse) -> Any:
        """Return what solves with W, with its reciprocal condition number ``rcond``."""

    def slopes(self, t: float, x: FloatArray, u: FloatArray, w: FloatArray) -> Sparse:
        """Return d(r - W w)/d(q, v, u) at a point and any w, held, shape (n + m, 2n + nu)."""

    def turning(self, t: float, x: FloatArray, u: FloatArray) -> Sparse:
        """Return d(G v)/dq with v held, shape (m, n)."""

    def residuals(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        """Return (g, G v), shape (2m,)."""

    def distance(self, x: FloatArray, u: FloatArray, t: float) -> float:
        """Return the distance to the manifold to first order, in sizes of the states."""

    def projected(self, t: float, x: FloatArray, u: FloatArray, held: Sequence[int]) -> FloatArray:
        """Return the nearest states with g = 0 and G v = 0, some of them held."""


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
