"""Order and index of a matrix pencil s E - A: its infinite eigenvalues are deflated by orthogonal transformations.

Each step compresses E by an SVD to its rank r; the other rows of U' (s E - A) are algebraic, and a compression of their
columns leaves a pencil of size r with the same finite eigenvalues (Van Dooren, Linear Algebra Appl. 27, 1979).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fmilin.signals import FloatArray
from fmilin.tolerances import PENCIL_NONZERO_THRESHOLD, PENCIL_ZERO_TOLERANCE

ENLARGED_ENTRY_SIZE = 0.01  # size that doubtful entries are given, to see whether they decide


@dataclass(frozen=True)
class Deflation:
    """The finite part of a pencil."""

    E: FloatArray  # regular
    A: FloatArray
    index: int  # steps that were taken: the index of the pencil

    @property
    def order(self) -> int:
        """How many finite eigenvalues there are."""
        return len(self.A)

    def eigenvalues(self) -> FloatArray:
        """Return the finite eigenvalues, sorted by real part, then imaginary part."""
        values = np.linalg.eigvals(np.linalg.solve(self.E, self.A)) if len(self.A) else np.zeros(0)
        return np.asarray(values[np.lexsort((values.imag, values.real))])


def deflate(E: FloatArray, A: FloatArray) -> Deflation | None:
    """Return the finite part of s E - A; None where the rank of a block is undecided, or the pencil is singular."""
    return _deflate_scaled(*_equilibrate(E, A))


def is_order_doubtful(E: FloatArray, A: FloatArray) -> bool:
    """Return whether entries that may be rounding or meant (1e-17 with an unknown of 1e17) decide about the order."""
    E, A, unit = _equilibrate(E, A)
    orders = []
    for size in (0.0, ENLARGED_ENTRY_SIZE):
        deflation = _deflate_scaled(_resize(E, size), _resize(A, size), unit)
        orders.append(None if deflation is None else deflation.order)
    return None in orders or orders[0] != orders[1]


def _resize(matrix: FloatArray, size: float) -> FloatArray:
    """Return a matrix with small entries of another size, with various factors so that none cancel."""
    factors = 0.75 + 0.25 * np.cos(np.arange(matrix.size) + 1.0).reshape(matrix.shape)
    return np.where(np.abs(matrix) < PENCIL_NONZERO_THRESHOLD, size * np.sign(matrix) * factors, matrix)


def _deflate_scaled(E: FloatArray, A: FloatArray, unit: float) -> Deflation | None:
    index = 0
    while len(E):
        U, sigma, _ = np.linalg.svd(E)
        if (rank := _rank(sigma, 1.0)) is None:
            return None
        if rank == len(E):
            break
        E, A = U.T @ E, U.T @ A
        algebraic = A[rank:]
        _, sigma, Vt = np.linalg.svd(algebraic)
        if _rank(sigma, 1.0) != len(E) - rank:
            return None
        null_basis = Vt[len(E) - rank :].T  # columns on which the algebraic rows say nothing
        E, A = E[:rank] @ null_basis, A[:rank] @ null_basis
        index += 1
    return Deflation(unit * E, A, index)


def _rank(sigma: FloatArray, size: float) -> int | None:
    """Return how many singular values are not rounding; None where one is neither clearly zero nor clearly not."""
    largest = max(size, float(sigma.max(initial=0.0)))
    if ((sigma > PENCIL_ZERO_TOLERANCE * largest) & (sigma < PENCIL_NONZERO_THRESHOLD * largest)).any():
        return None
    return int(np.count_nonzero(sigma >= PENCIL_NONZERO_THRESHOLD * largest))


def _equilibrate(E: FloatArray, A: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Return E / unit and A with rows and columns scaled to largest entries of about one, and the unit of 1/s."""
    E, A, unit = E.copy(), A.copy(), 1.0
    for _ in range(4):
        for axis in (1, 0):
            sizes = np.maximum(np.abs(E).max(axis=axis, initial=0.0), np.abs(A).max(axis=axis, initial=0.0))
            scale = 1.0 / np.sqrt(np.where(sizes > 0, sizes, 1.0))
            factors = scale[:, None] if axis == 1 else scale
            E, A = E * factors, A * factors
        largest = np.abs(E).max(initial=0.0)
        if largest > 0:
            E, unit = E / largest, unit * largest
    return E, A, unit
