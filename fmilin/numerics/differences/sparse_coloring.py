"""Coloring of large patterns, of which only the entries are stored; see :mod:`fmilin.numerics.differences.coloring`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmilin.numerics.differences.coloring import group_greedily
from fmilin.numerics.differences.thresholds import FULL_ROW_RATIO

if TYPE_CHECKING:
    from scipy import sparse

MIN_FULL_ROW_SIZE = 64  # of a row that is never full


def find_full_rows(pattern: sparse.csr_array[Any]) -> NDArray[np.intp]:
    """Return the rows that would give most columns a color of their own, as a sum over all states does."""
    counts = np.diff(pattern.indptr)
    limit = max(MIN_FULL_ROW_SIZE, FULL_ROW_RATIO * float(np.mean(counts)) if len(counts) else 0.0)
    return np.flatnonzero(counts > limit)


def sparse_column_groups(pattern: sparse.csc_array[Any]) -> list[list[int]]:
    """Return groups of columns with disjoint rows, greedily, fullest column first.

    >>> from scipy import sparse
    >>> sparse_column_groups(sparse.csc_array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]))
    [[1], [0, 2]]
    """
    sizes = np.diff(pattern.indptr)
    order = np.argsort(-sizes, kind="stable").tolist()
    rows = [part.tolist() for part in np.split(pattern.indices, pattern.indptr[1:-1])]
    return group_greedily(rows, order, pattern.shape[0])
