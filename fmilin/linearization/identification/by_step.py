"""Method a, from frame to linear model: see :mod:`fmilin.linearization.identification.displacements`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fmilin.ground.errors import FmilinError, UsageError
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import EQUILIBRIUM
from fmilin.linear_model.model import LinearModel
from fmilin.linearization.identification.displacements import Displacements
from fmilin.linearization.identification.findings import Findings
from fmilin.linearization.identification.holdout import HeldOut, held_out
from fmilin.linearization.identification.impulse_response import Runner
from fmilin.linearization.identification.result import Coordinates, Measured, linear_model
from fmilin.linearization.identification.sampled import Continuous, Sampled, apart, continuous_of
from fmilin.linearization.identification.steps import confirmed, fitting_step, given_step, has_halves
from fmilin.manifold.frame import Frame, frame_at
from fmilin.manifold.nonlinear import has_expressions
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.stepping import Stepped, Stepping
from fmilin.numerics.rest import is_equilibrium


@dataclass(frozen=True)
class ByStep:
    """Linearizes by one step from displaced states."""

    model: Model
    point: OperatingPoint
    stepping: Stepping
    runner: Runner
    findings: Findings

    def linearize(self, independent: Sequence[str] | None, kind: str) -> LinearModel:
        """Return the linear model."""
        stepped = self.runner.stepped
        frame = self._frame(stepped, independent, kind)
        displacements = Displacements(self.model, stepped, self.point, frame)
        step = self._step(stepped, displacements)
        sampled, errors = displacements.measure(step)
        held = held_out(self.runner, step)
        self._note(sampled, held)
        measured: Measured
        if self.stepping.lifted:
            measured = Measured(sampled, errors, "steps", stepped.steps, self.findings.doubt)
        else:
            confirmation = confirmed(sampled, self.runner, self.findings.error)
            self.findings.half_error, self.findings.nyquist = confirmation.error, confirmation.model.nyquist
            doubts = self._errors(confirmation.model, errors, displacements, step)
            model = settled(confirmation.model, doubts, frame.y_scales)
            measured = Measured(model, doubts, "steps", stepped.steps, self.findings.doubt)
        outputs = stepped.respond(self.point, self.point.inputs[None, :], step).at_once[0]
        own = frame.y0, frame.kind, frame.condition_number, frame.residual
        coordinates = Coordinates(frame.signals, self.model.states, *own)
        linear = linear_model(measured, coordinates, self.model, self.point, outputs)
        return replace(linear, warnings=(*frame.remarks, *linear.warnings))

    def _frame(self, stepped: Stepped, independent: Sequence[str] | None, kind: str) -> Frame:
        if reason := stepped.why_not_settable(self.point):
            raise UsageError(f"--method step is not possible. {reason} Try --method response, which needs no states.")
        if len(self.model.constraints) and (reason := stepped.why_not_direct(self.point)):
            raise UsageError(
                f"--method step needs derivatives to find what constraints mean for velocities. {reason} Try --method "
                "response, which finds the order by itself."
            )
        named = tuple(independent) if independent is not None else ()
        if independent is None and kind == "partition" and len(self.model.constraints):
            named = self.model.independent
        if has_expressions(named):
            raise UsageError(
                "--method step takes states as coordinates, no expressions. Name states, or use --method direct."
            )
        return frame_at(self.model, self.point, named=named, kind=kind)

    def _step(self, stepped: Stepped, displacements: Displacements) -> float:
        def attempt(step: float) -> tuple[Sampled, float]:
            sampled, _ = displacements.measure(step)
            held = held_out(self.runner, step)
            return sampled, float("nan") if held is None else held.error(sampled)

        return given_step(self.stepping, self.runner) or fitting_step(attempt, self.runner)

    def _note(self, sampled: Sampled, held: HeldOut | None) -> None:
        findings = self.findings
        findings.method, findings.step, findings.reading = "step", sampled.step, sampled.reading
        findings.lifted = self.stepping.lifted
        if held is not None:
            findings.fit(held.errors(sampled), sampled.step, held.noise)

    def _errors(self, model: Continuous, errors: Sampled, displacements: Displacements, step: float) -> Continuous:
        """Return the errors of the differences or the change with another step, whichever is larger."""
        try:
            halves = has_halves(step, self.runner.cadence)
            other = continuous_of(displacements.measure(step / 2)[0]) if halves else model
        except FmilinError:
            other = model
        off = apart(model, other)
        A, B = np.maximum(off.A, errors.A / step), np.maximum(off.B, errors.B / step)
        C, D = np.maximum(off.C, errors.C), np.maximum(off.D, errors.D)
        return Continuous(A, B, C, D, np.zeros_like(model.f0), errors.T, 0.0)


def settled(model: Continuous, errors: Continuous, y_scales: FloatArray) -> Continuous:
    """Return the model with f0 = 0 where only the solver's noise moves the point, and an equilibrium is there."""
    if not is_equilibrium(model.f0, y_scales, model.A * y_scales, errors.A * y_scales, len(y_scales)):
        return model
    still = np.abs(model.f0) <= EQUILIBRIUM * y_scales
    return replace(model, f0=np.where(still, 0.0, model.f0))
