"""A sampled linear regulator that follows references and keeps to the limits of actuators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from fmilin.design.laws import Savable, linear_law
from fmilin.design.regulators import LinearRegulator
from fmilin.design.tracking_regulator import Reference, TrackedReferences
from fmilin.linear_model.model import LinearModel
from fmilin.signals import FloatArray, Signals
from fmilin.support.implemented_in import implemented_in
from fmilin.support.table_repr import Sheet, TableRepr


class ShapedRegulator(LinearRegulator, TrackedReferences, Savable, TableRepr):
    """u = u0 + K (m - m0 - r), of deviations r of references; :func:`fmilin.design.loop_shaping` makes it.

    Where actuators reach their limits, the integral action in front of them moves as if what they do had been its
    answer (Hanus' conditioning).
    """

    _attributes = ".reads, .drives, .tracked, .references, .limits, .linear_model()"

    @implemented_in("fmilin.report.designs:show_regulator")
    def _print_table(self, page: Sheet) -> None: ...

    def __init__(
        self,
        linear: LinearModel,
        tracked: Sequence[str],
        limits: Mapping[str, tuple[float, float]],
        limit_response: FloatArray,
    ) -> None:
        super().__init__(linear)
        self._back = limit_response  # how the states move with what limits take, shape (states, drives)
        self.limits = dict(limits)
        self.set_up_references(tracked, [float(linear.point.inputs[name]) for name in tracked])
        self._rows = [linear.inputs.index_of(name) for name in tracked]

    def with_turns(self, turns: Sequence[float | None]) -> ShapedRegulator:
        """Return the regulator for a plant of which the variables that it reads wrap by these turns."""
        inputs = self.linear.inputs.with_turns([s.turn or turn for s, turn in zip(self.inputs, turns, strict=True)])
        if inputs is self.linear.inputs:
            return self
        other = ShapedRegulator(replace(self.linear, inputs=inputs), self.tracked, self.limits, self._back)
        other.references = self.references
        return other

    def answer(self, t: float, read: FloatArray) -> FloatArray:
        """Return u, shape (len(drives),), for what was ``read``, shape (m,), at ``t`` seconds."""
        shifted = np.array(read, dtype=np.float64)
        shifted[self._rows] -= self.evaluate_references(t)
        requested = super().answer(t, shifted)
        pairs = np.array([self.limits.get(name, (-np.inf, np.inf)) for name in self.drives], dtype=np.float64)
        return np.asarray(np.clip(requested, pairs[:, 0], pairs[:, 1]))

    def linear_model(self) -> LinearModel:
        """Return the regulator as a sampled linear model, from measurements and references to inputs.

        TrackedReferences are inputs ``reference.NAME``. It does not know of limits.
        """
        law = self.linear
        if not self.tracked:
            return law
        references = [replace(law.inputs[i], name=f"reference.{law.inputs[i].name}", aliases=(), turn=None)
                      for i in self._rows]  # fmt: skip
        B, D = (np.hstack((matrix, -matrix[:, self._rows])) for matrix in (law.B, law.D))
        signals = law.states, Signals([*law.inputs, *references]), law.outputs
        return linear_law("regulator", law, (law.A, B, law.C, D), signals, self.sample_time)

    def compute_limit_response(self) -> FloatArray:
        """Return how the states move with what limits take from the outputs, shape (P, outputs)."""
        return self._back


__all__ = ["Reference", "ShapedRegulator"]
