"""The steady filter of a sampled linear system with noise that reaches states and measurements at once, certified.

With noise w of unit covariance, constant over each sample, and independent noise v of covariance R,

    x_{k+1} = A x_k + G w_k,        m_{k+1} = C x_{k+1} + H w_k + v_{k+1}:

a measurement at the end of a sample sees the noise of the sample that ends. So G H' is the covariance between what the
sample adds to the states and what the measurement sees. With N = C G + H, and S the covariance of A e before the
noise of the sample is added,

    L = (S C' + G N') (C S C' + N N' + R)^-1
    P = (I - L C) S (I - L C)' + (G - L N) (G - L N)' + L R L',      S = A P A'.

P is the covariance of the error after a measurement. S solves a Riccati equation of the standard form with the cross
term A G N' (Anderson and Moore, Optimal Filtering, 1979, section 5.4); its stabilizing solution the structured
doubling of :mod:`fmilin.design.kalman` finds. Newton's iteration (Hewer, IEEE Transactions on Automatic Control 16,
1971) removes what rounding left, and its Lyapunov equation is the second way: the covariance of the filter with this
gain, run on its own model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from fmilin.design.hidden_modes import compute_equilibrating_scales
from fmilin.errors import NumericalError
from fmilin.reduction.modal_reduction import split_into_blocks
from fmilin.signals import FloatArray
from fmilin.tolerances import EPS, FILTER_COVARIANCE_TOLERANCE, MAX_COVARIANCE_ERROR

DOUBLINGS = 64
CONVERGENCE_TOLERANCE = 1e-15  # relative change of the solution in twice the time by which the doubling has converged
NEWTON_STEPS = 8
NEWTON_STEP_TOLERANCE = 1e-13  # relative change of the deviations in a Newton step
ACCURATE_COVARIANCE_ERROR = 1e-8  # relative error of a covariance above which modal coordinates are tried, too
LARGEST_IN_MODES = 60  # states up to which they are: separating modes takes the fifth power of their number


@dataclass(frozen=True, slots=True)
class NoisySystem:
    """The matrices of the equations above, and absolute errors of the entries of A and C."""

    A: FloatArray  # (P, P)
    C: FloatArray  # (m, P)
    G: FloatArray  # (P, k), times the root of the covariance of the noise
    H: FloatArray  # (m, k)
    R: FloatArray  # (m, m)
    A_error: FloatArray
    C_error: FloatArray


@dataclass(frozen=True, slots=True)
class SteadyFilter:
    """The solution."""

    gain: FloatArray  # L, (P, m)
    predicted: FloatArray  # (P, P), covariance before a measurement
    covariance: FloatArray  # (P, P), after it
    innovation: FloatArray  # (m, m), covariance of measured less predicted
    error: float  # of the covariance, relative to its own deviations, by the errors of the matrices


def solve_steady_filter(system: NoisySystem) -> SteadyFilter:
    """Return the stabilizing filter, certified.

    Raises NumericalError when the doubling does not converge, an eigenvalue of the filter is not strictly inside the
    unit circle, or the covariance is determined by rounding alone.
    """
    if not len(system.A):
        innovation = system.R + system.H @ system.H.T
        nothing = np.zeros((0, 0))
        return SteadyFilter(np.zeros((0, len(system.C))), nothing, nothing, innovation, 0.0)
    try:
        solution: SteadyFilter | None = _solve(system)
        failure = None
    except (NumericalError, np.linalg.LinAlgError) as error:
        solution, failure = None, error
    if solution is None or solution.error > ACCURATE_COVARIANCE_ERROR:
        # A mode that is hardly observable has a variance that is orders larger than those of the others. In
        # coordinates that mix them, covariances are differences of large numbers; in modes they are not.
        other = _solve_in_modes(system)
        if other is not None and (solution is None or other.error < solution.error):
            solution = other
    if solution is None:
        raise NumericalError(str(failure))
    if not solution.error <= MAX_COVARIANCE_ERROR:
        raise NumericalError(
            "The covariance of the steady filter is not determined beyond rounding: the errors of the matrices change "
            f"it by a factor of {solution.error:.2g}."
        )
    return solution


def _solve_in_modes(system: NoisySystem) -> SteadyFilter | None:
    """Return the filter found in coordinates of modes; None where they cannot be separated or there is none."""
    if len(system.A) > LARGEST_IN_MODES:
        return None
    try:
        blocks = split_into_blocks(system.A, compute_equilibrating_scales(system.A))
        V = np.column_stack([block.V for block in blocks])
        W = np.linalg.inv(V)
        absolute = np.abs(W) @ (system.A_error + EPS * np.abs(system.A)) @ np.abs(V)
        in_modes = NoisySystem(
            W @ system.A @ V, system.C @ V, W @ system.G, system.H, system.R, absolute, system.C_error @ np.abs(V)
        )
        solution = _solve(in_modes)
    except (NumericalError, np.linalg.LinAlgError):
        return None
    predicted, covariance = V @ solution.predicted @ V.T, V @ solution.covariance @ V.T
    return SteadyFilter(
        V @ solution.gain, _symmetric(predicted), _symmetric(covariance), solution.innovation, solution.error
    )


def _solve(system: NoisySystem) -> SteadyFilter:
    before = _solve_by_doubling(system)
    gain, covariance = _gain(system, before), before
    for _ in range(NEWTON_STEPS):
        last, covariance = covariance, compute_error_covariance(system, gain)
        if not np.isfinite(covariance).all() or np.diag(covariance).min() < 0:
            raise NumericalError("The Riccati equation of the steady filter has no stabilizing solution.")
        before = system.A @ covariance @ system.A.T
        gain = _gain(system, before)
        if _difference(covariance, last) <= NEWTON_STEP_TOLERANCE:
            break
    again = compute_error_covariance(system, gain)
    if not _difference(again, covariance) <= FILTER_COVARIANCE_TOLERANCE:
        raise NumericalError(
            "The covariance of the steady filter is not confirmed by the filter run on its own linear model: the "
            f"relative difference is {_difference(again, covariance):.2g}."
        )
    error = _relative_error(system, gain, covariance, before)
    predicted = before + system.G @ system.G.T
    return SteadyFilter(gain, _symmetric(predicted), _symmetric(covariance), _innovation(system, before), error)


def compute_error_covariance(system: NoisySystem, gain: FloatArray) -> FloatArray:
    """Return the covariance of the error of a filter with any stable gain, by the Lyapunov equation of the error."""
    F, added = error_dynamics(system, gain)
    return solve_lyapunov(F, added)


def error_dynamics(system: NoisySystem, gain: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return F, with which the error goes on from sample to sample, and the covariance that a sample adds to it."""
    rest = np.eye(len(system.A)) - gain @ system.C
    noise = system.G - gain @ (system.C @ system.G + system.H)
    return rest @ system.A, noise @ noise.T + gain @ system.R @ gain.T


def solve_lyapunov(F: FloatArray, added: FloatArray) -> FloatArray:
    """Return X = F X F' + added by doubling, a sum of positive terms; what is not finite where F is not stable."""
    total, power = added, F
    with np.errstate(all="ignore"):
        for _ in range(DOUBLINGS):
            more = power @ total @ power.T
            total = total + more
            if not np.isfinite(total).all() or np.abs(more).max() <= 1e-18 * np.abs(total).max():
                break
            power = power @ power
        else:
            total = np.full_like(total, np.inf)
    return _symmetric(total)


def _gain(system: NoisySystem, before: FloatArray) -> FloatArray:
    """Return L = X Y' (R + Y Y')^-1 with X = (G, S^(1/2)) and Y = (N, C S^(1/2)), through singular values of Y.

    Several exact sensors that see the same noise make R + Y Y' as ill-conditioned as the square of Y: solved directly,
    the gain loses twice as many digits as Y has lost.
    """
    N = system.C @ system.G + system.H
    P, m = len(before), len(system.C)
    if not m or not P:
        return np.zeros((P, m))
    root = _factor(before)
    X, Y = np.hstack((system.G, root)), np.hstack((N, system.C @ root))
    R_factor = np.linalg.cholesky(system.R)
    U, sigma, Vt = np.linalg.svd(solve_triangular(R_factor, Y, lower=True), full_matrices=False)
    white = (X @ Vt.T) * (sigma / (1 + sigma**2)) @ U.T
    return np.asarray(solve_triangular(R_factor, white.T, lower=True, trans="T").T)


def _factor(covariance: FloatArray) -> FloatArray:
    """Return F with F F' = covariance, in sizes of its deviations; what rounding has made negative is zero."""
    d = np.where(np.diag(covariance) > 0, _deviations(covariance), 1.0)
    values, vectors = np.linalg.eigh(_symmetric(covariance / np.outer(d, d)))
    return np.asarray(d[:, None] * vectors * np.sqrt(np.maximum(values, 0.0)))


def _innovation(system: NoisySystem, before: FloatArray) -> FloatArray:
    N = system.C @ system.G + system.H
    return _symmetric(system.C @ before @ system.C.T + N @ N.T + system.R)


def _solve_by_doubling(system: NoisySystem) -> FloatArray:
    """Return S by structured doubling, in balanced coordinates."""
    scales = compute_equilibrating_scales(system.A)
    A = system.A * scales / scales[:, None]
    C, G = system.C * scales, system.G / scales[:, None]
    N = C @ G + system.H
    factor = np.linalg.cholesky(system.R + N @ N.T) if len(C) else np.zeros((0, 0))
    C_white, N_white = np.linalg.solve(factor, C), np.linalg.solve(factor, N)
    closed = A - A @ G @ N_white.T @ C_white
    R_factor = np.linalg.cholesky(system.R) if len(C) else factor
    N_weighted = np.linalg.solve(R_factor, N)
    inner_factor = np.linalg.cholesky(np.eye(N.shape[1]) + N_weighted.T @ N_weighted)
    noise = np.linalg.solve(inner_factor, (A @ G).T).T  # times its transpose: A G (I - N' (R + N N')^-1 N) G' A'
    forward, measured, solution = closed.T, C_white.T @ C_white, noise @ noise.T
    identity = np.eye(len(A))
    with np.errstate(all="ignore"):
        for _ in range(DOUBLINGS):
            try:
                solved = np.linalg.solve(identity + measured @ solution, np.hstack((forward, measured)))
            except np.linalg.LinAlgError:
                break
            through, back = np.hsplit(solved, 2)
            change = forward.T @ solution @ through
            solution, measured, forward = (
                _symmetric(solution + change),
                _symmetric(measured + forward @ back @ forward.T),
                forward @ through,
            )
            if not (np.isfinite(solution).all() and np.isfinite(measured).all() and np.isfinite(forward).all()):
                break
            if np.abs(change).max(initial=0.0) <= CONVERGENCE_TOLERANCE * np.abs(solution).max(initial=0.0):
                return np.asarray(solution * np.outer(scales, scales))
    raise NumericalError("The Riccati equation of the steady filter has no stabilizing solution.")


def _relative_error(system: NoisySystem, gain: FloatArray, covariance: FloatArray, before: FloatArray) -> float:
    """Return how much the errors of A and C change variances, relative to themselves.

    The gain is optimal, so its own change does not count to first order. With dA it is the sum of F^k (X + X') F'^k,
    X = U V', U = (I - L C) dA P^(1/2), V = F P^(1/2), each variance of which is at most 2 sqrt(sum F^k U U' F'^k *
    sum F^k V V' F'^k) (Cauchy and Schwarz). For dC, U = L dC S^(1/2) and V = (I - L C) S^(1/2).
    """
    F, _ = error_dynamics(system, gain)
    rest = np.eye(len(F)) - gain @ system.C
    predicted = before + system.G @ system.G.T
    variances = np.diag(covariance)
    by_A = np.abs(rest) @ (system.A_error @ _deviations(covariance))
    by_C = gain * (system.C_error @ _deviations(predicted))
    changes = (
        (np.diag(by_A**2), F @ covariance @ F.T),
        (by_C @ by_C.T, rest @ predicted @ rest.T),
    )
    uncertain = variances > 0
    relative = np.zeros(int(uncertain.sum()))
    with np.errstate(all="ignore"):
        for change, moved in changes:
            product = np.diag(solve_lyapunov(F, change)) * np.diag(solve_lyapunov(F, moved))
            relative += 2 * np.sqrt(np.maximum(product, 0.0))[uncertain] / variances[uncertain]
    largest = float(relative.max(initial=0.0))
    return largest if np.isfinite(largest) else np.inf


def _deviations(covariance: FloatArray) -> FloatArray:
    return np.sqrt(np.maximum(np.diag(covariance), 0.0))


def _difference(first: FloatArray, second: FloatArray) -> float:
    """Return the largest difference of two covariances in deviations of the first."""
    d = np.sqrt(np.maximum(np.diag(first), 0.0))
    scale = np.where(d > 0, d, 1.0)
    with np.errstate(all="ignore"):
        return float(np.abs((first - second) / np.outer(scale, scale)).max(initial=0.0))


def _symmetric(M: FloatArray) -> FloatArray:
    with np.errstate(all="ignore"):
        return np.asarray((M + M.T) / 2)
