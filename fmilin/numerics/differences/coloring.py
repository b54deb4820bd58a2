"""Coloring: columns that may be displaced together because no row depends on two of them (Curtis, Powell and Reid)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fmilin.signals import FloatArray

Pattern = NDArray[np.bool_]

FEW_STATES = 200  # up to which products of full matrices are quick, and SciPy's sparse ones need not be loaded
SPARSE_WORK_FRACTION = (
    0.05  # part of the multiplications of full matrices, up to which sparse matrices are multiplied faster
)


def tangent_pattern(structure: Pattern, constraints: Pattern, T: FloatArray, x_u: FloatArray) -> Pattern:
    """Return which rows may depend on which coordinates and inputs, (r, P + nu), through states tied by constraints."""
    n, k = x_u.shape
    by_states, moved = structure[:, :n], np.hstack((T != 0, x_u != 0))
    if constraints.any():
        # Each coordinate may move all states that are linked with one that it moves.
        membership = _find_linked_states(constraints)
        by_states, moved = multiply_patterns(by_states, membership.T), multiply_patterns(membership, moved)
    reached = multiply_patterns(by_states, moved)
    reached[:, reached.shape[1] - k :] |= structure[:, n:]
    return reached


def multiply_patterns(first: Pattern, second: Pattern) -> Pattern:
    """Return the product (r, c) of patterns (r, N) and (N, c): where a row of the one meets a column of the other."""
    if max(*first.shape, *second.shape) > FEW_STATES:
        work = int(first.sum(axis=0) @ second.sum(axis=1))
        if work < SPARSE_WORK_FRACTION * first.size * second.shape[1]:
            from scipy import sparse  # only where it is needed: it takes a tenth of a second to load

            entries = sparse.coo_array(
                sparse.csr_array(first, dtype=np.int32) @ sparse.csr_array(second, dtype=np.int32)
            )
            result = np.zeros(entries.shape, dtype=bool)
            result[entries.coords] = True
            return result
    return np.asarray((first.astype(np.float32) @ second.astype(np.float32)) > 0)


def _find_linked_states(constraints: Pattern) -> Pattern:
    """Return which sets of states (sets, N) are linked by constraints (m, N), one by one or through others."""
    n = constraints.shape[1]
    if n <= FEW_STATES:
        linked = multiply_patterns(constraints.T, constraints) | np.eye(n, dtype=bool)
        while True:
            further = multiply_patterns(linked, linked)
            if np.array_equal(further, linked):
                break
            linked = further
        labels = linked.argmax(axis=1)  # the first state of each set
    else:
        from scipy import sparse
        from scipy.sparse.csgraph import connected_components

        # A graph of states and constraints: its edges are the entries, without a product of them.
        rows, states = np.nonzero(constraints)
        size = n + len(constraints)
        graph = sparse.coo_array((np.ones(len(rows), dtype=np.int32), (n + rows, states)), shape=(size, size))
        labels = connected_components(graph, directed=False)[1][:n]
    representatives = np.unique(labels, return_index=True)[0]  # without the indices numpy imports numpy.ma
    return np.asarray(representatives[:, None] == labels)


def list_entries(pattern: Pattern) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return rows and columns of the entries of a pattern, column by column."""
    rows, columns = np.nonzero(pattern)
    order = np.argsort(columns, kind="stable")
    return rows[order], columns[order]


def column_groups(pattern: Pattern) -> list[list[int]]:
    """Return groups of columns with disjoint rows, greedily: fullest column first, or from left to right."""
    count = pattern.shape[1]
    rows, columns = list_entries(pattern)
    sizes = np.bincount(columns, minlength=count)
    fewest = int(np.bincount(rows).max(initial=0))  # the columns that one row depends on are all in different groups
    order = np.argsort(-sizes, kind="stable").tolist()
    if fewest == count:
        return [[j] for j in order]
    rows_of_columns = [part.tolist() for part in np.split(rows, np.cumsum(sizes)[:-1])]
    groups = group_greedily(rows_of_columns, order, len(pattern))
    if len(groups) > fewest:
        groups = min(groups, group_greedily(rows_of_columns, list(range(count)), len(pattern)), key=len)
    return groups


def group_greedily(rows_of_columns: list[list[int]], order: list[int], row_count: int) -> list[list[int]]:
    """Return groups of columns with disjoint rows: each goes to the first group in which it fits, in this order."""
    groups: list[list[int]] = []
    taken = [0] * row_count  # the groups that contain a column of each row, as bits
    for j in order:
        taken_together = 0
        for row in rows_of_columns[j]:
            taken_together |= taken[row]
        bit = ~taken_together & (taken_together + 1)  # the lowest one that is free
        for row in rows_of_columns[j]:
            taken[row] |= bit
        group = bit.bit_length() - 1
        if group == len(groups):
            groups.append([])
        groups[group].append(j)
    return groups
