"""Some modes of a large linear model: those with eigenvalues nearest to a number, by Arnoldi's method.

The iteration works with (A - s I)^-1: its largest eigenvalues belong to those of A near s, by one sparse
factorization. The error of each eigenvalue is that of the entries of A, rounding and the residual, times the condition
number of a simple eigenvalue: |w|' E |v| / |w' v| (Higham and others), with the left eigenvector by inverse iteration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fmilin.errors import NumericalError, UsageError
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.modes import (
    Complex,
    Mode,
    Modes,
    compute_modes,
    compute_rate,
    compute_shape,
    convert_errors_to_rates,
    slowness,
)
from fmilin.signals import FloatArray
from fmilin.tolerances import EPS

if TYPE_CHECKING:
    from scipy import sparse

MAX_DENSE_STATES = 50  # states up to which all modes are computed, and the nearest of them taken
OFF_EIGENVALUE = 1e-8  # of the norm of A: how far a shift is moved that is an eigenvalue itself
START_SEED = 1913  # seed of the vector with which Arnoldi's method begins


def select_modes(linear: LinearModel, count: int | None = None, *, near: complex = 0.0) -> Modes:
    """Return all modes of a linear model, or those of the ``count`` eigenvalues nearest to ``near``."""
    if count is None:
        return compute_modes(linear.A, linear.T, linear.sample_time, linear.errors.A)
    if count < 1:
        raise UsageError(f"count={count} is not a number of eigenvalues: take 1 or more, or None for all modes.")
    P = len(linear.states)
    if min(MAX_DENSE_STATES, 2 * count + 2) >= P or count >= P - 2:
        all_modes = compute_modes(linear.A, linear.T, linear.sample_time, linear.errors.A)
        distances = [min(abs(m.eigenvalue - near), abs(m.eigenvalue.conjugate() - near)) for m in all_modes]
        return Modes(_take_count([all_modes[i] for i in np.argsort(distances, kind="stable")], count))
    values, vectors = _find_nearest(linear.sparse.A, count, complex(near))
    order = np.argsort(-values.imag, kind="stable")  # of a pair the one with positive imaginary part comes first
    values, vectors = values[order], vectors[:, order]
    errors = _estimate_errors(linear.sparse.A, linear.sparse.errors.A, values, vectors)
    modes: list[Mode] = []
    for value, vector, error in zip(values.tolist(), vectors.T, errors.tolist(), strict=True):
        mode = _make_mode(linear, value, vector, error)
        is_same = [abs(other.eigenvalue - mode.eigenvalue) <= 10 * EPS * mode.frequency for other in modes]
        if value.imag >= 0 or not any(is_same):  # else it is the other one of a pair
            modes.append(mode)
    return Modes(sorted(modes, key=lambda m: slowness(m.eigenvalue)))


def _make_mode(linear: LinearModel, value: complex, vector: Complex, error: float) -> Mode:
    """Return the mode of an eigenvalue; of the one of a pair with negative imaginary part that of the other one."""
    upper, along = (value.conjugate(), vector.conj()) if value.imag < 0 else (value, vector)
    T: Any = linear.sparse.T
    shape, largest = compute_shape(T, along)
    sample_time = linear.sample_time
    rate_error = float(convert_errors_to_rates(upper, error, sample_time))
    is_alternating = sample_time > 0 and upper.imag == 0 and upper.real < 0
    return Mode(compute_rate(upper, sample_time), shape / largest, rate_error, is_alternating)


def _take_count(modes: list[Mode], count: int) -> list[Mode]:
    """Return the first modes with so many eigenvalues, slowest first; a pair counts twice."""
    chosen: list[Mode] = []
    for mode in modes:
        if sum(1 + m.is_oscillatory for m in chosen) >= count:
            break
        chosen.append(mode)
    return sorted(chosen, key=lambda m: slowness(m.eigenvalue))


def _find_nearest(A: sparse.csr_array[Any], count: int, near: complex) -> tuple[Complex, Complex]:
    """Return the eigenvalues nearest to a number, and their eigenvectors as columns."""
    from scipy.sparse.linalg import ArpackError, eigs

    shift: complex = near if near.imag else near.real
    # Of a real matrix the iteration would work with the real part of the inverse, which has other eigenvalues.
    matrix = A.astype(np.complex128).tocsc() if near.imag else A.tocsc()
    start = np.random.default_rng(START_SEED).uniform(-1.0, 1.0, A.shape[0])
    for moved in (0.0, OFF_EIGENVALUE * _norm(A)):
        try:
            _, vectors = eigs(matrix, k=count, sigma=shift + moved, v0=start)
        except RuntimeError as error:
            if isinstance(error, ArpackError):
                raise NumericalError(
                    f"Arnoldi's method does not converge to {count} eigenvalues near {near:g}. Compute fewer, or near "
                    "another number; modes() computes all."
                ) from None
            continue  # the shift is an eigenvalue, so that the factor is exactly singular
        return _polish(A, np.asarray(vectors))
    raise NumericalError(f"A - s I is singular for all s near {near:g}. Compute modes near another number.")


def _polish(A: sparse.csr_array[Any], vectors: Complex) -> tuple[Complex, Complex]:
    """Return Rayleigh quotients, real where they are real to rounding."""
    vectors = vectors / np.linalg.norm(vectors, axis=0)
    quotients = (vectors.conj() * np.asarray(A @ vectors)).sum(axis=0)
    is_real = np.abs(quotients.imag) <= 100 * EPS * _norm(A)
    return np.where(is_real, quotients.real + 0j, quotients), vectors


def _estimate_errors(
    A: sparse.csr_array[Any], E: sparse.csr_array[Any], values: Complex, vectors: Complex
) -> FloatArray:
    from scipy import sparse
    from scipy.sparse.linalg import splu

    unit = sparse.eye_array(A.shape[0], format="csc", dtype=np.complex128)
    norm = _norm(A)
    errors = []
    for value, v in zip(values.tolist(), vectors.T, strict=True):
        residual = np.linalg.norm(A @ v - value * v)
        factors: Any = splu((A - (value + OFF_EIGENVALUE * norm) * unit).tocsc())
        w = np.conj(v)
        for _ in range(2):
            w = factors.solve(w, trans="T")
            w /= np.linalg.norm(w)
        cosine = max(abs(w @ v), EPS)
        entries = np.abs(w) @ (E @ np.abs(v))
        errors.append(float((entries + residual + EPS * norm) / cosine))
    return np.array(errors)


def _norm(A: sparse.csr_array[Any]) -> float:
    """Return the Frobenius norm."""
    return float(np.linalg.norm(A.data))
