"""Lagrange's equations of a large model at one point, in sparse matrices: what its procedures are written against."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from fmilin.ground.signals import FloatArray

__all__ = ["SparseEquations"]

Sparse = Any  # scipy.sparse.csc_array: imported only where it is used


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
