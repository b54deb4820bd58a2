"""Coloring: columns that may be displaced together because no row depends on two of them (Curtis, Powell and Reid)."""

import numpy as np
from numpy.typing import NDArray

from fmilin.signals import FloatArray

Pattern = NDArray[np.bool_]

FEW_STATES = 200  # up to which the closure of links is a few products of matrices


def tangent_pattern(structure: Pattern, constraints: Pattern, T: FloatArray, x_u: FloatArray) -> Pattern:
    """Return which rows may depend on which coordinates and inputs, (r, P + nu), through states tied by constraints."""
    n, k = x_u.shape
    if not constraints.any():
        moved = np.hstack((T != 0, x_u != 0))
        reached: Pattern = structure[:, :n] @ moved
        reached[:, moved.shape[1] - k :] |= structure[:, n:]
        return reached
    together = _link_states(constraints)
    coordinates = structure[:, :n] @ (together @ (T != 0))
    inputs = structure[:, n:] | (
        structure[:, :n] @ (together @ (x_u != 0)) if k else np.zeros((len(structure), 0), bool)
    )
    return np.hstack((coordinates, inputs))


def _link_states(constraints: Pattern) -> Pattern:
    """Return which states (N, N) are linked by constraints (m, N), one by one or through others."""
    if constraints.shape[1] <= FEW_STATES:
        sizes = constraints.astype(np.float64)
        linked = (sizes.T @ sizes + np.eye(constraints.shape[1])) > 0
        while True:
            further = (linked.astype(np.float64) @ linked) > 0
            if np.array_equal(further, linked):
                return np.asarray(linked)
            linked = further
    from scipy import sparse  # only where it is needed: it takes a tenth of a second to load
    from scipy.sparse.csgraph import connected_components

    rows = sparse.csr_array(constraints.astype(np.float64))
    labels = connected_components(rows.T @ rows, directed=False)[1]
    return np.asarray(labels[:, None] == labels[None, :])


def column_groups(pattern: Pattern) -> list[list[int]]:
    """Return groups of columns with disjoint rows, greedily, fullest column first."""
    order = np.argsort(-pattern.sum(axis=0), kind="stable")
    groups: list[list[int]] = []
    covered: list[Pattern] = []
    for j in order.tolist():
        column = pattern[:, j]
        free = next((g for g, rows in enumerate(covered) if not (rows & column).any()), None)
        if free is None:
            groups.append([j])
            covered.append(column.copy())
        else:
            groups[free].append(j)
            covered[free] |= column
    return groups
