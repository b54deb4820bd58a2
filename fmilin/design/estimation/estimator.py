"""A filter that runs: from sample to sample, with measurements that are missing, late, no numbers or out of range."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from scipy import stats

from fmilin.design.angles import TurnObserver
from fmilin.design.estimation.charts import CoordinateSplit
from fmilin.design.estimation.compiled import CompiledFilter, FilteredRows, compile_later
from fmilin.design.estimation.corrections import Belief, Filter, Linearized, Measured, MovingHorizon, SigmaPoints
from fmilin.design.estimation.ensembles import EnsembleFilter, MemberFilter, ParticleFilter
from fmilin.design.estimation.filter_code import FilterPlan
from fmilin.design.estimation.filter_motion import ManifoldStepper
from fmilin.diagnostics import Remark
from fmilin.errors import UsageError
from fmilin.model.interface import Model, OperatingPoint
from fmilin.signals import FloatArray, RealArrayLike, Signals, as_numbers
from fmilin.support.implemented_in import implemented_in
from fmilin.support.table_repr import Sheet, TableRepr

KINDS: Mapping[str, Callable[[], Filter]] = {
    "ekf": Linearized,
    "iekf": partial(Linearized, 10),
    "ukf": SigmaPoints,
    "enkf": EnsembleFilter,
    "particle": ParticleFilter,
}
"""Kinds of filters, and "mhe"."""
MEMORY = 10_000  # samples with remembered innovations
LOG_TWO_PI = math.log(2 * math.pi)
RECENT_SAMPLE_COUNT = 50  # measurements by which a filter is judged
DIVERGENCE_PROBABILITY = 1e-9  # of a filter with the declared noise: to be called diverging

Inputs = Sequence[float] | FloatArray | Mapping[str, float] | None
Measurements = Sequence[float | None] | FloatArray | Mapping[str, float | None] | None


@dataclass(frozen=True, slots=True)
class Settings:
    """How a filter runs."""

    sample_time: float
    R: FloatArray  # covariance of the measurements, shape (m, m)
    ends: FloatArray  # of the sensors, shape (2, m)
    lag: int  # samples that are remembered
    inputs: FloatArray  # at the start, shape (nu,)
    filter: Filter
    model: Model  # with the noise that is held over each sample among its states
    outputs: Signals  # what is measured, with the turns of angles that wrap
    observes_turns: bool  # whether outputs that are not known to wrap are watched for jumps by a turn


@dataclass(frozen=True, slots=True)
class Passed:
    """A sample that a late measurement may belong to: what was believed before it, and what came."""

    belief: Belief
    chart: CoordinateSplit
    u: FloatArray
    y: FloatArray
    filter: Filter  # with what it remembered before


class Estimator(TableRepr):
    """A filter on a nonlinear model; :func:`estimator` makes it.

    Attributes
    ----------
    model : Model
        With the measured outputs, augmented states among its states.
    kind : str
    sample_time : float, in seconds
    """

    _attributes = ".x, .covariance, .deviations, .nis, .remarks"

    @implemented_in("fmilin.report.designs:show_estimator")
    def _print_table(self, page: Sheet) -> None: ...

    def __init__(
        self,
        model: Model,
        kind: str,
        motion: ManifoldStepper,
        start: Belief,
        settings: Settings,
        remarks: tuple[Remark, ...] = (),
    ) -> None:
        self.model, self.kind, self.motion, self.start, self.chart = model, kind, motion, start, motion.chart
        self.settings, self.sample_time = settings, settings.sample_time
        self._remarks = remarks
        self._turns = TurnObserver(settings.outputs, observes=settings.observes_turns)
        self.R = settings.R
        self.reset()

    def __copy__(self) -> Self:
        """Return a filter at the same estimate, which goes its own way from here, also in another thread."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.motion, other._turns = self.motion.fork(), deepcopy(self._turns)
        other._skipped = self._skipped.copy()
        for name in ("_innovations", "_whitened", "_passed"):
            setattr(other, name, getattr(self, name).copy())
        other.method = self.method.fork()
        return other

    @property
    def R(self) -> FloatArray:
        """Covariance of the measurements, without process noise that reaches them at once, shape (m, m)."""
        return self._R

    @R.setter
    def R(self, R: FloatArray) -> None:
        self._R = R
        self._factors: dict[tuple[int, ...], FloatArray] = {}
        used, plan = self.settings.filter, make_plan(self)
        if isinstance(used, MemberFilter):
            self.method: Filter = used
        elif isinstance(used, MovingHorizon):
            used.extended = compile_later(Linearized(), replace(plan, kind="ekf", iterations=1))
            self.method = used
        else:
            self.method = compile_later(used, plan)  # what computes samples

    @property
    def time(self) -> float:
        """Of the present estimate, in seconds."""
        return self._at.time

    @property
    def x(self) -> FloatArray:
        """The estimate of all states, on the manifold, shape (N,)."""
        x, N = self._at.x, len(self.model.states)
        return x if len(x) == N else x[:N]

    @property
    def kept(self) -> list[int]:
        """Which states are the coordinates; P of them."""
        return [k for k in self.motion.chart.coordinates if k < len(self.model.states)]

    @property
    def states(self) -> Signals:
        """The independent coordinates: :attr:`covariance` is that of their errors; P of the states."""
        return self.model.states.select(self.kept)

    @property
    def covariance(self) -> FloatArray:
        """Of the error of the independent coordinates, shape (P, P)."""
        rows = self._at.S[: len(self.kept)]
        return np.asarray(rows @ rows.T)

    @property
    def deviations(self) -> FloatArray:
        """Standard deviations of all states, dependent ones too, shape (N,)."""
        T = self.motion.tangent(self._at.time, self._at.x, self._u)
        return np.asarray(np.linalg.norm(T @ self._at.S, axis=1)[: len(self.model.states)])

    @property
    def turns(self) -> FloatArray:
        """Turns of the measured outputs, 0 for those that do not wrap, shape (m,)."""
        return self._turns.latest.copy()

    @property
    def wrapped_outputs(self) -> dict[str, float]:
        """The measured angles that wrap, and by which turn: their innovations are in (-turn/2, turn/2]."""
        turns = self._turns.turns.tolist()
        return {name: turn for name, turn in zip(self.model.outputs.names, turns, strict=True) if turn}

    @property
    def nis(self) -> float:
        """The normalized innovation squared of the last measurement: on average the number of its outputs."""
        return float(np.nansum(self._whitened[-1] ** 2)) if self._whitened else float("nan")

    @property
    def innovations(self) -> FloatArray:
        """Measured less predicted, shape (K, m), of the last samples with a measurement; NaN where one is missing.

        Of angles that wrap (:attr:`wrapped_outputs`) modulo their turns.
        """
        return np.array(self._innovations).reshape(-1, len(self.R))

    @property
    def whitened(self) -> FloatArray:
        """The same in their standard deviations, independent of each other where the filter is right, shape (K, m)."""
        return np.array(self._whitened).reshape(-1, len(self.R))

    @property
    def log_likelihood(self) -> float:
        """Of all measurements since the beginning, by their innovations."""
        return self._log_likelihood

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """Diagnostics: unobservable directions, skipped measurements, divergence."""
        remarks = [*self._remarks, *self._turns.remarks]
        if self._skipped:
            names = self.model.outputs.names
            counts = ", ".join(f"{count} of {names[i]}" for i, count in sorted(self._skipped.items()))
            text = f"Measurements that were no numbers or beyond the sensor's limits were skipped: {counts}."
            remarks.append(Remark("skipped", text))
        recent = self.whitened[-RECENT_SAMPLE_COUNT:]
        count, total = int(np.isfinite(recent).sum()), float(np.nansum(recent**2))
        if count and total > stats.chi2.isf(DIVERGENCE_PROBABILITY, count):
            text = (
                f"The filter diverges: the squares of its last {count} innovations are {total / count:.3g} times what "
                "it expects on average. Reset it with reset() if it lost the state, or give it more noise."
            )
            remarks.append(Remark("diverging", text))
        return tuple(remarks)

    def reset(self, point: OperatingPoint | None = None) -> None:
        """Begin again, at the first point or at another one, with the first covariance."""
        self.method.restart()
        self.motion.chart, self._u = self.chart, self.settings.inputs
        self._at = self.start
        if point is not None:
            further = self.start.x[len(point.states) :]
            x = np.concatenate((np.asarray(point.states, dtype=np.float64), further))
            self._u = np.asarray(point.inputs, dtype=np.float64)
            self._at = Belief(point.time, self.motion.on_manifold(point.time, x, self._u), self.start.S)
        self.last_step: Passed | None = None  # what the last step began with; None after anything else
        self._innovations: deque[FloatArray] = deque(maxlen=MEMORY)
        self._whitened: deque[FloatArray] = deque(maxlen=MEMORY)
        self._passed: deque[Passed] = deque(maxlen=self.settings.lag)
        self._skipped: Counter[int] = Counter()
        self._log_likelihood = 0.0
        self._turns.restart()

    def step(self, u: Inputs = None, y: Measurements = None) -> FloatArray:
        """Predict a sample ahead and correct by what is measured there; return the states, shape (N,).

        Parameters
        ----------
        u : sequence or mapping of str to float, optional
            The inputs that were held over the sample, which ends with ``y``; those not named stay.
        y : sequence or mapping of str to float, optional
            Measured outputs; None for a missing one, or instead of all. A NaN is skipped with a warning.
        """
        inputs, measured = self._inputs(u), self._read_measurements(y)
        sample = Passed(self._at, self.motion.chart, inputs, measured, self.method.copy_state())
        if self.settings.lag:
            self._passed.append(sample)
        self.predict(inputs)
        self._correct(measured)
        self.last_step = sample
        return self.x

    def run(self, inputs: RealArrayLike, measured: RealArrayLike) -> FilteredRows:
        """Take a :meth:`step` for each sample of recorded data, all in one call where there is compiled code.

        Returns a tuple of the times (K,), the states and their standard deviations (K, N), and the innovations and
        these in their standard deviations (K, m), NaN where nothing was measured. Raises UsageError when shapes do not
        fit.

        Parameters
        ----------
        inputs, measured : array, shapes (K, nu), (K, m)
            What was held over the sample that ends with each measurement, which is NaN where nothing was measured.
        """
        u, y = require_records(self, inputs, measured)
        parts, k = [], 0
        together = len(u) - max(self.settings.lag, 1)  # what may be late, and the last step, are remembered
        while k < len(u):
            part = self._run_compiled(u[k:together], y[k:together], len(u) - k) if k < together else None
            if part is None or not len(part.times):
                part = self._step_of_record(u[k], y[k])
            parts.append(part)
            k += len(part.times)
        return FilteredRows(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def compile(self) -> bool:
        """Compile the filter now instead of when that pays; return whether compiled code computes.

        It does for EKF, IEKF and UKF on models of equations where there is a C compiler; of a moving horizon, the
        extended filter within it does.
        """
        method = self.method.extended if isinstance(self.method, MovingHorizon) else self.method
        return isinstance(method, CompiledFilter) and method.compile()

    def predict(self, u: Inputs = None) -> FloatArray:
        """Predict a sample ahead with ``u`` held, as in :meth:`step`; return the states, shape (N,)."""
        self.last_step = None
        self._u = self._inputs(u)
        self._at = self.method.predict(self.motion, self._at, self._u, self.sample_time)
        return self.x

    def correct(self, y: Measurements) -> FloatArray:
        """Correct the present estimate by ``y``, as in :meth:`step`; return the states, shape (N,)."""
        self._correct(self._read_measurements(y))
        self.last_step = None
        return self.x

    def late(self, samples: int, y: Measurements) -> FloatArray:
        """Take ``y`` of a number of ``samples`` ago, and repeat what came since; return the states, shape (N,).

        Raises UsageError when so many samples are not remembered: ``lag`` of :func:`estimator`.
        """
        if not 0 <= samples < len(self._passed):
            raise UsageError(
                f"A measurement comes {samples} samples late, and only {max(len(self._passed) - 1, 0)} are stored: "
                "give the estimator a larger lag=."
            )
        again = [self._passed.pop() for _ in range(samples + 1)][::-1]
        came = self._read_measurements(y)
        self._at, self.motion.chart = again[0].belief, again[0].chart
        for k, sample in enumerate(again):
            merged = np.where(np.isfinite(came), came, sample.y) if k == 0 else sample.y
            self._passed.append(Passed(self._at, self.motion.chart, sample.u, merged, sample.filter))
            self.predict(sample.u)
            self._correct(merged, again=k > 0 or not np.isnan(sample.y).all())
        return self.x

    @implemented_in("fmilin.export.estimator_c:save")
    def save(
        self, path: str | Path, *, precision: Literal["double", "single"] = "double", fmi: Literal["2.0", "3.0"] = "2.0"
    ) -> None:
        """Write a filter on a model of equations, not an mhe, to ``path``: .c (its stem names the struct) or .fmu.

        Numbers are of the ``precision`` ``"double"`` or, in C, ``"single"``. ``in`` holds the inputs over the sample
        that ends, then what is measured (NAN where it has not come); ``out`` the states, the normalized innovation
        squared, and 1 where a step failed. An FMU, of the version ``fmi``, has these as variables (states with the name
        of an input are ``output.NAME``, the last two ``nis`` and ``failed``), and takes its first step at its start.
        """
        ...

    def _step_of_record(self, u: FloatArray, y: FloatArray) -> FilteredRows:
        """Take one step; return it as a row."""
        values = [None if np.isnan(value) else value for value in y.tolist()]
        self.step(u, values)
        nothing = np.full(len(y), np.nan)
        has_measurement = np.isfinite(self._valid(y)).any()
        last = (self._innovations[-1], self._whitened[-1]) if has_measurement else (nothing, nothing)
        row = self.time, self.x, self.deviations, *last
        return FilteredRows(*(np.array(value)[None] for value in row))

    def _run_compiled(self, u: FloatArray, y: FloatArray, samples: int) -> FilteredRows | None:
        """Filter samples by compiled code as far as it goes; None without any by now for so many ``samples``."""
        method, motion = self.method, self.motion
        code = method.code(samples, motion) if isinstance(method, CompiledFilter) else None
        if code is None:
            return None
        is_bad = ~np.isfinite(u).all(axis=1)
        count = int(np.argmax(is_bad)) if is_bad.any() else len(u)
        count = min(count, self._turns.longest_record)
        if not count:
            return None
        u, valid = u[:count], self._valid(y[:count])
        estimate, chart, switches = self._at, motion.chart, motion.switches
        rows = np.hstack((u, valid))
        belief, part, logarithms = code.filter_record(motion, estimate, rows, self._turns.turns)
        done = self._turns.count_without_jump(part.innovations)
        if done < len(part.times):  # an output was seen to wrap: the step there is taken by itself
            motion.chart, motion.switches = chart, switches
            if not done:
                return None
            belief, part, logarithms = code.filter_record(motion, estimate, rows[:done], self._turns.turns)
        done = len(part.times)
        if not done:
            return None
        self._turns.record_unwrapped(part.innovations)
        self._at, self._u = belief, u[done - 1]
        is_skipped = np.isnan(valid[:done]) & ~np.isnan(y[:done])
        self._skipped.update(np.nonzero(is_skipped)[1].tolist())
        self._remember(part, logarithms)
        N = len(self.model.states)
        return part._replace(states=part.states[:, :N], deviations=part.deviations[:, :N])

    def _inputs(self, u: Inputs) -> FloatArray:
        if u is None:
            return self._u
        values = _numbers(_in_order(u, self.model.inputs, self._u, "an input of the model"), self.model.inputs)
        if not np.isfinite(values).all():
            raise UsageError(f"The inputs {values} must be finite numbers, one for each of {self.model.inputs.names}.")
        return values

    def _read_measurements(self, y: Measurements) -> FloatArray:
        """Return what was measured, NaN where nothing was; count what is not a number or out of range."""
        outputs = self.model.outputs
        nothing: list[float | None] = [None] * len(outputs)
        row = nothing if y is None else _in_order(y, outputs, nothing, "a measured output")
        values = self._valid(_numbers(row, outputs))
        self._skipped.update(i for i, value in enumerate(row) if value is not None and np.isnan(values[i]))
        return values

    def _valid(self, values: FloatArray) -> FloatArray:
        """Return measurements (..., m) with NaN where they are not numbers or at the end of a sensor."""
        least, largest = self.settings.ends
        is_valid = np.isfinite(values) & (values > least) & (values < largest)
        return values if is_valid.all() else np.where(is_valid, values, np.nan)

    def _correct(self, y: FloatArray, *, again: bool = False) -> None:
        rows = np.flatnonzero(np.isfinite(y)).tolist()
        if not rows:
            return
        before, chart = self._at, self.motion.chart
        measured = Measured(rows, y[rows], self._select_factor(rows), self._turns.turns[rows])
        corrected = self.method.correct(self.motion, before, self._u, measured)
        turns = measured.turns if again else self._turns.observe(rows, corrected.innovations)
        if not np.array_equal(turns, measured.turns):  # an output was seen to wrap: correct again
            self.motion.chart = chart
            corrected = self.method.correct(self.motion, before, self._u, replace(measured, turns=turns))
        self._at = corrected.belief
        if again:
            return
        for memory, values in ((self._innovations, corrected.innovations), (self._whitened, corrected.whitened)):
            row = np.full(len(y), np.nan)
            row[rows] = values
            memory.append(row)
        size = float(corrected.whitened @ corrected.whitened) + corrected.log_determinant
        self._log_likelihood -= (size + len(rows) * LOG_TWO_PI) / 2

    def _remember(self, part: FilteredRows, log_determinants: FloatArray) -> None:
        """Remember the measurements among samples of a record as single steps would."""
        is_measured = np.isfinite(part.innovations)
        rows = is_measured.any(axis=1)
        self._innovations.extend(part.innovations[rows])
        self._whitened.extend(part.whitened[rows])
        size = float(np.nansum(part.whitened**2) + log_determinants[rows].sum())
        self._log_likelihood -= (size + int(is_measured.sum()) * LOG_TWO_PI) / 2

    def _select_factor(self, rows: list[int]) -> FloatArray:
        """Return the factor of the noise of some outputs."""
        key = tuple(rows)
        if key not in self._factors:
            self._factors[key] = np.asarray(np.linalg.cholesky(self.R[np.ix_(rows, rows)]), dtype=np.float64)
        return self._factors[key]


def make_plan(kf: Estimator) -> FilterPlan:
    """Return what C code of a filter depends on, angles that were seen to wrap included."""
    used, settings = kf.settings.filter, kf.settings
    iterations = used.iterations if isinstance(used, Linearized) else 0
    return FilterPlan(kf.kind, iterations, settings.model, kf.motion, kf.R, settings.ends, kf.turns, kf.sample_time)


def require_records(kf: Estimator, inputs: RealArrayLike, measured: RealArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return recorded inputs (K, nu) and measurements (K, m); reject other shapes."""
    u, y = as_numbers(inputs, "The inputs"), as_numbers(measured, "The measurements")
    count = len(y) if y.ndim else 0
    shapes = (count, len(kf.model.inputs)), (count, len(kf.model.outputs))
    if (u.shape, y.shape) != shapes or not count:
        raise UsageError(
            f"Inputs and measurements have the shapes {u.shape} and {y.shape}: (K, {shapes[0][1]}) and (K, "
            f"{shapes[1][1]}) are needed, with one sample or more."
        )
    return u, y


def _in_order(
    values: Sequence[float | None] | FloatArray | Mapping[str, Any],
    signals: Signals,
    alternatives: Iterable[Any],
    what: str,
) -> Any:
    """Return values in the order of signals, of which others may not be given by name."""
    if not isinstance(values, Mapping):
        return values
    row = list(alternatives)
    for name, value in values.items():
        row[signals.index_of(name, what)] = value
    return row


def _numbers(row: Any, signals: Signals) -> FloatArray:
    """Return one number for each signal, NaN for None."""
    try:
        values = np.array(row, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        values = np.empty(0)
    if values.shape != (len(signals),):
        raise UsageError(
            f"The vector {row} was given, and {len(signals)} numbers are needed, one for each of "
            f"{', '.join(signals.names)}."
        )
    return values
