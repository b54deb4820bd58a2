"""Sampled linear regulators as members.

    y_k = g0 + C (x_k - x0) + D (e_k - u0),  x_(k+1) = x0 + f0 + A (x_k - x0) + B (e_k - u0),

with e_k read at t_k and y_k held until t_(k+1). In a simulation they are events in time; the linear model of a plant
with one of them is discrete, :func:`fmilin.sampled_loop`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import numpy as np

from fmilin.connected.held_member import Actuator, HeldMember, Schedule, _Mode
from fmilin.ground.signals import FloatArray, Signals
from fmilin.linear_model.model import LinearModel

__all__ = ["LinearLaw", "SampledMember"]


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
        del t
        lin = self.linear
        s, e = self._states - lin.y0, read - self.inputs.starts
        found: FloatArray = self.outputs.starts + lin.C @ s + lin.D @ e
        self._states = lin.y0 + lin.f0 + lin.A @ s + lin.B @ e
        return found

    def applied(self, outputs: FloatArray) -> None:
        """Pay no heed to limits: a linear system does not know them."""
        del outputs


class SampledMember(HeldMember):
    """A sampled linear model between its samples."""

    def __init__(
        self, linear: LinearModel, *, actuator: Actuator | None = None, shown: Sequence[int] | None = None,
        law: LinearLaw | None = None, mode: _Mode | None = None,
    ) -> None:  # fmt: skip
        self.linear = linear
        law = LinearLaw(linear) if law is None else law
        schedule = Schedule(linear.sample_time, linear.point.time)
        signals = law.inputs, law.outputs
        super().__init__(linear.model, law, schedule, *signals, actuator=actuator, shown=shown, mode=mode)

    def _view(self, shown: Sequence[int]) -> Self:
        assert isinstance(self.law, LinearLaw)  # noqa: S101 - made above
        return type(self)(self.linear, actuator=self.actuator, shown=shown, law=self.law, mode=self._mode)

    def shown(self) -> LinearModel:
        """Return the linear model with the outputs of this view."""
        rows, lin = np.array(self._shown, dtype=np.intp), self.linear
        return replace(lin, C=lin.C[rows], D=lin.D[rows], outputs=lin.outputs.select(rows))
