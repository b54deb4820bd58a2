"""Second ways of filters: the covariance of their error from the closed error dynamics, and Riccati's equation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.linalg import expm

from fmilin.auditing.motions import audit_periodic_model
from fmilin.auditing.result import Audit, AuditRow, compare, compare_claim, select_worst
from fmilin.design.estimation.corrections import Linearized, Measured
from fmilin.design.estimation.estimator import Estimator
from fmilin.design.kalman import KalmanFilter, sampled_noise
from fmilin.design.periodic_gains import PeriodicGain
from fmilin.ground import FloatArray, FmilinError
from fmilin.linearization.procedure import linearize
from fmilin.model import OperatingPoint

OF_COVARIANCE = 1e-6  # relative to the standard deviations
OF_SAMPLE = 1e-3  # the same of a sample of an estimator, along whose motion A changes by as much as SMALL_MOTION
SMALL_MOTION = 1e-5  # of the sizes of the states


def audit_kalman_filter(kalman: KalmanFilter) -> Audit:
    """Return the audit of a steady Kalman filter."""
    rows = list(_compare_kalman_filter(kalman))
    return Audit("Kalman filter", kalman.linear.model.name, tuple(rows))


def compare_matrices(
    name: str,
    stated: FloatArray,
    second: FloatArray,
    method: str,
    *,
    names: tuple[str, ...] = (),
    relative: float = OF_COVARIANCE,
) -> Iterator[AuditRow]:
    """Compare two covariances entry by entry, in sizes of their standard deviations; the worst entry is a row."""
    size = np.sqrt(np.maximum(np.abs(np.diag(second)), 1e-300))
    comparisons = [
        compare(
            f"{name}[{names[i] if names else i}, {names[j] if names else j}]",
            float(stated[i, j]),
            float(second[i, j]),
            method,
            relative * float(size[i] * size[j]),
        )
        for i, j in np.ndindex(stated.shape)
    ]
    if (worst := select_worst(comparisons)) is not None:
        yield worst


def _compare_kalman_filter(kalman: KalmanFilter) -> Iterator[AuditRow]:
    """Compare covariances with those of the error e of the filter that runs on its own linear model.

    With noise n of unit variance that moves the states through G and the measurement at once through H, and v of the
    covariance R, e+ = (1 - L C) (A e + G n) - L (H n + v): the steady covariance solves Lyapunov's equation.
    """
    from scipy.linalg import solve_discrete_lyapunov

    s, L = kalman.sampled, kalman.gain
    names = s.states.names
    left = np.eye(len(s.A)) - L @ s.C
    closed = left @ s.A
    radius = float(np.abs(np.linalg.eigvals(closed)).max(initial=0.0))
    yield compare_claim("filter is stable", "eigenvalues of the error's dynamics", holds=radius < 1)
    if radius >= 1:
        return
    G, H = kalman.noise, kalman.feedthrough
    through = left @ G - L @ H
    noise = through @ through.T + L @ kalman.R @ L.T
    second = np.asarray(solve_discrete_lyapunov(closed, noise), dtype=np.float64)
    way = "Lyapunov's equation of the error"
    relative = max(OF_COVARIANCE, kalman.relative_error)
    yield from compare_matrices("covariance", kalman.covariance, second, way, names=names, relative=relative)
    yield from compare_matrices("Q", kalman.Q, G @ G.T, "noise of a sample", names=names)
    predicted = s.A @ second @ s.A.T + G @ G.T
    yield from compare_matrices("predicted", kalman.predicted, predicted, way, names=names, relative=relative)
    crossed = s.C @ G @ H.T
    S = s.C @ predicted @ s.C.T + crossed + crossed.T + H @ H.T + kalman.R
    yield from compare_matrices("innovation covariance", kalman.innovation_covariance, S, way, names=s.outputs.names)
    best = np.linalg.solve(S, s.C @ predicted + H @ G.T).T
    size = np.sqrt(np.outer(np.diag(predicted), 1 / np.diag(S)))
    comparisons = [
        compare(
            f"gain[{names[i]}, {s.outputs.names[j]}]",
            float(L[i, j]),
            float(best[i, j]),
            way,
            OF_COVARIANCE * float(size[i, j]),
        )
        for i, j in np.ndindex(L.shape)
    ]
    if (worst := select_worst(comparisons)) is not None:
        yield worst


def audit_periodic_gain(gain: PeriodicGain) -> Audit:
    """Return the audit of a regulator or a filter along a periodic motion: of its closed loop."""
    closed = audit_periodic_model(gain.closed)
    floquet = gain.closed.floquet()
    stable = compare_claim("closed loop is stable", "multipliers of the closed loop", holds=floquet.margin < 0)
    return Audit("gain along a periodic motion", closed.name, (stable, *closed.rows), closed.unchecked)


def audit_estimator(estimator: Estimator) -> Audit:
    """Return the audit of an estimator: its present covariance, and a sample beside that of its linear model."""
    P = np.asarray(estimator.covariance)
    asymmetry = float(np.abs(P - P.T).max(initial=0.0))
    size = float(np.abs(P).max(initial=0.0))
    rows = [compare("asymmetry of the covariance", 0.0, asymmetry, "transpose", 1e-9 * size)]
    smallest = float(np.linalg.eigvalsh((P + P.T) / 2).min(initial=0.0))
    rows.append(compare_claim("covariance is positive", "eigenvalues", holds=smallest >= -1e-9 * size))
    unchecked = []
    if not isinstance(estimator.settings.filter, Linearized):
        unchecked.append(f"the covariance of a sample: {estimator.kind} is not linearized")
    else:
        try:
            rows += _compare_sample(estimator)
        except FmilinError as error:
            unchecked.append(f"the covariance of a sample: {error}")
    return Audit("estimator", estimator.model.info.name, tuple(rows), tuple(unchecked))


def _compare_sample(estimator: Estimator) -> Iterator[AuditRow]:
    """Compare the first sample's covariances with Kalman's equations on the linear model at the start.

    The state is taken to stay at the start for a sample: where it moves, A changes on the way, and the comparison is
    made over a part of the sample in which that is small.
    """
    start, motion, settings = estimator.start, estimator.motion, estimator.settings
    model = settings.model  # noise that is held over a sample is among its states
    point = OperatingPoint(start.time, start.x, settings.inputs, model.start.parameters)
    names = model.states.select(motion.chart.kept).names
    linear = linearize(model, point, independent=names, keep_inaccurate=True)
    if linear.states.names != names:
        return
    chart, switches = motion.chart, motion.switches  # a correction may choose other coordinates
    moved = float((np.abs(linear.f0) / linear.states.scales(linear.y0)).max(initial=0.0)) * settings.sample_time
    part = min(1.0, SMALL_MOTION / moved) if moved > 0 else 1.0
    step = settings.sample_time * part
    directions, inputs = motion.noise
    G = directions[motion.chart.kept] + linear.B @ inputs
    transition = expm(linear.A * step)
    Q = sampled_noise(linear.A, G, np.eye(G.shape[1]), step)
    before = start.S @ start.S.T
    second = transition @ before @ transition.T + Q
    belief = settings.filter.predicted(motion, start, settings.inputs, step)
    motion.chart = chart
    stated = belief.S @ belief.S.T
    way = "linear model at the start"
    yield from compare_matrices("covariance predicted", stated, second, way, names=names, relative=OF_SAMPLE)
    C, m = linear.C, len(linear.outputs)
    measured = Measured(list(range(m)), linear.g0, np.asarray(np.linalg.cholesky(settings.R), dtype=np.float64))
    after = settings.filter.corrected(motion, start, settings.inputs, measured).belief
    motion.chart, motion.switches = chart, switches
    S = C @ before @ C.T + settings.R
    L = np.linalg.solve(S, C @ before).T
    left = np.eye(len(before)) - L @ C
    second = left @ before @ left.T + L @ settings.R @ L.T
    stated = after.S @ after.S.T
    yield from compare_matrices("covariance corrected", stated, second, way, names=names, relative=OF_SAMPLE)
