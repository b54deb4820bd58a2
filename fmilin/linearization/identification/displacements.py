"""Way a: displace each coordinate on the manifold and each input, take one step, and difference.

The map over one step is given the shape of a model, x' = (Phi_h(x, u) - x) / h, so that steps are chosen, noise is
met and errors are estimated as for any other model; then A_h = 1 + h R f_x T, B_h = h R f_u. What follows from
x = Psi(y) only (that the rate of a position is a velocity) does not hold over a step and is not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fmilin.ground.signals import FloatArray, Signals
from fmilin.linearization.identification.sampled import Sampled
from fmilin.manifold.frame import Frame
from fmilin.manifold.neighbourhood import Neighbourhood
from fmilin.manifold.slopes import measure
from fmilin.model.constraints.declared import Constraint
from fmilin.model.interface import Evaluation, Model, OperatingPoint
from fmilin.model.stepping import Stepped
from fmilin.numerics.differences.differences import Differences


class _StepMap(Model):
    """Rates are (Phi_h(x, u) - x) / h; outputs are read before the step, and again after it."""

    def __init__(self, source: Model, stepped: Stepped, point: OperatingPoint, step: float) -> None:
        self.info, self.states, self.inputs = source.info, source.states, source.inputs
        twice = [*source.outputs, *(f"{name} after the step" for name in source.outputs.names)]
        self.outputs = Signals(twice)
        self.constraints, self.start, self.copies = source.constraints, point, {}
        self._stepped, self._point, self._step = stepped, point, step

    def evaluate(self, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        """Take one step."""
        start = OperatingPoint(t, x, u, self._point.parameters)
        seen = self._stepped.respond(start, u[None, :], self._step)
        outputs = np.concatenate((seen.at_once[0], seen.after[0]))
        return Evaluation((seen.states[0] - x) / self._step, outputs, np.empty(0))

    def with_interface(self, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Model:
        """Keep the interface: nobody asks for another."""
        del inputs, outputs
        return self

    def with_constraints(self, constraints: Sequence[Constraint]) -> Model:
        """Keep the constraints."""
        del constraints
        return self


@dataclass(frozen=True)
class Displacements:
    """Measures the discrete model of a stepped model whose states can be set."""

    model: Model  # also a :class:`Stepped` one
    stepped: Stepped  # the same
    point: OperatingPoint
    frame: Frame  # independent coordinates at the point; linear ones

    def measure(self, step: float) -> tuple[Sampled, Sampled]:
        """Return the discrete model over one step, and the estimated absolute errors of its entries."""
        step_map = _StepMap(self.model, self.stepped, self.point, step)
        base = step_map.evaluate(self.point.time, self.point.states, self.point.inputs)
        nearby = Neighbourhood(step_map, self.frame, self.point, base, pairs={})
        slopes = measure(nearby, Differences())
        R, ny = self.frame.coordinates.R, len(self.model.outputs)
        follows = not ny or bool(np.any(slopes.c_y[:ny] != 0.0))  # outputs follow states that are set, without a step
        half, reading = (slice(0, ny), "at once") if follows else (slice(ny, None), "end of step")
        p = len(self.frame.signals)
        drift = step * (R @ base.derivatives)
        A, B = np.eye(p) + step * (R @ slopes.f_y), step * (R @ slopes.f_u)
        sampled = Sampled(A, B, slopes.c_y[half], slopes.c_u[half], step, reading, self.frame.T, drift)
        size = np.abs(R) * step
        A, B = size @ slopes.f_y_error, size @ slopes.f_u_error
        C, D = slopes.c_y_error[half], slopes.c_u_error[half]
        return sampled, Sampled(A, B, C, D, step, reading, self.frame.T_error, np.zeros(p))
