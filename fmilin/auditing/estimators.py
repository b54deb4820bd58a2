"""Second ways of Kalman filters and estimators: a sample by Kalman's equations, and the last step once more.

All kinds are the Kalman filter where the estimate is uncertain by little: the covariance at the start and all noise are
made smaller by a factor, by which an unscented filter's points lie in the linear range. The covariance
of a Kalman filter is computed from the closed dynamics of its error.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fmilin.auditing.audit_result import (
    Audit,
    AuditRow,
    compare,
    compare_claim,
    compare_covariances,
    compare_entries,
    keep_worst,
)
from fmilin.errors import FmilinError, UsageError
from fmilin.signals import FloatArray
from fmilin.tolerances import AUDIT_COVARIANCE_TOLERANCE, AUDIT_SAMPLE_TOLERANCE, EPS

if TYPE_CHECKING:
    from fmilin.design.estimation.corrections import Filter, Measured
    from fmilin.design.estimation.estimator import Estimator
    from fmilin.design.estimation.filter_motion import ManifoldStepper
    from fmilin.design.kalman import KalmanFilter
    from fmilin.linear_model.model import LinearModel

SMALL_MOTION_SIZE = 1e-5  # of the sizes of the states: a start that moves is compared over a part of a sample
DEVIATION_FACTOR = 1e-3  # times all deviations, of the comparison with Kalman's equations
REPEATED_STEP_TOLERANCE = 1e-9  # relative to the deviations: the last step computed once more
WAY = "Kalman's equations on the linear model at the start"


def audit_estimator(estimator: Estimator) -> Audit:
    """Return the audit of an estimator: its present covariance, its last step, and a sample of its linear model."""
    P = np.asarray(estimator.covariance)
    asymmetry = float(np.abs(P - P.T).max(initial=0.0))
    size = float(np.abs(P).max(initial=0.0))
    rows = [compare("asymmetry of the covariance", 0.0, asymmetry, "transpose", 1e-9 * size)]
    smallest = float(np.linalg.eigvalsh((P + P.T) / 2).min(initial=0.0))
    rows.append(compare_claim("covariance is positive", "eigenvalues", holds=smallest >= -1e-9 * size))
    unchecked = []
    for name, comparison in (("a sample", _compare_sample), ("the last step", _compare_last_step)):
        try:
            rows += comparison(estimator)
        except FmilinError as error:
            unchecked.append(f"{name}: {error}")
    if estimator.last_step is None:
        unchecked.append("the present estimate: the last change was not a step(u, y)")
    return Audit("estimator", estimator.model.info.name, tuple(rows), tuple(unchecked))


def _compare_last_step(estimator: Estimator) -> Iterator[AuditRow]:
    """Compare the present estimate with that of the last step computed again from the estimate before it."""
    last, settings = estimator.last_step, estimator.settings
    if last is None:
        return
    used = last.filter.copy_state()
    motion = copy(estimator.motion)
    motion.chart = last.chart
    belief = used.predict(motion, last.belief, last.u, estimator.sample_time)
    rows = np.flatnonzero(np.isfinite(last.y)).tolist()
    if rows:
        measured = _measure(rows, last.y[rows], settings.R[np.ix_(rows, rows)], estimator.turns[rows])
        belief = used.correct(motion, belief, last.u, measured).belief
    way = "the last step computed again"
    names = estimator.states.names
    count = len(names)
    stated = estimator.covariance
    second = (belief.S @ belief.S.T)[:count, :count]
    if stated.shape == second.shape:
        yield from compare_covariances("covariance", (stated, second), way, REPEATED_STEP_TOLERANCE, names)
    deviations = np.maximum(estimator.deviations, np.abs(estimator.x) * 1e-7)
    yield from keep_worst(
        compare(f"estimate of {name}", float(value), float(again), way, REPEATED_STEP_TOLERANCE * float(deviation))
        for name, value, again, deviation in zip(
            estimator.model.states.names, estimator.x, belief.x, deviations, strict=False
        )
    )


def _measure(rows: list[int], values: FloatArray, R: FloatArray, turns: FloatArray) -> Measured:
    from fmilin.design.estimation.corrections import Measured

    return Measured(rows, values, np.asarray(np.linalg.cholesky(R), dtype=np.float64), turns)


def _compare_sample(estimator: Estimator) -> Iterator[AuditRow]:
    """Compare the first sample with Kalman's equations on the linear model at the start.

    The state is taken to stay at the start for a sample: where it moves, A changes on the way, and the comparison is
    made over a part of the sample in which that is small.
    """
    from fmilin.design.estimation.ensembles import MemberFilter
    from fmilin.design.estimation.step_motion import StepMotion
    from fmilin.linearization.linearize import linearize
    from fmilin.model.interface import OperatingPoint

    start, settings = estimator.start, estimator.settings
    if isinstance(estimator.motion, StepMotion) or isinstance(settings.filter, MemberFilter):
        raise UsageError("Kalman's equations are compared of filters on models of rates that are not of many members.")
    motion = _reduce_noise(estimator)
    model = settings.model  # noise that is held over a sample is among its states
    point = OperatingPoint(start.time, start.x, settings.inputs, model.start.parameters)
    names = model.states.select(motion.chart.coordinates).names
    linear = linearize(model, point, independent=names, keep_inaccurate=True)
    if linear.states.names != names:
        return
    moved = float((np.abs(linear.f0) / linear.states.scales(linear.y0)).max(initial=0.0)) * settings.sample_time
    part = min(1.0, SMALL_MOTION_SIZE / moved) if moved > 0 else 1.0
    step = settings.sample_time * part
    factor = DEVIATION_FACTOR * start.S
    begin = replace(start, S=factor)
    probe = _copy_filter(settings.filter)
    predicted = probe.predict(motion, begin, settings.inputs, step)
    transition, Q = _propagate(linear, motion, step)
    before = start.S @ start.S.T
    second = transition @ before @ transition.T + Q / DEVIATION_FACTOR**2
    stated = predicted.S @ predicted.S.T / DEVIATION_FACTOR**2
    if motion.chart.coordinates == estimator.chart.coordinates:  # a prediction may choose other coordinates
        yield from compare_covariances("covariance predicted", (stated, second), WAY, AUDIT_SAMPLE_TOLERANCE, names)
    motion.chart = estimator.chart
    yield from _compare_correction(estimator, motion, linear, _copy_filter(settings.filter))


def _compare_correction(
    estimator: Estimator, motion: ManifoldStepper, linear: LinearModel, probe: Filter
) -> Iterator[AuditRow]:
    """Compare covariance and estimate after a measurement that is a deviation off."""
    start, settings = estimator.start, estimator.settings
    names = linear.states.names
    before = start.S @ start.S.T
    C = linear.C
    S = C @ before @ C.T + settings.R
    innovation = np.linalg.cholesky(S) @ np.ones(len(S))
    rows = list(range(len(C)))
    values = linear.g0 + DEVIATION_FACTOR * innovation
    measured = _measure(rows, values, DEVIATION_FACTOR**2 * settings.R, estimator.turns)
    begin = replace(start, S=DEVIATION_FACTOR * start.S)
    after = probe.correct(motion, begin, settings.inputs, measured).belief
    if motion.chart.coordinates != estimator.chart.coordinates:  # a correction may choose other coordinates
        return
    L = np.linalg.solve(S, C @ before).T
    error_update = np.eye(len(before)) - L @ C
    second = error_update @ before @ error_update.T + L @ settings.R @ L.T
    stated = after.S @ after.S.T / DEVIATION_FACTOR**2
    yield from compare_covariances("covariance corrected", (stated, second), WAY, AUDIT_SAMPLE_TOLERANCE, names)
    independent = motion.chart.coordinates
    moved = (after.x - start.x)[independent] / DEVIATION_FACTOR
    deviations = np.sqrt(np.diag(before))
    yield from keep_worst(
        compare(f"correction of {name}", float(one), float(other), WAY, AUDIT_SAMPLE_TOLERANCE * float(deviation))
        for name, one, other, deviation in zip(names, moved, L @ innovation, deviations, strict=True)
    )


def _reduce_noise(estimator: Estimator) -> ManifoldStepper:
    """Return the motion with less noise, at the first choice of coordinates."""
    motion = copy(estimator.motion)
    motion.chart = estimator.chart
    motion.noise = DEVIATION_FACTOR * motion.noise[0], DEVIATION_FACTOR * motion.noise[1]
    motion.renewed = DEVIATION_FACTOR * motion.renewed
    return motion


def _copy_filter(used: Filter) -> Filter:
    """Return the filter without what it remembers of its run."""
    probe = copy(used)
    probe.restart()
    return probe


def _propagate(linear: LinearModel, motion: ManifoldStepper, step: float) -> tuple[FloatArray, FloatArray]:
    """Return the transition over a step and the covariance that noise adds."""
    from scipy.linalg import expm

    from fmilin.design.kalman import sampled_noise

    directions, inputs = motion.noise
    G = directions[motion.chart.coordinates] + linear.B @ inputs
    return np.asarray(expm(linear.A * step)), sampled_noise(linear.A, G, np.eye(G.shape[1]), step)


UNCHECKED_OF_FILTERS = (
    "linear: audit it by itself",
    "sampled.T, sampled.T_u, sampled.point, sampled.errors and sampled.accuracy: those of the continuous model",
)


def audit_kalman_filter(kalman: KalmanFilter) -> Audit:
    """Return the audit of a steady Kalman filter."""
    rows = list(_compare_kalman_filter(kalman))
    return Audit("Kalman filter", kalman.linear.model.name, tuple(rows), UNCHECKED_OF_FILTERS)


def _compare_kalman_filter(kalman: KalmanFilter) -> Iterator[AuditRow]:
    """Compare covariances with those of the error e of the filter that runs on its own linear model.

    With noise n of unit variance that moves the states through G and the measurement at once through H, and v of the
    covariance R, e+ = (1 - L C) (A e + G n) - L (H n + v): the steady covariance solves Lyapunov's equation.
    """
    from scipy.linalg import solve_discrete_lyapunov

    from fmilin.design.riccati import solve_steady_filter
    from fmilin.reduction.transformation import discretize

    s, L = kalman.sampled, kalman.gain
    names, outputs = s.states.names, s.outputs.names
    yield from _compare_samples(kalman, discretize(kalman.linear, s.sample_time))
    error_update = np.eye(len(s.A)) - L @ s.C
    closed = error_update @ s.A
    radius = float(np.abs(np.linalg.eigvals(closed)).max(initial=0.0))
    yield compare_claim("filter is stable", "eigenvalues of the error's dynamics", holds=radius < 1)
    if radius >= 1:
        return
    G, H = kalman.noise, kalman.feedthrough
    through = error_update @ G - L @ H
    noise = through @ through.T + L @ kalman.R @ L.T
    second = np.asarray(solve_discrete_lyapunov(closed, noise), dtype=np.float64)
    way = "Lyapunov's equation of the error"
    relative = max(AUDIT_COVARIANCE_TOLERANCE, kalman.relative_error)
    yield from compare_covariances("covariance", (kalman.covariance, second), way, relative, names)
    again = solve_steady_filter(kalman.noisy_system).error
    yield compare("relative error", kalman.relative_error, again, "Riccati's equation solved again", 1e-6 * again)
    yield from compare_covariances("Q", (kalman.Q, G @ G.T), "noise of a sample", AUDIT_COVARIANCE_TOLERANCE, names)
    predicted = s.A @ second @ s.A.T + G @ G.T
    yield from compare_covariances("predicted", (kalman.predicted, predicted), way, relative, names)
    crossed = s.C @ G @ H.T
    S = s.C @ predicted @ s.C.T + crossed + crossed.T + H @ H.T + kalman.R
    innovation = kalman.innovation_covariance, S
    yield from compare_covariances("innovation covariance", innovation, way, relative, outputs)
    best: FloatArray = np.asarray(np.linalg.solve(S, s.C @ predicted + H @ G.T).T)
    sizes = np.sqrt(np.outer(np.diag(predicted), 1 / np.diag(S)))
    # Sensors that see the same noise make S ill-conditioned: solving with it loses as many digits of the second way.
    lost = 10 * EPS * np.linalg.cond(S) * np.abs(best).max(axis=1, initial=0.0)[:, None]
    yield from compare_entries("gain", (L, best), way, relative * sizes + lost, (names, outputs))


def _compare_samples(kalman: KalmanFilter, second: LinearModel) -> Iterator[AuditRow]:
    """Compare the sampled matrices with those of the continuous model."""
    s = kalman.sampled
    signals = {
        "A": (s.states.names, s.states.names),
        "B": (s.states.names, s.inputs.names),
        "C": (s.outputs.names, s.states.names),
        "D": (s.outputs.names, s.inputs.names),
    }
    for name, (rows, columns) in signals.items():
        matrix = getattr(second, name)
        tolerance = np.array(1e-9 * float(np.abs(matrix).max(initial=0.0)))
        yield from compare_entries(
            f"{name} of a sample", (getattr(s, name), matrix), "continuous model", tolerance, (rows, columns)
        )
    for name in ("f0", "y0"):
        stated, vector = getattr(s, name), getattr(second, name)
        tolerance = np.array(1e-9 * max(float(np.abs(vector).max(initial=0.0)), 1e-9))
        pair = stated[:, None], vector[:, None]
        yield from compare_entries(f"{name} of a sample", pair, "continuous model", tolerance, (s.states.names, ("",)))
