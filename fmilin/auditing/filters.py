"""Second ways of Kalman filters: the covariance of their error from the closed error dynamics, and the optimal gain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from fmilin.auditing.result import Audit, AuditRow, compare, compare_claim, compare_covariances, compare_entries
from fmilin.signals import FloatArray
from fmilin.tolerances import AUDITED_COVARIANCE, EPS

if TYPE_CHECKING:
    from fmilin.design.kalman import KalmanFilter
    from fmilin.linear_model.model import LinearModel

UNCHECKED = (
    "linear: audit it by itself",
    "sampled.T, sampled.T_u, sampled.point, sampled.errors and sampled.accuracy: those of the continuous model",
)


def audit_kalman_filter(kalman: KalmanFilter) -> Audit:
    """Return the audit of a steady Kalman filter."""
    rows = list(_compare_kalman_filter(kalman))
    return Audit("Kalman filter", kalman.linear.model.name, tuple(rows), UNCHECKED)


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
    relative = max(AUDITED_COVARIANCE, kalman.relative_error)
    yield from compare_covariances("covariance", (kalman.covariance, second), way, relative, names)
    again = solve_steady_filter(kalman.noisy_system).error
    yield compare("relative error", kalman.relative_error, again, "Riccati's equation solved again", 1e-6 * again)
    yield from compare_covariances("Q", (kalman.Q, G @ G.T), "noise of a sample", AUDITED_COVARIANCE, names)
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
