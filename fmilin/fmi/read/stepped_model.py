"""A co-simulation FMU as a Model that can be stepped, and what it says about steps and sampling."""

import math
from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType

import numpy as np

from fmilin.errors import FmilinError, ModelError, UsageError, quote_first
from fmilin.fmi.client.host_programs import Program
from fmilin.fmi.read.buffers import Buffers
from fmilin.fmi.read.description import ModelDescription
from fmilin.fmi.read.fmu_model import FmuModel
from fmilin.fmi.read.stepped_instance import MAX_STEPS, CommunicationSteps, PointSteps, SteppedInstance
from fmilin.fmi.read.stepped_session import RunStart, StatesRefusedError, SteppedSession
from fmilin.model.interface import Evaluation, OperatingPoint
from fmilin.model.stepping import Cadence, Response, Stepped
from fmilin.signals import FloatArray

_PARTS = 500  # steps per default experiment, where the FMU suggests no step


def read_cadence(description: ModelDescription) -> Cadence:
    """Return what the description says, if it does: FMI 2.0.4, 2.2.6 and 4.3.1; FMI 3.0.1, 2.4.4, 2.4.6 and 4.2."""
    capabilities = description.capabilities
    internal = _positive(capabilities, "fixedInternalStepSize")
    declared = internal or _positive(description.experiment, "stepSize")
    suggested = _positive(description.experiment, "stepSize") or internal or _part(description.experiment)
    variables = list(description.scan_variables())
    clocks = [v for v in variables if v.type == "Clock"]
    discrete = [v for v in variables if v.is_float and v.variability == "discrete" and not v.is_parameter]
    sampled = []
    if clocks:
        sampled.append(f"It has {len(clocks)} clock(s): {quote_first(v.name for v in clocks)}.")
    waiting = [v.name for v in clocks if v.causality == "input" and not v.interval]
    if waiting:
        sampled.append(f"Nothing triggers {quote_first(waiting)} here: the values that it samples stay constant.")
    if discrete:
        sampled.append(f"It has discrete-time numbers: {quote_first(v.name for v in discrete)}.")
    periods = sorted({v.interval for v in clocks if v.interval and v.interval > 0})
    return Cadence(suggested, base_period(periods), internal, tuple(sampled), declared)


def base_period(periods: list[float]) -> float | None:
    """Return the least common multiple of periods, in seconds, or None below 1000 of the largest."""
    if not periods:
        return None
    for k in range(1, 1001):
        candidate = k * max(periods)
        if all(abs(candidate / p - round(candidate / p)) < 1e-9 * k for p in periods):
            return float(f"{candidate:.12g}")
    return None


def _positive(attributes: Mapping[str, str], name: str) -> float | None:
    try:
        value = float(attributes.get(name) or "nan")
    except ValueError:
        return None
    return value if math.isfinite(value) and value > 0 else None


def _part(experiment: Mapping[str, str]) -> float | None:
    stop = _positive(experiment, "stopTime")
    start = _positive(experiment, "startTime") or 0.0
    return (stop - start) / _PARTS if stop is not None and stop > start else None


_EXCURSION_SIZE = 1e-4  # how far states are moved to see whether they can be, in their sizes


class SteppedFmu(FmuModel, Stepped):
    """A view of a co-simulation FMU with derivatives at its communication point, if its states can be set there."""

    views_are_stable = False  # each stands at steps of its own
    session_class = SteppedSession
    _session: SteppedSession
    _steps: CommunicationSteps | None = None
    _point_buffers: tuple[Buffers, Buffers, Buffers] | None = None
    _point_steps: Mapping[tuple[object, ...], PointSteps] = MappingProxyType({})

    @cached_property
    def cadence(self) -> Cadence:  # type: ignore[override]
        """The communication steps and sampling that the FMU declares."""
        return read_cadence(self.description)

    @property
    def steps(self) -> int:  # type: ignore[override]
        """Communication steps taken so far, by all views."""
        return self._session.steps

    def evaluate(self, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        """Return derivatives, outputs and residuals at a point; see :meth:`fmilin.Model.evaluate`."""
        if not len(self.states):
            raise ModelError(
                f"'{self.description.source}' is a co-simulation FMU that declares no states, so there are no "
                "derivatives to evaluate. Measure its linear model with fl.linearize(model), or at a later time with "
                "fl.snapshots(model, times=[T])."
            )
        return super().evaluate(t, x, u)

    def respond(self, point: OperatingPoint, inputs: FloatArray, step: float) -> Response:
        """Run from the anchor; see :meth:`fmilin.model.stepping.Stepped.respond`."""
        return self._response(point, inputs, step)

    def _response(self, point: OperatingPoint, inputs: FloatArray, step: float) -> Response:
        self._aim(point.time, point.states, point.inputs if not len(inputs) else inputs[0])
        session = self._session
        instance = session.begin_run(self._buffers, step)
        respond = self._step_together if instance.steps_together else self._step_alone
        response = respond(instance, inputs, step)
        session.steps += len(inputs)
        return response

    @cached_property
    def _needs_rates(self) -> bool:
        """Whether an output is the derivative of a state."""
        first = 1 + self._buffers.n + self._buffers.k
        is_rate = (first <= self._output_positions) & (self._output_positions < first + self._buffers.n)
        return bool(is_rate.any())

    def _step_alone(self, instance: SteppedInstance, inputs: FloatArray, step: float) -> Response:
        """Take steps one by one: events of clocks lie between them."""
        K, n, ny = len(inputs), len(self.states), len(self.outputs)
        at_once, after, states = np.empty((K, ny)), np.empty((K, ny)), np.empty((K, n))
        buffers = self._buffers
        read = (*buffers.states, *(buffers.derivatives if self._needs_rates else ()), *buffers.readings)
        reading = Program(instance.calls(reading=read))
        setting_and_reading = Program(instance.calls(writing=buffers.inputs, reading=read))
        run, values = instance.component.run, buffers.values
        for k, u in enumerate(inputs):
            buffers.u[self._input_positions] = u
            run(setting_and_reading)
            at_once[k] = self._outputs(values)
            instance.step(step)
            buffers.time = instance.time
            run(reading)
            after[k] = self._outputs(values)
            states[k] = buffers.x
        return Response(at_once, after, states)

    def _step_together(self, instance: SteppedInstance, inputs: FloatArray, step: float) -> Response:
        """Take many steps in one message."""
        if self._steps is None:
            before, after = (self._make_buffers(most=MAX_STEPS) for _ in range(2))
            self._steps = CommunicationSteps(instance, (before, after), with_rates=self._needs_rates)
        steps, n = self._steps, len(self.states)
        before, after = self._steps_buffers(steps)
        results: list[tuple[FloatArray, FloatArray, FloatArray]] = []
        for begin in range(0, len(inputs), steps.most):
            part = inputs[begin : begin + steps.most]
            count = len(part)
            rows = before.rows[:count]
            rows[:, 1 + n : 1 + n + before.k] = self._buffers.u
            rows[:, 1 + n + self._input_positions] = part
            after.rows[:count, : 1 + n + before.k] = rows[:, : 1 + n + before.k]
            instance.take_steps(steps, np.full(count, step))
            rows[:, 0] = steps.numbers[:count, 0]
            after.rows[:count, 0] = [*rows[1:, 0], instance.time]
            ends = after.rows[:count]
            results.append((self._select_outputs(rows), self._select_outputs(ends), ends[:, 1 : 1 + n].copy()))
            self._buffers.values[:] = ends[-1]
        sizes = len(self.outputs), len(self.outputs), n
        parts = zip(*results, strict=True) if results else ([np.empty((0, size))] for size in sizes)
        return Response(*(np.concatenate(list(part)) for part in parts))

    def respond_points(self, point: OperatingPoint, states: FloatArray, inputs: FloatArray, step: float) -> Response:
        """Take a step from each of several states, all in one message where the FMU restores its state."""
        response = self._respond_together(point, states, inputs, step) if len(states) > 1 else None
        return super().respond_points(point, states, inputs, step) if response is None else response

    def _respond_together(
        self, point: OperatingPoint, states: FloatArray, inputs: FloatArray, step: float
    ) -> Response | None:
        """Return the response by one message for each 256 points; None where that is not possible."""
        self._aim(point.time, states[0], inputs[0])
        begun = self._session.begin_points() if point.time == self._session.anchor_time else None
        if begun is None:
            return None
        instance = self._session.stepped
        requested, before, after, steps = self._prepare_points(instance, begun, takes_step=step > 0)
        n, k = requested.n, requested.k
        results: list[tuple[FloatArray, FloatArray, FloatArray]] = []
        for begin in range(0, len(states), len(requested.rows)):
            part = slice(begin, begin + len(requested.rows))
            count = len(states[part])
            rows = requested.rows[:count]
            rows[:, 0], rows[:, 1 : 1 + n] = point.time, states[part]
            rows[:, 1 + n : 1 + n + k] = self._buffers.u
            rows[:, self._input_rows] = inputs[part]
            for read in (before, after):
                read.rows[:count, : 1 + n + k] = rows[:, : 1 + n + k]
            is_done = instance.take_point_steps(steps, point.time, count, step)
            if not is_done or not np.array_equal(before.rows[:count, 1 : 1 + n], states[part]):
                self._session.refuses_points = True  # one by one it will be said what fails
                return None
            after.rows[:count, 0] = point.time + step
            starts, ends = before.rows[:count], after.rows[:count]
            results.append((self._select_outputs(starts), self._select_outputs(ends), ends[:, 1 : 1 + n].copy()))
        at_once, ends_read, arrived = (np.concatenate(list(parts)) for parts in zip(*results, strict=True))
        if not step:
            return Response(at_once, ends_read[:0], arrived[:0])
        self._session.steps += len(states)
        return Response(at_once, ends_read, arrived)

    def _prepare_points(
        self, instance: SteppedInstance, begun: tuple[object, ...], *, takes_step: bool
    ) -> tuple[Buffers, Buffers, Buffers, PointSteps]:
        """Return the buffers and the program for steps from points, which are made once for each way to begin."""
        if self._point_buffers is None:
            requested, before, after = (self._make_buffers(most=MAX_STEPS) for _ in range(3))
            self._point_buffers = (requested, before, after)
        key = (*begun, takes_step)
        steps = self._point_steps.get(key)
        if steps is None:
            beginning = self._session.list_beginning(self._point_buffers[0])
            steps = PointSteps(
                instance, beginning, self._point_buffers, with_rates=self._needs_rates, takes_step=takes_step
            )
            same_beginning = {k: made for k, made in self._point_steps.items() if k[:-1] == begun}
            self._point_steps = {**same_beginning, key: steps}
        return (*self._point_buffers, steps)

    @staticmethod
    def _steps_buffers(steps: CommunicationSteps) -> tuple[Buffers, Buffers]:
        assert steps.buffers is not None  # noqa: S101 - made with them
        return steps.buffers

    def _select_outputs(self, rows: FloatArray) -> FloatArray:
        return np.asarray(rows.take(self._output_positions, axis=1) * self._output_signs)

    def advance(self, point: OperatingPoint, to: float, step: float | None = None) -> OperatingPoint:
        """Go to the time ``to``; see :meth:`fmilin.model.stepping.Stepped.advance`."""
        span = to - point.time
        if span < 0:
            raise UsageError(f"The model is at t = {point.time:g} s and cannot go back to {to:g} s.")
        largest = step or self.cadence.step or span or 1.0
        count = max(1, round(span / largest + 0.499)) if span else 0
        if self.cadence.internal and span:
            count = max(1, round(span / self.cadence.internal))
        if not np.array_equal(point.states, self.start.states):
            self.why_not_settable(point)  # finds out how they can be set
        self._aim(point.time, point.states, point.inputs)
        self._session.drop_anchor(self._buffers, (span / count,) * count if count else ())
        self._session.stepped.read_states(self._buffers)
        return OperatingPoint(self._session.anchor_time, self._buffers.x.copy(), point.inputs.copy(), point.parameters)

    def why_not_direct(self, point: OperatingPoint) -> str:
        """Say why derivatives cannot be read at given states; empty when they can."""
        if reason := self.why_not_settable(point):
            return reason
        x, u, s = point.states, point.inputs, self.states.scales(point.states)
        try:
            visit = super().evaluate
            base = visit(point.time, x, u).derivatives
            moved = [visit(point.time, x + d * s, u).derivatives for d in self._directions(len(x))]
        except FmilinError as error:
            return f"Its derivatives cannot be read between two steps: {error}"
        if not np.isfinite(base).all():
            return "Its derivatives are not numbers between two steps."
        if len(x) and all(np.array_equal(m, base) for m in moved):
            return "Its derivatives do not follow when its states are set between two steps."
        return ""

    def why_not_settable(self, point: OperatingPoint) -> str:
        """Say why runs cannot start from given states; empty when they can."""
        if not len(self.states):
            return "It declares no states."
        reason = self._why_states_change(point)
        if reason and not self._session.sets_by_start and self._session.set_states_by_start():
            reason = self._why_states_change(point) and reason
            if reason:
                self._session.stop_setting_by_start()
        return reason

    def _why_states_change(self, point: OperatingPoint) -> str:
        x, s = point.states, self.states.scales(point.states)
        for d in self._directions(len(x)):
            target = x + d * s
            try:
                self._aim(point.time, target, point.inputs)
                self._session.begin_run(self._buffers, 0.0).read_states(self._buffers)
            except StatesRefusedError as error:
                return str(error)
            except FmilinError as error:
                return f"Its states cannot be set between two steps: {error}"
            if not np.allclose(self._buffers.x, target, rtol=1e-7, atol=0):
                i = int(np.argmax(np.abs(self._buffers.x - target) / s))
                return f"Its state '{self.states.names[i]}' does not keep a value set between two steps."
        return ""

    @property
    def solver_tolerance(self) -> float | None:
        """The relative tolerance of the solver inside; None where it cannot be set."""
        fixed = self.description.fmi_version.startswith("1")
        return None if fixed else self._session.stepped.tolerance

    def respond_accurately(self, tolerance: float, point: OperatingPoint, inputs: FloatArray, step: float) -> Response:
        """Run with another tolerance; see :meth:`fmilin.model.stepping.Stepped.respond_accurately`."""
        with self._session.override_tolerance(tolerance):
            return self._response(point, inputs, step)

    def respond_elsewhere(self, factor: float, point: OperatingPoint, inputs: FloatArray, step: float) -> Response:
        """Run from other start values; see :meth:`fmilin.model.stepping.Stepped.respond_elsewhere`."""
        if len(self.states):
            return super().respond_elsewhere(factor, point, inputs, step)
        with self._session.scale_start_values(factor):
            return self._response(point, inputs, step)

    def how_it_solves(self) -> str:
        """Say which tolerance the solver inside was asked for."""
        tolerance = self._session.stepped.tolerance
        if tolerance is None or self.description.fmi_version.startswith("1"):
            return ""
        return f"Its solver was given a relative tolerance of {tolerance:g} (solver_tolerance=)."

    def how_states_are_set(self) -> str:
        """Say that states are start values of fresh instances, where the FMU takes them in no other way."""
        if not self._session.sets_by_start:
            return ""
        return "States were set as start values of fresh instances: the FMU rejects them after initialization."

    def make_repeatable(self, point: OperatingPoint, step: float) -> str:
        """See to it that equal runs give equal answers; see :meth:`fmilin.model.stepping.Stepped.make_repeatable`."""
        session = self._session
        session.come_back()  # finds out what runs start from
        how = session.repetition  # what an earlier call found still holds
        starts_from_state = session.run_start is RunStart.STATE
        if not how and not starts_from_state:
            how = f"The model cannot save its state, so every run starts from {session.run_start.value}."
        difference = self._difference_of_runs(point, step)
        if difference and starts_from_state:
            session.restores_twice = True
            difference = self._difference_of_runs(point, step)
            how = (
                "Restoring a state does not restore the inputs, so every run is preceded by one step and a second "
                "restore."
            )
        if difference and session.run_start is not RunStart.FRESH:
            difference, how = self._start_from_others(point, step, difference)
        self.repeats = not difference
        session.repetition = how
        if difference:
            how = (
                f"{how} The model is not reproducible: equal runs differ by up to {difference:.1e} of the sizes of "
                "outputs and states."
            )
        return how.strip()

    def _start_from_others(self, point: OperatingPoint, step: float, difference: float) -> tuple[float, str]:
        """Start runs from something that repeats them; return by what equal runs still differ, and a sentence."""
        session, before = self._session, self._session.run_start
        session.restores_twice = False
        session.set_run_start(RunStart.FRESH)
        fresh = self._difference_of_runs(point, step)
        if fresh > 0.1 * difference:  # a fresh instance is no better: it is noise
            session.set_run_start(before)
            return fresh, ""
        if before is RunStart.COPY:
            return fresh, "A copy of the process does not repeat runs, so every run starts from a fresh instance."
        session.set_run_start(RunStart.COPY)
        copied = self._difference_of_runs(point, step)
        if copied > fresh:
            session.set_run_start(RunStart.FRESH)
        how = f"The model does not restore all of its state, so every run starts from {session.run_start.value}."
        return min(fresh, copied), how

    def _difference_of_runs(self, point: OperatingPoint, step: float) -> float:
        """Return how much a run changes when another one lies between, relative to the sizes of what it shows."""
        still = np.tile(point.inputs, (3, 1))
        moved = still + 1e-3 * self.inputs.scales(point.inputs)
        first = self.respond(point, still, step)
        self.respond(point, moved, step)
        second = self.respond(point, still, step)
        one, other = (np.hstack((r.at_once, r.after, r.states)) for r in (first, second))
        if np.array_equal(one, other, equal_nan=True):
            return 0.0
        y = self.outputs.scales(first.at_once[0])
        size = np.concatenate((y, y, self.states.scales(point.states)))
        return float(np.max(np.abs(one - other) / size, initial=0.0))

    @staticmethod
    def _directions(n: int) -> FloatArray:
        ahead = _EXCURSION_SIZE * np.random.default_rng(2026).uniform(0.5, 1.0, n)
        return np.stack((ahead, -ahead))
