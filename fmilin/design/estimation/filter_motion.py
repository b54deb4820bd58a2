"""The model of a filter at a point, and its motion over one sample, with exact derivatives and the effect of noise.

Coordinates are P of the states, y = R x; the others solve h(t, x) = 0, so that an error e of the estimate means
x = Psi(y + e). Over a substep of length s, the Runge-Kutta method of order 4 maps x and its tangent T = DPsi to

    x+ = Psi(R x_4),    Phi = R X_4,    X' = f_x X along all four stages, X(0) = T,

the derivative of the method. Noise of the spectral density W that enters through G adds, to the same order,

    Q = sum_ij V_i V_j' s^(i+j+1) / (i+j+1),    V_i = A^i R G W^(1/2) / i!,    A = R f_x T,

a factor of which needs no difference of covariances: the matrix of 1 / (i+j+1) has a Cholesky factor. Where the
coordinates determine the others badly, the best ones are chosen by elimination with complete pivoting, and an error
moves by R_new T_old.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import ClassVar

import numpy as np
from scipy.linalg.lapack import dgeqrf, dgesv

from fmilin.design.estimation.charts import (
    PIVOT_TOLERANCE,
    VANISHING_ROW_TOLERANCE,
    CoordinateSplit,
    RowTerms,
    choose_chart,
)
from fmilin.design.estimation.slopes import ManifoldEvaluator
from fmilin.errors import NumericalError
from fmilin.numerics.steps import runge_kutta_step
from fmilin.signals import FloatArray

TERMS = 4  # powers of A in the integral of the noise: as exact as the Runge-Kutta method
MAX_DEPENDENT_SLOPE = (
    4.0  # derivatives of dependent states, in sizes of the states, above which other coordinates are searched for
)
ITERATIONS = 12  # Newton's steps back to the manifold
QUADRATIC_STEP_SIZE = 1e-9  # a step of Newton's method, in sizes of the states, after which the next would be rounding
ESTIMATE_CHANGE_TOLERANCE = 1e-8  # of a change of the estimate, in standard deviations: the iteration of the IEKF ends
_POWERS = np.arange(TERMS + 1)
_FACTORIAL = np.cumprod([1.0, *range(1, TERMS + 1)])
HILBERT = np.linalg.cholesky(1.0 / (_POWERS[:, None] + _POWERS + 1.0))


def triangular(rows: FloatArray) -> FloatArray:
    """Return the lower triangular S (P, P) with S S' = rows' rows and a diagonal >= 0, for rows (k, P)."""
    k, P = rows.shape
    if k < P:
        rows = np.concatenate((rows, np.zeros((P - k, P))))
    factored = dgeqrf(rows)[0][:P]
    return np.asarray(np.tril(factored.T) * np.where(np.diagonal(factored) < 0, -1.0, 1.0))


class ManifoldStepper:
    """A model on its manifold, from sample to sample; N states, P coordinates."""

    limits: ClassVar = {
        "ITERATIONS": ITERATIONS,
        "QUADRATIC": QUADRATIC_STEP_SIZE,
        "BENT": MAX_DEPENDENT_SLOPE,
        "NO_PIVOT": PIVOT_TOLERANCE,
        "SETTLED": ESTIMATE_CHANGE_TOLERANCE,
        "NO_ROW": VANISHING_ROW_TOLERANCE,
    }
    weights = HILBERT

    def __init__(
        self,
        evaluator: ManifoldEvaluator,
        chart: CoordinateSplit,
        scales: FloatArray,
        *,
        noise: tuple[FloatArray, FloatArray],
        substeps: int,
        row_terms: RowTerms,
        fixed_states: Sequence[int] = (),
        renewed: FloatArray | None = None,
    ) -> None:
        self.evaluator, self.chart, self.scales, self.row_terms = evaluator, chart, scales, row_terms
        self.noise = noise  # (N, k) and (nu, k): directions of states and inputs, times the root of the density
        self.substeps = substeps
        self.fixed_states = list(fixed_states)  # states that are always coordinates
        # (k, k): factor of the covariance of noise that is held over each sample; the last k states are this noise
        self.renewed = np.zeros((0, 0)) if renewed is None else renewed
        self.switches = 0

    def has_same_rules(self, other: ManifoldStepper) -> bool:
        """Return whether noise and steps are those of another motion of the same model, whatever the chart."""
        is_same_noise = self.noise is other.noise and self.renewed is other.renewed
        return is_same_noise and self.substeps == other.substeps

    def fork(self) -> ManifoldStepper:
        """Return the same motion with a chart and memory of its own."""
        motion = copy(self)
        motion.evaluator = self.evaluator.fork()
        return motion

    def on_manifold(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        """Return the point with the coordinates of x that lies on the manifold."""
        return self.points_on_manifold(t, x[None], u)[0] if self.chart.dependent else x

    def points_on_manifold(self, t: float, X: FloatArray, u: FloatArray) -> FloatArray:
        """Return the points with the coordinates of those in X (k, N) that lie on the manifold."""
        chart = self.chart
        if not chart.dependent:
            return X
        X, scales, remaining = X.copy(), self.scales[chart.dependent], np.arange(len(X))
        for _ in range(ITERATIONS):
            h, H = self.evaluator.compute_surfaces(t, X[remaining], u, chart.dependent)
            steps = np.empty((len(remaining), len(chart.dependent)))
            for k, gradient in enumerate(H):
                *_, steps[k], singular = dgesv(gradient[chart.square], h[k, chart.rows])
                if singular:
                    steps[k] = np.nan
            if not np.isfinite(steps).all():
                break
            X[remaining[:, None], chart.dependent] -= steps
            remaining = remaining[np.max(np.abs(steps) / scales, axis=1) > QUADRATIC_STEP_SIZE]
            if not len(remaining):
                return X
        raise NumericalError(
            f"No point of the manifold was found for the estimate at t = {t:.6g} s: the sample time is too long, or "
            "the estimate is far off. Shorten the sample time, or begin again with reset()."
        )

    def tangent(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        """Return T = dx/dy, shape (N, P)."""
        chart = self.chart
        T = np.zeros((len(x), len(chart.coordinates)))
        T[chart.coordinates, range(len(chart.coordinates))] = 1.0
        if chart.dependent:
            H = self.evaluator.surface(t, x, u)[1]
            T[chart.dependent] = -dgesv(H[chart.square], H[chart.opposite])[2]
        return T

    def choose_coordinates(self, t: float, x: FloatArray, u: FloatArray, S: FloatArray) -> FloatArray:
        """Choose other coordinates where these have become bad; return the factor S of the covariance in them."""
        chart = self.chart
        if not chart.dependent:
            return S
        T = self.tangent(t, x, u)
        if (
            np.max(np.abs(T[chart.dependent]) * self.scales[chart.coordinates] / self.scales[chart.dependent][:, None])
            <= MAX_DEPENDENT_SLOPE
        ):
            return S
        H = self.evaluator.surface(t, x, u)[1]
        other = choose_chart(H, self.scales, len(chart.dependent), self.row_terms.at(t, x, u), self.fixed_states)
        if other.coordinates == chart.coordinates:
            return S
        self.chart, self.switches = other, self.switches + 1
        return triangular((T[other.coordinates] @ S).T)

    def renew(self, x: FloatArray, S: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return an estimate with the noise of the next sample in place of that of the last one.

        The noise states are the last coordinates and S is lower triangular, so its leading block is the factor of the
        others' covariance. The noise of a sample is independent of all before.
        """
        k = len(self.renewed)
        if not k:
            return x, S
        x, S = x.copy(), S.copy()
        x[-k:] = 0.0
        S[-k:] = 0.0
        S[-k:, -k:] = self.renewed
        return x, S

    def predict(
        self, t: float, x: FloatArray, u: FloatArray, S: FloatArray, sample_time: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the states and the factor of the covariance a sample later, inputs held."""
        s = sample_time / self.substeps
        for k in range(self.substeps):
            x, Phi, V = self.substep(t + k * s, x, u, s)
            S = triangular(np.concatenate(((Phi @ S).T, V.T)))
            S = self.choose_coordinates(t + (k + 1) * s, x, u, S)
        return x, S

    def substep(self, t: float, x: FloatArray, u: FloatArray, s: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return x+ (N,), Phi (P, P), and the factor of Q, shape (P, k (TERMS + 1))."""
        coordinates, P = self.chart.coordinates, len(self.chart.coordinates)
        T = self.tangent(t, x, u)
        f1, _, F1, _ = self.evaluator.along(t, x, u, *self._with_noise(T, len(u)))
        K1 = F1[:, :P]
        f2, _, K2, _ = self.evaluator.along(t + s / 2, x + s / 2 * f1, u, T + s / 2 * K1)
        f3, _, K3, _ = self.evaluator.along(t + s / 2, x + s / 2 * f2, u, T + s / 2 * K2)
        f4, _, K4, _ = self.evaluator.along(t + s, x + s * f3, u, T + s * K3)
        x = x + s / 6 * (f1 + 2 * (f2 + f3) + f4)
        Phi = (T + s / 6 * (K1 + 2 * (K2 + K3) + K4))[coordinates]
        return (
            self.on_manifold(t + s, x, u),
            Phi,
            noise_factor(K1[coordinates], (F1[:, P:] + self.noise[0])[coordinates], s),
        )

    def _with_noise(self, T: FloatArray, nu: int) -> tuple[FloatArray, FloatArray]:
        """Return the directions of the coordinates, then those of the noise."""
        X_w, U_w = self.noise
        return np.hstack((T, np.zeros_like(X_w))), np.hstack((np.zeros((nu, T.shape[1])), U_w))

    def transition(self, t: float, x: FloatArray, u: FloatArray, sample_time: float) -> tuple[FloatArray, FloatArray]:
        """Return Phi (P, P) and the factor of Q over a sample with the derivatives at its start held."""
        coordinates, P = self.chart.coordinates, len(self.chart.coordinates)
        F = self.evaluator.along(t, x, u, *self._with_noise(self.tangent(t, x, u), len(u)))[2]
        A, s = F[coordinates, :P], sample_time / self.substeps
        V = noise_factor(A, (F[:, P:] + self.noise[0])[coordinates], s)
        step = np.asarray(sum(np.linalg.matrix_power(A * s, i) / _FACTORIAL[i] for i in _POWERS))
        Phi, total = step, V
        for _ in range(self.substeps - 1):
            Phi, total = step @ Phi, triangular(np.concatenate(((step @ total).T, V.T)))
        return Phi, total

    def later(self, t: float, x: FloatArray, u: FloatArray, sample_time: float) -> FloatArray:
        """Return the states alone a sample later."""
        return np.asarray(self.points_later(t, x[None], u, sample_time)[0])

    def points_later(self, t: float, X: FloatArray, u: FloatArray, sample_time: float) -> FloatArray:
        """Return points a sample later than those in X (k, N)."""

        def rates(t: float, X: FloatArray) -> FloatArray:
            return self.evaluator.compute_points(t, X, u)[0]

        s = sample_time / self.substeps
        for at in t + s * np.arange(self.substeps):
            X = runge_kutta_step(rates, at, X, s, rates(at, X))
            X = self.points_on_manifold(at + s, X, u)
        return X


def noise_factor(A: FloatArray, G: FloatArray, s: float) -> FloatArray:
    """Return a factor of what white noise through G (P, k) adds in s seconds of y' = A y, shape (P, k (TERMS + 1))."""
    terms = [G * np.sqrt(s)]
    for i in range(1, TERMS + 1):
        terms.append(A @ terms[-1] * (s / i))
    V = np.stack(terms)  # (TERMS + 1, P, k)
    return np.concatenate(list(np.tensordot(HILBERT.T, V, axes=1)), axis=1)
