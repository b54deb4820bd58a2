"""Sampled regulators: members that look at their inputs every so often and hold their outputs meanwhile.

    y_k = g0 + C (x_k - x0) + D (e_k - u0),  x_(k+1) = x0 + f0 + A (x_k - x0) + B (e_k - u0),

with e_k read at t_k and y_k held until t_(k+1). In a simulation they are events in time; the linear model of a plant
with one of them is discrete, :func:`fmilin.sampled_loop`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Self

import numpy as np

from fmilin.constraints.declared import Constraint, Constraints
from fmilin.errors import UsageError
from fmilin.linear_model.model import LinearModel
from fmilin.model.events import Hybrid, Passage
from fmilin.model.interface import Evaluation, Model, OperatingPoint
from fmilin.signals import FloatArray, Signals

__all__ = ["SampledMember"]

SOON = 1e-9
"""The first sample, in sample times after the start: what is due at the start itself is not passed as an event."""
TOGETHER = 1e-6
"""Times closer than this, in sample times, are the same."""


@dataclass
class _Mode:
    """What the regulator keeps from one sample to the next; shared by all views of it."""

    states: FloatArray
    held: FloatArray
    samples: int = 0


class SampledMember(Model, Hybrid):
    """A sampled linear model between its samples: no continuous states, outputs held.

    Parameters
    ----------
    linear : LinearModel
        With a ``sample_time``.
    """

    def __init__(self, linear: LinearModel, *, outputs: Sequence[str] | None = None, mode: _Mode | None = None) -> None:
        self.linear, self.info = linear, linear.model
        point = linear.point
        self.states = Signals()
        self.inputs = Signals(s.starting_at(point.inputs.get(s.name, s.start)) for s in linear.inputs)
        self._g0 = np.array([point.outputs.get(s.name, 0.0) for s in linear.outputs])
        names = linear.outputs.names if outputs is None else outputs
        self._shown = [linear.outputs.index_of(name, f"an output of '{self.info.name}'") for name in names]
        self.outputs = linear.outputs.select(self._shown)
        self.constraints = Constraints((), self.states, self.inputs)
        self.start = OperatingPoint(point.time, np.empty(0), self.inputs.starts)
        self.copies = MappingProxyType({})
        self.structure = np.zeros((len(self.outputs), len(self.inputs)), dtype=bool)
        self._mode = mode or _Mode(linear.y0.copy(), self._g0.copy())

    @property
    def notes(self) -> tuple[str, ...]:
        """Say that outputs are held."""
        return (
            f"It is sampled every {self.linear.sample_time:g} s, and its outputs are held in this linear model: "
            "fl.sampled_loop(system) is the closed loop from sample to sample.",
        )

    def evaluate(self, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        """Return the outputs that are held."""
        del t, x, u
        return Evaluation(np.empty(0), self._mode.held[self._shown], np.empty(0))

    def products(self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray) -> Evaluation:
        """Return zeros: what is held follows nothing."""
        del t, x, u, du
        k = dx.shape[1]
        return Evaluation(np.zeros((0, k)), np.zeros((len(self.outputs), k)), np.zeros((0, k)))

    def discrete_states(self) -> Mapping[str, str]:
        """Return the outputs, by name."""
        return {s.name: f"{v:.6g}" for s, v in zip(self.linear.outputs, self._mode.held, strict=True)}

    def restart(self) -> None:
        """Go back to before the first sample."""
        self._mode.states, self._mode.held, self._mode.samples = self.linear.y0.copy(), self._g0.copy(), 0

    def next_event_time(self) -> float:
        """Return when the next sample is taken."""
        k = self._mode.samples
        return self.start.time + self.linear.sample_time * (k or SOON)

    def pass_event(self, t: float, x: FloatArray, u: FloatArray) -> Passage:
        """Take a sample if one is due."""
        if abs(t - self.next_event_time()) <= TOGETHER * self.linear.sample_time:
            lin, mode = self.linear, self._mode
            s, e = mode.states - lin.y0, u - self.inputs.starts
            mode.held = self._g0 + lin.C @ s + lin.D @ e
            mode.states = lin.y0 + lin.f0 + lin.A @ s + lin.B @ e
            mode.samples += 1
        return Passage(x)

    def with_interface(self, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Self:
        """Return the same regulator with chosen outputs; it needs all its inputs.

        Raises
        ------
        UsageError
            When inputs are chosen.
        """
        if inputs is not None and list(inputs) != list(self.inputs.names):
            raise UsageError(f"The sampled regulator '{self.info.name}' takes all its inputs.")
        return type(self)(self.linear, outputs=outputs, mode=self._mode)

    def with_constraints(self, constraints: Sequence[Constraint]) -> Self:
        """Return the same: it has no states that constraints could be about.

        Raises
        ------
        UsageError
            When there are any.
        """
        if constraints:
            raise UsageError(f"The sampled regulator '{self.info.name}' has no continuous states to constrain.")
        return self

    def shown(self) -> LinearModel:
        """Return the linear model with the outputs of this view."""
        rows, lin = self._shown, self.linear
        return replace(lin, C=lin.C[rows], D=lin.D[rows], outputs=lin.outputs.select(rows))
