"""The way by displaced states: displace each coordinate on the manifold and each input, take one step, difference.

The map over one step is given the shape of a model, x' = (Phi_h(x, u) - x) / h, so that steps are chosen and errors are
estimated as for any other; then A_h = 1 + h R f_x T, B_h = h R f_u. That the rate of a position is a velocity does not
hold over a step.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fmilin.constraints.declared import Constraint
from fmilin.diagnostics import Remark
from fmilin.errors import FmilinError, NumericalError, UsageError
from fmilin.identification.discrete_models import Continuous, Sampled, compute_entry_differences, find_continuous_model
from fmilin.identification.integrator_choice import IntegratorCandidate
from fmilin.identification.integrators import EXACT, join_step_matrix, step_plant
from fmilin.identification.step_size import explain_by_integrator, find_fitting_step, has_halves, read_given_step
from fmilin.identification.validation import run_holdout
from fmilin.identification.way import MeasuredWay
from fmilin.linear_model.builder import IndependentCoordinates
from fmilin.linear_model.model import LinearModel
from fmilin.manifold.differentiation import differentiate
from fmilin.manifold.frame import Frame
from fmilin.manifold.neighbourhood import Neighbourhood
from fmilin.manifold.nonlinear import has_expressions
from fmilin.manifold.verified_frame import build_frame
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Evaluation, Model, OperatingPoint
from fmilin.model.stepping import Stepped
from fmilin.numerics.balanced import is_equilibrium
from fmilin.numerics.differences.differences import Differences
from fmilin.signals import FloatArray, Signals
from fmilin.tolerances import (
    EQUILIBRIUM_RATE_TOLERANCE,
    MAX_ENTRY_ERROR,
    PREDICTION_ERROR_TOLERANCE,
    ROUNDING_TOLERANCE,
)

RUN_COUNT_PER_DIRECTION = 5  # about, for each coordinate and input


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
        response = self._stepped.respond(start, u[None, :], self._step)
        outputs = np.concatenate((response.at_once[0], response.after[0]))
        return Evaluation((response.states[0] - x) / self._step, outputs, np.empty(0))

    def with_interface(self, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Model:
        """Return the same map: its interface is never narrowed."""
        return self

    def with_constraints(self, constraints: Sequence[Constraint]) -> Model:
        """Keep the constraints."""
        return self


class DisplacedStates(MeasuredWay):
    """Linearizes by one step from each of several displaced states."""

    name = "step"
    option = "step"
    what = "One step from displaced states"
    keeps_inaccurate = True  # errors hold what differences take for noise, and half a step confirms the result

    def why_not(self) -> str:
        """Return why runs cannot start from other states."""
        stepped, point = self.setting.stepped, self.point
        if reason := stepped.why_not_settable(point):
            return reason
        if len(self.model.constraints) and (reason := stepped.why_not_direct(point)):
            return f"Velocity constraints follow only from derivatives. {reason}"
        return ""

    def identify(self) -> LinearModel:
        """Return the linear model."""
        frame = self._choose_frame()
        runs = RUN_COUNT_PER_DIRECTION * (len(frame.selection.signals) + len(self.experiments.scales))
        step = self._choose_step(frame, runs)
        sampled, errors = self._difference_step(frame, step)
        holdout = run_holdout(self.experiments, step)
        findings = self.findings
        findings.step, findings.reading = sampled.step, sampled.reading
        if holdout is not None:
            findings.note_fit(holdout.errors(sampled), sampled.step, holdout.noise)
        chosen = frame.selection
        coordinates = IndependentCoordinates(
            chosen.signals, self.model.states, frame.y0, sampled.T, errors.T, chosen.kind, chosen.condition_number,
            frame.residual,
        )  # fmt: skip
        if self.stepping.lifted:
            linear = self.name_model(sampled, errors, coordinates, "steps", step)
        else:
            model = self._confirm_by_half_step(frame, sampled, self.confirm(sampled), runs)
            estimated = self._estimate_errors(model, errors, frame, step, runs)
            at_rest = settle(model, estimated, frame.y_scales)
            linear = self.name_model(at_rest, estimated, coordinates, "steps", step)
        if how := self.setting.stepped.how_states_are_set():
            findings.extra.append(Remark("method", how))
        return replace(linear, warnings=(*frame.remarks, *linear.warnings))

    def _choose_frame(self) -> Frame:
        options = self.setting.options
        named = tuple(options.independent) if options.independent is not None else ()
        if options.independent is None and options.coordinates == "partition" and len(self.model.constraints):
            named = self.model.independent
        if has_expressions(named):
            raise UsageError(
                "method='step' accepts states as coordinates, not expressions. Name states, or use method='direct'."
            )
        return build_frame(self.model, self.point, named=named, kind=options.coordinates)

    def _difference_step(self, frame: Frame, step: float) -> tuple[Sampled, Sampled]:
        """Return the discrete model over one step, and the estimated absolute errors of its entries; measured once."""
        return self.experiments.once(("displaced", step), lambda: self._difference_step_once(frame, step))

    def _difference_step_once(self, frame: Frame, step: float) -> tuple[Sampled, Sampled]:
        step_map = _StepMap(self.model, self.setting.stepped, self.point, step)
        base = step_map.evaluate(self.point.time, self.point.states, self.point.inputs)
        evaluator = PointEvaluator(step_map)
        # Each step begins by setting the states: what was computed before has no effect.
        nearby = Neighbourhood(evaluator, frame, self.point, base, pairs={}, is_repeatable=True)
        slopes = differentiate(nearby, Differences())
        f_y, f_u, c_y, c_u = slopes.f_y[0], slopes.f_u[0], slopes.c_y[0], slopes.c_u[0]
        R, ny = frame.coordinates.R, len(self.model.outputs)
        # outputs follow states that are set without a step, or they are calculated at its end only
        if not ny or np.any(c_y[:ny] != 0.0):
            rows, reading = slice(0, ny), "at once"
        else:
            rows, reading = slice(ny, None), "end of step"
        p = len(frame.selection.signals)
        drift = step * (R @ base.derivatives)
        A, B = np.eye(p) + step * (R @ f_y), step * (R @ f_u)
        sampled = Sampled(A, B, c_y[rows], c_u[rows], step, reading, frame.T, drift)
        size = np.abs(R) * step
        A, B = size @ slopes.f_y_errors[0], size @ slopes.f_u_errors[0]
        C, D = slopes.c_y_errors[0][rows], slopes.c_u_errors[0][rows]
        return sampled, Sampled(A, B, C, D, step, reading, frame.parametrization.derivative_error, np.zeros(p))

    def _confirm_by_half_step(self, frame: Frame, sampled: Sampled, model: Continuous, runs: int) -> Continuous:
        """Return the continuous model of which half a step is what was measured.

        Raises a NumericalError where the whole step contains an event.
        """
        half_step = sampled.step / 2
        if not self._affords_half_step(sampled.step, runs):
            return model
        try:
            half = self._difference_step(frame, half_step)[0]
        except NumericalError:  # it takes no such steps
            return model
        sizes = np.concatenate((frame.y_scales, self.experiments.scales, np.ones(1)))
        miss = _compare_steps(step_plant(self.findings.integrator, model, half_step, sampled.reading), half, sizes)
        if miss <= PREDICTION_ERROR_TOLERANCE:
            return model

        def measure_miss(candidate: IntegratorCandidate) -> float:
            predicted = step_plant(candidate.integrator, candidate.plant, half_step, sampled.reading)
            return _compare_steps(predicted, half, sizes)

        if explained := explain_by_integrator(sampled, model, miss, measure_miss):
            self.findings.integrator = explained.integrator
            self.findings.half_error = explained.error
            return explained.model
        if miss > MAX_ENTRY_ERROR:
            raise NumericalError(
                f"One step of {sampled.step:g} s and two steps of {half_step:g} s differ by {100 * miss:.3g}%. An "
                "event lies within the step, or the motion is not linear over it. Use a smaller step=, or move the "
                "point."
            )
        return model

    def _affords_half_step(self, step: float, runs: int) -> bool:
        return has_halves(step, self.experiments.cadence) and self.experiments.affords(
            "one step of half the length", runs, runs, step / 2
        )

    def _choose_step(self, frame: Frame, runs: int) -> float:
        def attempt(step: float) -> tuple[Sampled, float]:
            sampled, _ = self._difference_step(frame, step)
            if not self.stepping.lifted:
                self._confirm_by_half_step(frame, sampled, find_continuous_model(sampled), runs)
                self.findings.integrator = EXACT
            holdout = run_holdout(self.experiments, step)
            return sampled, float("nan") if holdout is None else holdout.error(sampled)

        return find_fitting_step(attempt, self.experiments, read_given_step(self.stepping, self.experiments), runs)

    def _estimate_errors(self, model: Continuous, errors: Sampled, frame: Frame, step: float, runs: int) -> Continuous:
        """Return the errors of the differences or the change with another step, whichever is larger."""
        other = model
        if self._affords_half_step(step, runs):
            try:
                other = self.convert_to_continuous(self._difference_step(frame, step / 2)[0])
            except FmilinError:
                other = model
        off = compute_entry_differences(model, other)
        A, B = np.maximum(off.A, errors.A / step), np.maximum(off.B, errors.B / step)
        C, D = np.maximum(off.C, errors.C), np.maximum(off.D, errors.D)
        return Continuous(A, B, C, D, np.zeros_like(model.f0), errors.T, 0.0)


def _compare_steps(predicted: Sampled, measured: Sampled, sizes: FloatArray) -> float:
    """Return how far the motion over a step is from the measured one, relative to the largest part of each row."""
    P, measured_P = join_step_matrix(predicted), join_step_matrix(measured)
    n = measured.order
    difference = np.abs(P - measured_P)[:n] * sizes / sizes[:n, None]
    motion = np.abs(measured_P - np.eye(len(measured_P)))[:n] * sizes / sizes[:n, None]
    largest = np.max(motion, axis=1, initial=0.0)
    off = np.max(difference, axis=1, initial=0.0)
    is_moving = largest > ROUNDING_TOLERANCE
    part = np.where(is_moving, off / np.where(is_moving, largest, 1.0), 0.0)
    worst = float(np.max(part, initial=0.0))
    return worst if np.isfinite(worst) else float("inf")


def settle(model: Continuous, errors: Continuous, y_scales: FloatArray) -> Continuous:
    """Return the model with f0 = 0 where only the solver's noise moves the point, and an equilibrium is near."""
    if not is_equilibrium(model.f0, y_scales, model.A * y_scales, errors.A * y_scales, len(y_scales)):
        return model
    is_still = np.abs(model.f0) <= EQUILIBRIUM_RATE_TOLERANCE * y_scales
    return replace(model, f0=np.where(is_still, 0.0, model.f0))
