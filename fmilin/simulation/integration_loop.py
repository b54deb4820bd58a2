"""The integration along a motion: pieces between events, steps within a piece, samples within a step.

A piece ends where an event indicator changes sign.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from typing import Any, Protocol

import numpy as np

from fmilin.errors import NumericalError
from fmilin.model.stepping import Hybrid, Passage
from fmilin.numerics.steps import domains, first_crossing
from fmilin.signals import FloatArray
from fmilin.simulation.method import Method, next_step, shift_solver
from fmilin.simulation.stabilization import CorrectedState, IntegratedCoordinates, Plant
from fmilin.simulation.trajectory import EventRecord

MAX_SIMULTANEOUS_EVENTS = 100  # so many events in a row without progress in time, and the integration gives up


class ChatteringError(NumericalError):
    """Events follow each other without progress in time."""


@dataclass(frozen=True)
class IntegrationPlan:
    """Where to integrate to, and how."""

    method: Method
    grid: FloatArray  # (K,), times at which samples are wanted, in order; the last one is where the integration ends
    hybrid: Hybrid | None  # the model as far as it has events
    progress: Callable[[float], None]  # called with the time after each step
    until: Callable[[float, FloatArray], float] | None = None  # positive where a condition holds, which ends the motion
    until_event: bool = False  # whether the first event ends it
    breaks: FloatArray = field(default_factory=lambda: np.empty(0))  # times past which no step goes


@dataclass(frozen=True, eq=False, slots=True)
class MotionSample:
    """A point of the motion, on the manifold as far as the stabilization keeps it there."""

    time: float
    states: FloatArray  # shape (N,)
    is_wanted: bool = True  # whether it is of the grid; false for the two points of an event


@dataclass(frozen=True, eq=False, slots=True)
class _Arrival:
    """Where a piece ended and why."""

    time: float
    states: FloatArray
    cause: str


class MotionIntegration:
    """One run. While a sample is being examined, the plant is in the mode and has the inputs of that time."""

    def __init__(self, plant: Plant, integrated: IntegratedCoordinates, plan: IntegrationPlan) -> None:
        self._plant, self._integrated, self._plan = plant, integrated, plan
        self._done = 0  # samples of the grid that are behind us
        self._first_step: float | None = None
        self._crowd = 0
        self._has_indicators = False
        self.steps = 0
        self.events: list[EventRecord] = []
        self.ended = ""  # why it ended early, as a sentence
        self.met = False  # whether the condition holds now, or the event has come
        self.nearest = -np.inf  # the largest value of what is positive where the condition holds

    def samples(self, start: float, x: FloatArray) -> Iterator[MotionSample]:
        """Yield the samples, those of the grid and two for each event, from the states x (N,) at ``start``."""
        stop = float(self._plan.grid[-1])
        t, cause = start, ""
        if self._plan.hybrid is not None:
            self._plan.hybrid.restart()
        self._has_indicators = bool(self._plant.indicators(t, x).size)
        while not self.ended:
            end, why = self._end_of_piece(t, stop)
            self._plant.enter(t, end, before_end=self._is_break(end))
            if cause or (t == start and self._leaves_start(t, x)):
                x = self._handle_event(t, x, cause)
                end, why = self._end_of_piece(t, stop)  # an event schedules the next one
                self._plant.enter(t, end, before_end=self._is_break(end))
            z = self._integrated.begin(t, x)
            if cause:
                self.met = self._plan.until_event
                yield MotionSample(t, self._integrated.states(t, z), is_wanted=self.met)
            if t == start:
                yield from self._due(t, _Still(self._integrated.states(t, z)))
            if self._holds(t, self._integrated.states(t, z)):
                yield MotionSample(t, self._integrated.states(t, z))
            if self.ended or self.met or t >= stop:
                return
            arrival = yield from self._piece(t, z, end)
            t, x = arrival.time, arrival.states
            if self.met:
                return
            cause = arrival.cause or (why if t == end else "")
            if cause or self.ended:
                yield MotionSample(t, x, is_wanted=False)
            elif t >= stop:
                return

    def _end_of_piece(self, t: float, stop: float) -> tuple[float, str]:
        """Return how far the inputs are smooth and no event in time is due, and what comes then."""
        end, why = stop, ""
        breaks = self._plant.course.breaks(t, stop)
        if breaks.size:
            end = float(breaks[0])
            why = "input" if self._plant.course.has_jump(end) else ""
        later = self._plan.breaks[np.searchsorted(self._plan.breaks, t, side="right") :]
        if later.size and later[0] < end:
            end, why = float(later[0]), ""
        due = self._plan.hybrid.next_event_time() if self._plan.hybrid is not None else None
        if due is not None and t < due <= end and due < stop:
            end, why = due, "time"
        return end, why

    def _is_break(self, t: float) -> bool:
        """Whether what acts on the model has a jump or a kink at a time that is not an event."""
        k = int(np.searchsorted(self._plan.breaks, t))
        return k < len(self._plan.breaks) and self._plan.breaks[k] == t

    def _leaves_start(self, t: float, x: FloatArray) -> bool:
        """Whether a hybrid model has to find its mode, because the motion does not begin where the model does."""
        if self._plan.hybrid is None:
            return False
        start = self._plant.model.start
        return t != start.time or not (
            np.array_equal(x, start.states) and np.array_equal(self._plant.u(t), start.inputs)
        )

    def _piece(self, t: float, z: FloatArray, end: float) -> Generator[MotionSample, None, _Arrival]:
        """Integrate until ``end`` or the first event."""
        integrated = self._integrated
        self._plant.trouble = None
        if not np.isfinite(integrated.rates(t, z)).all():
            raise self._no_progress(t, None)
        solver = self._solver(t, z, end)
        sides = domains(self._indicators(t, integrated.states(t, z)))
        while True:
            solver = self._take_step(solver, end)
            along = _StepInterpolant(solver, integrated)
            crossing = first_crossing(
                lambda s: self._indicators(s, along(s)), sides, solver.t_old, solver.t,  # noqa: B023
                last_turns=self._plan.until is not None,
            )  # fmt: skip
            if crossing is not None:
                yield from self._due(crossing.time, along)
                if self._holds(crossing.time, along(crossing.time)):
                    yield MotionSample(float(crossing.time), along(crossing.time))
                    return _Arrival(float(crossing.time), along(crossing.time), "")
                which = ", ".join(str(i + 1) for i in crossing.indicators)
                return _Arrival(float(crossing.time), along(crossing.time), f"event indicator {which}")
            yield from self._due(float(np.nextafter(solver.t, -np.inf)), along)
            change = integrated.accept_step(solver.t, solver.y)
            z = solver.y if change is None else change.z
            x = integrated.states(solver.t, z)
            yield from self._due(solver.t, _Still(x))
            self._plan.progress(solver.t)
            self._holds(solver.t, x)
            passage = self._complete_step(solver.t, x)
            if passage.wants_event or passage.terminates or solver.t >= end:
                return _Arrival(float(solver.t), passage.states, "step" if passage.wants_event else "")
            if passage.states is not x:
                change = CorrectedState(integrated.begin(solver.t, passage.states), is_small=False)
            if change is not None:
                solver = self._restart_solver(solver, change, end)

    def _indicators(self, t: float, x: FloatArray) -> FloatArray:
        """Return the model's event indicators, and what changes sign where the condition begins to hold."""
        values = self._plant.indicators(t, x) if self._has_indicators else np.empty(0)
        return values if self._plan.until is None else np.append(values, self._plan.until(t, x))

    def _holds(self, t: float, x: FloatArray) -> bool:
        """Whether the condition holds at a point of the motion, which ends there."""
        if self._plan.until is None:
            return False
        value = self._plan.until(t, x)
        self.nearest, self.met = max(self.nearest, value), self.met or value > 0
        return value > 0

    def _due(self, until: float, states: _Course) -> Iterator[MotionSample]:
        """Yield the samples of the grid that have come due."""
        due = self._plan.grid[self._done : np.searchsorted(self._plan.grid, until, side="right")]
        if not due.size:
            return
        self._done += len(due)
        for time, x in zip(due.tolist(), states.at(due), strict=True):
            yield MotionSample(time, x)

    def _solver(self, t: float, z: FloatArray, end: float) -> Any:
        with np.errstate(all="ignore"):
            return self._plan.method.solver(
                self._integrated.rates, t, z, end, sizes=self._integrated.sizes, first_step=self._first_step
            )

    def _take_step(self, solver: Any, end: float) -> Any:
        """Return the solver after one more accepted step."""
        for _ in range(3):
            self._plant.trouble = None
            next_size = next_step(solver)
            with np.errstate(all="ignore"):
                message = solver.step()
            if solver.status != "failed":
                self.steps += 1
                # The last step of a piece is cut short, which says nothing about the next piece.
                self._first_step = next_size if solver.t >= end else next_step(solver)
                return solver
            rescued = self._integrated.rescue(solver.t, solver.y)
            if rescued is None:
                raise self._no_progress(solver.t, message)
            self._first_step = None
            solver = self._solver(solver.t, rescued.z, end)
        raise self._no_progress(solver.t, message)

    def _restart_solver(self, solver: Any, change: CorrectedState, end: float) -> Any:
        with np.errstate(all="ignore"):
            if change.is_small:
                return shift_solver(solver, self._plan.method, self._integrated.rates, change.z, self._integrated.sizes)
            self._first_step = next_step(solver)
            return self._solver(solver.t, change.z, end)

    def _no_progress(self, t: float, message: str | None) -> NumericalError:
        trouble = self._plant.trouble
        if trouble is not None:
            why = str(trouble)
        elif message and "spacing" not in message:
            why = f"{message}."
        else:
            why = (
                "The steps that the tolerances ask for become too small: the motion is not smooth there, or the "
                "model is stiff (try the method Radau), or the tolerances are below its noise."
            )
        return NumericalError(
            f"The integration cannot continue at t = {t:.9g} s. {why}",
            condition_number=getattr(trouble, "condition_number", None),
            variable=getattr(trouble, "variable", None),
        )

    def _complete_step(self, t: float, x: FloatArray) -> Passage:
        if self._plan.hybrid is None:
            return Passage(x)
        passage = self._plan.hybrid.complete_step(t, x, self._plant.u(t))
        self._check_termination(passage, t)
        return Passage(x, passage.wants_event, passage.terminates) if np.array_equal(passage.states, x) else passage

    def _handle_event(self, t: float, x: FloatArray, cause: str) -> FloatArray:
        """Carry out an event and return the states after it."""
        after = x
        if self._plan.hybrid is not None:
            passage = self._plan.hybrid.pass_event(t, x, self._plant.u(t))
            self._check_termination(passage, t)
            after = passage.states
        if cause:
            self._first_step = None
            names = self._plant.model.states.names
            self._guard_against_a_crowd(t)
            self.events.append(EventRecord(t, cause, tuple(names[i] for i in np.flatnonzero(after != x))))
        return after

    def _check_termination(self, passage: Passage, t: float) -> None:
        if passage.terminates:
            self.ended = f"The model requested the end of the simulation at t = {t:.9g} s."

    def _guard_against_a_crowd(self, t: float) -> None:
        near = bool(self.events) and t - self.events[-1].time <= 1e-12 * max(abs(t), 1e-3)
        self._crowd = self._crowd + 1 if near else 0
        if self._crowd > MAX_SIMULTANEOUS_EVENTS:
            raise ChatteringError(
                f"More than {MAX_SIMULTANEOUS_EVENTS} events follow each other at t = {t:.9g} s without progress in "
                "time "
                f"(the last: {self.events[-1].cause}). The model chatters there, or its events accumulate."
            )


class _Course(Protocol):
    """The states within a part of a step."""

    def at(self, times: FloatArray) -> Iterator[FloatArray]:
        """Yield the states at times (k,), each (N,)."""


class _Still:
    """The states at one instant."""

    def __init__(self, states: FloatArray) -> None:
        self._states = states

    def at(self, times: FloatArray) -> Iterator[FloatArray]:
        """Yield the states at times that are all this instant."""
        return repeat(self._states, len(times))


class _StepInterpolant:
    """The states along the last step, at any time of it."""

    def __init__(self, solver: Any, integrated: IntegratedCoordinates) -> None:
        self._solver, self._integrated = solver, integrated

    @cached_property
    def _dense(self) -> Any:
        return self._solver.dense_output()

    def __call__(self, t: float) -> FloatArray:
        """Return the states at one time."""
        return self._integrated.states(t, self._dense(t))

    def at(self, times: FloatArray) -> Iterator[FloatArray]:
        """Yield the states at times within the step."""
        for t, z in zip(times.tolist(), np.ascontiguousarray(self._dense(times).T), strict=True):
            yield self._integrated.states(t, z)
