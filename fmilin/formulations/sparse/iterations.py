"""The iterations behind :func:`fmilin.formulations.sparse.eigenvalues_near`: Lanczos, Arnoldi, and small problems."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from scipy.sparse import linalg

from fmilin.errors import NumericalError, UsageError
from fmilin.formulations.formulation import ComplexArray, without_inertia
from fmilin.formulations.sparse.problem import (
    EXTENDED,
    LinearPencil,
    QuadraticProblem,
    RefinedFactors,
    to_extended_precision,
)
from fmilin.numerics.factors import SparseFactors
from fmilin.signals import FloatArray
from fmilin.tolerances import CANCELLATION_TOLERANCE, EPS

MAX_DENSE_SIZE = 60  # problems of fewer coordinates are solved whole

DISTANCE = 0.013
"""The shift lies this fraction off the frequency: exactly on an eigenvalue nothing could be factorized."""

TINY = float(np.finfo(np.float64).tiny)

NEGLIGIBLE_MOTION_RATIO = 1e-9
"""Motions that the inverse of the shifted matrix reaches less than this are too far from the shift to matter."""


@dataclass(frozen=True, slots=True)
class Around:
    """Which eigenvalues are wanted."""

    frequency: float = 0.0  # in rad/s: those nearest to i times it; 0 for the slowest ones
    count: int = 4  # how many, a pair of complex ones counting once

    def __post_init__(self) -> None:
        if not (np.isfinite(self.frequency) and self.frequency >= 0):
            raise UsageError(f"The frequency around which to search must be 0 rad/s or more, not {self.frequency}.")
        if self.count < 1 or int(self.count) != self.count:
            raise UsageError(f"The number of eigenvalues must be 1 or more, not {self.count}.")


@dataclass(frozen=True, eq=False)
class Solutions:
    """Eigenvalues with (dq, dv) as columns, and an error estimate for each."""

    values: ComplexArray
    vectors: ComplexArray
    errors: FloatArray


def quadratic(problem: QuadraticProblem, around: Around) -> Solutions:
    """Return the wanted solutions of (s^2 M + s C + K) x + G' l = 0, G x = 0."""
    if problem.border and problem.M.shape[0] - problem.border <= MAX_DENSE_SIZE:
        problem = problem.within(_find_reachable_basis(problem, around))
    values, x = _symmetric(problem, around) if problem.is_symmetric else _solve_damped(problem, around)
    keep = _choose_nearest(values, around)
    values, x = values[keep], x[:, keep]
    return Solutions(values, problem.extract_motion(x, values), _errors(problem, values, x, around))


def _find_reachable_basis(problem: QuadraticProblem, around: Around) -> FloatArray:
    """Return an orthonormal basis of the range of the inverse of the bordered matrix: all of the few dimensions."""
    size = problem.M.shape[0]
    free = size - problem.border
    right = problem.M @ np.random.default_rng(2017).standard_normal((size, free + 2))
    solve, _ = _factorize_shifted(
        problem.to_extended_precision().border_matrix, around.frequency * (1 - DISTANCE), problem
    )
    reached = solve(np.vstack((right, np.zeros((problem.border, free + 2)))))[:size]
    Q, upper, _ = qr(reached, mode="economic", pivoting=True)
    sizes = np.abs(np.diag(upper))[:free]
    if free and not sizes[0] > 0:
        _require_inertia(np.zeros((free, free)))
    return np.asarray(Q[:, :free][:, sizes > NEGLIGIBLE_MOTION_RATIO * sizes[0]], dtype=np.float64)


def _symmetric(problem: QuadraticProblem, around: Around) -> tuple[ComplexArray, ComplexArray]:
    """Return eigenvalues s = +-sqrt(-mu), in pairs, and vectors, from K x = mu M x."""
    size, zeros = problem.M.shape[0], np.zeros(problem.border)
    if not size:
        return np.empty(0, np.complex128), np.empty((0, 0), np.complex128)
    wide = problem.to_extended_precision()
    solve, shift = _factorize_shifted(wide.shift_matrix, around.frequency**2 * (1 - DISTANCE) ** 2, problem)

    def apply_inverse(b: FloatArray) -> FloatArray:
        result: FloatArray = solve(np.concatenate((b.ravel(), zeros)))[:size]
        return result

    x = _lanczos(problem, apply_inverse, shift, around.count + 2)
    # A Rayleigh quotient squares what the iteration left of an error.
    y = to_extended_precision(x)
    mu = (np.sum(y * (wide.K @ y), axis=0) / np.sum(y * (wide.M @ y), axis=0)).astype(np.float64)
    s = np.where(mu > 0, 1j * np.sqrt(np.abs(mu)), np.sqrt(np.abs(mu)))
    return np.concatenate((s, np.where(mu > 0, s.conj(), -s))), np.hstack((x, x)).astype(np.complex128)


def _lanczos(
    problem: QuadraticProblem, apply_inverse: Callable[[FloatArray], FloatArray], shift: float, count: int
) -> FloatArray:
    """Return vectors of the mu nearest to the shift, or of all of a small problem."""
    size = problem.M.shape[0]
    if size <= MAX_DENSE_SIZE and not problem.border:
        M = problem.M.toarray()
        _require_inertia(M)
        nu, x = np.linalg.eig(np.column_stack([apply_inverse(column) for column in M.T]))
        return np.asarray(x.real[:, np.argsort(-np.abs(nu))], dtype=np.float64)
    start = apply_inverse(problem.M @ np.random.default_rng(2017).standard_normal(size))
    operator = linalg.LinearOperator((size, size), matvec=apply_inverse, dtype=np.float64)
    try:
        return np.asarray(linalg.eigsh(operator, k=count, M=problem.M, sigma=shift, OPinv=operator, v0=start, tol=0)[1])
    except linalg.ArpackError as error:
        raise NumericalError(_no_convergence(error)) from None


def _solve_damped(problem: QuadraticProblem, around: Around) -> tuple[ComplexArray, ComplexArray]:
    """Return eigenvalues and vectors of the problem in z = (x, s x)."""
    size, zeros = problem.M.shape[0], np.zeros(problem.border)
    solve, sigma = _factorize_shifted(problem.to_extended_precision().border_matrix, _shift(around), problem)

    def apply_inverse(z: Any) -> Any:
        # (A - sigma E)^-1 E z: sigma x - y = -x0 and sigma M y + C y + K x + G' l = -M y0
        x0, y0 = z[:size], z[size:]
        right = -(problem.M @ (y0 + sigma * x0)) - problem.C @ x0
        x = solve(np.concatenate((right, zeros)))[:size]
        return np.concatenate((x, sigma * x + x0))

    s, z = _arnoldi(apply_inverse, 2 * size, sigma, 2 * (around.count + 2))
    return s, z[:size]


def _require_inertia(M: FloatArray) -> None:
    values = np.linalg.eigvalsh((M + M.T) / 2) if np.isfinite(M).all() else np.full(len(M), np.nan)
    if not values[0] > CANCELLATION_TOLERANCE * values[-1]:
        raise without_inertia(values[0], values[-1])


def _errors(problem: QuadraticProblem, s: ComplexArray, x: ComplexArray, around: Around) -> FloatArray:
    """Return what the solver's rounding may do to each eigenvalue, the matrices taken as they are given.

    With x for the left vector it is eps |x|' (|s|^2 |M| + |s| |C| + |K|) |x| / |x' (2 s M + C) x|, eps that of
    extended precision (of a penalty: double). The iteration itself sees 1/(s - shift) to double precision.
    """
    if not len(s):
        return np.empty(0)
    size = np.abs(x)
    M, C, K = (np.einsum("ij,ij->j", size, abs(a) @ size) for a in (problem.M, problem.C, problem.K))
    slope = np.abs(np.einsum("ij,ij->j", x.conj(), problem.M @ x * (2 * s) + problem.C @ x))
    backward = np.abs(s) ** 2 * M + np.abs(s) * C + K
    iteration = np.abs(s)
    if not problem.is_symmetric:
        away = np.abs(s - _shift(around))
        iteration = iteration + away * (np.max(away) / max(float(np.min(away)), 1e-9 * float(np.max(away)), TINY))
    digits = EPS if problem.is_approximate else EXTENDED
    errors: FloatArray = digits * backward / np.where(slope > 0, slope, np.nan) + EPS * iteration
    return errors


def linear(pencil: LinearPencil, around: Around) -> Solutions:
    """Return the wanted eigenvalues of E z' = A z."""
    sigma = _shift(around)
    A, E = to_extended_precision(pencil.A), to_extended_precision(pencil.E)
    solve, sigma = _factorize_shifted(lambda s: A - s * E, sigma, None)

    def apply_inverse(z: Any) -> Any:
        return solve(pencil.E @ z)

    size = pencil.A.shape[0]
    s, z = _arnoldi(apply_inverse, size, sigma, 2 * (around.count + 2))
    keep = _choose_nearest(s, around)
    s, z = s[keep], z[:, keep]
    return Solutions(s, z[: 2 * pencil.n], np.full(len(s), np.nan))


def _arnoldi(
    apply_inverse: Callable[[Any], Any], size: int, sigma: complex, count: int
) -> tuple[ComplexArray, ComplexArray]:
    """Return the eigenvalues nearest to sigma, and their conjugates, of a real problem."""
    is_real = not isinstance(sigma, complex)
    kind: type[np.float64] | type[np.complex128] = np.float64 if is_real else np.complex128
    start = np.random.default_rng(2017).standard_normal(size).astype(kind)
    for _ in range(2):  # into the space that the constraints leave
        start = apply_inverse(start)
        start /= np.linalg.norm(start)
    operator = linalg.LinearOperator((size, size), matvec=apply_inverse, dtype=kind)
    try:
        if size <= 2 * MAX_DENSE_SIZE:
            nu, z = np.linalg.eig(np.column_stack([apply_inverse(column) for column in np.eye(size, dtype=kind)]))
        else:
            nu, z = linalg.eigs(operator, k=min(count, size - 2), v0=start, tol=0)
    except (linalg.ArpackError, np.linalg.LinAlgError) as error:
        raise NumericalError(_no_convergence(error)) from None
    present = np.abs(nu) > 1e-12 * np.max(np.abs(nu))
    s, z = (sigma + 1 / nu[present]).astype(np.complex128), z[:, present].astype(np.complex128)
    if is_real:
        return s, z
    upper = s.imag > 1e-9 * np.abs(s)
    return np.concatenate((s, s[upper].conj())), np.hstack((z, z[:, upper].conj()))


def _shift(around: Around) -> complex | float:
    """Return the shift: real for the slowest eigenvalues, so that everything stays real."""
    return around.frequency * complex(DISTANCE, 1 - DISTANCE) if around.frequency else 0.0


def _factorize_shifted(
    matrix: Callable[[Any], Any], sigma: Any, problem: QuadraticProblem | None
) -> tuple[Callable[[Any], Any], Any]:
    """Return the solver at the shift, moved aside where the matrix is singular there."""
    try:
        return _solver(matrix(sigma), problem), sigma
    except NumericalError:
        if problem is None or sigma != 0:
            raise
    stiffness, inertia = abs(problem.K).max(), abs(problem.M).max()
    aside = -1e-6 * max(stiffness, inertia) / inertia
    return _solver(matrix(aside), problem), aside


def _solver(W: Any, problem: QuadraticProblem | None) -> Callable[[Any], Any]:
    what = "the shifted matrix"
    if problem is not None and problem.is_approximate:
        return SparseFactors(W.astype(np.complex128 if np.iscomplexobj(W) else np.float64), what).solve
    return RefinedFactors(W, what).solve


def _choose_nearest(s: ComplexArray, around: Around) -> NDArray[np.intp]:
    """Return the places of the wanted eigenvalues: the nearest to the frequency, each followed by its conjugate."""
    level = 1e-12 * np.abs(s)
    upper, lower = np.flatnonzero(s.imag >= -level), np.flatnonzero(s.imag < -level)
    near = upper[np.argsort(np.abs(s[upper] - 1j * around.frequency), kind="stable")][: around.count]
    indices: list[int] = []
    for i in near.tolist():
        indices.append(i)
        if s[i].imag > level[i] and len(lower):
            mate = int(lower[np.argmin(np.abs(s[lower] - s[i].conjugate()))])
            indices.append(mate)
            lower = lower[lower != mate]
    return np.array(indices, dtype=np.intp)


def _no_convergence(error: Exception) -> str:
    return f"The eigenvalues around this frequency do not converge ({error}). Compute fewer, or use another frequency."
