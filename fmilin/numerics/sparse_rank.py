"""The rank of large sparse matrices: by their structure first, then by a sparse factorization.

A maximum matching of rows and columns says how large the rank can be, and which square part S may be regular; rows that
remain get a column of their own. Combinations w of the rows with w' M = 0 are small in w' S, so that they lie in the
span of the left singular vectors of S with the smallest singular values, which Lanczos' method finds by solving with
the factors of S, and of what the own columns bring. In this span, which has few dimensions, M itself decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmilin.signals import FloatArray

if TYPE_CHECKING:
    from scipy import sparse

Factorization = Any  # scipy.sparse.linalg.SuperLU, of which SciPy's types do not know that it solves with A', too

MAX_COMBINATIONS = 64  # that are sought; of more, arrays are to tell
FIRST_COMBINATION_COUNT = 4  # doubled until a singular value is not small: most models have none or one
PERTURBATION_SIZE = 1e-11  # of the diagonal of a part that is exactly singular: far below what counts as a rank
POWER_STEPS = 20  # enough for some parts in a hundred, which a limit needs
START_VECTOR_SEED = 1911  # seed of the vector with which Lanczos' method begins


def factorize(matrix: sparse.csc_array[Any]) -> Factorization | None:
    """Return the factors of a square matrix; None where it is exactly singular."""
    from scipy.sparse.linalg import splu

    try:
        return splu(matrix)
    except RuntimeError:  # that a factor is exactly singular
        return None


def equilibrate(matrix: sparse.csr_array[Any], rounds: int = 3) -> tuple[sparse.csr_array[Any], FloatArray, FloatArray]:
    """Return W M C with rows and columns of lengths near one, and the weights W (m,) and C (n,)."""
    from scipy import sparse

    m, n = matrix.shape
    data, columns = matrix.data.copy(), matrix.indices
    rows = np.repeat(np.arange(m), np.diff(matrix.indptr))
    of_rows, of_columns = np.ones(m), np.ones(n)
    tiny = float(np.finfo(float).tiny)
    for _ in range(rounds):
        norms = np.maximum(np.sqrt(np.bincount(rows, data * data, m)), tiny)
        data /= norms[rows]
        of_rows /= norms
        norms = np.maximum(np.sqrt(np.bincount(columns, data * data, n)), tiny)
        data /= norms[columns]
        of_columns /= norms
    return sparse.csr_array((data, columns, matrix.indptr), shape=matrix.shape), of_rows, of_columns


def estimate_largest_singular_value(matrix: sparse.csr_array[Any]) -> float:
    """Return the largest singular value, to some parts in a hundred, by the power method."""
    vector = np.random.default_rng(START_VECTOR_SEED).uniform(0.5, 1.0, matrix.shape[1])
    size = 0.0
    transposed = matrix.T.tocsr()
    for _ in range(POWER_STEPS):
        norm = float(np.linalg.norm(vector))
        if norm == 0.0:
            return 0.0
        image = matrix @ (vector / norm)
        size = float(np.linalg.norm(image))
        vector = transposed @ image
    return size


def find_left_null_space(matrix: sparse.csr_array[Any], relative: float) -> FloatArray | None:
    """Return orthonormal combinations w (m, r) of the rows with |w' M| of at most ``relative`` times the largest.

    None where there are more than a few, so that arrays are to tell.
    """
    from scipy import sparse
    from scipy.sparse.csgraph import maximum_bipartite_matching

    m = matrix.shape[0]
    partners = maximum_bipartite_matching(matrix, perm_type="column")
    unmatched = np.flatnonzero(partners < 0)
    if len(unmatched) > MAX_COMBINATIONS:
        return None
    largest = estimate_largest_singular_value(matrix)
    unit_columns = sparse.csr_array(
        (np.ones(len(unmatched)), (unmatched, np.arange(len(unmatched)))), shape=(m, len(unmatched))
    )
    columns = partners.copy()
    columns[unmatched] = matrix.shape[1] + np.arange(len(unmatched))
    part = sparse.hstack((matrix, unit_columns), format="csr")[:, columns].tocsc()
    factors = factorize(part)
    if factors is None:
        part = (part + PERTURBATION_SIZE * sparse.eye_array(m)).tocsc()  # the matching has put entries on the diagonal
        factors = factorize(part)
    if factors is None:
        return None
    span = _find_small(factors, m, relative * largest)
    if span is None:
        return None
    if len(unmatched):
        seeds = np.zeros((m, len(unmatched)))
        seeds[unmatched, np.arange(len(unmatched))] = 1.0  # in the order of the columns: those of the rows' own
        span = np.hstack((span, factors.solve(seeds, trans="T")))
    if not span.shape[1]:
        return span
    basis, _ = np.linalg.qr(span)
    along = np.asarray((matrix.T @ basis).T)  # (k, columns)
    U, sigma, _ = np.linalg.svd(along, full_matrices=along.shape[0] > along.shape[1])
    is_small = np.ones(len(U), dtype=bool)
    is_small[: len(sigma)] = sigma <= relative * largest
    return np.asarray(basis @ U[:, is_small])


def _find_small(factors: Factorization, m: int, limit: float) -> FloatArray | None:
    """Return the left singular vectors (m, r) of S with singular values up to a limit; None if they are many."""
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

    def apply(b: NDArray[Any]) -> FloatArray:
        right = np.asarray(b, dtype=np.float64).ravel()
        return np.asarray(factors.solve(factors.solve(right), trans="T"))

    if m <= 2 * FIRST_COMBINATION_COUNT:
        inverse = factors.solve(np.eye(m))
        sigma_inverse, left_vectors = np.linalg.svd(inverse.T)[1::-1]
        return np.asarray(left_vectors[:, sigma_inverse >= 1 / limit])
    operator = LinearOperator((m, m), matvec=apply, dtype=np.float64)
    start = np.random.default_rng(START_VECTOR_SEED).uniform(-1.0, 1.0, m)
    count = FIRST_COMBINATION_COUNT
    while count <= 2 * MAX_COMBINATIONS and count < m:
        try:
            values, vectors = eigsh(operator, k=count, which="LM", v0=start, tol=1e-3)
        except ArpackError:
            return None
        is_small = values >= limit**-2
        if not is_small.all():
            return np.asarray(vectors[:, is_small])
        count *= 4
    return None
