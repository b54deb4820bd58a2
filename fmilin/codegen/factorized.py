"""A small dense matrix, scaled and factorized once, that knows when it is singular."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from fmilin.signals import FloatArray

__all__ = ["Factorized", "solved"]

_EPS = float(np.finfo(np.float64).eps)

_SMALL = 40_000
"""Entries of a right-hand side below which its columns are solved one by one: given several at once OpenBLAS starts
its threads, which takes microseconds on an idle machine and ten milliseconds on a busy one."""


class Factorized:
    """LU factors of a square matrix W, rows and columns scaled to largest entries of one.

    Parameters
    ----------
    W : array, shape (n, n)

    Attributes
    ----------
    rcond : float
        Estimated reciprocal condition number of the scaled W in the 1-norm (LAPACK ``dgecon``); NaN when W
        holds a NaN or an infinity.
    """

    def __init__(self, W: FloatArray) -> None:
        self._size = len(W)
        self.rcond = 1.0
        if self._size == 0:
            return
        if not np.isfinite(W).all():
            self.rcond = np.nan
            return
        self._row_scale = _reciprocal(np.abs(W).max(axis=1))
        scaled = W * self._row_scale[:, None]
        self._column_scale = _reciprocal(np.abs(scaled).max(axis=0))
        scaled *= self._column_scale
        self._scaled = scaled
        self._lu, self._pivots, info = lapack.dgetrf(scaled)
        norm = float(np.abs(scaled).sum(axis=0).max())
        self.rcond = 0.0 if info > 0 else float(lapack.dgecon(self._lu, norm)[0])

    @property
    def is_singular(self) -> bool:
        """Whether W is singular to working precision."""
        return self.rcond <= max(self._size, 8) * _EPS

    def solve(self, right: FloatArray) -> FloatArray:
        """Return W^-1 right, for right (n,) or (n, k); NaN where W holds a NaN."""
        if self._size == 0 or right.size == 0:
            return np.zeros_like(right)
        if not np.isfinite(self.rcond):
            return np.full_like(right, np.nan)
        result: FloatArray = (solved(self._lu, self._pivots, (right.T * self._row_scale).T).T * self._column_scale).T
        return result

    def null_vector(self) -> FloatArray:
        """Return the direction of w, (n,), of which W says least, scaled to a largest entry of one."""
        direction = np.linalg.svd(self._scaled)[2][-1] * self._column_scale
        result: FloatArray = direction / np.abs(direction).max()
        return result


def solved(lu: FloatArray, pivots: NDArray[np.int32], right: FloatArray) -> FloatArray:
    """Return A^-1 right for the factors of A (n, n) by LAPACK's ``dgetrf``, and right (n,) or (n, k), not empty."""
    if right.ndim == 1 or right.size >= _SMALL:
        solution: FloatArray = lapack.dgetrs(lu, pivots, right)[0]
        return solution
    return np.array([lapack.dgetrs(lu, pivots, column)[0] for column in right.T]).T


def _reciprocal(sizes: FloatArray) -> FloatArray:
    return 1.0 / np.where(sizes > 0, sizes, 1.0)
