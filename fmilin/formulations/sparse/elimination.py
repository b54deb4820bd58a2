"""A basis of the null space of a sparse Jacobian by elimination along its graph: R with Phi_q R = 0.

Each constraint is solved for one coordinate, which is then replaced in all others; what is left over is independent.
By Markowitz the constraint with the fewest coordinates goes first, and of these the one that the fewest other
constraints contain, with at least a tenth of the largest entry, which bounds rounding. In a linkage this walks from
joint to joint, and the number of operations grows with the number of constraints, not with a power of it.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import linalg

from fmilin.errors import NumericalError
from fmilin.tolerances import CANCELLATION_TOLERANCE, MAX_COORDINATE_CONDITION_NUMBER, PSEUDOINVERSE_TOLERANCE

MIN_PIVOT_FRACTION = 0.1  # A pivot is at least this fraction of the largest entry of its row

SparseRow = dict[int, float]


@dataclass(frozen=True, eq=False)
class SparseNullSpace:
    """R, and the coordinates that it was made with."""

    R: Any  # (n, n - rank), rows of the identity for the independent coordinates
    independent: NDArray[np.intp]  # shape (n - rank,)
    dependent: NDArray[np.intp]  # shape (rank,)
    rows: NDArray[np.intp]  # (rank,), constraints that are independent of each other
    Phi_q: Any  # shape (m, n)

    @cached_property
    def _factors(self) -> Any:
        """LU of the dependent columns."""
        return linalg.splu(self.Phi_q.tocsr()[self.rows].tocsc()[:, self.dependent].tocsc())

    def lift(self, right: Any) -> Any:
        """Return X, sparse (n, k), with Phi_q X = right, sparse (m, k), and zero rows for independent coordinates."""
        right = sparse.csc_array(right)[self.rows]
        full = sparse.csc_array((self.R.shape[0], right.shape[1]))
        columns = np.flatnonzero(np.diff(right.indptr))
        if not len(columns):
            return full
        blocks = [
            self._factors.solve(right[:, part].toarray()) for part in np.array_split(columns, -(-len(columns) // 64))
        ]
        solved = sparse.csc_array(np.hstack(blocks))
        rows = self.dependent[solved.indices]
        positions = (rows, columns[np.repeat(np.arange(len(columns)), np.diff(solved.indptr))])
        return sparse.csc_array((solved.data, positions), shape=full.shape)


def sparse_null_space(Phi_q: Any, independent: Sequence[int] | None = None) -> SparseNullSpace:
    """Return a sparse basis of the null space of a sparse Jacobian (m, n), redundant constraints left out."""
    Phi_q = sparse.csr_array(Phi_q)
    Phi_q.eliminate_zeros()
    n = Phi_q.shape[1]
    named = np.zeros(n, dtype=bool)
    if independent is not None:
        named[list(independent)] = True
    rows = _rows(Phi_q)
    pivots = _eliminate_rows(rows, named)
    dependent = np.array([c for _, c in pivots], dtype=np.intp)
    independent_rows = np.array([i for i, _ in pivots], dtype=np.intp)
    is_dependent = np.zeros(n, dtype=bool)
    is_dependent[dependent] = True
    free = np.flatnonzero(~is_dependent)
    if independent is not None:
        _require_named(n, len(pivots), np.asarray(independent, dtype=np.intp), is_dependent)
        free = np.asarray(independent, dtype=np.intp)
    R = _substitute_pivots(rows, pivots, free, n)
    return SparseNullSpace(R, free, dependent, independent_rows, Phi_q)


def _rows(Phi_q: Any) -> list[SparseRow]:
    """Return the rows as dictionaries, each scaled to a largest entry of one."""
    starts, columns, values = Phi_q.indptr.tolist(), Phi_q.indices.tolist(), Phi_q.data.tolist()
    scaled = []
    for begin, end in pairwise(starts):
        row = dict(zip(columns[begin:end], values[begin:end], strict=True))
        size = max(map(abs, row.values()), default=1.0)
        scaled.append({c: value / size for c, value in row.items()})
    return scaled


def _eliminate_rows(rows: list[SparseRow], named: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Eliminate in place; return (row, column) of every pivot in order. Rows that vanish have none."""
    holders: dict[int, set[int]] = {}
    for i, row in enumerate(rows):
        for c in row:
            holders.setdefault(c, set()).add(i)
    queue = [(len(row), i) for i, row in enumerate(rows)]
    heapq.heapify(queue)
    done = [False] * len(rows)
    pivots = []
    while queue:
        length, i = heapq.heappop(queue)
        if done[i] or length != len(rows[i]):
            continue  # an old entry: the row has changed since
        done[i] = True
        row = rows[i]
        for other in row:
            holders[other].discard(i)
        c = _pivot(row, holders, named)
        if c < 0:
            continue
        pivots.append((i, c))
        for k in holders.pop(c, set()):
            _subtract(rows[k], row, c, k, holders)
            heapq.heappush(queue, (len(rows[k]), k))
    return pivots


def _pivot(row: SparseRow, holders: dict[int, set[int]], named: NDArray[np.bool_]) -> int:
    """Return the column to solve a row for; -1 when nothing is left of the row."""
    size = max(map(abs, row.values()), default=0.0)
    if size < PSEUDOINVERSE_TOLERANCE:
        return -1
    usable = {c: abs(value) for c, value in row.items() if not named[c]}
    largest = max(usable.values(), default=0.0)
    if not largest * MAX_COORDINATE_CONDITION_NUMBER > size:
        raise NumericalError(_NOT_INDEPENDENT)
    good = [c for c, size in usable.items() if size >= MIN_PIVOT_FRACTION * largest]
    return min(good, key=lambda c: (len(holders[c]), -usable[c], c))


def _subtract(target: SparseRow, row: SparseRow, c: int, k: int, holders: dict[int, set[int]]) -> None:
    """Take the pivot's column c out of ``target``, which is row k."""
    factor = target.pop(c) / row[c]
    for other, value in row.items():
        if other == c:
            continue
        new = target.get(other, 0.0) - factor * value
        if abs(new) > CANCELLATION_TOLERANCE * max(1.0, abs(factor)):
            target[other] = new
            holders[other].add(k)
        elif other in target:
            del target[other]
            holders[other].discard(k)


def _substitute_pivots(rows: list[SparseRow], pivots: list[tuple[int, int]], free: NDArray[np.intp], n: int) -> Any:
    """Return R: every dependent coordinate through independent ones, last pivot first."""
    solved: dict[int, SparseRow] = {c: {k: 1.0} for k, c in enumerate(free.tolist())}
    for i, c in reversed(pivots):
        row, pivot = rows[i], rows[i][c]
        expression: SparseRow = {}
        for other, value in row.items():
            if other == c:
                continue
            factor = -value / pivot
            for k, coefficient in solved[other].items():
                expression[k] = expression.get(k, 0.0) + factor * coefficient
        solved[c] = expression
    triplets = [(c, k, value) for c, expression in solved.items() for k, value in expression.items() if value != 0.0]
    positions = np.array([t[:2] for t in triplets], dtype=np.intp).reshape(-1, 2).T
    R = sparse.csc_array((np.array([t[2] for t in triplets]), (positions[0], positions[1])), shape=(n, len(free)))
    R.sort_indices()
    return R


_NOT_INDEPENDENT = (
    "The coordinates named as independent do not determine the others: a constraint couples them here. Leave the "
    "choice to the elimination, or name others."
)


def _require_named(n: int, rank: int, independent: NDArray[np.intp], is_dependent: NDArray[np.bool_]) -> None:
    remaining = np.flatnonzero(~is_dependent)
    if len(np.unique(independent)) != n - rank or not np.array_equal(np.sort(independent), remaining):
        raise NumericalError(
            f"The {len(independent)} coordinates named as independent do not determine the others: {n} coordinates "
            f"under {rank} constraints that can be solved for the rest leave {n - rank} free. Leave the choice to the "
            "elimination, or name others."
        )
