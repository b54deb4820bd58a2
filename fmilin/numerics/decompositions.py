"""Decompositions of small dense matrices by LAPACK, with the arguments and results of ``scipy.linalg``.

Each calls the routine that the function of the same purpose there calls, and tests compare the two. They exist because
``import scipy.linalg`` takes longer than a linear model: see :mod:`fmilin.numerics.lapack`. Routines that are rarely
needed are imported from SciPy where they are used.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmilin.numerics.lapack import lapack
from fmilin.signals import FloatArray
from fmilin.tolerances import EPS

Complex = NDArray[np.complex128]
Routine = Any  # of LAPACK, compiled by f2py: the stubs do not know all arguments


def decompose_by_singular_values(
    matrix: FloatArray, *, full_matrices: bool = True
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return U, the singular values and V' of a matrix (m, n), as ``scipy.linalg.svd``.

    Raises ValueError for entries that are not finite.
    """
    m, n = matrix.shape
    _require_finite(matrix)
    if not matrix.size:
        rows, columns = (m, n) if full_matrices else (0, 0)
        return np.eye(m, rows), np.empty(0), np.eye(columns, n)
    lwork = int(lapack.dgesdd_lwork(m, n, compute_uv=True, full_matrices=full_matrices)[0])
    U, sigma, Vt, info = lapack.dgesdd(matrix, compute_uv=True, lwork=lwork, full_matrices=full_matrices)
    if info:
        raise np.linalg.LinAlgError("The computation of the singular values of a matrix failed.")
    return U, sigma, Vt


def null_space(matrix: FloatArray, rcond: float | None = None) -> FloatArray:
    """Return an orthonormal basis of the null space of a matrix (m, n), as ``scipy.linalg.null_space``."""
    _, sigma, Vt = decompose_by_singular_values(matrix)
    return Vt[_count_singular_values(sigma, rcond, matrix.shape) :].T


def column_space(matrix: FloatArray, rcond: float | None = None) -> FloatArray:
    """Return an orthonormal basis of the span of the columns of a matrix (m, n), as ``scipy.linalg.orth``."""
    U, sigma, _ = decompose_by_singular_values(matrix, full_matrices=False)
    return U[:, : _count_singular_values(sigma, rcond, matrix.shape)]


def _count_singular_values(sigma: FloatArray, rcond: float | None, shape: tuple[int, ...]) -> int:
    limit = EPS * max(shape) if rcond is None else rcond
    return int(np.count_nonzero(sigma > limit * np.max(sigma, initial=0.0)))


def compute_balancing_scales(matrix: FloatArray) -> FloatArray:
    """Return the powers of two by which a square matrix is balanced, without permutations, shape (n,)."""
    _require_finite(matrix)
    if not matrix.size:
        return np.ones(0)
    _, low, high, pivots, _ = lapack.dgebal(matrix, scale=1, permute=0)
    scales = np.ones(len(matrix))
    scales[low : high + 1] = pivots[low : high + 1]
    return scales


def schur_complex(matrix: Complex) -> tuple[Complex, Complex]:
    """Return the triangular T and the unitary Z of A = Z T Z', as ``scipy.linalg.schur``."""
    _require_finite(matrix)
    if not matrix.size:
        return matrix, matrix
    zgees: Routine = lapack.zgees
    lwork = int(zgees(_select_nothing, matrix, lwork=-1)[-2][0].real)
    T, _, _, Z, _, info = zgees(_select_nothing, matrix, lwork=lwork, sort_t=0)
    if info:
        raise np.linalg.LinAlgError("The computation of the Schur form of a matrix failed.")
    return T, Z


def _select_nothing(_: complex) -> None:
    """Select no eigenvalue to be moved to the front."""


def eigenvectors(matrix: FloatArray) -> tuple[Complex, Complex, Complex]:
    """Return the eigenvalues of a square matrix, and its left and right eigenvectors, as ``scipy.linalg.eig``."""
    _require_finite(matrix)
    n = len(matrix)
    lwork = int(lapack.dgeev_lwork(n, compute_vl=True, compute_vr=True)[0]) if n else 1
    if not n:
        return np.empty(0, np.complex128), np.empty((0, 0), np.complex128), np.empty((0, 0), np.complex128)
    real, imaginary, left_vectors, right_vectors, info = lapack.dgeev(
        matrix, compute_vl=True, compute_vr=True, lwork=lwork
    )
    if info:
        raise np.linalg.LinAlgError("The computation of the eigenvalues of a matrix failed.")
    values = real + 1j * imaginary
    return values, _complex_vectors(values, left_vectors), _complex_vectors(values, right_vectors)


def compute_generalized_eigenvectors(A: FloatArray, B: FloatArray) -> tuple[Complex, Complex, Complex]:
    """Return the eigenvalues of A x = w B x, and left and right eigenvectors of some length."""
    _require_finite(A)
    _require_finite(B)
    dggev: Routine = lapack.dggev
    lwork = int(dggev(A, B, lwork=-1)[-2][0])
    real, imaginary, beta, left_vectors, right_vectors, _, info = dggev(
        A, B, compute_vl=True, compute_vr=True, lwork=lwork
    )
    if info:
        raise np.linalg.LinAlgError("The computation of the eigenvalues of a pencil failed.")
    numerators = real + 1j * imaginary
    values = np.full(len(A), np.nan + 0j)
    finite = beta != 0
    values[finite] = numerators[finite] / beta[finite]
    values[~finite & (numerators != 0)] = np.inf
    return values, _complex_vectors(values, left_vectors), _complex_vectors(values, right_vectors)


def _complex_vectors(values: Complex, vectors: FloatArray) -> Complex:
    """Return eigenvectors from real and imaginary parts in columns, as LAPACK stores those of conjugate pairs."""
    complex_vectors = vectors.astype(np.complex128)
    first = values.imag > 0
    first[:-1] |= values.imag[1:] < 0
    for i in np.flatnonzero(first).tolist():
        complex_vectors.imag[:, i] = vectors[:, i + 1]
        complex_vectors[:, i + 1] = complex_vectors[:, i].conj()
    return complex_vectors


def _require_finite(matrix: NDArray[Any]) -> None:
    if not np.isfinite(matrix).all():
        raise ValueError("A matrix to be decomposed has entries that are not finite.")
