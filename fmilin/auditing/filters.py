"""Second ways of filters: the covariance of their error from the closed error dynamics, and Riccati's equation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fmilin.auditing.motions import audit_periodic_model
from fmilin.auditing.result import Audit, AuditRow, compare, compare_claim, select_worst
from fmilin.design.estimation.estimator import Estimator
from fmilin.design.kalman import KalmanFilter
from fmilin.design.periodic_gains import PeriodicGain
from fmilin.ground import FloatArray

OF_COVARIANCE = 1e-6  # relative to the standard deviations


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
    """Return the audit of an estimator: its present covariance and estimate."""
    P = np.asarray(estimator.covariance)
    symmetric = float(np.abs(P - P.T).max(initial=0.0))
    size = float(np.abs(P).max(initial=0.0))
    rows = [compare("asymmetry of the covariance", 0.0, symmetric, "transpose", 1e-9 * size)]
    smallest = float(np.linalg.eigvalsh((P + P.T) / 2).min(initial=0.0))
    rows.append(compare_claim("covariance is positive", "eigenvalues", holds=smallest >= -1e-9 * size))
    return Audit("estimator", estimator.model.info.name, tuple(rows))
