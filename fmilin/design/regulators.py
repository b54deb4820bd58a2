"""Regulators that run at samples: state feedback, a filter with state feedback or another law, any function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace

import numpy as np

from fmilin.composition.linear_member import LinearLaw, linear_from_control
from fmilin.design.estimation.estimator import Estimator
from fmilin.design.hidden_modes import UncertainPair, compute_sampled_errors, find_hidden_modes, right_direction
from fmilin.design.kalman import KalmanFilter
from fmilin.design.laws import Savable, linear_law
from fmilin.design.regulator_protocol import Regulator, accept_old_regulator
from fmilin.diagnostics import Remark
from fmilin.errors import NumericalError, UsageError
from fmilin.linear_model.measured_angles import MeasuredAngles
from fmilin.linear_model.model import LinearModel
from fmilin.reduction.transformation import discretize
from fmilin.signals import FloatArray, RealArrayLike, Signal, Signals, as_numbers, wrap_differences
from fmilin.support.deprecation import DeprecatedAlias
from fmilin.support.implemented_in import implemented_in
from fmilin.support.kinds import kinds_checked
from fmilin.support.table_repr import Sheet, TableRepr

MAX_UNCERTAIN_EIGENVALUE_CHANGE = (
    1e-3  # change of an eigenvalue z by a gain, within the errors of B, from which on the gain relies on rounding
)


class KalmanRegulator(TableRepr, Savable):
    """u = u0 - K (y_hat - y0) on the estimates of a Kalman filter, which knows the limits of the actuators (LQG).

    Raises UsageError or UnknownNameError when shapes do not fit or an input is unknown.

    Parameters
    ----------
    filter : KalmanFilter
    gain : array, shape (len(drives), P)
        K, for instance of ``control.dlqr`` on ``filter.sampled``.
    drives : sequence of str, optional
        The inputs that the rows of K are for; all by default. Others are taken to stay at the operating point.
    """

    _attributes = ".filter, .gain, .linear_model()"

    @implemented_in("fmilin.report.designs:show_regulator")
    def _print_table(self, page: Sheet) -> None: ...

    @kinds_checked
    def __init__(self, filter: KalmanFilter, gain: RealArrayLike, drives: Sequence[str] | None = None) -> None:  # noqa: A002
        linear = filter.linear
        self.filter = filter
        self.drives = tuple(linear.inputs.names if drives is None else drives)
        self.reads, self.sample_time = linear.outputs.names, filter.sampled.sample_time
        self.gain = _gain(linear, gain, self.drives)
        self._columns = [linear.inputs.index_of(name, "an input of the linear model") for name in self.drives]
        self._u0 = linear.u0
        _require_honest_stability(linear, filter.sampled, self.gain, self._columns)
        self.restart()

    def linear_model(self) -> LinearModel:
        """Return the regulator as a sampled linear model, from measurements to inputs: to analyse or to export it.

        Its states are what the filter predicts for a sample, ``predicted.NAME``, and, where the measurements depend
        on the inputs at once, the inputs of the sample before, ``before.NAME``. It does not know of limits. It is
        u - u0 = R (m - m0), so that ``control.feedback(plant, regulator, sign=1)`` closes the loop.
        """
        s, plant = self.filter.sampled, self.filter.linear
        P, m, k = len(s.states), len(self.reads), len(self.drives)
        L, K, G, D = self.filter.gain, self.gain, s.B[:, self._columns], s.D[:, self._columns]
        estimate = np.hstack([np.eye(P) - L @ s.C, -L @ D, L])  # of what is predicted, the inputs before, measurements
        u = -K @ estimate
        step = np.vstack([s.A @ estimate + G @ u, u])
        if not D.any():
            step, u = (np.delete(part, np.s_[P : P + k], axis=1) for part in (step[:P], u))
        n = step.shape[1] - m
        drives = _set_starts(plant.inputs, plant.point.inputs, self.drives)
        state_signals = [
            Signal(f"predicted.{x.name}", x.unit, start=float(v)) for x, v in zip(s.states, s.y0, strict=True)
        ]
        state_signals += [replace(x, name=f"before.{x.name}", aliases=()) for x in drives][: n - P]
        signals = Signals(state_signals), _set_starts(plant.outputs, plant.point.outputs), drives
        f0 = np.concatenate((s.f0, np.zeros(n - P)))
        return linear_law(
            "regulator", plant, (step[:, :n], step[:, n:], u[:, :n], u[:, n:]), signals, s.sample_time, f0
        )

    def compute_limit_response(self) -> FloatArray:
        """Return how the states move with what limits take from the outputs, shape (P, outputs)."""
        s = self.filter.sampled
        rows = [s.B[:, self._columns], *([np.eye(len(self.drives))] if s.D[:, self._columns].any() else [])]
        return np.vstack(rows)

    def find_measured_angles(self) -> MeasuredAngles | None:
        """Return the measured angles with their predictions from the states of :meth:`linear_model`."""
        s, turns = self.filter.sampled, self.filter.linear.outputs.turns
        rows = np.flatnonzero(turns)
        if not len(rows):
            return None
        D = s.D[:, self._columns]
        of_states = np.hstack((s.C[rows], D[rows])) if D.any() else s.C[rows]
        n = len(rows)
        return MeasuredAngles(rows.tolist(), turns[rows], of_states, np.zeros((n, len(turns))), np.zeros(n))

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """Which outputs were seen to wrap since the last restart."""
        return self._observer.remarks

    def restart(self) -> None:
        """Go back to before the first sample: the estimate is the operating point."""
        self._predicted, self._inputs = self.filter.sampled.y0.copy(), self._u0.copy()
        self._estimate = self._predicted
        self._observer = self.filter.observe_turns()

    def answer(self, t: float, read: FloatArray) -> FloatArray:
        """Return u, shape (len(drives),), for what was ``read``, shape (m,), at ``t`` seconds."""
        self._estimate, _ = self.filter.correct_during(self._observer, self._predicted, self._inputs, read)
        return np.asarray(self._u0[self._columns] - self.gain @ (self._estimate - self.filter.sampled.y0))

    def update_states(self, outputs: FloatArray) -> None:
        """Predict with the ``outputs``, shape (len(drives),), that are really applied."""
        self._inputs = self._u0.copy()
        self._inputs[self._columns] = outputs
        self._predicted = self.filter.predict(self._estimate, self._inputs)

    applied = DeprecatedAlias("update_states")


class LinearRegulator(LinearLaw):
    """A sampled linear system in deviations from the plant's operating point."""

    def __init__(self, linear: LinearModel) -> None:
        super().__init__(linear)
        self.reads, self.drives, self.sample_time = linear.inputs.names, linear.outputs.names, linear.sample_time
        self._back = linear.B @ np.linalg.pinv(linear.D)
        conditioned = np.abs(np.linalg.eigvals(linear.A - self._back @ linear.C)).max(initial=0.0)
        if np.linalg.matrix_rank(linear.D) < len(linear.D) or conditioned >= 1:
            self._back = np.zeros_like(self._back)

    def with_turns(self, turns: Sequence[float | None]) -> LinearRegulator:
        """Return the regulator for a plant of which the variables that it reads wrap by these turns."""
        inputs = self.linear.inputs.with_turns([s.turn or turn for s, turn in zip(self.inputs, turns, strict=True)])
        return self if inputs is self.linear.inputs else LinearRegulator(replace(self.linear, inputs=inputs))

    def answer(self, t: float, read: FloatArray) -> FloatArray:
        """Return the outputs, and move on to the next sample."""
        self._answered = super().answer(t, read)
        return self._answered

    def update_states(self, outputs: FloatArray) -> None:
        """Update the states as if the limited outputs had been requested (Hanus' conditioning)."""
        self._states = self._states + self._back @ (outputs - self._answered)


class FunctionRegulator(TableRepr):
    """``function(t, read) -> u`` at every sample; without memory, or with one of its own.

    Parameters
    ----------
    function : callable
    reads, drives : sequence of str
    sample_time : float, in seconds
    """

    _attributes = ".reads, .drives, .sample_time"

    @implemented_in("fmilin.report.designs:show_regulator")
    def _print_table(self, page: Sheet) -> None: ...

    @kinds_checked
    def __init__(
        self,
        function: Callable[[float, FloatArray], RealArrayLike],
        reads: Sequence[str],
        drives: Sequence[str],
        sample_time: float,
    ) -> None:
        if not (np.isfinite(sample_time) and sample_time > 0):
            raise UsageError(f"A sample time of {sample_time:g} s is not possible: give a positive one, in seconds.")
        if not drives:
            raise UsageError("The regulator drives no input: name inputs of the plant (drives=).")
        self.function, self.reads, self.drives = function, tuple(reads), tuple(drives)
        self.sample_time = float(sample_time)

    def restart(self) -> None:
        """Do nothing: the function has no states that are known here."""

    def answer(self, t: float, read: FloatArray) -> FloatArray:
        """Return what the function answers to what was ``read``, shape (len(reads),), at ``t`` seconds: shape (k,).

        Raises UsageError when the answer is not an array of numbers of that shape.
        """
        answered = np.atleast_1d(as_numbers(self.function(t, read), f"The output of the regulator at t = {t} s"))
        if answered.shape != (len(self.drives),):
            raise UsageError(
                f"The regulator returned an array of the shape {answered.shape} at t = {t} s; it drives "
                f"{', '.join(self.drives)}: {len(self.drives)} numbers are needed."
            )
        return answered

    def update_states(self, outputs: FloatArray) -> None:
        """Do nothing: the function has no states that depend on the ``outputs``, shape (k,), that are applied."""

    applied = DeprecatedAlias("update_states")


class StateFeedback(FunctionRegulator, Savable):
    """u = u0 - K (y - y0), with the independent coordinates read from the plant; :func:`state_feedback` makes it."""

    @kinds_checked
    def __init__(self, linear: LinearModel, gain: RealArrayLike, sample_time: float, drives: Sequence[str]) -> None:
        self.gain = _gain(linear, gain, drives)
        self._linear, self._y0 = linear, linear.y0.copy()
        if not linear.sample_time:
            columns = [linear.inputs.index_of(name, "an input of the linear model") for name in drives]
            _require_honest_stability(linear, discretize(linear, sample_time), self.gain, columns)
        self._outputs = _set_starts(linear.inputs, linear.point.inputs, drives)
        super().__init__(self._feedback, linear.states.names, drives, sample_time)

    def with_turns(self, turns: Sequence[float | None]) -> StateFeedback:
        """Return the feedback for a plant of which the variables that it reads wrap by these turns."""
        of_states = [s.turn or turn for s, turn in zip(self._linear.states, turns, strict=True)]
        states = self._linear.states.with_turns(of_states)
        if states is self._linear.states:
            return self
        view = copy(self)
        view._linear = replace(self._linear, states=states)
        view.function = view._feedback
        return view

    def _feedback(self, t: float, y: FloatArray) -> FloatArray:
        read = as_numbers(y, "The regulator's measurements")
        if read.shape != self._y0.shape:
            raise UsageError(
                f"The regulator reads {', '.join(self.reads)}: {len(self._y0)} numbers are needed, and an array of the "
                f"shape {read.shape} was given."
            )
        deviation = wrap_differences(read - self._y0, self._linear.states.turns)
        return np.asarray(self._outputs.starts - self.gain @ deviation)

    def linear_model(self) -> LinearModel:
        """Return the regulator as a sampled linear model without states, D = -K."""
        P, k = len(self._y0), len(self.drives)
        inputs = Signals(s.with_start(v) for s, v in zip(self._linear.states, self._y0.tolist(), strict=True))
        matrices = np.zeros((0, 0)), np.zeros((0, P)), np.zeros((k, 0)), -self.gain
        signals = Signals(), inputs, self._outputs
        return linear_law("regulator", self._linear, matrices, signals, self.sample_time)


@kinds_checked
def state_feedback(
    linear: LinearModel, gain: RealArrayLike, sample_time: float, drives: Sequence[str] | None = None
) -> StateFeedback:
    """Return u = u0 - K (y - y0), with the independent coordinates read from the plant.

    Raises UsageError or UnknownNameError when shapes do not fit or an input is unknown.

    Parameters
    ----------
    linear : LinearModel
    gain : array, shape (len(drives), P)
        K of ``control.lqr`` or ``control.dlqr``.
    sample_time : float, in seconds
    drives : sequence of str, optional
        The inputs that the rows of K are for; all by default.
    """
    return StateFeedback(linear, gain, sample_time, tuple(linear.inputs.names if drives is None else drives))


def build_regulator(source: object, y0: Callable[[str], float], u0: Callable[[str], float]) -> Regulator:
    """Return what the user gave as a regulator; a linear one works in deviations from ``y0``, ``u0`` (by name)."""
    if all(hasattr(source, name) for name in ("reads", "drives", "sample_time", "answer")):
        return accept_old_regulator(source)
    linear = source if isinstance(source, LinearModel) else linear_from_control("regulator", source)
    if not linear.sample_time:
        raise UsageError(
            "The regulator is continuous: sample it first (control.c2d), at the rate at which it will run."
        )
    if isinstance(source, LinearModel):
        return LinearRegulator(linear)
    point = replace(
        linear.point,
        inputs={name: y0(name) for name in linear.inputs.names},
        outputs={name: u0(name) for name in linear.outputs.names},
    )
    return LinearRegulator(replace(linear, point=point))


def _set_starts(signals: Signals, values: Mapping[str, float], names: Sequence[str] | None = None) -> Signals:
    """Return signals, those of ``names``, that start at values by name."""
    chosen = signals if names is None else [signals[signals.index_of(name)] for name in names]
    return Signals(s.with_start(values[s.name]) for s in chosen)


def _require_honest_stability(
    linear: LinearModel, sampled: LinearModel, gain: FloatArray, columns: Sequence[int]
) -> None:
    """Reject a gain that relies on rounding: inputs do not move a mode that stays, and the gain is to move it.

    Within the errors of B the gain then changes the mode's eigenvalue by more than RELIES. A gain that leaves such a
    mode alone is the user's choice.
    """
    B, rows = sampled.B[:, list(columns)], list(columns)
    A_error, B_error = compute_sampled_errors(linear, sampled.sample_time)
    system = UncertainPair(sampled.A, sampled.C, A_error, np.zeros_like(sampled.C), sampled=True)
    for mode in find_hidden_modes(system.transpose(B, B_error[:, rows])):
        named = right_direction(sampled.A, mode)
        left_sizes, right_sizes = np.abs(mode.direction), np.abs(named.direction)
        along = max(abs(complex(mode.direction @ named.direction)), 1e-300)
        if (
            mode.may_stay
            and left_sizes @ B_error[:, rows] @ (np.abs(gain) @ right_sizes) > MAX_UNCERTAIN_EIGENVALUE_CHANGE * along
        ):
            scales = linear.states.scales(linear.y0)
            raise NumericalError(
                "There is no stabilizing regulator: an undamped or unstable mode is not controllable from "
                f"{', '.join(linear.inputs.names[i] for i in rows)} beyond rounding. It is the mode of "
                f"{named.describe(linear.states, scales, sampled.sample_time)}. Add an input for it, or choose "
                "another sample time."
            )


def _gain(linear: LinearModel, gain: RealArrayLike, drives: Sequence[str]) -> FloatArray:
    K = np.atleast_2d(as_numbers(gain, "The gain"))
    if K.shape != (len(drives), len(linear.states)):
        raise UsageError(
            f"The gain has the shape {K.shape}; for the inputs {', '.join(drives)} and the states "
            f"{', '.join(linear.states.names)} it needs {(len(drives), len(linear.states))}."
        )
    if not np.isfinite(K).all():
        row, column = (int(k) for k in np.argwhere(~np.isfinite(K))[0])
        raise UsageError(
            f"The gain of '{drives[row]}' for the state '{linear.states.names[column]}' is {K[row, column]}: all "
            "entries must be finite numbers."
        )
    return K


class EstimatorRegulator(TableRepr):
    """A regulator that applies a law to estimates in place of states; the filter gets the actuators' values.

    Raises UsageError or UnknownNameError when the law reads a quantity that is not estimated, drives one that is not an
    input, or has another sample time.

    Parameters
    ----------
    kf : Estimator
        Its outputs are read from the plant.
    law : regulator
        Reads states (:func:`fmilin.design.state_feedback`, a schedule), estimated parameters among them, at the
        filter's sample time.
    """

    _attributes = ".kf, .law"

    @implemented_in("fmilin.report.designs:show_regulator")
    def _print_table(self, page: Sheet) -> None: ...

    @kinds_checked
    def __init__(self, kf: Estimator, law: Regulator) -> None:
        if not all(hasattr(law, name) for name in ("reads", "drives", "sample_time", "answer")):
            raise UsageError(
                f"The law is of the type '{type(law).__name__}': give a regulator that reads states, as "
                "fl.design.state_feedback makes one."
            )
        states, inputs, law = kf.model.states, kf.model.inputs, accept_old_regulator(law)
        self.kf, self.law, self.reads, self.drives = kf, law, kf.model.outputs.names, law.drives
        self.sample_time = kf.sample_time
        if abs(law.sample_time - kf.sample_time) > 1e-9 * kf.sample_time:
            raise UsageError(f"The law runs every {law.sample_time:g} s and the filter every {kf.sample_time:g} s.")
        self._read = [states.index_of(name, "a state that is estimated") for name in law.reads]
        self._driven = [inputs.index_of(name, "an input of the model") for name in law.drives]

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """Diagnostics of the filter's run."""
        return self.kf.remarks

    def restart(self) -> None:
        """Go back to before the first sample."""
        self.kf.reset()
        self.law.restart()

    def answer(self, t: float, read: FloatArray) -> FloatArray:
        """Return the inputs, shape (k,), for what was ``read``, shape (m,), at ``t`` seconds."""
        return self.law.answer(t, self.kf.correct(read)[self._read])

    def update_states(self, outputs: FloatArray) -> None:
        """Predict with the ``outputs``, shape (k,), that are really applied."""
        self.law.update_states(outputs)
        u = self.kf.settings.inputs.copy()
        u[self._driven] = outputs
        self.kf.predict(u)

    applied = DeprecatedAlias("update_states")
