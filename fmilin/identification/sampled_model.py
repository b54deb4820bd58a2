"""A hybrid model that is stepped over its sampling period: events at the start of each step, then smooth motion.

Events due at t_(k+1) belong to the next step. The first t_k is that of the first event that is still due: events due at
the start itself have happened when a model is initialized.
"""

from collections.abc import Sequence
from math import isfinite

import numpy as np
from scipy.integrate import DOP853

from fmilin.constraints.declared import Constraint
from fmilin.errors import NumericalError, UsageError
from fmilin.model.capabilities import read_event_indicators
from fmilin.model.interface import Evaluation, Model, OperatingPoint
from fmilin.model.stepping import Cadence, Hybrid, Response, Stepped
from fmilin.numerics.steps import domains, first_crossing
from fmilin.signals import FloatArray
from fmilin.tolerances import SMALLEST_DIVISOR

TICK_COUNT = 24  # events in time from which the base period is read
SIMULTANEOUS_TIME_TOLERANCE = 1e-9  # times closer than this, in parts of a step, are the same
MAX_EVENTS = 1000  # in a step of the model: more are chattering
INTEGRATION_TOLERANCE = 1e-10  # tolerance of the integration between events, in sizes of the states


def require_events(model: Model) -> Hybrid:
    """Return a model that has events; raise UsageError if it has none, and so no base period."""
    if not isinstance(model, Hybrid):
        raise UsageError(
            f"'{model.info.name}' has no events and no sampled parts, so there is no base period to lift it over. "
            "Leave out lifted=True; fl.reduction.discretize(linear, T) samples the linear model."
        )
    return model


class SampledModel(Model, Stepped):
    """Steps a hybrid model from its start."""

    def __init__(self, source: Model) -> None:
        self.source, self.hybrid = source, require_events(source)
        self.info, self.states, self.inputs, self.outputs = source.info, source.states, source.inputs, source.outputs
        self.constraints, self.start, self.copies = source.constraints, source.start, source.copies
        self.independent, self.parameters = source.independent, source.parameters
        self.steps = 0
        self.cadence = self._cadence()

    @property
    def output_turns(self) -> tuple[float | None, ...]:
        """Those of the source."""
        return self.source.output_turns

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of the source, except for its events in time, which are stepped here."""
        return tuple(note for note in self.source.notes if "schedules an event" not in note)

    def evaluate(self, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        """Evaluate the source in its present mode."""
        return self.source.evaluate(t, x, u)

    def with_interface(self, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Model:
        """Return the same with other inputs and outputs."""
        return SampledModel(self.source.with_interface(inputs, outputs))

    def with_constraints(self, constraints: Sequence[Constraint]) -> Model:
        """Return the same with other constraints."""
        return SampledModel(self.source.with_constraints(constraints))

    def respond(self, point: OperatingPoint, inputs: FloatArray, step: float) -> Response:
        """Run from the start; see :meth:`fmilin.model.stepping.Stepped.respond`."""
        if point.time != self.start.time:
            raise UsageError(
                f"A model with events is lifted at its start (t = {self.start.time:g} s), where its mode is known, "
                f"not at {point.time:g} s. Use the co-simulation interface (interface='cs') for later points."
            )
        K, ny = len(inputs), len(self.outputs)
        at_once, after, states = np.empty((K, ny)), np.empty((K, ny)), np.empty((K, len(self.states)))
        x, first = self._advance_to_first_event(point, step)
        t = first
        for k, u in enumerate(inputs):
            end = first + (k + 1) * step
            due = self.hybrid.next_event_time()
            t = due if due is not None and abs(due - t) <= SIMULTANEOUS_TIME_TOLERANCE * step else t
            x = self.hybrid.pass_event(t, x, u).states
            at_once[k] = self.source.evaluate(t, x, u).outputs
            x = self._advance(t, x, u, end, step)
            t = end
            after[k] = self.source.evaluate(t, x, u).outputs
            states[k] = x
        self.steps += K
        return Response(at_once, after, states)

    def advance(self, point: OperatingPoint, to: float, step: float | None = None) -> OperatingPoint:
        """Reject: the mode of a later time cannot be restored."""
        raise UsageError(f"A model with events is lifted at its start, not at t = {to:g} s.")

    def why_not_direct(self, point: OperatingPoint) -> str:
        """Say that discrete states cannot be set."""
        return "The discrete states of the model cannot be set."

    def why_not_settable(self, point: OperatingPoint) -> str:
        """Say the same."""
        return self.why_not_direct(point)

    def _advance_to_first_event(self, point: OperatingPoint, step: float) -> tuple[FloatArray, float]:
        """Return the states at the first event in time that is due within a step, and that time; else the start."""
        self.hybrid.restart()
        due = self.hybrid.next_event_time()
        if due is None or not point.time < due <= point.time + step * (1 + SIMULTANEOUS_TIME_TOLERANCE):
            return point.states.copy(), point.time
        return self._advance(point.time, point.states.copy(), point.inputs, due, step), due

    def _advance(self, t: float, x: FloatArray, u: FloatArray, end: float, step: float) -> FloatArray:
        """Return the states at ``end``, just before what is due there."""
        for _ in range(MAX_EVENTS):
            due = self.hybrid.next_event_time()
            until = end if due is None or not t < due < end - SIMULTANEOUS_TIME_TOLERANCE * step else due
            t, x, crossed = self._smooth(t, x, u, until)
            if not crossed and until >= end - SIMULTANEOUS_TIME_TOLERANCE * step:
                return x
            x = self.hybrid.pass_event(t, x, u).states
        raise NumericalError(
            f"More than {MAX_EVENTS} events within one step, at t = {t:.9g} s. The model chatters there: choose "
            "another point."
        )

    def _smooth(self, t: float, x: FloatArray, u: FloatArray, until: float) -> tuple[float, FloatArray, bool]:
        """Integrate until a time or the first crossing of an event indicator; return which."""
        if not len(x) or until <= t:
            return until, x, False
        model = self.source
        atol = INTEGRATION_TOLERANCE * float(np.min(self.states.scales(x)))
        before = domains(read_event_indicators(model, t, x, u))
        solver = DOP853(
            lambda s, y: model.evaluate(s, y, u).derivatives, t, x, until, rtol=INTEGRATION_TOLERANCE, atol=atol
        )
        while solver.t < until:
            start = float(solver.t)
            message = solver.step()
            if message is not None:
                raise NumericalError(f"The integration cannot continue at t = {start:g} s: {message}.")
            dense = solver.dense_output()
            crossing = first_crossing(
                lambda s: read_event_indicators(model, s, dense(s), u),  # noqa: B023 - called at once
                before,
                start,
                float(solver.t),
            )
            if crossing is not None:
                return crossing.time, np.asarray(dense(crossing.time), dtype=np.float64), True
        return until, np.array(solver.y, dtype=np.float64), False

    def _cadence(self) -> Cadence:
        """Find the base period from the first events in time."""
        times: list[float] = []
        t, x, u = self.start.time, self.start.states, self.start.inputs
        self.hybrid.restart()
        for _ in range(TICK_COUNT):
            due = self.hybrid.next_event_time()
            if due is None or not isfinite(due):
                break
            if due > t or not times:
                times.append(due)
            t = due
            self.hybrid.pass_event(t, x, u)
        self.hybrid.restart()
        gaps = np.diff(np.array([self.start.time, *times]))
        gaps = gaps[gaps > SIMULTANEOUS_TIME_TOLERANCE * max(float(np.max(gaps, initial=0.0)), SMALLEST_DIVISOR)]
        if not gaps.size:
            return Cadence()
        period = _pattern(gaps)
        text = f"It schedules events in time, the first at t = {times[0]:g} s"
        text += f", with the period {period:g} s." if period else ", in no regular order."
        return Cadence(period, period, None, (text,))


def _pattern(gaps: FloatArray) -> float | None:
    """Return the time after which the gaps repeat, at least twice; None when they do not."""
    for n in range(1, len(gaps) // 2 + 1):
        # the first tick may come at once or late: patterns are searched behind it
        rest = gaps[1:]
        period = float(np.sum(rest[:n]))
        # times are sums of periods in floating-point numbers of the FMU: six digits agree
        if len(rest) >= 2 * n and np.allclose(rest[n:], rest[:-n], rtol=1e-6, atol=1e-9 * period):
            return float(f"{period:.9g}")
    return None
