"""Sampled Kalman filters on linear models, exact over a sample; optimal feedback and filters along periodic motions.

    predict   y- = y0 + f_d + Phi (y - y0) + Gamma (u - u0),         P- = Phi P Phi' + Q_d
    correct   y  = y- + L (m - m0 - C (y- - y0) - D (u - u0)),       L = P- C' (C P- C' + R)^-1 without feedthrough

in the independent coordinates y. White noise w, E[w(t) w(s)'] = W delta(t - s), that enters through G is after a sample
Q_d = int_0^h exp(A s) G W G' exp(A' s) ds = Phi X, of exp([[-A, G W G'], [0, A']] h) = [[., X], [0, Phi']] (Van Loan
1978). For stiff plants h is halved, and doubled again by Q_d(2 h) = Q_d(h) + Phi(h) Q_d(h) Phi(h)'.

Noise that is held over each sample reaches a sensor at once where D is not 0. The measurement at the end of a sample
sees the noise, and the inputs, of the sample that ends: see :mod:`fmilin.design.riccati`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import expm

from fmilin.design.angles import TurnObserver, Wrapped, choose_turns
from fmilin.design.hidden_modes import (
    HiddenMode,
    UncertainPair,
    compute_continuous_errors,
    compute_sampled_errors,
    find_hidden_modes,
    right_direction,
)
from fmilin.design.laws import Savable, linear_law
from fmilin.design.measurement import factor_covariance, measurement_covariance, require_vector
from fmilin.design.riccati import NoisySystem, solve_steady_filter
from fmilin.diagnostics import Remark
from fmilin.errors import NumericalError, UsageError
from fmilin.linear_model.measured_angles import MeasuredAngles
from fmilin.linear_model.model import LinearModel
from fmilin.reduction.transformation import discretize
from fmilin.signals import FloatArray, RealArrayLike, Signals, as_numbers, wrap_differences
from fmilin.support.deprecation import rename_keywords
from fmilin.support.implemented_in import implemented_in
from fmilin.support.kinds import kinds_checked
from fmilin.support.table_repr import Sheet, TableRepr


@kinds_checked
def noise_through(linear: LinearModel, intensities: Mapping[str, float]) -> tuple[FloatArray, FloatArray]:
    """Return how noise enters ``linear`` through inputs: columns G of B, shape (P, k), and W, shape (k, k), diagonal.

    ``intensities`` are spectral densities of white noise, in the input's unit squared times seconds.

    UsageError, UnknownNameError: when an intensity is negative or no number, or there is no such input.
    """
    columns = require_intensities(linear.inputs, intensities)
    return linear.B[:, columns], np.diag(np.array(list(intensities.values()), dtype=np.float64))


def require_intensities(inputs: Signals, intensities: Mapping[str, float]) -> list[int]:
    """Return which inputs noise enters through; reject densities that are negative or no numbers."""
    for name, value in intensities.items():
        if not (np.isfinite(as_numbers(value, f"The intensity of the noise of '{name}'")) and value >= 0):
            raise UsageError(f"The intensity of the noise of '{name}' is {value:g}: it must be finite and 0 or more.")
    return [inputs.index_of(name, "an input of the linear model") for name in intensities]


@kinds_checked
def sampled_noise(A: RealArrayLike, G: RealArrayLike, W: RealArrayLike, sample_time: float) -> FloatArray:
    """Return the covariance that white noise adds over one sample (Van Loan): shape (P, P), positive semidefinite.

    Raises UsageError when the sample time is not positive.

    Parameters
    ----------
    A, G, W : array, shapes (P, P), (P, k), (k, k)
        W is the spectral density.
    sample_time : float, in seconds

    Examples
    --------
    >>> import numpy as np
    >>> from fmilin.design import sampled_noise
    >>> sampled_noise(np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [1.0]]), np.array([[3.0]]), 1.0)
    array([[1. , 1.5],
           [1.5, 3. ]])
    """
    if not (np.isfinite(as_numbers(sample_time, "The sample time")) and sample_time > 0):
        raise UsageError(f"A sample time of {sample_time:g} s is not possible: give a positive one, in seconds.")
    A, G, W = (as_numbers(matrix, name) for matrix, name in ((A, "A"), (G, "G"), (W, "W")))
    P = len(A) if A.ndim else 0
    if A.shape != (P, P) or G.ndim != 2 or len(G) != P or W.shape != (G.shape[1], G.shape[1]):
        raise UsageError(
            f"A, G and W have the shapes {A.shape}, {G.shape} and {W.shape}; they need (P, P), (P, k) and (k, k)."
        )
    if not (np.isfinite(A).all() and np.isfinite(G).all()):
        raise UsageError("A and G must contain finite numbers only.")
    factor_covariance(W, len(W), "The spectral density W")
    halvings = max(0, int(np.ceil(np.log2(max(float(np.linalg.norm(A, 1)) * sample_time, 1.0)))))
    E = expm(np.block([[-A, G @ W @ G.T], [np.zeros((P, P)), A.T]]) * (sample_time / 2**halvings))
    Phi = E[P:, P:].T
    Q: FloatArray = Phi @ E[:P, P:]
    for _ in range(halvings):
        Q, Phi = Q + Phi @ Q @ Phi.T, Phi @ Phi
    return (Q + Q.T) / 2


@dataclass(frozen=True, eq=False)
class Estimates:
    """The estimates of a filter from measured data."""

    states: FloatArray  # (K, P), of the independent coordinates after each measurement, absolute
    innovations: FloatArray  # (K, m), measurement less its prediction; of an angle that wraps, modulo its turn
    remarks: tuple[Remark, ...] = ()  # which outputs were seen to wrap


@dataclass(frozen=True, eq=False, repr=False)
class KalmanFilter(TableRepr, Savable):
    """A steady Kalman filter from sample to sample; :func:`kalman_filter` makes it."""

    _attributes = ".gain, .covariance, .Q, .R, .sampled"

    linear: LinearModel  #: the continuous one; its outputs are the measurements
    sampled: LinearModel  #: the same over one sample, inputs held
    Q: FloatArray  #: shape (P, P); covariance that the process noise adds in a sample
    R: FloatArray  #: shape (m, m); covariance of the measurements
    gain: FloatArray  #: L, shape (P, m)
    predicted: FloatArray  #: shape (P, P), covariance of the estimate's error before a measurement
    covariance: FloatArray  #: shape (P, P), of that after it

    #: shape (P, k); what the noise of a sample, of unit variance, adds to the states: G G' = Q
    noise: FloatArray
    #: shape (m, k); what of the same noise the measurement at the end of the sample sees at once
    feedthrough: FloatArray
    #: of :attr:`covariance`, relative, by the errors of the linear model's entries
    relative_error: float
    #: whether outputs in units of angles are watched for jumps by a turn where the model does not tell that they wrap
    observes_turns: bool = True

    @implemented_in("fmilin.report.result_tables:show_filter")
    def _print_table(self, page: Sheet) -> None: ...

    @property
    def wrapped_outputs(self) -> dict[str, float]:
        """The measured angles that wrap, and by which turn: their innovations are in (-turn/2, turn/2]."""
        return {s.name: s.turn for s in self.linear.outputs if s.turn}

    @property
    def innovation_covariance(self) -> FloatArray:
        """C P- C' + R, with what the noise of a sample adds through D, shape (m, m)."""
        C, crossed = self.sampled.C, self.cross_covariance
        through = C @ crossed
        measurement_noise = self.R + self.feedthrough @ self.feedthrough.T
        return np.asarray(C @ self.predicted @ C.T + through + through.T + measurement_noise)

    @property
    def cross_covariance(self) -> FloatArray:
        """Of what a sample adds to the states with what its noise adds to the measurement at its end, shape (P, m)."""
        return np.asarray(self.noise @ self.feedthrough.T)

    @property
    def noisy_system(self) -> NoisySystem:
        """The sampled matrices and noise, with the errors of the matrices, as the Riccati equation takes them."""
        A_error, _ = compute_sampled_errors(self.linear, self.sampled.sample_time)
        C_error = compute_continuous_errors(self.linear)[2]
        s = self.sampled
        return NoisySystem(s.A, s.C, self.noise, self.feedthrough, self.R, A_error, C_error)

    @kinds_checked
    def predict(self, y: RealArrayLike, u: RealArrayLike) -> FloatArray:
        """Return the estimate a sample after ``y``, shape (P,), with the inputs ``u`` (nu,) held; absolute values."""
        s = self.sampled
        y = require_vector(y, s.states, "The estimate")
        u = require_vector(u, s.inputs, "The vector of inputs")
        return self._ahead(y, u)

    @kinds_checked
    def correct(self, y: RealArrayLike, u: RealArrayLike, measured: RealArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return the estimate after what was ``measured``, shape (m,), and the innovation, shape (m,).

        ``y``, shape (P,), is what was predicted; ``u``, shape (nu,), the inputs over the sample that ends with the
        measurement. Absolute values.
        """
        s = self.sampled
        y = require_vector(y, s.states, "The predicted estimate")
        u = require_vector(u, s.inputs, "The vector of inputs")
        measured = require_vector(measured, s.outputs, "The measurement")
        innovation = wrap_differences(self._difference(y, u, measured), self.linear.outputs.turns)
        return y + self.gain @ innovation, innovation

    def _difference(self, y: FloatArray, u: FloatArray, measured: FloatArray) -> FloatArray:
        """Return the measurement less its prediction, turns included, shape (m,)."""
        s = self.sampled
        return np.asarray(measured - self.linear.g0 - s.C @ (y - s.y0) - s.D @ (u - self.linear.u0))

    def observe_turns(self) -> TurnObserver:
        """Return what a run of the filter knows of measured angles."""
        return TurnObserver(self.linear.outputs, observes=self.observes_turns)

    def correct_during(
        self, observer: TurnObserver, y: FloatArray, u: FloatArray, measured: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return :meth:`correct` in a run of which the ``observer`` sees angles wrap.

        Of ``y``, shape (P,), ``u``, shape (nu,), and ``measured``, shape (m,), as there.
        """
        difference = self._difference(y, u, measured)
        innovation = wrap_differences(difference, observer.observe(range(len(measured)), difference))
        return y + self.gain @ innovation, innovation

    @kinds_checked
    def run(self, inputs: RealArrayLike, measured: RealArrayLike, start: RealArrayLike | None = None) -> Estimates:
        """Return what the filter makes of recorded data.

        Raises UsageError when shapes do not fit.

        Parameters
        ----------
        inputs, measured : array, shapes (K, nu), (K, m)
            At the samples, absolute values. Inputs are held from each sample to the next, and a measurement is taken
            before they change: where an input reaches an output at once, it is the one of the sample that ends. Before
            the first sample the inputs are those of the operating point.
        start : array, shape (P,), optional
            What is predicted for the first sample; that of the operating point by default.
        """
        u: FloatArray = np.asarray(inputs, dtype=np.float64)
        readings: FloatArray = np.asarray(measured, dtype=np.float64)
        K, (m, nu) = len(readings), self.sampled.D.shape
        if u.shape != (K, nu) or readings.shape != (K, m):
            raise UsageError(
                f"The arrays of inputs have the shape {u.shape} and measurements {readings.shape}; the filter needs "
                f"(K, {nu}) and (K, {m})."
            )
        y = self.sampled.y0 if start is None else np.asarray(start, dtype=np.float64)
        states, innovations = np.empty((K, len(y))), np.empty((K, m))
        before = np.vstack((self.linear.u0[None], u[:-1]))
        observer = self.observe_turns()
        k = 0
        while k < K:
            part = slice(k, min(K, k + observer.longest_record))
            estimates, differences = self._filter_part(y, (before[part], u[part], readings[part]), observer.turns)
            done = observer.count_without_jump(differences)
            observer.record_unwrapped(differences[:done])
            states[k : k + done], innovations[k : k + done] = estimates[:done], differences[:done]
            k += done
            y = self._ahead(states[k - 1], u[k - 1]) if done else y
            if done < len(differences):  # an output was seen to wrap
                states[k], innovations[k] = self.correct_during(observer, y, before[k], readings[k])
                y = self._ahead(states[k], u[k])
                k += 1
        return Estimates(states, innovations, observer.remarks)

    def _ahead(self, y: FloatArray, u: FloatArray) -> FloatArray:
        """Return the estimate a sample after ``y``, shape (P,), with the inputs ``u`` (nu,) held."""
        s = self.sampled
        return np.asarray(s.y0 + s.f0 + s.A @ (y - s.y0) + s.B @ (u - self.linear.u0))

    def _filter_part(
        self, y: FloatArray, record: tuple[FloatArray, FloatArray, FloatArray], turns: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return estimates (K, P) and innovations (K, m) of a record (before, inputs, measured) from a prediction y.

        Quantities that do not depend on the estimates are computed for all samples together.
        """
        s, u0, L = self.sampled, self.linear.u0, self.gain
        before, inputs, measured = record
        readings = measured - self.linear.g0 - (before - u0) @ s.D.T
        driven = s.f0 + (inputs - u0) @ s.B.T
        deviation, wraps = y - s.y0, bool(turns.any())
        states, innovations = np.empty((len(inputs), len(y))), np.empty_like(readings)
        for k in range(len(inputs)):
            innovation = readings[k] - s.C @ deviation
            innovations[k] = wrap_differences(innovation, turns) if wraps else innovation
            states[k] = deviation + L @ innovations[k]
            deviation = driven[k] + s.A @ states[k]
        return states + s.y0, innovations

    @kinds_checked
    def nees(self, estimates: Estimates, true: RealArrayLike) -> FloatArray:
        """Return the normalized estimation errors squared e' P^-1 e, shape (K,): on average P where all is right.

        ``true`` are the independent coordinates as they were, shape (K, P), or all states of a simulation, (K, N);
        ``estimates`` those of :meth:`run`. Raises UsageError when they do not have as many rows.
        """
        actual = as_numbers(true, "The true states")
        names, all_names = self.linear.states.names, self.linear.full_states
        if actual.ndim == 2 and actual.shape[1] == len(all_names) and all(map(all_names.has, names)):
            actual = actual[:, [all_names.index_of(name) for name in names]]
        if actual.shape != estimates.states.shape:
            raise UsageError(
                f"The true states have the shape {actual.shape}, and the estimates {estimates.states.shape}: give the "
                "coordinates, or all states, at the samples of the estimates. A simulation also has its start."
            )
        e = actual - estimates.states
        return np.asarray(np.einsum("ki,ki->k", e, np.linalg.solve(self.covariance, e.T).T))

    def linear_model(self) -> LinearModel:
        """Return the filter as a sampled linear model: from inputs and measurements to the estimates.

        At a sample its inputs are what was held over the sample that ends, and what is measured now; its states are
        the estimates of the sample before, ``estimated.NAME``, its outputs those of now, by the names of the
        coordinates.
        """
        s, plant, L = self.sampled, self.linear, self.gain
        error_update = np.eye(len(s.A)) - L @ s.C
        A, B, f0 = error_update @ s.A, np.hstack([error_update @ s.B - L @ s.D, L]), error_update @ s.f0
        read = [*plant.inputs, *plant.outputs]
        inputs = Signals(x.with_start(v) for x, v in zip(read, (*plant.u0, *plant.g0), strict=True))
        states = [x.with_start(v) for x, v in zip(s.states, s.y0.tolist(), strict=True)]
        outputs = Signals(x.with_start(v) for x, v in zip(states, (s.y0 + f0).tolist(), strict=True))
        named = Signals(replace(x, name=f"estimated.{x.name}", aliases=()) for x in states)
        return linear_law("Kalman filter", plant, (A, B, A, B), (named, inputs, outputs), s.sample_time, f0)

    def find_measured_angles(self) -> MeasuredAngles | None:
        """Return the measured angles with their predictions from the estimates of the sample before."""
        s, turns = self.sampled, self.linear.outputs.turns
        rows = np.flatnonzero(turns)
        if not len(rows):
            return None
        C, nu = s.C[rows], s.B.shape[1]
        of_inputs = np.hstack((C @ s.B + s.D[rows], np.zeros((len(rows), len(turns)))))
        return MeasuredAngles((nu + rows).tolist(), turns[rows], C @ s.A, of_inputs, C @ s.f0)


@rename_keywords(held="hold_noise")
@kinds_checked
def kalman_filter(
    linear: LinearModel,
    sample_time: float,
    *,
    process: Mapping[str, float] | RealArrayLike,
    measured: Mapping[str, float] | RealArrayLike,
    hold_noise: bool = False,
    wrapped_outputs: Wrapped = None,
) -> KalmanFilter:
    """Return the steady sampled Kalman filter of a linear model.

    Raises UsageError or UnknownNameError when a name is unknown, an output has no variance, a variance is not
    positive, or white noise reaches an output at once; NumericalError when there is no steady filter: a mode that does
    not decay is not observable from the outputs beyond rounding, or a mode on the stability limit is not excited.

    Noise that is held reaches an output at once where D is not 0, as an accelerometer. The measurement at the end of a
    sample sees the noise of the sample that ends: with W its variances, the measurement's noise is R + D W D', and its
    covariance with what the sample adds to the states is B_d W D'.

    Parameters
    ----------
    linear : LinearModel
        Continuous; its outputs are measured: choose them, or make them by :func:`measurement`.
    sample_time : float, in seconds
    process : mapping of str to float, or array of shape (P, P)
        By input: the spectral density of white noise that enters through it (unit squared times seconds), or, with
        ``hold_noise``, the variance of noise that is constant over each sample (unit squared). As an array: Q_d itself,
        of noise that reaches no output at once.
    measured : mapping of str to float, or array of shape (m, m)
        By output: the variance of a sample's noise. Every output needs one.
    hold_noise : bool
        Whether process noise is held over each sample.
    wrapped_outputs : sequence of str, or mapping of str to float, optional
        Measured angles that wrap, with their turns where the unit does not tell: their innovations are taken into
        (-turn/2, turn/2]. By default those of the linear model (``lin.outputs[i].turn``: ``atan2`` in equations, or a
        jump at the point), and outputs in units of angles that jump by a turn in the data; ``[]`` means none.
    """
    outputs = choose_turns(linear.outputs, wrapped_outputs)
    linear = linear if outputs is linear.outputs else replace(linear, outputs=outputs)
    sampled = discretize(linear, sample_time)
    R = measurement_covariance(linear.outputs, measured)
    noise, feedthrough, reach = _noise_of_a_sample(linear, sampled, process, holds_noise=hold_noise)
    A_error, _ = compute_sampled_errors(linear, sampled.sample_time)
    C_error = compute_continuous_errors(linear)[2]
    _require_observable(
        linear, UncertainPair(sampled.A, sampled.C, A_error, C_error, sampled=True), sampled.sample_time
    )
    _require_excited(linear, reach, sampled.sample_time)
    system = NoisySystem(sampled.A, sampled.C, noise, feedthrough, R, A_error, C_error)
    try:
        steady = solve_steady_filter(system)
    except (NumericalError, np.linalg.LinAlgError) as error:
        raise NumericalError(
            f"There is no steady Kalman filter every {sample_time:g} s. {error} A slowly decaying or undamped mode is "
            f"hardly observable from {', '.join(linear.outputs.names)}, or hardly excited by the process noise."
        ) from None
    gains = steady.gain, steady.predicted, steady.covariance
    return KalmanFilter(
        linear,
        sampled,
        noise @ noise.T,
        R,
        *gains,
        noise,
        feedthrough,
        steady.error,
        observes_turns=wrapped_outputs is None,
    )


def _noise_of_a_sample(
    linear: LinearModel, sampled: LinearModel, process: Mapping[str, float] | RealArrayLike, *, holds_noise: bool
) -> tuple[FloatArray, FloatArray, UncertainPair]:
    """Return the factors of the noise that a sample adds to states and measurement; what tells what it excites."""
    P, m = len(sampled.A), len(sampled.C)
    A_error, B_error = compute_sampled_errors(linear, sampled.sample_time)
    discrete = UncertainPair(sampled.A, sampled.C, A_error, np.zeros_like(sampled.C), sampled=True)
    if not isinstance(process, Mapping):
        Q = as_numbers(process, "The covariance of the process noise")
        noise = factor_covariance(Q, P, "The covariance of the process noise")
        return noise, np.zeros((m, P)), discrete.transpose(Q, 1e-12 * np.abs(Q))
    columns = require_intensities(linear.inputs, process)
    roots = np.sqrt(np.array(list(process.values()), dtype=np.float64))
    excited = [column for column, root in zip(columns, roots, strict=True) if root > 0]
    if holds_noise:
        reach = discrete.transpose(sampled.B[:, excited], B_error[:, excited])
        return sampled.B[:, columns] * roots, sampled.D[:, columns] * roots, reach
    _refuse_white_feedthrough(linear, excited)
    errors = compute_continuous_errors(linear)
    Q = sampled_noise(linear.A, linear.B[:, columns], np.diag(roots**2), sampled.sample_time)
    noise = factor_covariance(Q, P, "The covariance of the process noise")
    continuous = UncertainPair(linear.A, linear.C, errors[0], errors[2], sampled=False)
    return noise, np.zeros((m, P)), continuous.transpose(linear.B[:, excited], errors[1][:, excited])


def _refuse_white_feedthrough(linear: LinearModel, excited: list[int]) -> None:
    """Reject white noise that reaches an output at once: a sample of it has an infinite variance."""
    D = linear.D[:, excited]
    reached = np.argwhere(np.abs(D) > 10 * linear.errors.D[:, excited])
    if reached.size:
        i, j = reached[0]
        output, name = linear.outputs.names[i], linear.inputs.names[excited[j]]
        raise UsageError(
            f"White process noise through '{name}' reaches the output '{output}' at once (D = {D[i, j]:.4g}), and a "
            "sample of it would have an infinite variance. Give the variance of noise that is constant over each "
            "sample (hold_noise=True), or model the noise as the output of a filter, and join its states to the model."
        )


def _require_observable(linear: LinearModel, system: UncertainPair, sample_time: float) -> None:
    """Raise NumericalError naming a mode that stays and that no output observes beyond rounding."""
    for mode in find_hidden_modes(system):
        if mode.may_stay:
            raise NumericalError(
                "There is no steady Kalman filter: an undamped or unstable mode is not observable from "
                f"{', '.join(linear.outputs.names) or 'any output'} beyond rounding. It is the mode of "
                f"{_describe(mode, linear, sample_time)}. Measure what it moves, or choose another sample time."
            )


def _require_excited(linear: LinearModel, reach: UncertainPair, sample_time: float) -> None:
    """Raise NumericalError naming a mode on the stability limit that the process noise does not excite."""
    for mode in find_hidden_modes(reach):
        if mode.may_be_on_limit:
            right = right_direction(reach.A.T, mode)
            raise NumericalError(
                "There is no steady Kalman filter: a mode on the stability limit is not excited by the process noise "
                "beyond rounding, so that the gain for it goes to zero. It is the mode of "
                f"{_describe(right, linear, sample_time if reach.sampled else 0.0)}. Let process noise reach it, or "
                "leave it out of the model."
            )


def _describe(mode: HiddenMode, linear: LinearModel, sample_time: float) -> str:
    return mode.describe(linear.states, linear.states.scales(linear.y0), sample_time)
