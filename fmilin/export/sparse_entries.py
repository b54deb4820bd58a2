"""Sparse matrices in files: the positions and the values of their entries.

In .mat files they are MATLAB's sparse matrices. In JSON and .npz files they are four members: ``shape``, and for each
entry its row and its column, counted from 0, and its value. Entries may stand in any order. JSON has the rows of the
matrices, too (:class:`DenseRows`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy import sparse

MEMBERS = ("shape", "rows", "columns", "values")


class SparseEntries(dict[str, Any]):
    """A sparse matrix as a mapping with the :data:`MEMBERS`, three of them arrays with a number for each entry."""

    @classmethod
    def of_parts(
        cls, shape: Sequence[int], rows: NDArray[Any], columns: NDArray[Any], values: NDArray[Any]
    ) -> SparseEntries:
        """Return the entries. Raises ValueError where their positions do not fit the shape."""
        height, width = (int(length) for length in shape)
        indices = [np.asarray(part, dtype=np.int64).ravel() for part in (rows, columns)]
        numbers = np.asarray(values, dtype=np.float64).ravel()
        if not len(indices[0]) == len(indices[1]) == len(numbers):
            raise ValueError("the entries of a sparse matrix have different numbers of rows, columns and values")
        for part, length in zip(indices, (height, width), strict=True):
            if len(part) and not (part.min() >= 0 and part.max() < length):
                raise ValueError("an entry of a sparse matrix lies outside of its shape")
        return cls(shape=[height, width], rows=indices[0], columns=indices[1], values=numbers)

    @classmethod
    def of_matrix(cls, matrix: sparse.csr_array[Any]) -> SparseEntries:
        """Return the entries of a SciPy array, row by row."""
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        return cls.of_parts(matrix.shape, rows, matrix.indices, matrix.data)

    @classmethod
    def of_mapping(cls, value: Mapping[str, Any]) -> SparseEntries:
        """Return the entries that a file holds; KeyError where a member is missing."""
        shape, rows, columns, values = (np.asarray(value[name]) for name in MEMBERS)
        return cls.of_parts(shape.ravel().tolist(), rows, columns, values)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        height, width = self["shape"]
        return height, width

    @property
    def parts(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """The row, the column and the value of each entry."""
        return self["rows"], self["columns"], self["values"]

    def by_columns(self) -> SparseEntries:
        """Return the entries that are not zero, column by column, as MATLAB keeps them."""
        rows, columns, values = self.parts
        order = np.lexsort((rows, columns))
        order = order[values[order] != 0.0]
        return self.of_parts(self.shape, rows[order], columns[order], values[order])

    def to_matrix(self) -> sparse.csr_array[Any]:
        """Return a SciPy array."""
        from scipy import sparse

        rows, columns, values = self.parts
        matrix = sparse.csr_array((values, (rows, columns)), shape=self.shape)
        matrix.sort_indices()
        return matrix


@dataclass(frozen=True)
class DenseRows:
    """A sparse matrix of which JSON gets all rows, with their zeros, as of any other matrix."""

    entries: SparseEntries

    def to_json(self) -> str:
        """Return the rows without making an array of them."""
        height, width = self.entries.shape
        texts = [["0.0"] * width for _ in range(height)]
        for row, column, value in zip(*(part.tolist() for part in self.entries.parts), strict=True):
            texts[row][column] = repr(value)
        return "[" + ", ".join("[" + ", ".join(row) + "]" for row in texts) + "]"
