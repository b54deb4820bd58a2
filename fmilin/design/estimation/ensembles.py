"""Filters of many members: the ensemble Kalman filter with perturbed measurements, and the bootstrap particle filter.

Members are drawn from the estimate before the first sample, each goes through the model with noise of its own, and the
estimate is their mean and covariance (Evensen 2003; Gordon, Salmond and Smith 1993). The random numbers start from a
fixed seed: equal runs are equal.
"""

from __future__ import annotations

from abc import abstractmethod
from copy import deepcopy

import numpy as np
from scipy.linalg import solve_triangular

from fmilin.design.estimation.corrections import Belief, Filter, Measured, MeasurementUpdate
from fmilin.design.estimation.filter_motion import ManifoldStepper, triangular
from fmilin.errors import NumericalError
from fmilin.signals import FloatArray, wrap_differences

MEMBER_COUNT = 500
SEED = 1994
MIN_EFFECTIVE_FRACTION = 0.5  # of the particles: below, those of small weight are replaced
MIN_SIZE = 1e-300  # with a finite logarithm


class MemberFilter(Filter):
    """A filter that remembers its members, states X (n, N) with weights (n,)."""

    def __init__(self, members: int = MEMBER_COUNT) -> None:
        self.members = members
        self.restart()

    def restart(self) -> None:
        """Forget the members."""
        self._random = np.random.default_rng(SEED)
        self._X: FloatArray | None = None
        self._weights = np.full(self.members, 1.0 / self.members)

    def copy_state(self) -> Filter:
        """Return the filter with its members as they are now."""
        return deepcopy(self)

    def _draw(self, motion: ManifoldStepper, at: Belief, u: FloatArray) -> FloatArray:
        """Return the members, drawn from the estimate where there are none yet."""
        if self._X is None:
            coordinates = motion.chart.coordinates
            e = self._random.standard_normal((self.members, len(at.S))) @ at.S.T
            X = at.x + e @ motion.tangent(at.time, at.x, u).T
            X[:, coordinates] = at.x[coordinates] + e
            self._X = motion.points_on_manifold(at.time, X, u)
        return self._X

    def predict(self, motion: ManifoldStepper, at: Belief, u: FloatArray, sample_time: float) -> Belief:
        """Return the estimate a sample later: each member goes its way, with noise of its own."""
        X = self._draw(motion, at, u).copy()
        k = len(motion.renewed)
        if k:  # noise that is held over the sample
            X[:, -k:] = self._random.standard_normal((self.members, k)) @ motion.renewed.T
        V = motion.transition(at.time, at.x, u, sample_time)[1]
        X = motion.points_later(at.time, X, u, sample_time)
        t, coordinates = at.time + sample_time, motion.chart.coordinates
        if V.size:
            X[:, coordinates] += self._random.standard_normal((self.members, V.shape[1])) @ V.T
            X = motion.points_on_manifold(t, X, u)
        self._X = X
        return self._summarize(motion, t, u, X)

    def _summarize(self, motion: ManifoldStepper, t: float, u: FloatArray, X: FloatArray) -> Belief:
        """Return mean and covariance of the members."""
        coordinates = motion.chart.coordinates
        mean = self._weights @ X
        x = X[int(np.argmin(((X - mean) ** 2 / motion.scales**2).sum(axis=1)))].copy()  # a member, near the mean
        x[coordinates] = mean[coordinates]
        x = motion.on_manifold(t, x, u)
        deviations = X[:, coordinates] - x[coordinates]
        unbiased = 1.0 - float(self._weights @ self._weights)
        S = triangular(np.sqrt(self._weights / unbiased)[:, None] * deviations)
        return Belief(t, x, S)

    def _predict_outputs(self, motion: ManifoldStepper, t: float, u: FloatArray, measured: Measured) -> FloatArray:
        """Return what the members predict, (n, m), angles near those of the first one."""
        if self._X is None:
            raise NumericalError("There are no members yet: predict a sample first.")
        outputs = motion.evaluator.compute_points(t, self._X, u)[1][:, measured.rows]
        return np.asarray(outputs[0] + wrap_differences(outputs - outputs[0], measured.turns))

    def correct(self, motion: ManifoldStepper, at: Belief, u: FloatArray, measured: Measured) -> MeasurementUpdate:
        """Return the estimate with the measurement, and what it says of the innovations."""
        X = self._draw(motion, at, u)
        outputs = self._predict_outputs(motion, at.time, u, measured)
        mean = self._weights @ outputs
        deviations = np.sqrt(self._weights)[:, None] * (outputs - mean)
        E = triangular(np.concatenate((deviations, measured.factor.T)))
        residuals = measured.compare(mean)
        whitened = solve_triangular(E, residuals, lower=True)
        self._X = self._update(motion, at, u, (X, outputs, E), measured)
        size = 2 * float(np.log(np.maximum(np.abs(np.diag(E)), MIN_SIZE)).sum())
        return MeasurementUpdate(self._summarize(motion, at.time, u, self._X), residuals, whitened, size)

    @abstractmethod
    def _update(
        self,
        motion: ManifoldStepper,
        at: Belief,
        u: FloatArray,
        predicted: tuple[FloatArray, FloatArray, FloatArray],
        measured: Measured,
    ) -> FloatArray:
        """Return the members after the measurement, from members, their outputs and the factor of the innovations."""


class EnsembleFilter(MemberFilter):
    """The ensemble Kalman filter: each member is corrected by a measurement with noise of its own."""

    def _update(
        self,
        motion: ManifoldStepper,
        at: Belief,
        u: FloatArray,
        predicted: tuple[FloatArray, FloatArray, FloatArray],
        measured: Measured,
    ) -> FloatArray:
        X, outputs, E = predicted
        coordinates, n = motion.chart.coordinates, self.members
        noise = self._random.standard_normal((n, len(outputs[0]))) @ measured.factor.T
        gaps = wrap_differences(measured.values + noise - outputs, measured.turns)
        centred = outputs - outputs.mean(axis=0)
        cross = (X - X.mean(axis=0)).T @ centred / (n - 1)
        whitened = solve_triangular(E, gaps.T, lower=True)
        X = X.copy()
        change = (cross @ solve_triangular(E.T, whitened, lower=False)).T
        X[:, coordinates] += change[:, coordinates]
        return motion.points_on_manifold(at.time, X, u)


class ParticleFilter(MemberFilter):
    """The bootstrap particle filter: members are weighted by the likelihood of what is measured, and drawn anew."""

    def _update(
        self,
        motion: ManifoldStepper,
        at: Belief,
        u: FloatArray,
        predicted: tuple[FloatArray, FloatArray, FloatArray],
        measured: Measured,
    ) -> FloatArray:
        X, outputs, _ = predicted
        gaps = wrap_differences(measured.values - outputs, measured.turns)
        squares = (solve_triangular(measured.factor, gaps.T, lower=True) ** 2).sum(axis=0)
        logarithms = np.log(np.maximum(self._weights, MIN_SIZE)) - squares / 2
        weights = np.exp(logarithms - logarithms.max())
        self._weights = weights / weights.sum()
        if 1.0 / float(self._weights @ self._weights) >= MIN_EFFECTIVE_FRACTION * self.members:
            return X
        thresholds = (np.arange(self.members) + self._random.uniform()) / self.members  # systematic resampling
        chosen = np.minimum(np.searchsorted(np.cumsum(self._weights), thresholds), self.members - 1)
        self._weights = np.full(self.members, 1.0 / self.members)
        return np.asarray(X[chosen])
