"""An orbit: a motion on the manifold that comes back to where it began, or a turn or a step further on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fmilin.ground.errors import NumericalError, UsageError
from fmilin.ground.remarks import Remark
from fmilin.ground.signals import FloatArray
from fmilin.ground.verbs import Shown
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.stepping import Stepped
from fmilin.motion.simulation.inputs import input_course
from fmilin.motion.simulation.run import RunRequest, simulate_at
from fmilin.motion.simulation.trajectory import EventRecord

AT_EVENT = 1e-6  # of the period: an event that near to its beginning could come before or after it


@dataclass(frozen=True, eq=False, repr=False)
class PeriodicOrbit(Shown):
    """A periodic motion of a model.

    Attributes
    ----------
    model : Model
        With the parameters of the orbit.
    period : float
        In seconds.
    times : array, shape (m + 1,)
        In seconds, from the start to the end of one period, equally spaced.
    points : tuple of OperatingPoint
        The motion at these times; the last one is the first one, turned or shifted by ``shift``.
    closure : float
        How far the end is from the start, in sizes of the states.
    shift : array, shape (N,)
        What the states gain in a period: a turn of the state of ``turn``, what those of ``steady`` move by.
    free : mapping of str to float
        What the free inputs and parameters have become.
    remarks : tuple of Remark
    run : RunRequest
        How it was integrated: inputs over time, the integrator.
    nodes : tuple of OperatingPoint
        Where the stretches begin that were integrated one by one.
    events : tuple of EventRecord
        What the motion passes on its way: impacts, switches.
    """

    model: Model
    period: float
    times: FloatArray
    points: tuple[OperatingPoint, ...]
    closure: float
    shift: FloatArray
    free: Mapping[str, float] = field(default_factory=dict)
    remarks: tuple[Remark, ...] = ()
    run: RunRequest = field(default_factory=RunRequest)
    nodes: tuple[OperatingPoint, ...] = ()
    events: tuple[EventRecord, ...] = ()

    @property
    def measured(self) -> bool:
        """Whether deviations are measured beside it: linear models do not see events, nor into other solvers."""
        return bool(self.events) or isinstance(self.model, Stepped)

    @property
    def start(self) -> OperatingPoint:
        """Where it begins."""
        return self.points[0]

    def sampled(self, points: int) -> tuple[OperatingPoint, ...]:
        """Return points + 1 samples of one period, equally spaced."""
        if len(self.points) == points + 1:
            return self.points
        return samples_of(self.model, self.nodes, self.period, self.run, points)[0]

    def states(self) -> FloatArray:
        """All states along the orbit, shape (m + 1, N)."""
        return np.array([point.states for point in self.points])


@dataclass(frozen=True, eq=False)
class Motion:
    """Samples of a motion, and the events between them."""

    times: FloatArray  # (K,)
    states: FloatArray  # (K, N)
    inputs: FloatArray  # (K, nu)
    parameters: Mapping[str, float]
    events: tuple[EventRecord, ...] = ()

    def point(self, k: int = -1) -> OperatingPoint:
        """Return a sample as an operating point."""
        return OperatingPoint(float(self.times[k]), self.states[k].copy(), self.inputs[k].copy(), dict(self.parameters))


def simulated(model: Model, start: OperatingPoint, times: FloatArray, run: RunRequest) -> Motion:
    """Return the motion at some times (K,), equally spaced ones where a model brings its own solver."""
    if isinstance(model, Stepped):
        return _stepped(model, start, times, run)
    motion = simulate_at(model, start, times, run)
    if motion.times[-1] < times[-1]:
        raise NumericalError(f"The motion ends at t = {motion.times[-1]:.6g} s, before its period does.")
    rows = np.searchsorted(motion.times, times)  # at an event there are two more
    return Motion(times, motion.states[rows], motion.inputs[rows], start.parameters, motion.events)


def _stepped(model: Stepped, start: OperatingPoint, times: FloatArray, run: RunRequest) -> Motion:
    """Return the motion by a model's own steps, inputs held over each of them."""
    length, count = float(times[-1] - times[0]), len(times) - 1
    own = model.cadence.internal or model.cadence.step or length / count
    parts = max(1, round(length / count / own))
    step = length / (count * parts)
    signals = model.inputs  # type: ignore[attr-defined]
    course = input_course(signals, start.inputs, run.inputs).piece(start.time, start.time + length)
    u = np.array([course(times[0] + step * k) for k in range(count * parts + 1)])
    states = np.vstack((start.states, model.respond(start, u[:-1], step).states[parts - 1 :: parts]))
    return Motion(times, states, u[::parts], start.parameters)


def require_between_events(events: Sequence[EventRecord], start: float, period: float) -> None:
    """Refuse a period that begins at an event."""
    for event in (event for event in events if event.cause not in ("input", "time")):  # those move with the state
        if min(abs(event.time - start), abs(event.time - start - period)) <= AT_EVENT * period:
            raise UsageError(
                f"The period begins at an event, at t = {event.time:.6g} s ({event.cause}): what comes before it and "
                "what after cannot be told apart there. Begin between events (--set, --fix, --time; start=)."
            )


def samples_of(
    model: Model, nodes: tuple[OperatingPoint, ...], period: float, run: RunRequest, points: int
) -> tuple[tuple[OperatingPoint, ...], tuple[EventRecord, ...]]:
    """Return points + 1 samples of one period, each integrated from the node before it, and the events on the way."""
    samples, events = samples_at(model, nodes, nodes[0].time + period * np.arange(points + 1) / points, period, run)
    require_between_events(events, nodes[0].time, period)
    return samples, events


def samples_at(
    model: Model, nodes: tuple[OperatingPoint, ...], times: FloatArray, period: float, run: RunRequest
) -> tuple[tuple[OperatingPoint, ...], tuple[EventRecord, ...]]:
    """Return the motion at rising times of a period, as :func:`samples_of`."""
    begins = np.array([node.time for node in nodes])
    number = np.clip(np.searchsorted(begins, times + 1e-12 * period, side="right") - 1, 0, len(begins) - 1)
    samples: list[OperatingPoint] = []
    events: list[EventRecord] = []
    for k, node in enumerate(nodes):
        own = times[number == k]
        if not len(own):
            continue
        if abs(own[0] - node.time) <= 1e-12 * period:
            own[0] = node.time
            grid = own
        else:
            grid = np.concatenate(([node.time], own))
        motion = simulated(model, node, grid, run)
        samples += [motion.point(i) for i in range(len(grid) - len(own), len(grid))]
        events += motion.events
    return tuple(samples), tuple(events)
