"""An order of the rows and columns of W in which its band is narrow."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching, reverse_cuthill_mckee

__all__ = ["Order", "band_order"]

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
