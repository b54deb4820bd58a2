"""Coefficients that make all rows zero: how many there are, and the sparsest ones."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from fmilin.signals import FloatArray
from fmilin.tolerances import DISCOVERED_GAP, DISCOVERY_TOLERANCE

MIN_SIZE = 1e-300
FULL_RANK = 1e-6  # smallest pivot of a triangle, of the largest, where no singular value is nothing
MAX_SHORTENED_ROWS = 60  # rows among which sums with fewer terms are searched for
MAX_TERMS = 40  # terms of a readable expression


@dataclass(frozen=True)
class NullSpace:
    """The null space of rows with normalized columns."""

    basis: FloatArray  # (K, r), orthonormal, for normalized columns
    sizes: FloatArray  # (K,), norms of the columns
    error: float  # the last singular value that counts as zero over the first that does not: the error of the basis


def null_space(rows: FloatArray, noise: float = 0.0) -> NullSpace:
    """Return the null space of rows (m, K), m > K, if there is a gap behind it; ``noise`` is relative, by row."""
    k = rows.shape[1]
    empty = NullSpace(np.empty((k, 0)), np.ones(k), 0.0)
    if not rows.size:
        return empty
    sizes = np.maximum(np.linalg.norm(rows, axis=0), MIN_SIZE)
    triangle, _ = linalg.qr(rows / sizes, mode="r", pivoting=True)
    pivots = np.abs(np.diag(triangle))
    if not pivots[0] > 0 or pivots[k - 1] > FULL_RANK * pivots[0] * max(1.0, noise / DISCOVERY_TOLERANCE):
        return empty  # most libraries hold nothing: their singular values would take minutes
    s, vt = svd(np.asarray(np.linalg.qr(rows / sizes, mode="r")), full=False)
    limit = s[0] * max(DISCOVERY_TOLERANCE, 10 * noise)
    small = np.flatnonzero(s <= limit)
    if not small.size or not small[0]:
        return empty
    # Where functions of a large library are nearly dependent, values fade: the widest gap decides.
    floored = np.maximum(s, 1e-16 * s[0])
    candidates = [i for i in range(max(small[0] - 3, 1), k) if s[i] <= limit]
    ratios = [floored[i - 1] / floored[i] for i in candidates]
    best = int(np.argmax(ratios))
    if ratios[best] < DISCOVERED_GAP:
        return empty
    first = candidates[best]
    return NullSpace(vt[first:].T, sizes, float(floored[first] / floored[first - 1]))


def svd(matrix: FloatArray, *, full: bool = True) -> tuple[FloatArray, FloatArray]:
    """Return all singular values, zeros for missing ones with ``full``, and the right singular vectors as rows."""
    try:
        _, s, vt = np.linalg.svd(matrix, full_matrices=full)
    except np.linalg.LinAlgError:  # the quick algorithm fails on some matrices with many zeros
        _, s, vt = linalg.svd(matrix, full_matrices=full, lapack_driver="gesvd")
    return np.concatenate((s, np.zeros(len(vt) - len(s)))), vt


def null_vector(space: NullSpace, nearest_to: FloatArray) -> FloatArray:
    """Return the combination (K,) of the space nearest to a given one."""
    return np.asarray(space.basis @ (space.basis.T @ (nearest_to * space.sizes)) / space.sizes)


def sparse_basis(space: NullSpace, order: Sequence[int]) -> Iterator[FloatArray]:
    """Yield combinations with many zeros, shape (K,), those without the last, unwelcome terms of ``order`` first."""
    echelon = space.basis.T.copy()
    tolerance = max(1e-9, 100 * space.error)
    row = 0
    # Every vector gets a leading term, as far back in the order as its kind allows, that no other has.
    for column in reversed(order):
        if row == len(echelon):
            break
        pivot = row + int(np.argmax(np.abs(echelon[row:, column])))
        if abs(echelon[pivot, column]) <= 10 * tolerance:
            continue
        echelon[[row, pivot]] = echelon[[pivot, row]]
        echelon[row] /= echelon[row, column]
        other_rows = np.arange(len(echelon)) != row
        echelon[other_rows] -= np.outer(echelon[other_rows, column], echelon[row])
        row += 1
    sizes = np.abs(echelon[:row]).max(axis=1, keepdims=True, initial=MIN_SIZE)
    rows = np.where(np.abs(echelon[:row]) > tolerance * sizes, echelon[:row], 0.0)[::-1]
    for vector in _shorten_rows(rows, tolerance):
        yield vector / space.sizes


def _shorten_rows(rows: FloatArray, tolerance: float) -> FloatArray:
    """Add rows to rows where that leaves fewer terms: what a chain is made of, not what adds up along it."""
    rows = rows.copy()
    has_changed = len(rows) <= MAX_SHORTENED_ROWS
    while has_changed:
        has_changed = False
        for i in np.argsort(-np.count_nonzero(rows, axis=1), kind="stable"):
            best = min(_eliminate_common_terms(rows, int(i), tolerance), key=np.count_nonzero, default=rows[i])
            if 0 < np.count_nonzero(best) < np.count_nonzero(rows[i]):
                rows[i], has_changed = best, True
    return rows


def _eliminate_common_terms(rows: FloatArray, i: int, tolerance: float) -> Iterator[FloatArray]:
    """Yield row i plus multiples of other rows in which a term of both is gone."""
    for j in range(len(rows)):
        if i == j:
            continue
        common = np.flatnonzero((rows[i] != 0) & (rows[j] != 0))
        for ratio in {round(float(rows[i, c] / rows[j, c]), 9) for c in common}:
            combination = rows[i] - ratio * rows[j]
            yield np.where(
                np.abs(combination) > tolerance * np.abs(combination).max(initial=MIN_SIZE), combination, 0.0
            )
