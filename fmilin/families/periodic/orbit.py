"""An orbit: a motion on the manifold that comes back to where it began, or a turn or a step further on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from fmilin.ground.errors import UsageError
from fmilin.ground.remarks import Remark
from fmilin.ground.signals import FloatArray
from fmilin.ground.verbs import Shown
from fmilin.model.interface import Model, OperatingPoint
from fmilin.motion.simulation.run import RunRequest, simulate_at
from fmilin.motion.simulation.trajectory import Trajectory


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

    @property
    def start(self) -> OperatingPoint:
        """Where it begins."""
        return self.points[0]

    def sampled(self, points: int) -> tuple[OperatingPoint, ...]:
        """Return points + 1 samples of one period, equally spaced."""
        if len(self.points) == points + 1:
            return self.points
        return samples_of(self.model, self.nodes, self.period, self.run, points)

    def states(self) -> FloatArray:
        """All states along the orbit, shape (m + 1, N)."""
        return np.array([point.states for point in self.points])


def simulated(model: Model, start: OperatingPoint, times: FloatArray, run: RunRequest) -> Trajectory:
    """Return the motion at some times; refuse an event on the way."""
    motion = simulate_at(model, start, times, run)
    for event in (event for event in motion.events if event.cause != "input"):
        jumps = f", at which {', '.join(event.jumped)} jump" if event.jumped else ""
        raise UsageError(
            f"The motion passes an event at t = {event.time:.6g} s ({event.cause}{jumps}): slopes along it are not "
            "continuous there, and are taken of smooth motions only. Smooth the switch, or look at a motion without "
            "it; 'fmilin simulate' shows the events."
        )
    return motion


def samples_of(
    model: Model, nodes: tuple[OperatingPoint, ...], period: float, run: RunRequest, points: int
) -> tuple[OperatingPoint, ...]:
    """Return points + 1 samples of one period, each integrated from the node before it."""
    times = nodes[0].time + period * np.arange(points + 1) / points
    begins = np.array([node.time for node in nodes])
    number = np.clip(np.searchsorted(begins, times + 1e-12 * period, side="right") - 1, 0, len(begins) - 1)
    samples: list[OperatingPoint] = []
    for k, node in enumerate(nodes):
        own = times[number == k]
        if len(own) and abs(own[0] - node.time) <= 1e-12 * period:
            own[0] = node.time
            grid = own
        else:
            grid = np.concatenate(([node.time], own))
        motion = simulated(model, node, grid, run)
        samples += [motion.point(i) for i in range(len(grid) - len(own), len(grid))]
    return tuple(samples)
