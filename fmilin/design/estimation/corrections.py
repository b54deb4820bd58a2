"""How a measurement corrects an estimate and its covariance, in square roots: EKF, iterated EKF, UKF; moving horizons.

With the factor S of the covariance, F of that of the noise and C of the outputs along the coordinates, the triangular
factor of the rows below is (Kailath, Sayed and Hassibi, Linear Estimation, 2000, chapter 12)

    [ F  C S ]  ~  [ E   0  ]        E E' = C S S' C' + F F',    e = K E^-1 (y - c),
    [ 0   S  ]     [ K   S+ ]

and S+ is a factor of the covariance after the measurement: nothing is subtracted, and it never loses its sign.

Over a window of K samples, with noise w_k of unit variance held over each sample and the arrival cost of an extended
filter at its beginning, minimize

    |S_0^-1 R (x_0 - x_f)|^2 + sum |w_k|^2 + sum |F_k^-1 (m_k - c(x_k, u_k))|^2
    with R x_{k+1} = R RK4(x_k, u_k + U w_k),    h(x_k) = 0,    bounds on x_k,

the constraints being those of the model as they are. Without bounds, on a linear model, that is the Kalman filter of
noise that is held over samples.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from scipy.linalg.lapack import dtrtrs

from fmilin.design.estimation.charts import CoordinateSplit
from fmilin.design.estimation.filter_motion import ESTIMATE_CHANGE_TOLERANCE, ManifoldStepper, triangular
from fmilin.errors import NumericalError, UsageError
from fmilin.model.capabilities import has_graph
from fmilin.model.interface import Model
from fmilin.numerics.steps import runge_kutta_step
from fmilin.signals import FloatArray, wrap_differences
from fmilin.support.deprecation import DeprecatedAlias


@dataclass(frozen=True, slots=True)
class Belief:
    """An estimate: the states (N,) on the manifold, and a factor S (P, P) of the covariance of its coordinates."""

    time: float
    x: FloatArray
    S: FloatArray


@dataclass(frozen=True, slots=True)
class Measured:
    """A measurement at a sample: the numbers of the outputs, their values, and a factor of the noise's covariance."""

    rows: list[int]
    values: FloatArray
    factor: FloatArray
    turns: FloatArray  # (m,), of the outputs that wrap, 0 for the others

    def compare(self, predicted: FloatArray) -> FloatArray:
        """Return what was measured less what was ``predicted``, (m,), angles modulo their turns."""
        return wrap_differences(self.values - predicted, self.turns)


@dataclass(frozen=True, slots=True)
class MeasurementUpdate:
    """An estimate after a measurement."""

    belief: Belief
    innovations: FloatArray  # (m,), measured less predicted
    whitened: FloatArray  # (m,), the same in their own standard deviations, independent of each other
    log_determinant: float  # of the covariance of the innovations


class Filter(ABC):
    """One kind of filter."""

    def restart(self) -> None:
        """Forget samples, where any are remembered."""
        return

    def copy_state(self) -> Filter:
        """Return the filter as it is now, which later samples do not change."""
        return self

    def fork(self) -> Filter:
        """Return a filter that goes on from here, and that later samples of this one do not change."""
        return self.copy_state()

    def predict(self, motion: ManifoldStepper, at: Belief, u: FloatArray, sample_time: float) -> Belief:
        """Return the estimate a sample later."""
        x, S = motion.renew(at.x, at.S)
        return Belief(at.time + sample_time, *motion.predict(at.time, x, u, S, sample_time))

    @abstractmethod
    def correct(self, motion: ManifoldStepper, at: Belief, u: FloatArray, measured: Measured) -> MeasurementUpdate:
        """Return the estimate with the measurement."""

    predicted = DeprecatedAlias("predict")
    corrected = DeprecatedAlias("correct")


class Linearized(Filter):
    """The extended Kalman filter; with more iterations than one, measurements are linearized where they lead to."""

    def __init__(self, iterations: int = 1) -> None:
        self.iterations = iterations

    def correct(self, motion: ManifoldStepper, at: Belief, u: FloatArray, measured: Measured) -> MeasurementUpdate:
        """Return the estimate with the measurement."""
        t, x, coordinates, rows = at.time, at.x, motion.chart.coordinates, measured.rows
        m, P = len(rows), len(coordinates)
        e, first = np.zeros(P), None
        block = np.zeros((m + P, m + P))
        for k in range(self.iterations):
            T = motion.tangent(t, x, u)
            _, c, _, C = motion.evaluator.along(t, x, u, T)
            C = C[rows]
            block[:m, :m], block[:m, m:], block[m:, m:], block[m:, :m] = measured.factor, C @ at.S, at.S, 0.0
            lower = triangular(block.T)
            E, K, S = lower[:m, :m], lower[m:, :m], lower[m:, m:]
            residuals = measured.compare(c[rows])
            before, e = e, K @ _solve_triangular(E, residuals + C @ e, t)
            first = first or (
                residuals,
                _solve_triangular(E, residuals, t),
                2 * float(np.log(np.abs(np.diag(E))).sum()),
            )
            x = at.x + motion.tangent(t, at.x, u) @ e
            x[coordinates] = at.x[coordinates] + e
            x = motion.on_manifold(t, x, u)
            if k and (np.abs(e - before) <= ESTIMATE_CHANGE_TOLERANCE * np.linalg.norm(at.S, axis=1)).all():
                break
        assert first is not None  # noqa: S101 - there is one iteration at least
        return MeasurementUpdate(Belief(t, x, motion.choose_coordinates(t, x, u, S)), *first)


class SigmaPoints(Filter):
    """The unscented filter: 2 P + 1 points x = Psi(y +- s e_i), weights never negative (Julier and Uhlmann, 1997)."""

    def _points(self, motion: ManifoldStepper, at: Belief, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the states of the points, shape (2 P + 1, N), and their weights."""
        P, coordinates = len(at.S), motion.chart.coordinates
        kappa = max(0.0, 3.0 - P)
        columns = np.sqrt(P + kappa) * at.S.T
        e = np.stack((columns, -columns), axis=1).reshape(2 * P, P)
        X = at.x + e @ motion.tangent(at.time, at.x, u).T
        X[:, coordinates] = at.x[coordinates] + e
        points = np.concatenate((at.x[None], motion.points_on_manifold(at.time, X, u)))
        weights = np.full(2 * P + 1, 0.5 / (P + kappa))
        weights[0] = kappa / (P + kappa)
        return points, weights

    def predict(self, motion: ManifoldStepper, at: Belief, u: FloatArray, sample_time: float) -> Belief:
        """Return the estimate a sample later, from where the points arrive."""
        at = Belief(at.time, *motion.renew(at.x, at.S))
        points, weights = self._points(motion, at, u)
        noise = motion.transition(at.time, at.x, u, sample_time)[1]
        later = motion.points_later(at.time, points, u, sample_time)
        coordinates, t = motion.chart.coordinates, at.time + sample_time
        y = weights @ later[:, coordinates]
        x = later[0].copy()
        x[coordinates] = y
        x = motion.on_manifold(t, x, u)
        S = triangular(np.concatenate((np.sqrt(weights)[:, None] * (later[:, coordinates] - y), noise.T)))
        return Belief(t, x, motion.choose_coordinates(t, x, u, S))

    def correct(self, motion: ManifoldStepper, at: Belief, u: FloatArray, measured: Measured) -> MeasurementUpdate:
        """Return the estimate with the measurement, its covariances with the outputs from points."""
        points, weights = self._points(motion, at, u)
        coordinates, t, m = motion.chart.coordinates, at.time, len(measured.rows)
        outputs = motion.evaluator.compute_points(t, points, u)[1][:, measured.rows]
        # An angle of the points that wraps deviates from that of the estimate by less than half a turn.
        outputs = outputs[0] + wrap_differences(outputs - outputs[0], measured.turns)
        mean = weights @ outputs
        root = np.sqrt(weights)[:, None]
        deviations = points[:, coordinates] - at.x[coordinates]
        block = np.concatenate((root * (outputs - mean), root * deviations), axis=1)
        noise = np.concatenate((measured.factor.T, np.zeros((m, len(coordinates)))), axis=1)
        lower = triangular(np.concatenate((block, noise)))
        E, K, S = lower[:m, :m], lower[m:, :m], lower[m:, m:]
        residuals = measured.compare(mean)
        whitened = _solve_triangular(E, residuals, t)
        e = K @ whitened
        x = at.x + motion.tangent(t, at.x, u) @ e
        x[coordinates] = at.x[coordinates] + e
        x = motion.on_manifold(t, x, u)
        size = 2 * float(np.log(np.abs(np.diag(E))).sum())
        return MeasurementUpdate(Belief(t, x, motion.choose_coordinates(t, x, u, S)), residuals, whitened, size)


def _solve_triangular(lower: FloatArray, right: FloatArray, t: float) -> FloatArray:
    """Return the solution with a lower triangular matrix."""
    solution, singular = dtrtrs(lower, right, lower=1)
    if singular or not np.isfinite(solution).all():
        raise NumericalError(
            f"The covariance of the estimate has become singular at t = {t:.6g} s: some direction has no uncertainty, "
            "or a number has overflowed. Give every direction some process noise or initial covariance."
        )
    return np.asarray(solution)


ROUNDING_ENDS_IT = "Search_Direction_Becomes_Too_Small"
FEASIBILITY_TOLERANCE, OPTIMALITY_TOLERANCE = (
    1e-8,
    1e-6,
)  # violations of constraints and of optimality that are rounding
DONE = ("Solve_Succeeded", "Solved_To_Acceptable_Level")


@dataclass(frozen=True, slots=True)
class _MeasuredSample:
    u: FloatArray
    measured: Measured | None
    x: FloatArray  # what was estimated at its end: where the next search begins


class MovingHorizon(Filter):
    """The filter of one run; it remembers the samples of its window."""

    def __init__(self, model: Model, horizon: int, bounds: Mapping[str, tuple[float, float]]) -> None:
        if not has_graph(model):
            raise UsageError(
                f"Moving-horizon estimation needs equations, and '{model.info.name}' has none that CasADi can "
                "differentiate. Take kind='ekf', 'iekf' or 'ukf'."
            )
        if horizon < 1:
            raise UsageError(f"The horizon must be at least 1 sample, not {horizon}.")
        self._model, self._horizon = model, horizon
        self.extended: Filter = Linearized()  # of the arrival cost, innovations and covariances
        self._ends = np.tile([[-np.inf], [np.inf]], (1, len(model.states)))
        for name, (least, largest) in bounds.items():
            if not least < largest:
                raise UsageError(
                    f"The bounds of '{name}' are {least:g} and {largest:g}: the first must be the smaller one."
                )
            self._ends[:, model.states.index_of(name, "a state of the model")] = least, largest
        self._solvers: dict[tuple[float, ...], Any] = {}
        self.restart()

    def restart(self) -> None:
        """Forget the window."""
        self._window: deque[_MeasuredSample] = deque()
        self._arrival: Belief | None = None
        self._arrival_chart: CoordinateSplit | None = None  # with the coordinates of the arrival's covariance

    def copy_state(self) -> Filter:
        """Return the filter with the window of now."""
        other = copy(self)
        other._window = deque(self._window)
        return other

    def predict(self, motion: ManifoldStepper, at: Belief, u: FloatArray, sample_time: float) -> Belief:
        """Return the estimate a sample later."""
        if self._arrival is None or self._arrival_chart is None:
            self._arrival, self._arrival_chart = at, motion.chart
        # The window's beginning has coordinates of its own: they change there, and not where the window ends.
        present, motion.chart = motion.chart, self._arrival_chart
        while len(self._window) >= self._horizon:
            first = self._window.popleft()
            self._arrival = self.extended.predict(motion, self._arrival, first.u, sample_time)
            if first.measured is not None:
                self._arrival = self.extended.correct(motion, self._arrival, first.u, first.measured).belief
        self._arrival_chart, motion.chart = motion.chart, present
        later = self.extended.predict(motion, at, u, sample_time)
        self._window.append(_MeasuredSample(u, None, later.x))
        self._sample_time = sample_time
        return later

    def correct(self, motion: ManifoldStepper, at: Belief, u: FloatArray, measured: Measured) -> MeasurementUpdate:
        """Return the estimate with the measurement: innovations and covariance as an extended filter has them."""
        linear = self.extended.correct(motion, at, u, measured)
        if not self._window:  # before the first prediction
            return linear
        self._window[-1] = _MeasuredSample(u, measured, linear.belief.x)
        states = self._solve_window(motion, at.time)
        for k, x in enumerate(states[-len(self._window) :]):
            self._window[k] = _MeasuredSample(self._window[k].u, self._window[k].measured, x)
        x = motion.on_manifold(at.time, states[-1], u)
        belief = Belief(at.time, x, linear.belief.S)
        return MeasurementUpdate(belief, linear.innovations, linear.whitened, linear.log_determinant)

    def _arrival_weight(self, motion: ManifoldStepper, arrival: Belief, u: FloatArray) -> FloatArray:
        """Return the inverse factor (P, P) of the arrival's covariance for an error in the present coordinates.

        An error e in the arrival's own coordinates is R_new T e in the present ones, so S becomes R_new T S.
        """
        present, arrival_chart = motion.chart, self._arrival_chart
        assert arrival_chart is not None  # noqa: S101 - it is set with the arrival
        S = arrival.S
        if arrival_chart.coordinates != present.coordinates:
            motion.chart = arrival_chart
            S = motion.tangent(arrival.time, arrival.x, u)[present.coordinates] @ S
            motion.chart = present
        return np.asarray(np.linalg.pinv(S, rcond=1e-12))

    def _solve_window(self, motion: ManifoldStepper, t: float) -> FloatArray:
        """Return the states at the samples, shape (K, N); what the window lacks is padded with samples of no length."""
        arrival, window = self._arrival, list(self._window)
        assert arrival is not None  # noqa: S101 - there was a prediction
        K, m, nu = self._horizon, len(self._model.outputs), len(self._model.inputs)
        missing = K - len(window)
        u, y, weights, h = np.zeros((nu, K)), np.zeros((m, K)), np.zeros((m, m * K)), np.zeros(K)
        for k, sample in enumerate(window, missing):
            u[:, k], h[k] = sample.u, self._sample_time
            if sample.measured is not None:
                rows, inverse = sample.measured.rows, np.linalg.inv(sample.measured.factor)
                y[rows, k] = sample.measured.values
                weights[np.ix_(rows, [m * k + row for row in rows])] = inverse
        chart = motion.chart
        root = self._arrival_weight(motion, arrival, u[:, missing])
        guess = np.array([arrival.x] * (missing + 1) + [sample.x for sample in window])
        turns = np.zeros(m)
        for sample in window:
            if sample.measured is not None:
                turns[sample.measured.rows] = sample.measured.turns
        key = (*chart.coordinates, *turns.tolist())
        if key not in self._solvers:
            self._solvers[key] = _Solver(self._model, motion, K, turns)
        solver = self._solvers[key]
        ends = np.tile(self._ends, (1, K + 1))
        noise = np.full(solver.noise * K, np.inf)
        start = t - float(h.sum())
        answer = solver.function(
            x0=np.concatenate((guess.ravel(), np.zeros(solver.noise * K))),
            p=np.concatenate((arrival.x, root.ravel("F"), u.ravel("F"), y.ravel("F"), weights.ravel("F"), h, [start])),
            lbx=np.concatenate((ends[0], -noise)),
            ubx=np.concatenate((ends[1], noise)),
            lbg=0.0,
            ubg=0.0,
        )
        statistics = solver.function.stats()
        status = statistics["return_status"]
        if status not in DONE and not _has_converged(statistics):
            raise NumericalError(
                f"The moving-horizon estimation found no motion that fits at t = {t:.6g} s ({status}): bounds and "
                "measurements contradict each other, or the estimate is far off. Widen the bounds, or begin again "
                "with reset()."
            )
        states = np.asarray(answer["x"]).ravel()[: (K + 1) * len(chart.coordinates + chart.dependent)]
        return np.asarray(states.reshape(K + 1, -1)[1:], dtype=np.float64)


def _has_converged(statistics: Mapping[str, Any]) -> bool:
    """Return whether the search ended where its conditions hold to rounding, which is less than it asks for."""
    steps = statistics.get("iterations", {})
    return bool(
        statistics["return_status"] == ROUNDING_ENDS_IT
        and steps
        and steps["inf_pr"][-1] <= FEASIBILITY_TOLERANCE
        and steps["inf_du"][-1] <= OPTIMALITY_TOLERANCE
    )


class _Solver:
    """The problem in CasADi for one choice of coordinates."""

    def __init__(self, model: Model, motion: ManifoldStepper, K: int, turns: FloatArray) -> None:
        from fmilin.models.to_casadi import to_casadi

        nonlinear, chart = to_casadi(model), motion.chart
        step: Any = runge_kutta_step  # of symbols
        N, m, nu, P = len(model.states), len(model.outputs), len(model.inputs), len(chart.coordinates)
        X_w, U_w = motion.noise
        k = len(motion.renewed)
        self.noise = X_w.shape[1] + k
        h_of = nonlinear.invariants(chart.rows)
        X, w = ca.MX.sym("X", N, K + 1), ca.MX.sym("w", self.noise, K)
        x_f, root, u = ca.MX.sym("x_f", N), ca.MX.sym("root", P, P), ca.MX.sym("u", nu, K)
        y, weights = ca.MX.sym("y", m, K), ca.MX.sym("weights", m, m * K)
        h, t0 = ca.MX.sym("h", K), ca.MX.sym("t0")
        cost = ca.sumsqr(ca.mtimes(root, X[chart.coordinates, 0] - x_f[chart.coordinates])) + ca.sumsqr(w)
        equations, t = [h_of(X[:, 0], u[:, 0], t0)], t0
        for j in range(K):
            x, s, scale = X[:, j], h[j] / motion.substeps, 1 / ca.sqrt(ca.fmax(h[j], 1e-12))
            white, renewed = w[: X_w.shape[1], j], w[X_w.shape[1] :, j]
            force, drift = u[:, j] + ca.mtimes(ca.DM(U_w), white) * scale, ca.mtimes(ca.DM(X_w), white) * scale
            if k:  # the noise of a sample is independent of that of the sample before
                x = ca.vertcat(x[: N - k], ca.mtimes(ca.DM(motion.renewed), renewed))

            def rates(t: Any, x: Any, force: Any = force, drift: Any = drift) -> Any:
                return nonlinear.f(x, force, t) + drift

            for _ in range(motion.substeps):
                x, t = step(rates, t, x, s, rates(t, x)), t + s
            equations += [X[chart.coordinates, j + 1] - x[chart.coordinates], h_of(X[:, j + 1], u[:, j], t)]
            residual = y[:, j] - nonlinear.c(X[:, j + 1], u[:, j], t)
            for i in np.flatnonzero(turns).tolist():
                residual[i] -= turns[i] * ca.ceil(residual[i] / turns[i] - 0.5)
            cost += ca.sumsqr(ca.mtimes(weights[:, m * j : m * (j + 1)], residual))
        problem: Any = {
            "x": ca.veccat(X, w), "f": cost, "g": ca.vertcat(*equations),
            "p": ca.veccat(x_f, root, u, y, weights, h, t0),
        }  # fmt: skip
        options: Any = {"print_time": False, "ipopt": {"print_level": 0, "sb": "yes", "tol": 1e-10}}
        self.function = ca.nlpsol("horizon", "ipopt", problem, options)
