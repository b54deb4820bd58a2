"""Eigenvalues of E z' = A z + B u, how well rounding leaves them, and the state-space of some of them.

The first 2n entries of z are (dq, dv). Rows and columns are balanced first (Lemonnier and Van Dooren), by powers of
two: displacements, velocities and multipliers differ by many orders of magnitude, and QZ is only as good as the largest
of them lets it be: three digits for the flexible double pendulum.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from fmilin.diagnostics import Remark, no_linear_model
from fmilin.errors import NumericalError
from fmilin.formulations.form import Basis, ConstrainedForm, Lift
from fmilin.formulations.formulation import ComplexArray, ReducedSystem, Spectrum, motion_vectors, violations
from fmilin.signals import FloatArray
from fmilin.tolerances import EPS

MAX_EIGENVECTOR_CONDITION_NUMBER = (
    1e8  # condition number of eigenvectors above which deflating subspaces are taken from a reordered QZ instead
)


@dataclass(frozen=True, eq=False)
class Pencil:
    """E z' = A z + B u."""

    E: FloatArray  # shape (k, k)
    A: FloatArray  # shape (k, k)
    B: FloatArray  # shape (k, nu)
    n: int  # z starts with dq (n,) and dv (n,)


@dataclass(frozen=True, eq=False)
class Eigenpairs:
    """All eigenvalues of a pencil, sorted by modulus, infinite ones last."""

    values: ComplexArray  # shape (k,)
    # right, left: (k, k), eigenvectors: A x = s E x and y* A = s y* E
    right_vectors: ComplexArray
    left_vectors: ComplexArray
    # (k,), what a backward stable algorithm may make of each eigenvalue: eps (|A| + |s| |E|) |y| |x| / |y* E x|
    errors: FloatArray
    # rows, columns: (k,), the scaling that was used: rows A columns
    rows: FloatArray
    columns: FloatArray


def eigenpairs(pencil: Pencil) -> Eigenpairs:
    """Return all eigenvalues by QZ (Moler and Stewart) of the balanced pencil."""
    if not (np.isfinite(pencil.A).all() and np.isfinite(pencil.E).all()):
        raise NumericalError("The linearized equations hold values that are not numbers: choose another point.")
    rows, columns = _equilibrate_pencil(pencil)
    E, A = rows[:, None] * pencil.E * columns, rows[:, None] * pencil.A * columns
    try:
        result: Any = linalg.eig(A, E, left=True, right=True, homogeneous_eigvals=True)
    except linalg.LinAlgError as error:
        raise NumericalError(f"QZ does not converge on this pencil ({error}). Use the formulation mcs.") from error
    (alpha, beta), y, x = result
    infinite = beta == 0
    finite = np.where(infinite, 1.0, beta)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        values = np.where(infinite, complex(np.inf, 0.0), alpha / finite)
    size = np.abs(values)
    overlap = np.abs(np.einsum("ij,ij->j", y.conj(), E @ x))
    lengths = np.linalg.norm(y, axis=0) * np.linalg.norm(x, axis=0)
    is_simple = np.isfinite(size) & (overlap > 0)
    backward = EPS * (_norm(A) + np.where(is_simple, size, 0.0) * _norm(E))
    errors = np.where(is_simple, backward * lengths / np.where(is_simple, overlap, 1.0), np.nan)
    errors = _of_rigid_motions(errors, size, _frequency(pencil))
    order = np.lexsort((values.imag, _round_moduli(size)))
    return Eigenpairs(
        values=values[order].astype(np.complex128),
        right_vectors=(columns[:, None] * x)[:, order].astype(np.complex128),
        left_vectors=(rows[:, None] * y)[:, order].astype(np.complex128),
        errors=errors[order],
        rows=rows,
        columns=columns,
    )


def state_space(
    pencil: Pencil, pairs: Eigenpairs, chosen: NDArray[np.bool_], S: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return A (p, p), B (p, nu), T (2n, p) of the motion of ``chosen`` eigenvalues, y = S (dq, dv), (dq, dv) = T y.

    With bases V, W of the deflating subspaces (W* E V) zeta' = (W* A V) zeta + W* B u; conjugates are chosen together.
    """
    p = int(np.count_nonzero(chosen))
    if p == 0:
        return np.zeros((0, 0)), np.zeros((0, pencil.B.shape[1])), np.zeros((2 * pencil.n, 0))
    V, W = _unit(pairs.right_vectors[:, chosen], pairs.columns), _unit(pairs.left_vectors[:, chosen], pairs.rows)
    if max(_condition(V, pairs.columns), _condition(W, pairs.rows)) > MAX_EIGENVECTOR_CONDITION_NUMBER:
        V = _find_deflating_basis(pencil.A, pencil.E, pairs, pairs.values[chosen])
        transposed = replace(
            pairs,
            right_vectors=pairs.left_vectors,
            left_vectors=pairs.right_vectors,
            rows=pairs.columns,
            columns=pairs.rows,
        )
        W = _find_deflating_basis(pencil.A.T, pencil.E.T, transposed, pairs.values[chosen])
    left_basis, motion = W.conj().T, V[: 2 * pencil.n]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", linalg.LinAlgWarning)
            back = linalg.inv(S @ motion)
            # A = (S V) (W* E V)^-1 (W* A V) (S V)^-1
            reduced = linalg.solve(left_basis @ pencil.E @ V, left_basis @ np.hstack((pencil.A @ V, pencil.B)))
    except (linalg.LinAlgError, linalg.LinAlgWarning) as error:
        raise NumericalError(
            f"The true eigenvalues have no state-space form in these coordinates ({error}). Use the formulation mcs, "
            "or other coordinates."
        ) from error
    A, B, T = S @ motion @ reduced[:, :p] @ back, S @ motion @ reduced[:, p:], motion @ back
    return A.real.copy(), B.real.copy(), T.real.copy()


def label_modes(
    form: ConstrainedForm,
    basis: Basis,
    pairs: Eigenpairs,
    is_true: NDArray[np.bool_],
    words: tuple[str, str],
    *,
    vectors: ComplexArray,
    remarks: Sequence[Remark] = (),
) -> Spectrum:
    """Return the spectrum; ``words``: as for :func:`solution`; ``vectors`` (2n, k): eigenvectors in (dq, dv)."""
    return Spectrum(
        *words,
        eigenvalues=pairs.values,
        is_true=is_true,
        vectors=vectors,
        violations=violations(form, vectors),
        errors=pairs.errors,
        sizes={"n": form.n, "m": form.m, "rank": form.n - basis.R.shape[1], "order": len(pairs.values)},
        remarks=tuple(remarks),
    )


def solution(
    problem: tuple[ConstrainedForm, Basis, Lift, Pencil],
    pairs: Eigenpairs,
    is_true: NDArray[np.bool_],
    words: tuple[str, str],
    error: float,
    remarks: Sequence[Remark],
    *,
    advice: str = "",
) -> tuple[Spectrum, ReducedSystem | None]:
    """Return the spectrum, and the state-space of the true eigenvalues where one can be made; else a diagnostic."""
    form, basis, lift, pencil = problem
    reduced = None
    try:
        S = linalg.block_diag(basis.S, basis.S)
        reduced = ReducedSystem(*state_space(pencil, pairs, is_true, S), basis, error, lift)
    except (NumericalError, linalg.LinAlgError) as singular:
        remarks = [*remarks, no_linear_model(singular, advice)]
    vectors = motion_vectors(pairs.right_vectors, form.n)
    return label_modes(form, basis, pairs, is_true, words, vectors=vectors, remarks=remarks), reduced


def _norm(matrix: FloatArray) -> float:
    """Return a bound of the 2-norm, near it for a balanced matrix."""
    size = np.abs(matrix)
    return float(np.sqrt(np.max(size.sum(axis=0), initial=0.0) * np.max(size.sum(axis=1), initial=0.0)))


def _of_rigid_motions(errors: FloatArray, size: FloatArray, frequency: float) -> FloatArray:
    """Return the errors with those of double zeros replaced: y* E x = 0 there, and they move like sqrt(eps)."""
    zero = size < np.sqrt(EPS) * frequency
    if np.count_nonzero(zero) < 2:
        return errors
    return np.where(zero, np.fmin(errors, np.maximum(size, np.sqrt(EPS) * frequency)), errors)


def _round_moduli(size: FloatArray) -> FloatArray:
    """Return moduli to nine digits, so that rounding does not part conjugates or order them by chance."""
    exponent = np.floor(np.log10(np.where(np.isfinite(size) & (size > 0), size, 1.0)))
    unit = 10.0 ** (exponent - 8)
    return np.where(np.isfinite(size), np.round(size / unit) * unit, np.inf)


def _equilibrate_pencil(pencil: Pencil) -> tuple[FloatArray, FloatArray]:
    """Return powers of two that bring the norms of rows and columns of |A|^2 + w^2 |E|^2 near one."""
    A, E = pencil.A, pencil.E
    X = A**2 + _frequency(pencil) ** 2 * E**2
    rows, columns = np.ones(len(A)), np.ones(len(A))
    for _ in range(10):
        columns = _normalize_scale(columns, rows**2 @ X * columns**2)
        rows = _normalize_scale(rows, X @ columns**2 * rows**2)
    return np.exp2(np.round(np.log2(rows))), np.exp2(np.round(np.log2(columns)))


def _normalize_scale(scale: FloatArray, squares: FloatArray) -> FloatArray:
    positive = squares > 0
    return np.where(positive, scale / np.sqrt(np.where(positive, squares, 1.0)), scale)


def _frequency(pencil: Pencil) -> float:
    """Return a frequency of the system, in the middle of sqrt(K_ii / M_ii); 1 rad/s if there is none."""
    n = pencil.n
    K, M = np.abs(np.diagonal(pencil.A[n : 2 * n, :n])), np.abs(np.diagonal(pencil.E[n : 2 * n, n : 2 * n]))
    both = (K > 0) & (M > 0)
    return float(np.median(np.sqrt(K[both] / M[both]))) if both.any() else 1.0


def _unit(vectors: ComplexArray, scale: FloatArray) -> ComplexArray:
    """Return eigenvectors scaled to unit length as the balanced pencil measures it."""
    unit: ComplexArray = vectors / np.linalg.norm(vectors / scale[:, None], axis=0)
    return unit


def _condition(vectors: ComplexArray, scale: FloatArray) -> float:
    return float(np.linalg.cond(vectors / scale[:, None]))


def _find_deflating_basis(A: FloatArray, E: FloatArray, pairs: Eigenpairs, chosen: ComplexArray) -> ComplexArray:
    """Return a basis of the right deflating subspace of the eigenvalues nearest to ``chosen``, by reordered QZ."""

    def nearest(alpha: ComplexArray, beta: ComplexArray) -> NDArray[np.bool_]:
        finite = beta != 0
        values = np.where(finite, alpha / np.where(finite, beta, 1.0), 0.0)
        free, taken = finite.copy(), np.zeros(len(values), dtype=bool)
        for s in chosen:
            i = int(np.argmin(np.where(free, np.abs(values - s), np.inf)))
            free[i], taken[i] = False, True
        return taken

    scaling = pairs.rows[:, None]
    sort: Any = nearest  # called once, with all alpha and beta
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            *_, Z = linalg.ordqz(scaling * A * pairs.columns, scaling * E * pairs.columns, sort=sort, output="real")
    except (linalg.LinAlgError, ValueError, RuntimeWarning) as error:
        raise NumericalError(
            "The true and the spurious eigenvalues are too close for a state-space form of the true ones alone "
            f"({error}). Use the formulation mcs."
        ) from error
    return np.asarray(pairs.columns[:, None] * Z[:, : len(chosen)], dtype=np.complex128)
