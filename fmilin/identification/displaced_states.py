"""Method a: displace each coordinate on the manifold and each input, take one step, and difference.

The map over one step is given the shape of a model, x' = (Phi_h(x, u) - x) / h, so that steps are chosen and errors are
estimated as for any other; then A_h = 1 + h R f_x T, B_h = h R f_u. That the rate of a position is a velocity does not
hold over a step.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fmilin.constraints.declared import Constraint
from fmilin.errors import FmilinError, NumericalError, UsageError
from fmilin.identification.discrete_models import Continuous, Sampled, apart, continuous_of
from fmilin.identification.integrator_choice import find_candidates
from fmilin.identification.integrators import EXACT, step_matrix_of, stepped_by
from fmilin.identification.pulse_responses import Identification
from fmilin.identification.step_size import fitting_step, given_step, has_halves, held_out
from fmilin.linear_model.builder import IndependentCoordinates
from fmilin.linear_model.model import LinearModel
from fmilin.manifold.frame import Frame, frame_at
from fmilin.manifold.neighbourhood import Neighbourhood
from fmilin.manifold.nonlinear import has_expressions
from fmilin.manifold.slopes import differentiate
from fmilin.model.interface import Evaluation, Model, OperatingPoint
from fmilin.model.stepping import Stepped
from fmilin.numerics.balanced import is_equilibrium
from fmilin.numerics.differences.differences import Differences
from fmilin.signals import FloatArray, Signals
from fmilin.tolerances import AGREES_IN_STEPS, EQUILIBRIUM, INACCURATE, PREDICTED, ROUNDING, TOO_INACCURATE

VISITS = 5  # about, of the model for each coordinate and input


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
        return self

    def with_constraints(self, constraints: Sequence[Constraint]) -> Model:
        """Keep the constraints."""
        return self


class ByStep(Identification):
    """Linearizes by one step from displaced states."""

    def linearize(self, independent: Sequence[str] | None, kind: str) -> LinearModel:
        """Return the linear model."""
        frame = self._frame(self.runner.stepped, independent, kind)
        visits = VISITS * (len(frame.selection.signals) + len(self.runner.scales))
        step = self._step(frame, visits)
        sampled, errors = self._sampled(frame, step)
        held = held_out(self.runner, step)
        findings = self.findings
        findings.method, findings.step, findings.reading = "step", sampled.step, sampled.reading
        findings.lifted = self.stepping.lifted
        if held is not None:
            findings.fit(held.errors(sampled), sampled.step, held.noise)
        chosen = frame.selection
        coordinates = IndependentCoordinates(
            chosen.signals, self.model.states, frame.y0, sampled.T, errors.T, chosen.kind, chosen.condition_number,
            frame.residual,
        )  # fmt: skip
        if self.stepping.lifted:
            linear = self.named(sampled, errors, coordinates, "steps", step)
        else:
            model = self._confirmed_by_half(frame, sampled, self.confirmed(sampled), visits)
            doubts = self._errors(model, errors, frame, step, visits)
            linear = self.named(settled(model, doubts, frame.y_scales), doubts, coordinates, "steps", step)
        return replace(linear, warnings=(*frame.remarks, *linear.warnings))

    def _frame(self, stepped: Stepped, independent: Sequence[str] | None, kind: str) -> Frame:
        if reason := stepped.why_not_settable(self.point):
            raise UsageError(f"method='step' is not possible. {reason} Try method='response', which needs no states.")
        if len(self.model.constraints) and (reason := stepped.why_not_direct(self.point)):
            raise UsageError(
                f"method='step' needs derivatives to find what constraints mean for velocities. {reason} Try "
                "method='response', which finds the order by itself."
            )
        named = tuple(independent) if independent is not None else ()
        if independent is None and kind == "partition" and len(self.model.constraints):
            named = self.model.independent
        if has_expressions(named):
            raise UsageError(
                "method='step' takes states as coordinates, not expressions. Name states, or use method='direct'."
            )
        return frame_at(self.model, self.point, named=named, kind=kind)

    def _sampled(self, frame: Frame, step: float) -> tuple[Sampled, Sampled]:
        """Return the discrete model over one step, and the estimated absolute errors of its entries; measured once."""
        return self.runner.once(("displaced", step), lambda: self._displaced(frame, step))

    def _displaced(self, frame: Frame, step: float) -> tuple[Sampled, Sampled]:
        step_map = _StepMap(self.model, self.runner.stepped, self.point, step)
        base = step_map.evaluate(self.point.time, self.point.states, self.point.inputs)
        nearby = Neighbourhood(step_map, frame, self.point, base, pairs={})
        slopes = differentiate(nearby, Differences())
        R, ny = frame.coordinates.R, len(self.model.outputs)
        follows = not ny or bool(np.any(slopes.c_y[:ny] != 0.0))  # outputs follow states that are set, without a step
        half, reading = (slice(0, ny), "at once") if follows else (slice(ny, None), "end of step")
        p = len(frame.selection.signals)
        drift = step * (R @ base.derivatives)
        A, B = np.eye(p) + step * (R @ slopes.f_y), step * (R @ slopes.f_u)
        sampled = Sampled(A, B, slopes.c_y[half], slopes.c_u[half], step, reading, frame.T, drift)
        size = np.abs(R) * step
        A, B = size @ slopes.f_y_error, size @ slopes.f_u_error
        C, D = slopes.c_y_error[half], slopes.c_u_error[half]
        return sampled, Sampled(A, B, C, D, step, reading, frame.parametrization.derivative_error, np.zeros(p))

    def _confirmed_by_half(self, frame: Frame, sampled: Sampled, model: Continuous, visits: int) -> Continuous:
        """Return the continuous model of which half a step is what was measured; refuse a step with an event in it."""
        h = sampled.step / 2
        affords = has_halves(sampled.step, self.runner.cadence) and self.runner.affords(
            "one step of half the length", visits, visits, h
        )
        if not affords:
            return model
        try:
            half = self._sampled(frame, h)[0]
        except NumericalError:  # it takes no such steps
            return model
        sizes = np.concatenate((frame.y_scales, self.runner.scales, np.ones(1)))
        integrator = self.findings.integrator
        miss = _missed(stepped_by(integrator, model, h, sampled.reading), half, sizes)
        if miss <= PREDICTED:
            return model
        tried = [
            (_missed(stepped_by(c.integrator, c.plant, h, sampled.reading), half, sizes), c)
            for c in find_candidates(sampled, model)
            if c.integrator is not EXACT
        ]
        best, candidate = min(tried, key=lambda pair: pair[0], default=(miss, None))
        if candidate is not None and best <= AGREES_IN_STEPS * miss and best <= INACCURATE:
            self.findings.integrator = candidate.integrator
            self.findings.half_error = best
            return candidate.plant
        if miss > TOO_INACCURATE:
            raise NumericalError(
                f"A step of {sampled.step:g} s is not what two steps of {h:g} s make: its map differs from theirs by "
                f"{100 * miss:.3g}%. An event lies within the step, or the motion is not linear over it. Take a "
                "smaller step=, or move the point."
            )
        return model

    def _step(self, frame: Frame, visits: int) -> float:
        def attempt(step: float) -> tuple[Sampled, float]:
            sampled, _ = self._sampled(frame, step)
            if not self.stepping.lifted:
                self._confirmed_by_half(frame, sampled, continuous_of(sampled), visits)
                self.findings.integrator = EXACT
            held = held_out(self.runner, step)
            return sampled, float("nan") if held is None else held.error(sampled)

        return fitting_step(attempt, self.runner, given_step(self.stepping, self.runner), visits)

    def _errors(self, model: Continuous, errors: Sampled, frame: Frame, step: float, visits: int) -> Continuous:
        """Return the errors of the differences or the change with another step, whichever is larger."""
        try:
            halves = has_halves(step, self.runner.cadence)
            halves = halves and self.runner.affords("one step of half the length", visits, visits, step / 2)
            other = self.continuous_like(self._sampled(frame, step / 2)[0]) if halves else model
        except FmilinError:
            other = model
        off = apart(model, other)
        A, B = np.maximum(off.A, errors.A / step), np.maximum(off.B, errors.B / step)
        C, D = np.maximum(off.C, errors.C), np.maximum(off.D, errors.D)
        return Continuous(A, B, C, D, np.zeros_like(model.f0), errors.T, 0.0)


def _missed(predicted: Sampled, measured: Sampled, sizes: FloatArray) -> float:
    """Return how far the motion over a step is from the measured one, relative to the largest part of each row."""
    one, other = (step_matrix_of(model) for model in (predicted, measured))
    n = measured.order
    scaled = np.abs(one - other)[:n] * sizes / sizes[:n, None]
    motion = np.abs(other - np.eye(len(other)))[:n] * sizes / sizes[:n, None]
    largest = np.max(motion, axis=1, initial=0.0)
    off = np.max(scaled, axis=1, initial=0.0)
    moving = largest > ROUNDING
    part = np.where(moving, off / np.where(moving, largest, 1.0), 0.0)
    worst = float(np.max(part, initial=0.0))
    return worst if np.isfinite(worst) else float("inf")


def settled(model: Continuous, errors: Continuous, y_scales: FloatArray) -> Continuous:
    """Return the model with f0 = 0 where only the solver's noise moves the point, and an equilibrium is there."""
    if not is_equilibrium(model.f0, y_scales, model.A * y_scales, errors.A * y_scales, len(y_scales)):
        return model
    still = np.abs(model.f0) <= EQUILIBRIUM * y_scales
    return replace(model, f0=np.where(still, 0.0, model.f0))
