"""Regulators that read their inputs every so often and hold their outputs meanwhile: events in time, no states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol, Self

import numpy as np

from fmilin.connected.linear_member import with_outputs
from fmilin.ground.errors import UsageError
from fmilin.ground.signals import FloatArray, Signals
from fmilin.linear_model.model import LinearModel
from fmilin.model.constraints.declared import Constraint, Constraints
from fmilin.model.interface import Evaluation, Model, ModelInfo, OperatingPoint
from fmilin.model.stepping import Hybrid, Passage

SOON = 1e-9
"""The first sample, in sample times after the start: what is due at the start itself is not passed as an event."""
TOGETHER = 1e-6  # times closer than this, in sample times, are the same


class Law(Protocol):
    """What a regulator computes at its samples."""

    def restart(self) -> None:
        """Go back to before the first sample."""

    def answer(self, t: float, read: FloatArray) -> FloatArray:
        """Return the outputs that the inputs ``read`` at t ask for."""

    def applied(self, outputs: FloatArray) -> None:
        """Be told what the actuators make of the answer: the answer itself, or its limits."""


@dataclass(frozen=True)
class Actuator:
    """What lies between a regulator and the plant."""

    lower: FloatArray | None = None  # (outputs,), limits
    upper: FloatArray | None = None  # (outputs,), limits
    delay: float = 0.0  # from a sample to its effect, in seconds


@dataclass(frozen=True)
class Schedule:
    """When samples are taken: every ``step`` seconds from ``start``."""

    step: float
    start: float = 0.0


@dataclass
class _Mode:
    """What is kept from one sample to the next; shared by all views."""

    held: FloatArray
    samples: int = 0
    coming: list[tuple[float, FloatArray]] = field(default_factory=list)


class HeldMember(Model, Hybrid):
    """A law between its samples: no continuous states, outputs held, at their start values before the first sample."""

    def __init__(
        self,
        info: ModelInfo,
        law: Law,
        schedule: Schedule,
        inputs: Signals,
        outputs: Signals,
        *,
        actuator: Actuator | None = None,
    ) -> None:
        self.info, self.law, self.schedule = info, law, schedule
        self.actuator = Actuator() if actuator is None else actuator
        self.states, self.inputs, self._every = Signals(), inputs, outputs
        self.constraints = Constraints((), self.states, self.inputs)
        self.start = OperatingPoint(schedule.start, np.empty(0), inputs.starts)
        self.copies = MappingProxyType({})
        self._mode = _Mode(outputs.starts)
        self._show(range(len(outputs)))

    def _show(self, outputs: Sequence[int]) -> None:
        self._shown, self.outputs = list(outputs), self._every.select(outputs)
        self.structure = np.zeros((len(outputs), len(self.inputs)), dtype=bool)

    @property
    def notes(self) -> tuple[str, ...]:
        """Say that outputs are held."""
        return (
            f"It is sampled every {self.schedule.step:g} s, and its outputs are held in this linear model: "
            "fl.sampled_loop(system) is the closed loop from sample to sample.",
        )

    def evaluate(self, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        """Return the outputs that are held."""
        return Evaluation(np.empty(0), self._mode.held[self._shown], np.empty(0))

    def products(self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray) -> Evaluation:
        """Return zeros: what is held follows nothing."""
        k = dx.shape[1]
        return Evaluation(np.zeros((0, k)), np.zeros((len(self.outputs), k)), np.zeros((0, k)))

    def discrete_states(self) -> Mapping[str, str]:
        """Return the outputs, by name."""
        return {s.name: f"{v:.6g}" for s, v in zip(self._every, self._mode.held, strict=True)}

    def restart(self) -> None:
        """Go back to before the first sample."""
        self.law.restart()
        mode = self._mode
        mode.held, mode.samples, mode.coming = self._every.starts, 0, []

    def next_event_time(self) -> float:
        """Return when the next sample is taken, or an earlier one takes effect."""
        coming = self._mode.coming
        return min(self._next_sample(), coming[0][0]) if coming else self._next_sample()

    def _next_sample(self) -> float:
        return self.schedule.start + self.schedule.step * (self._mode.samples or SOON)

    def pass_event(self, t: float, x: FloatArray, u: FloatArray) -> Passage:
        """Take a sample if one is due, and let take effect what is."""
        mode, near = self._mode, TOGETHER * self.schedule.step
        if abs(t - self._next_sample()) <= near:
            answer = np.asarray(self.law.answer(t, u), dtype=np.float64).reshape(len(self._every))
            given = np.clip(answer, self.actuator.lower, self.actuator.upper)
            self.law.applied(given)
            mode.coming.append((t + self.actuator.delay, given))
            mode.samples += 1
        while mode.coming and mode.coming[0][0] <= t + near:
            mode.held = mode.coming.pop(0)[1]
        return Passage(x)

    def with_interface(self, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Self:
        """Return the same regulator with chosen outputs; it needs all its inputs."""
        if inputs is not None and list(inputs) != list(self.inputs.names):
            raise UsageError(f"The sampled regulator '{self.info.name}' takes all its inputs.")
        if outputs is None:
            return self
        what = f"an output of '{self.info.name}'"
        view = copy(self)
        view._show([self._every.index_of(name, what) for name in outputs])
        return view

    def with_constraints(self, constraints: Sequence[Constraint]) -> Self:
        """Return the same: it has no states that constraints could be about."""
        if constraints:
            raise UsageError(f"The sampled regulator '{self.info.name}' has no continuous states to constrain.")
        return self


class LinearLaw:
    """A sampled linear model, which answers and moves on at each sample."""

    def __init__(self, linear: LinearModel) -> None:
        self.linear = linear
        point = linear.point
        self.inputs = Signals(s.starting_at(point.inputs.get(s.name, s.start)) for s in linear.inputs)
        self.outputs = Signals(s.starting_at(point.outputs.get(s.name, 0.0)) for s in linear.outputs)
        self._states = linear.y0.copy()

    def restart(self) -> None:
        """Go back to before the first sample."""
        self._states = self.linear.y0.copy()

    def answer(self, t: float, read: FloatArray) -> FloatArray:
        """Return the outputs, and move on to the next sample."""
        lin = self.linear
        s, e = self._states - lin.y0, read - self.inputs.starts
        outputs: FloatArray = self.outputs.starts + lin.C @ s + lin.D @ e
        self._states = lin.y0 + lin.f0 + lin.A @ s + lin.B @ e
        return outputs

    def applied(self, outputs: FloatArray) -> None:
        """Pay no heed to limits: a linear system does not know them."""


class SampledMember(HeldMember):
    """A sampled linear model between its samples."""

    def __init__(self, linear: LinearModel) -> None:
        self.linear = linear
        law, schedule = LinearLaw(linear), Schedule(linear.sample_time, linear.point.time)
        super().__init__(linear.model, law, schedule, law.inputs, law.outputs)

    def shown(self) -> LinearModel:
        """Return the linear model with the outputs of this view."""
        return with_outputs(self.linear, self._shown)
