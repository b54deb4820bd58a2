"""The covariance with which an estimator begins where none is given, and which noise it takes."""

from __future__ import annotations

import numpy as np
from scipy.linalg import expm

from fmilin.design.estimation.filter_motion import ManifoldStepper
from fmilin.design.estimation.slopes import SourceEvaluator
from fmilin.design.hidden_modes import UncertainPair, exponential_errors, find_hidden_modes, right_direction
from fmilin.design.kalman import sampled_noise
from fmilin.design.measurement import factor_covariance
from fmilin.design.riccati import NoisySystem, solve_steady_filter
from fmilin.errors import FmilinError, NumericalError, UsageError
from fmilin.model.interface import Model, OperatingPoint
from fmilin.signals import FloatArray

DIRECT_NOISE_TOLERANCE = 1e-8
"""A direct effect of noise on an output, times a second, in deviations of its own noise, below this counts as zero."""
EXACT_DERIVATIVE_ERROR, DIFFERENCE_ERROR = 1e-14, 1e-9  # relative errors of exact derivatives and of differences


def steady_factor(
    motion: ManifoldStepper, model: Model, point: OperatingPoint, R: FloatArray, noise: tuple[float, FloatArray, bool]
) -> FloatArray:
    """Return the factor of the steady covariance at the point, after a measurement; ``noise``: h, directions, held.

    Raises NumericalError if there is none: the mode that has none is named.
    """
    sample_time, directions, holds_noise = noise
    t, x, u = point.time, point.states, point.inputs
    T = motion.tangent(t, x, u)
    P, coordinates = T.shape[1], motion.chart.coordinates
    along, through = (
        np.hstack(
            (T, np.zeros((len(x), directions.shape[1]))),
        ),
        np.zeros((len(u), P)),
    )
    _, _, F, C = motion.evaluator.along(t, x, u, along, np.hstack((through, directions)))
    A, B = F[coordinates, :P], F[coordinates, P:]
    scales = motion.scales[coordinates]
    relative = DIFFERENCE_ERROR if isinstance(motion.evaluator, SourceEvaluator) else EXACT_DERIVATIVE_ERROR
    A_error, B_error = relative * _row_sizes(A, scales, scales), relative * np.abs(B)
    Phi_error, _ = exponential_errors((A, B), (A_error, B_error), sample_time)
    Phi, held_response = _sample(A, B, sample_time)
    walk = motion.noise[0][coordinates]
    white = walk if holds_noise else B + walk
    G = factor_covariance(sampled_noise(A, white, np.eye(white.shape[1]), sample_time), P, "The process noise")
    D = np.zeros((len(R), P))
    if holds_noise:
        G, D = np.hstack((held_response, G)), np.hstack((C[:, P:], D))
    C = C[:, :P]
    C_error = relative * _row_sizes(C, np.ones(len(C)), scales)
    advice = "Give initial_covariance=, variances by the names of states or a matrix."
    states = model.states.select(coordinates)
    for mode in find_hidden_modes(UncertainPair(Phi, C, Phi_error, C_error, sampled=True)):
        if mode.may_stay:
            raise NumericalError(
                "No steady covariance exists at the point to begin with: an undamped or unstable mode is not "
                f"observable from {', '.join(model.outputs.names)} beyond rounding. It is the mode of "
                f"{mode.describe(states, scales, sample_time)}. {advice}"
            )
    excited = np.hstack((B, walk))
    excited_error = relative * np.abs(excited)
    for mode in find_hidden_modes(
        UncertainPair(A, C, A_error, C_error, sampled=False).transpose(excited, excited_error)
    ):
        if mode.may_be_on_limit:
            named = right_direction(A, mode).describe(states, scales)
            raise NumericalError(
                "No steady covariance exists at the point to begin with: a mode on the stability limit is not excited "
                f"by the process noise beyond rounding. It is the mode of {named}. {advice}"
            )
    try:
        steady = solve_steady_filter(NoisySystem(Phi, C, G, D, R, Phi_error, C_error))
        return factor_covariance(steady.covariance, P, "The steady covariance")
    except (np.linalg.LinAlgError, NumericalError, UsageError) as error:
        raise NumericalError(f"No steady covariance exists at the point to begin with. {error} {advice}") from None


def _sample(A: FloatArray, B: FloatArray, h: float) -> tuple[FloatArray, FloatArray]:
    """Return exp(A h) and int_0^h exp(A s) ds B, what inputs that are held over a sample add to the coordinates."""
    n, k = B.shape
    block = np.zeros((n + k, n + k))
    block[:n, :n], block[:n, n:] = A * h, B * h
    exponential = expm(block)
    return np.asarray(exponential[:n, :n]), np.asarray(exponential[:n, n:])


def _row_sizes(M: FloatArray, rows: FloatArray, columns: FloatArray) -> FloatArray:
    """Return the largest entry of each row, in sizes of rows and columns, as an entry of each column."""
    sizes = np.abs(M) * columns / rows[:, None]
    return np.asarray(sizes.max(axis=1, initial=0.0)[:, None] * rows[:, None] / columns)


def refuse_white_feedthrough(motion: ManifoldStepper, model: Model, point: OperatingPoint, R: FloatArray) -> None:
    """Reject white noise that reaches a measured output at once, at the point or near it."""
    _, U_w = motion.noise
    noisy = np.flatnonzero(U_w.any(axis=0))
    if not len(noisy):
        return
    random = np.random.default_rng(43)
    t, u, coordinates = point.time, point.inputs, motion.chart.coordinates
    T = motion.tangent(t, point.states, u)
    for amount in (0.0, 1e-2, 0.1, 0.1):
        x = point.states + T @ (amount * motion.scales[coordinates] * random.uniform(-1, 1, len(coordinates)))
        try:
            x = motion.on_manifold(t, x, u) if amount else point.states
            D = motion.evaluator.along(t, x, u, np.zeros((len(x), len(noisy))), U_w[:, noisy])[3]
        except FmilinError:  # outside the domain of the model
            continue
        reached = np.argwhere(np.abs(D) > DIRECT_NOISE_TOLERANCE * np.sqrt(np.diag(R))[:, None])
        if reached.size:
            i, j = reached[0]
            sources = [model.inputs.names[k] for k in np.flatnonzero(U_w[:, noisy[j]])]
            raise UsageError(
                f"White process noise through '{sources[0]}' reaches the output '{model.outputs.names[i]}' at once, "
                "and a sample of it would have an infinite variance. Give the variance of noise that is constant over "
                "each sample (hold_noise=True), or model the noise as the output of a filter, and join its states to "
                "the model."
            )
