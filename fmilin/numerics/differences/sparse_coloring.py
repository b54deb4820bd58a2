"""Coloring of large patterns, of which only the entries are stored; see :mod:`fmilin.numerics.differences.coloring`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy import sparse

FEW_ENTRIES = 64  # of a row that is never full


def find_full_rows(pattern: sparse.csr_array[Any]) -> NDArray[np.intp]:
    """Return the rows that would give most columns a color of their own, as a sum over all states does."""
    counts = np.diff(pattern.indptr)
    limit = max(FEW_ENTRIES, 8 * float(np.mean(counts)) if len(counts) else 0.0)
    return np.flatnonzero(counts > limit)


def sparse_column_groups(pattern: sparse.csc_array[Any]) -> list[list[int]]:
    """Return groups of columns with disjoint rows, greedily, fullest column first; columns without entries are left.

    >>> from scipy import sparse
    >>> sparse_column_groups(sparse.csc_array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]))
    [[1], [0, 2]]
    """
    columns = pattern.indptr.tolist()
    rows = pattern.indices.tolist()
    groups: list[list[int]] = []
    groups_of_row: list[set[int]] = [set() for _ in range(pattern.shape[0])]
    for j in np.argsort(-np.diff(pattern.indptr), kind="stable").tolist():
        members = rows[columns[j] : columns[j + 1]]
        if not members:
            break
        taken: set[int] = set().union(*(groups_of_row[i] for i in members))
        group = next(g for g in range(len(groups) + 1) if g not in taken)
        if group == len(groups):
            groups.append([])
        groups[group].append(j)
        for i in members:
            groups_of_row[i].add(group)
    return groups
