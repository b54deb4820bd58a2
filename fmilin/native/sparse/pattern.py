"""Sparse matrices whose places never change: sorted once, filled often."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmilin.ground.signals import FloatArray

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Pattern"]

IntArray = NDArray[np.intp]


class Pattern:
    """The places (row, column) of a sparse matrix, in the order in which its values will be given.

    A place may occur several times: its values are added, as finite elements are.

    Shapes: rows, columns (k,).

    >>> pattern = Pattern([0, 1, 1], [0, 1, 1], (2, 2))
    >>> pattern.dense(np.array([1.0, 2.0, 3.0])).tolist()
    [[1.0, 0.0], [0.0, 5.0]]
    """

    def __init__(
        self, rows: Sequence[int] | IntArray, columns: Sequence[int] | IntArray, shape: tuple[int, int]
    ) -> None:
        self.rows = np.asarray(rows, dtype=np.intp)
        self.columns = np.asarray(columns, dtype=np.intp)
        self.shape = shape
        flat = self.columns * shape[0] + self.rows  # column by column, as CSC stores them
        self._places, self._slots = np.unique(flat, return_inverse=True)
        self._indices = (self._places % max(shape[0], 1)).astype(np.int32)
        counts = np.bincount(self._places // max(shape[0], 1), minlength=shape[1])
        self._starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)

    @property
    def size(self) -> int:
        """How many values are needed."""
        return self.rows.size

    def sparse(self, values: FloatArray) -> Any:
        """Return the matrix as a scipy.sparse CSC array; places whose value is zero are kept."""
        from scipy.sparse import csc_array

        return csc_array((self._summed(values), self._indices, self._starts), shape=self.shape)

    def dense(self, values: FloatArray) -> FloatArray:
        """Return the matrix as an array."""
        full = np.zeros(self.shape[0] * self.shape[1])
        full[self._places] = self._summed(values)
        return full.reshape(self.shape, order="F")

    def _summed(self, values: FloatArray) -> FloatArray:
        return np.bincount(self._slots, weights=values, minlength=self._places.size).astype(np.float64, copy=False)

    @classmethod
    def joined(cls, parts: Sequence[tuple[Pattern, int, int]], shape: tuple[int, int]) -> Pattern:
        """Return the pattern of a matrix made of ``parts``: (pattern, first row, first column) each."""
        rows = np.concatenate([p.rows + i for p, i, _ in parts]) if parts else np.empty(0, np.intp)
        columns = np.concatenate([p.columns + j for p, _, j in parts]) if parts else np.empty(0, np.intp)
        return cls(rows, columns, shape)

    @property
    def T(self) -> Pattern:
        """The pattern of the transposed matrix, for the same values."""
        return Pattern(self.columns, self.rows, (self.shape[1], self.shape[0]))
