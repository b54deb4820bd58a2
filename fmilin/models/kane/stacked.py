"""Small dense systems at many points at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fmilin.signals import FloatArray

__all__ = ["StackedSystems"]


class StackedSystems:
    """W b = r for a stack of square matrices W, rows and columns scaled to largest entries of one.

    Parameters
    ----------
    W : array, shape (k, n, n)

    Attributes
    ----------
    rcond : array, shape (k,)
        Reciprocal condition numbers of the scaled matrices in the 1-norm; 0 where exactly singular, NaN where a
        matrix holds a NaN.
    """

    def __init__(self, W: FloatArray) -> None:
        self._row_scale = _reciprocal(np.abs(W).max(axis=2, initial=0.0))
        scaled = W * self._row_scale[:, :, None]
        self._column_scale = _reciprocal(np.abs(scaled).max(axis=1, initial=0.0))
        self._scaled = scaled * self._column_scale[:, None, :]
        self.rcond = _reciprocal_condition(self._scaled)

    @property
    def singular(self) -> NDArray[np.intp]:
        """Positions of the matrices that are singular to working precision."""
        return np.flatnonzero(self.rcond <= max(self._scaled.shape[1], 8) * np.finfo(np.float64).eps)

    def solve(self, right: FloatArray) -> FloatArray:
        """Return W^-1 right, for right (k, n, columns), when no matrix is singular."""
        if right.size == 0:
            return np.zeros_like(right)
        solution = np.linalg.solve(self._scaled, right * self._row_scale[:, :, None])
        result: FloatArray = solution * self._column_scale[:, :, None]
        return result


def _reciprocal_condition(W: FloatArray) -> FloatArray:
    if W.shape[1] == 0:
        return np.ones(len(W))
    try:
        inverse = np.linalg.inv(W).astype(np.float64)
    except np.linalg.LinAlgError:  # one of them: find out which
        return np.array([0.0 if len(W) == 1 else _reciprocal_condition(one[None])[0] for one in W])
    with np.errstate(all="ignore"):
        found: FloatArray = 1.0 / (_norm(W) * _norm(inverse))
    return found


def _norm(W: FloatArray) -> FloatArray:
    norm: FloatArray = np.abs(W).sum(axis=1).max(axis=1)
    return norm


def _reciprocal(sizes: FloatArray) -> FloatArray:
    return 1.0 / np.where(sizes > 0, sizes, 1.0)
