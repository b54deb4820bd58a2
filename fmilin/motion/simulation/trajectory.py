"""The result of a simulation, with names, and with what happened on the way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fmilin.ground.errors import UnknownNameError
from fmilin.ground.remarks import Remark
from fmilin.ground.signals import FloatArray, Signals
from fmilin.model.interface import OperatingPoint
from fmilin.motion.simulation.stabilization import Switch

__all__ = ["EventRecord", "Statistics", "Switch", "Trajectory"]


@dataclass(frozen=True, eq=False, slots=True)
class EventRecord:
    """An event that was passed."""

    time: float  # in seconds
    cause: str  # ``"event indicator 2"``, ``"time"``, ``"step"`` (the model asked for it after a step), ``"input"``
    jumped: tuple[str, ...] = ()  # the states that changed


@dataclass(frozen=True, slots=True)
class Statistics:
    """What it took."""

    steps: int
    """Accepted steps."""
    evaluations: int
    """Visits to the model."""
    projections: int
    """Steps after which the state was moved back onto the manifold."""


@dataclass(frozen=True, eq=False)
class Trajectory:
    """K samples of a motion.

    Parameters
    ----------
    times : array, shape (K,)
        In seconds, never decreasing; at an event there is a sample before and one after it.
    states : array, shape (K, N)
        Dependent ones included.
    inputs : array, shape (K, nu)
    outputs : array, shape (K, ny)
    state_signals, input_signals, output_signals : Signals
        Names and units of the columns.
    drift : array, shape (K, m)
        The invariants h(t, x), which would all be zero, in the units of the constraints.
    invariants : tuple of str
        m names for them: declared constraints, then hidden ones.
    energy : array, shape (K,) or (0,)
        Empty where it was not asked for.
    stabilization, method : str
    switches : tuple of Switch
        Changes of independent coordinates (local form only).
    events : tuple of EventRecord
    statistics : Statistics
    parameters : tuple of (str, float)
        Those changed from the model's own values.
    remarks : tuple of Remark
    """

    times: FloatArray
    states: FloatArray
    inputs: FloatArray
    outputs: FloatArray
    state_signals: Signals
    input_signals: Signals
    output_signals: Signals
    drift: FloatArray
    invariants: tuple[str, ...]
    energy: FloatArray
    stabilization: str
    method: str
    switches: tuple[Switch, ...]
    events: tuple[EventRecord, ...]
    statistics: Statistics
    parameters: tuple[tuple[str, float], ...] = ()
    remarks: tuple[Remark, ...] = ()

    @property
    def formulation(self) -> str:
        """The old name of ``stabilization``."""
        return self.stabilization

    def __len__(self) -> int:
        return len(self.times)

    def __getitem__(self, name: str) -> FloatArray:
        """Return the course of a state, output or input, shape (K,)."""
        groups = (
            (self.state_signals, self.states),
            (self.output_signals, self.outputs),
            (self.input_signals, self.inputs),
        )
        for signals, values in groups:
            if signals.has(name):
                return values[:, signals.positions[name]]
        known = [n for signals, _ in groups for n in signals.positions]
        raise UnknownNameError.among(name, known, "a state, output or input of the trajectory")

    def point(self, index: int = -1) -> OperatingPoint:
        """Return sample number ``index``, by default the last one, as an operating point: to linearize or to go on."""
        return OperatingPoint(
            float(self.times[index]), self.states[index].copy(), self.inputs[index].copy(), dict(self.parameters)
        )

    @property
    def largest_drift(self) -> float:
        """The largest ``|h|`` of all samples, in the units of its constraint."""
        return float(np.max(np.abs(self.drift), initial=0.0))
