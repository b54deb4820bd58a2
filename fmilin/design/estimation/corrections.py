"""How a measurement corrects an estimate and its covariance, in square roots; EKF, iterated EKF and UKF.

With the factor S of the covariance, F of that of the noise and C of the outputs along the coordinates, the triangular
factor of the rows below is (Kailath, Sayed and Hassibi, Linear Estimation, 2000, chapter 12)

    [ F  C S ]  ~  [ E   0  ]        E E' = C S S' C' + F F',    e = K E^-1 (y - c),
    [ 0   S  ]     [ K   S+ ]

and S+ is a factor of the covariance after the measurement: nothing is subtracted, and it never loses its sign.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dtrtrs

from fmilin.design.estimation.motion import SETTLED, Motion, triangular
from fmilin.ground.errors import NumericalError
from fmilin.ground.signals import FloatArray


@dataclass(frozen=True, slots=True)
class Belief:
    """An estimate: the states (N,) on the manifold, and a factor S (P, P) of the covariance of its coordinates."""

    time: float
    x: FloatArray
    S: FloatArray


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured at a sample: the outputs by number, their values, and a factor of the noise's covariance."""

    rows: list[int]
    values: FloatArray
    factor: FloatArray


@dataclass(frozen=True, slots=True)
class Corrected:
    """What a measurement has made of an estimate."""

    belief: Belief
    innovations: FloatArray  # (m,), measured less predicted
    whitened: FloatArray  # (m,), the same in their own standard deviations, independent of each other
    log_determinant: float  # of the covariance of the innovations


class Filter(ABC):
    """One kind of filter."""

    def restart(self) -> None:
        """Forget samples, where any are remembered."""
        return

    def predicted(self, motion: Motion, at: Belief, u: FloatArray, sample_time: float) -> Belief:
        """Return the estimate a sample later."""
        return Belief(at.time + sample_time, *motion.predicted(at.time, at.x, u, at.S, sample_time))

    @abstractmethod
    def corrected(self, motion: Motion, at: Belief, u: FloatArray, measured: Measured) -> Corrected:
        """Return the estimate with the measurement."""


class Linearized(Filter):
    """The extended Kalman filter; with more iterations than one, measurements are linearized where they lead to."""

    def __init__(self, iterations: int = 1) -> None:
        self.iterations = iterations

    def corrected(self, motion: Motion, at: Belief, u: FloatArray, measured: Measured) -> Corrected:
        """Return the estimate with the measurement."""
        t, x, kept, rows = at.time, at.x, motion.chart.kept, measured.rows
        m, P = len(rows), len(kept)
        e, first = np.zeros(P), None
        block = np.zeros((m + P, m + P))
        for k in range(self.iterations):
            T = motion.tangent(t, x, u)
            _, c, _, C = motion.visits.along(t, x, u, T)
            C = C[rows]
            block[:m, :m], block[:m, m:], block[m:, m:], block[m:, :m] = measured.factor, C @ at.S, at.S, 0.0
            lower = triangular(block.T)
            E, K, S = lower[:m, :m], lower[m:, :m], lower[m:, m:]
            residuals = measured.values - c[rows]
            before, e = e, K @ _solved(E, residuals + C @ e, t)
            first = first or (residuals, _solved(E, residuals, t), 2 * float(np.log(np.abs(np.diag(E))).sum()))
            x = at.x + motion.tangent(t, at.x, u) @ e
            x[kept] = at.x[kept] + e
            x = motion.on_manifold(t, x, u)
            if k and (np.abs(e - before) <= SETTLED * np.linalg.norm(at.S, axis=1)).all():
                break
        assert first is not None  # noqa: S101 - there is one iteration at least
        return Corrected(Belief(t, x, motion.moved(t, x, u, S)), *first)


class SigmaPoints(Filter):
    """The unscented filter: 2 P + 1 points x = Psi(y +- s e_i), weights never negative (Julier and Uhlmann, 1997)."""

    def _points(self, motion: Motion, at: Belief, u: FloatArray) -> tuple[list[FloatArray], FloatArray]:
        """Return the states of the points and their weights."""
        P, kept = len(at.S), motion.chart.kept
        kappa = max(0.0, 3.0 - P)
        T, points = motion.tangent(at.time, at.x, u), [at.x]
        for column in np.sqrt(P + kappa) * at.S.T:
            for e in (column, -column):
                x = at.x + T @ e
                x[kept] = at.x[kept] + e
                points.append(motion.on_manifold(at.time, x, u))
        weights = np.full(2 * P + 1, 0.5 / (P + kappa))
        weights[0] = kappa / (P + kappa)
        return points, weights

    def predicted(self, motion: Motion, at: Belief, u: FloatArray, sample_time: float) -> Belief:
        """Return the estimate a sample later, from where the points arrive."""
        points, weights = self._points(motion, at, u)
        noise = motion.transition(at.time, at.x, u, sample_time)[1]
        later = np.array([motion.later(at.time, x, u, sample_time) for x in points])
        kept, t = motion.chart.kept, at.time + sample_time
        y = weights @ later[:, kept]
        x = later[0].copy()
        x[kept] = y
        x = motion.on_manifold(t, x, u)
        S = triangular(np.concatenate((np.sqrt(weights)[:, None] * (later[:, kept] - y), noise.T)))
        return Belief(t, x, motion.moved(t, x, u, S))

    def corrected(self, motion: Motion, at: Belief, u: FloatArray, measured: Measured) -> Corrected:
        """Return the estimate with the measurement, its covariances with the outputs from points."""
        points, weights = self._points(motion, at, u)
        kept, t, m = motion.chart.kept, at.time, len(measured.rows)
        outputs = np.array([motion.visits.values(t, x, u)[1][measured.rows] for x in points])
        mean = weights @ outputs
        root = np.sqrt(weights)[:, None]
        deviations = np.array(points)[:, kept] - at.x[kept]
        block = np.concatenate((root * (outputs - mean), root * deviations), axis=1)
        noise = np.concatenate((measured.factor.T, np.zeros((m, len(kept)))), axis=1)
        lower = triangular(np.concatenate((block, noise)))
        E, K, S = lower[:m, :m], lower[m:, :m], lower[m:, m:]
        residuals = measured.values - mean
        whitened = _solved(E, residuals, t)
        e = K @ whitened
        x = at.x + motion.tangent(t, at.x, u) @ e
        x[kept] = at.x[kept] + e
        x = motion.on_manifold(t, x, u)
        size = 2 * float(np.log(np.abs(np.diag(E))).sum())
        return Corrected(Belief(t, x, motion.moved(t, x, u, S)), residuals, whitened, size)


def _solved(lower: FloatArray, right: FloatArray, t: float) -> FloatArray:
    """Return the solution with a lower triangular matrix."""
    solution, singular = dtrtrs(lower, right, lower=1)
    if singular or not np.isfinite(solution).all():
        raise NumericalError(
            f"The covariance of the estimate has become singular at t = {t:.6g} s: nothing is uncertain in some "
            "direction, or a number has overflowed. Give every direction some process noise or initial covariance."
        )
    return np.asarray(solution)
