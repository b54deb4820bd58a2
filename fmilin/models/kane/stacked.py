"""Small dense systems at many points at once, or at one."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fmilin.codegen.factorized import Factorized
from fmilin.signals import FloatArray

__all__ = ["StackedSystems", "Systems", "systems"]


class Systems(Protocol):
    """W b = r for a stack of square matrices W."""

    @property
    def singular(self) -> NDArray[np.intp]:
        """Positions of the matrices that are singular to working precision."""

    def solve(self, right: FloatArray) -> FloatArray:
        """Return W^-1 right, for right (k, n, columns), when no matrix is singular."""


def systems(W: FloatArray) -> Systems:
    """Return the systems of a stack of matrices, shape (k, n, n)."""
    return _OneSystem(W) if len(W) == 1 else StackedSystems(W)


class _OneSystem:
    """A stack of a single matrix: its factors are computed once, which the functions for stacks cannot."""

    def __init__(self, W: FloatArray) -> None:
        self._factors = Factorized(W[0])

    @property
    def singular(self) -> NDArray[np.intp]:
        return np.flatnonzero([self._factors.is_singular])

    def solve(self, right: FloatArray) -> FloatArray:
        return self._factors.solve(right[0])[None]


class StackedSystems:
    """Several systems, rows and columns scaled to largest entries of one.

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
