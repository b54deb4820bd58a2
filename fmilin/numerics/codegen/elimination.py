"""The order in which the unknowns of a symmetric system are eliminated, W = L D L', and where L fills in.

Without interchanges: right for mass matrices, and for those bordered by constraints when the constraints come last
(Vanderbei, SIAM Journal on Optimization 5, 1995). The order is that of least degree: the mass matrix of a tree of
bodies then fills in nowhere (Featherstone, Rigid Body Dynamics Algorithms, section 6.5).

An order of the rows and columns of W in which its band is narrow.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching, reverse_cuthill_mckee

__all__ = ["Elimination", "Order", "band_order", "elimination_of"]


Place = tuple[int, int]


@dataclass(frozen=True)
class Elimination:
    """An order of elimination."""

    order: tuple[int, ...]  # the row of each pivot
    # where each entry of L is kept: places (row, column) of W with the pivot's column, diagonal included
    slots: dict[Place, int]
    below: tuple[tuple[int, ...], ...]  # for each pivot the rows that it changes

    def slot(self, i: int, j: int) -> int:
        """Return where the entry (i, j) of a symmetric matrix is kept."""
        return self.slots[i, j] if (i, j) in self.slots else self.slots[j, i]


def elimination_of(pattern: Collection[Place], n: int) -> Elimination | None:
    """Return an order for a symmetric pattern of n rows; None where a pivot would be zero by structure."""
    beside: list[set[int]] = [set() for _ in range(n)]
    pivots = {i for i, j in pattern if i == j}
    for i, j in pattern:
        if i != j:
            beside[i].add(j)
            beside[j].add(i)
    left, order, below = set(range(n)), [], []
    slots: dict[Place, int] = {}
    while left:
        ready = [i for i in left if i in pivots]
        if not ready:
            return None
        k = min(ready, key=lambda i: (len(beside[i]), i))
        left.remove(k)
        order.append(k)
        rows = sorted(beside[k])
        below.append(tuple(rows))
        slots[k, k] = len(slots)
        for i in rows:
            slots[i, k] = len(slots)
            pivots.add(i)  # filled in
            beside[i] |= beside[k] - {i}
            beside[i].remove(k)
    return Elimination(tuple(order), slots, tuple(below))


Pattern = Collection[tuple[int, int]]


@dataclass(frozen=True)
class Order:
    """An order of rows and columns."""

    # rows, columns: the new place of each row and column
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    # lower, upper: entries lie at most so many places left and right of the diagonal
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
    places = np.array(list(edges), dtype=np.int32).reshape(-1, 2)  # csgraph of older SciPy takes no wider numbers
    return csr_array(coo_array((np.ones(len(places), dtype=np.int8), tuple(places.T)), shape=(n, n)))
