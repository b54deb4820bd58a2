"""How many of the invariants are independent, and which: by singular values of scaled rows and columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.linalg.lapack import dgeqp3, dgesdd

from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import CLEAR_GAP, RANK, RANK_MEASURED, RANK_UNKNOWN

TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True, slots=True)
class RankDecision:
    """The rank of a scaled matrix and how clear the case is."""

    rank: int
    gap: float  # smallest accepted over largest rejected; infinite when nothing was rejected

    @property
    def is_clear(self) -> bool:
        """Whether the gap leaves no doubt."""
        return self.gap > CLEAR_GAP


def scaled(
    H: FloatArray, scales: FloatArray, reference: FloatArray, error: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return H (m, N) with columns times ``scales`` and rows normalized, and what each row was divided by, (m,).

    Rows that are only rounding become zero, and are divided by the size of their terms: those 1e-12 times smaller
    than ``reference`` (m,), or that are mostly ``error`` (m, N).
    """
    rows = H * scales
    norms = np.linalg.norm(rows, axis=1)
    floor = np.maximum(1e-12 * reference, TINY)
    if error.any():
        floor = np.maximum(floor, 10 * np.linalg.norm(error * scales, axis=1))
    keep = norms > floor
    sizes = np.where(keep, norms, np.where(reference > 0, reference, 1.0))
    return np.where(keep[:, None], rows / sizes[:, None], 0.0), sizes


def threshold(H: FloatArray, scales: FloatArray, error: FloatArray) -> float:
    """Return the part of the largest singular value that counts as zero: :data:`RANK`, or what errors make of one."""
    if not error.any():
        return RANK
    norms = np.linalg.norm(H * scales, axis=1)
    relative = np.linalg.norm(error * scales, axis=1) / np.where(norms > 0, norms, np.inf)
    return float(np.clip(np.linalg.norm(relative[relative < 0.1]), RANK_MEASURED, RANK_UNKNOWN))


def decide_rank(Hs: FloatArray, threshold: float = RANK) -> RankDecision:
    """Decide the rank of a scaled matrix (:func:`scaled`), shape (m, N)."""
    if min(Hs.shape) == 0:
        return RankDecision(0, np.inf)
    sigma = singular_values(Hs)
    if sigma[0] == 0.0:
        return RankDecision(0, np.inf)
    rank = int(np.count_nonzero(sigma > threshold * sigma[0]))
    rejected = sigma[rank] if rank < len(sigma) else 0.0
    gap = float(sigma[rank - 1] / rejected) if rejected > 0 else np.inf
    return RankDecision(rank, gap)


def singular_values(matrix: FloatArray) -> FloatArray:
    """Return the singular values of a finite matrix, largest first."""
    _, sigma, _, failed = dgesdd(matrix, compute_uv=0)  # what numpy.linalg.svd does, without its checks
    if failed:
        raise np.linalg.LinAlgError("The singular values of a matrix were not found: it is not finite.")
    return np.asarray(sigma)


def independent_rows(Hs: FloatArray, rank: int, preferred: int) -> list[int]:
    """Return ``rank`` independent rows of a scaled matrix by pivoted QR, the first ``preferred`` before others."""
    if rank == len(Hs):
        return list(range(rank))
    first = _pivoted(Hs[:preferred], rank)
    if len(first) == rank:
        return sorted(first)
    rest = Hs[preferred:]
    if first:
        basis = linalg.orth(Hs[first].T)
        rest = rest - (rest @ basis) @ basis.T
    second = [preferred + i for i in _pivoted(rest, rank - len(first), relative=False)]
    return sorted(first + second)


def _pivoted(rows: FloatArray, count: int, *, relative: bool = True) -> list[int]:
    if len(rows) == 0 or count == 0:
        return []
    diagonal, order = pivoted_qr(rows.T)
    floor = RANK * diagonal[0] if relative else 0.0
    usable = int(np.count_nonzero(diagonal > floor))
    return [int(i) for i in order[: min(count, usable)]]


def pivoted_qr(matrix: FloatArray) -> tuple[FloatArray, NDArray[np.intp]]:
    """Return the diagonal of R, absolute, and the order of the columns in a QR decomposition with column pivoting."""
    n = matrix.shape[1]
    packed, order, *_ = dgeqp3(matrix, lwork=2 * n + 32 * (n + 1))  # what scipy.linalg.qr does, without Q
    return np.abs(np.diagonal(packed)), order.astype(np.intp) - 1
