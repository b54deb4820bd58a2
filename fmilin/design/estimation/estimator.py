"""A filter that runs: from sample to sample, with measurements that are missing, late, no numbers or out of range."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy import stats

from fmilin.design.angles import TurnObserver
from fmilin.design.estimation.charts import CoordinateSplit
from fmilin.design.estimation.corrections import Belief, Filter, Linearized, Measured, SigmaPoints
from fmilin.design.estimation.motion import ManifoldStepper
from fmilin.diagnostics import Remark
from fmilin.errors import UsageError
from fmilin.model.interface import Model, OperatingPoint
from fmilin.signals import FloatArray, Signals
from fmilin.support.implemented_in import implemented_in
from fmilin.support.table_repr import Sheet, TableRepr

KINDS: Mapping[str, Filter] = {"ekf": Linearized(), "iekf": Linearized(10), "ukf": SigmaPoints()}  # and "mhe"
MEMORY = 10_000  # samples whose innovations are remembered
RECENT = 50  # measurements by which a filter is judged
UNLIKELY = 1e-9  # of a filter whose noise is what it was told: to be called diverging

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
    R : array, shape (m, m)
        Covariance of the measurements, without process noise that reaches them at once.
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
        self.settings, self.sample_time, self.R = settings, settings.sample_time, settings.R
        self._remarks, self._filter = remarks, settings.filter
        self._turns = TurnObserver(settings.outputs, observes=settings.observes_turns)
        self._factors: dict[tuple[int, ...], FloatArray] = {}
        self.reset()

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
        return [k for k in self.motion.chart.kept if k < len(self.model.states)]

    @property
    def states(self) -> Signals:
        """The independent coordinates, whose errors :attr:`covariance` is about; P of the states."""
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
        """What one should know: directions that nothing observes, measurements that were skipped, divergence."""
        remarks = [*self._remarks, *self._turns.remarks]
        if self._skipped:
            names = self.model.outputs.names
            counts = ", ".join(f"{count} of {names[i]}" for i, count in sorted(self._skipped.items()))
            text = f"Measurements that were no numbers or beyond the sensor's limits were skipped: {counts}."
            remarks.append(Remark("skipped", text))
        recent = self.whitened[-RECENT:]
        count, total = int(np.isfinite(recent).sum()), float(np.nansum(recent**2))
        if count and total > stats.chi2.isf(UNLIKELY, count):
            text = (
                f"The filter diverges: the squares of its last {count} innovations are {total / count:.3g} times what "
                "it expects on average. Reset it (reset()) where it lost the state, or tell it more noise."
            )
            remarks.append(Remark("diverging", text))
        return tuple(remarks)

    def reset(self, point: OperatingPoint | None = None) -> None:
        """Begin again, at the first point or at another one, with the first covariance."""
        self._filter.restart()
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
            Measured outputs; None where one has not come, or instead of all. A NaN is skipped and told.
        """
        inputs, measured = self._inputs(u), self._measured(y)
        sample = Passed(self._at, self.motion.chart, inputs, measured, self._filter.copy_state())
        if self.settings.lag:
            self._passed.append(sample)
        self.predict(inputs)
        self._correct(measured)
        self.last_step = sample
        return self.x

    def predict(self, u: Inputs = None) -> FloatArray:
        """Predict a sample ahead with ``u`` held, as in :meth:`step`; return the states, shape (N,)."""
        self.last_step = None
        self._u = self._inputs(u)
        self._at = self._filter.predicted(self.motion, self._at, self._u, self.sample_time)
        return self.x

    def correct(self, y: Measurements) -> FloatArray:
        """Correct the present estimate by ``y``, as in :meth:`step`; return the states, shape (N,)."""
        self._correct(self._measured(y))
        self.last_step = None
        return self.x

    def late(self, samples: int, y: Measurements) -> FloatArray:
        """Take ``y`` of a number of ``samples`` ago, and repeat what came since; return the states, shape (N,).

        Raises UsageError when so many samples are not remembered: ``lag`` of :func:`estimator`.
        """
        if not 0 <= samples < len(self._passed):
            raise UsageError(
                f"A measurement comes {samples} samples late, and {max(len(self._passed) - 1, 0)} are remembered: give "
                "the estimator a larger lag=."
            )
        again = [self._passed.pop() for _ in range(samples + 1)][::-1]
        came = self._measured(y)
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
        """Write a filter on a model of equations, not an mhe, to ``path``: .c, whose stem names its struct, or .fmu.

        Numbers are of the ``precision`` ``"double"`` or, in C, ``"single"``. ``in`` holds the inputs over the sample
        that ends, then what is measured (NAN where it has not come); ``out`` the states, the normalized innovation
        squared, and 1 where a step failed. An FMU, of the version ``fmi``, has these as variables (states with the name
        of an input are ``output.NAME``, the last two ``nis`` and ``failed``), and takes its first step at its start.
        """
        ...

    def _inputs(self, u: Inputs) -> FloatArray:
        if u is None:
            return self._u
        values = _numbers(_in_order(u, self.model.inputs, self._u, "an input of the model"), self.model.inputs)
        if not np.isfinite(values).all():
            raise UsageError(f"The inputs are {values}: finite numbers are needed, for {self.model.inputs.names}.")
        return values

    def _measured(self, y: Measurements) -> FloatArray:
        """Return what was measured, NaN where nothing was; count what is no number or out of range."""
        outputs = self.model.outputs
        nothing: list[float | None] = [None] * len(outputs)
        row = nothing if y is None else _in_order(y, outputs, nothing, "a measured output")
        values, (least, largest) = _numbers(row, outputs), self.settings.ends
        bad = ~(np.isfinite(values) & (values > least) & (values < largest))
        if bad.any():
            values[bad] = np.nan
            self._skipped.update(i for i, value in enumerate(row) if value is not None and bad[i])
        return values

    def _correct(self, y: FloatArray, *, again: bool = False) -> None:
        rows = np.flatnonzero(np.isfinite(y)).tolist()
        if not rows:
            return
        before, chart = self._at, self.motion.chart
        measured = Measured(rows, y[rows], self._factor_of(rows), self._turns.turns[rows])
        corrected = self._filter.corrected(self.motion, before, self._u, measured)
        turns = measured.turns if again else self._turns.observe(rows, corrected.innovations)
        if not np.array_equal(turns, measured.turns):  # an output was seen to wrap: correct again
            self.motion.chart = chart
            corrected = self._filter.corrected(self.motion, before, self._u, replace(measured, turns=turns))
        self._at = corrected.belief
        if again:
            return
        for memory, values in ((self._innovations, corrected.innovations), (self._whitened, corrected.whitened)):
            row = np.full(len(y), np.nan)
            row[rows] = values
            memory.append(row)
        size = float(corrected.whitened @ corrected.whitened) + corrected.log_determinant
        self._log_likelihood -= (size + len(rows) * float(np.log(2 * np.pi))) / 2

    def _factor_of(self, rows: list[int]) -> FloatArray:
        """Return the factor of the noise of some outputs."""
        key = tuple(rows)
        if key not in self._factors:
            self._factors[key] = np.asarray(np.linalg.cholesky(self.R[np.ix_(rows, rows)]), dtype=np.float64)
        return self._factors[key]


def _in_order(
    given: Sequence[float | None] | FloatArray | Mapping[str, Any], signals: Signals, others: Iterable[Any], what: str
) -> Any:
    """Return values in the order of signals, of which others may not be given by name."""
    if not isinstance(given, Mapping):
        return given
    row = list(others)
    for name, value in given.items():
        row[signals.index_of(name, what)] = value
    return row


def _numbers(row: Any, signals: Signals) -> FloatArray:
    """Return one number for each signal, NaN for None."""
    try:
        values = np.array(row, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        values = np.empty(0)
    if values.shape != (len(signals),):
        raise UsageError(f"{row} was given, and {len(signals)} numbers are needed, for {', '.join(signals.names)}.")
    return values
