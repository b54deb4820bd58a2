"""Small dense matrices, one or a stack of them, scaled and factorized once, that know when they are singular."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from fmilin.saddle_point.factors import is_singular
from fmilin.signals import FloatArray

__all__ = ["DenseFactors", "inverses", "norms", "solved"]

_SMALL = 40_000
"""Entries of a right-hand side below which its columns are solved one by one: given several at once OpenBLAS starts
its threads, which takes microseconds on an idle machine and ten milliseconds on a busy one."""


class DenseFactors:
    """LU factors of square matrices W, rows and columns scaled to largest entries of one.

    Parameters
    ----------
    W : array, shape (..., n, n)

    Attributes
    ----------
    rcond : float or array, shape (...)
        Reciprocal condition number of each scaled W in the 1-norm: estimated for a single one (LAPACK ``dgecon``); NaN
        where W holds a NaN or an infinity.
    """

    def __init__(self, W: FloatArray) -> None:
        self._row_scale = _reciprocal(np.abs(W).max(axis=-1, initial=0.0))
        scaled = W * self._row_scale[..., None]
        self._column_scale = _reciprocal(np.abs(scaled).max(axis=-2, initial=0.0))
        self._scaled = scaled * self._column_scale[..., None, :]
        *stack, n, _ = W.shape
        self._is_one = math.prod(stack) == 1
        self.rcond: float | FloatArray
        if n == 0:
            self.rcond = np.ones(stack)[()]
        elif self._is_one:
            self.rcond = np.full(stack, self._factorize(self._scaled.reshape(n, n)))[()]
        else:
            self._inverse = inverses(self._scaled)
            with np.errstate(all="ignore"):
                self.rcond = 1.0 / (norms(self._scaled) * norms(self._inverse))

    def _factorize(self, scaled: FloatArray) -> float:
        if not np.isfinite(scaled).all():
            return np.nan
        self._lu, self._pivots, info = lapack.dgetrf(scaled)
        return 0.0 if info > 0 else float(lapack.dgecon(self._lu, float(np.abs(scaled).sum(axis=0).max()))[0])

    @property
    def is_singular(self) -> bool | NDArray[np.bool_]:
        """Whether each W is singular to working precision."""
        return is_singular(self.rcond)

    def solve(self, right: FloatArray) -> FloatArray:
        """Return W^-1 right, for right (n,) or (n, k) or (..., n, k); NaN where W holds a NaN. No W may be singular."""
        if right.size == 0:
            return np.zeros_like(right)
        if right.ndim == 1:
            return self.solve(right[:, None])[:, 0]
        if not self._is_one or math.prod(right.shape[:-2]) > 1:
            inverse = inverses(self._scaled) if self._is_one else self._inverse
            result: FloatArray = inverse @ (right * self._row_scale[..., None]) * self._column_scale[..., None]
            return result
        if not np.all(np.isfinite(self.rcond)):
            return np.full_like(right, np.nan)
        scaled = right.reshape(right.shape[-2:]) * self._row_scale.reshape(-1, 1)
        return (solved(self._lu, self._pivots, scaled) * self._column_scale.reshape(-1, 1)).reshape(right.shape)

    def null_vector(self) -> FloatArray:
        """Return the direction of w, (n,), of which the first singular W says least, its largest entry one."""
        n = self._scaled.shape[-1]
        worst = int(np.nanargmin(np.ravel(self.rcond)))
        scaled, scale = self._scaled.reshape(-1, n, n)[worst], self._column_scale.reshape(-1, n)[worst]
        direction = np.linalg.svd(scaled)[2][-1] * scale
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


def inverses(W: FloatArray) -> FloatArray:
    """Return the inverses of a stack, infinite where W is singular."""
    try:
        with np.errstate(invalid="ignore"):
            return np.linalg.inv(W).astype(np.float64, copy=False)
    except np.linalg.LinAlgError:  # one of them: find out which
        return np.full_like(W, np.inf) if W.ndim == 2 else np.stack([inverses(one) for one in W])


def norms(W: FloatArray) -> FloatArray:
    """Return the 1-norm of each matrix."""
    norm: FloatArray = np.abs(W).sum(axis=-2).max(axis=-1)
    return norm
