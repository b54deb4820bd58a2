"""The order in which the unknowns of a symmetric system are eliminated, W = L D L', and where L fills in.

Without interchanges: right for mass matrices, and for those bordered by constraints when the constraints come last
(Vanderbei, SIAM Journal on Optimization 5, 1995). The order is that of least degree: the mass matrix of a tree of
bodies then fills in nowhere (Featherstone, Rigid Body Dynamics Algorithms, section 6.5).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

__all__ = ["Elimination", "elimination_of"]

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
