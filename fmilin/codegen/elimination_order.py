"""The order in which the unknowns of a sparse system are eliminated: of a symmetric one, and in a narrow band."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Entry = tuple[int, int]  # row, column
Pattern = Collection[Entry]


@dataclass(frozen=True)
class Elimination:
    """An order of elimination for a symmetric system, W = L D L', and where L fills in."""

    order: tuple[int, ...]  # the row of each pivot
    slots: dict[Entry, int]  # where each entry of L is stored, with the pivot's column, diagonal included
    below: tuple[tuple[int, ...], ...]  # for each pivot the rows that it changes

    def slot(self, i: int, j: int) -> int:
        """Return where the entry (i, j) of a symmetric matrix is stored."""
        return self.slots[i, j] if (i, j) in self.slots else self.slots[j, i]


def order_elimination(pattern: Pattern, n: int) -> Elimination | None:
    """Return an order of elimination for a symmetric pattern of n rows; None where a pivot would be zero by structure.

    Without interchanges: right where constraints come last (Vanderbei, SIAM Journal on Optimization 5, 1995). By least
    degree a tree of bodies fills in nowhere (Featherstone, Rigid Body Dynamics Algorithms, section 6.5).
    """
    neighbours: list[set[int]] = [set() for _ in range(n)]
    pivots = {i for i, j in pattern if i == j}
    for i, j in pattern:
        if i != j:
            neighbours[i].add(j)
            neighbours[j].add(i)
    remaining, order, below = set(range(n)), [], []
    slots: dict[Entry, int] = {}
    while remaining:
        ready = [i for i in remaining if i in pivots]
        if not ready:
            return None
        k = min(ready, key=lambda i: (len(neighbours[i]), i))
        remaining.remove(k)
        order.append(k)
        rows = sorted(neighbours[k])
        below.append(tuple(rows))
        slots[k, k] = len(slots)
        for i in rows:
            slots[i, k] = len(slots)
            pivots.add(i)  # filled in
            neighbours[i] |= neighbours[k] - {i}
            neighbours[i].remove(k)
    return Elimination(tuple(order), slots, tuple(below))


@dataclass(frozen=True)
class Order:
    """An order of rows and columns: the new position of each, and the width of the band on both sides."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    lower: int
    upper: int

    @property
    def cost(self) -> int:
        """Operations of an elimination with row interchanges, per row and up to a factor."""
        return (self.lower + 1) * (self.lower + self.upper + 1)


def band_order(pattern: Pattern, n: int) -> Order:
    """Return an order with a narrow band: the better of Cuthill and McKee's with and without matching rows first."""
    if not pattern:
        return Order(tuple(range(n)), tuple(range(n)), 0, 0)
    from scipy.sparse.csgraph import maximum_bipartite_matching

    partners: list[Sequence[int]] = [range(n)]
    matched = maximum_bipartite_matching(_graph(pattern, n), perm_type="column")  # -1 where a row has no partner
    if np.all(matched >= 0):
        partners.append(matched.tolist())
    return min((_cuthill_mckee(pattern, partner) for partner in partners), key=lambda order: order.cost)


def _cuthill_mckee(pattern: Pattern, partner: Sequence[int]) -> Order:
    """Order the pattern in which row i stands at position ``partner[i]``."""
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    n = len(partner)
    entries = [(partner[i], j) for i, j in pattern]
    hull = _graph([*entries, *((j, i) for i, j in entries)], n)
    position = np.empty(n, dtype=np.intp)
    position[reverse_cuthill_mckee(hull, symmetric_mode=True)] = np.arange(n)
    offsets = [int(position[j] - position[i]) for i, j in entries]
    rows = tuple(position[list(partner)].tolist())
    return Order(rows, tuple(position.tolist()), max(0, -min(offsets)), max(0, *offsets))


def _graph(edges: Pattern, n: int) -> csr_array:
    from scipy.sparse import coo_array, csr_array

    entries = np.array(list(edges), dtype=np.int32).reshape(-1, 2)  # csgraph of older SciPy takes no wider numbers
    return csr_array(coo_array((np.ones(len(entries), dtype=np.int8), tuple(entries.T)), shape=(n, n)))
