"""The sparsity of W w = r: an order in which its band is narrow, and what each unknown depends on."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching, reverse_cuthill_mckee

__all__ = ["Order", "band_order", "dependencies_of_unknowns"]

Pattern = Collection[tuple[int, int]]


@dataclass(frozen=True)
class Order:
    """An order of rows and columns.

    Parameters
    ----------
    rows, columns : tuple of int
        The new place of each row and column.
    lower, upper : int
        Entries lie at most so many places left and right of the diagonal.
    """

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    lower: int
    upper: int

    @property
    def cost(self) -> int:
        """Operations of an elimination with row interchanges, per row and up to a factor."""
        return (self.lower + 1) * (self.lower + self.upper + 1)


def band_order(pattern: Pattern, n: int) -> Order:
    """Return an order of the n rows and columns that makes the band of a square pattern narrow.

    The better of two: the rows as they stand, and the rows matched with columns first; each then in the
    order of Cuthill and McKee (reversed) for the symmetric hull of the pattern.
    """
    if not pattern:
        return Order(tuple(range(n)), tuple(range(n)), 0, 0)
    matched = _matching(pattern, n)
    partners = [tuple(range(n))]
    if matched is not None:
        partners.append(tuple(matched))
    return min((_cuthill_mckee(pattern, partner) for partner in partners), key=lambda order: order.cost)


def dependencies_of_unknowns(pattern: Pattern, rows: Sequence[int]) -> list[int]:
    """Return the set of variables on which each unknown depends, through the structure of the inverse.

    Unknown j is matched with a row; it depends on what that row contains and on the other unknowns of that
    row. Unknowns that depend on each other (the strong components) depend on the same.

    Parameters
    ----------
    pattern : collection of (int, int)
        Where W is not zero.
    rows : sequence of int
        What each row of r - W w depends on, W and r together, as a set of bits; the unknowns left out.
    """
    n = len(rows)
    if n == 0:
        return []
    matched = _matching(pattern, n)
    if matched is None:  # singular in structure: nothing can be said
        return [_union(rows)] * n
    column_of = dict(enumerate(matched))
    edges = [(column_of[i], j) for i, j in pattern]
    _, component = connected_components(_graph(edges, n), directed=True, connection="strong")
    found = [0] * (int(component.max()) + 1)
    for row, reach in enumerate(rows):
        found[component[column_of[row]]] |= reach
    between = sorted({(int(component[j]), int(component[k])) for j, k in edges if component[j] != component[k]})
    changed = True
    while changed:
        changed = False
        for a, b in between:
            if found[a] | found[b] != found[a]:
                found[a] |= found[b]
                changed = True
    return [found[c] for c in component]


def _matching(pattern: Pattern, n: int) -> list[int] | None:
    """Return a column for each row such that the entry there is not zero, or None where there is no such choice."""
    columns = maximum_bipartite_matching(_graph(pattern, n), perm_type="column")
    return None if np.any(columns < 0) else [int(c) for c in columns]


def _cuthill_mckee(pattern: Pattern, partner: Sequence[int]) -> Order:
    """Order the pattern in which row i stands at place ``partner[i]``."""
    n = len(partner)
    entries = [(partner[i], j) for i, j in pattern]
    hull = _graph([*entries, *((j, i) for i, j in entries)], n)
    place = np.empty(n, dtype=np.intp)
    place[reverse_cuthill_mckee(hull, symmetric_mode=True)] = np.arange(n)
    offsets = [int(place[j] - place[i]) for i, j in entries]
    rows = tuple(int(place[partner[i]]) for i in range(n))
    return Order(rows, tuple(int(c) for c in place), max(0, -min(offsets)), max(0, *offsets))


def _graph(edges: Collection[tuple[int, int]], n: int) -> csr_array:
    i, j = zip(*edges, strict=True) if edges else ((), ())
    return csr_array(coo_array((np.ones(len(i), dtype=np.int8), (i, j)), shape=(n, n)))


def _union(sets: Sequence[int]) -> int:
    union = 0
    for s in sets:
        union |= s
    return union
