"""The ways that read derivatives between two steps, and the responses that must confirm what they say.

Derivatives are those of the continuous equations. Hidden states and sampled parts are not in them; held-out responses
show those. A coarse solver contradicts right derivatives: its responses are then as far from the exact motion of the
derivatives as Euler's methods are in the same steps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.errors import FmilinError
from fmilin.identification.discrete_models import Continuous, sample_model
from fmilin.identification.experiments import Experiments, relative_change
from fmilin.identification.step_size import IDEAL_STEP_ANGLE, round_step
from fmilin.identification.validation import PART, STEPS, measure_solver_noise, run_holdout
from fmilin.identification.way import Way, inputs_that_may_jump
from fmilin.linear_model.model import LinearModel
from fmilin.model.capabilities import read_products
from fmilin.numerics.steps import runge_kutta_step
from fmilin.signals import FloatArray
from fmilin.tolerances import COARSE_SOLVER_FACTOR, OTHER_STEPS_ERROR_TOLERANCE, PREDICTION_ERROR_TOLERANCE

MAX_DRIFT_SIZE = (
    0.05  # how far, in sizes of the states, a point that moves by itself may get while responses are compared
)


class ReadDerivatives(Way):
    """Linearizes by derivatives at states that are set between two steps, or as start values."""

    name = "direct"
    option = "direct"
    what = "Derivatives read between two steps"
    needs_responses = False
    reads_derivatives = True

    def why_not(self) -> str:
        """Return why derivatives cannot be read at given states."""
        return self.experiments.stepped.why_not_direct(self.experiments.point)

    def identify(self) -> LinearModel:
        """Return the linear model, compared with responses."""
        linear = self._linearize(None)
        if how := self.setting.stepped.how_states_are_set():
            self.findings.extra.append(Remark("method", how))
        self._compare_with_responses(linear)
        self._state_coarse_solver()
        return linear

    def _linearize(self, derivatives: str | None) -> LinearModel:
        """Return the linear model that derivatives make, and note its coordinates."""
        method = self.setting.options.by_derivatives
        linear, self.findings.selection = method.linearize(self.model, self.point, derivatives)
        return linear

    def _compare_with_responses(self, linear: LinearModel) -> None:
        """Note how well the linear model predicts held-out responses."""
        jumping = inputs_that_may_jump(self.model)
        model = Continuous(linear.A, linear.B[:, jumping], linear.C, linear.D[:, jumping], linear.f0, linear.T, 0.0)
        cadence, begin = self.experiments.cadence, self.setting.begin
        fastest = float(np.max(np.abs(np.linalg.eigvals(linear.A)), initial=0.0)) if len(linear.A) else 0.0
        step = self.stepping.step
        if step is None:
            step = begin if cadence.step or not fastest else max(round_step(IDEAL_STEP_ANGLE / fastest, cadence), begin)
        self._compare_in_steps(model, step)
        # A point that moves leaves the neighbourhood in which it is linear: compare for a shorter time.
        rate = float(np.max(np.abs(linear.f0) / linear.states.scales(linear.y0), initial=0.0))
        if (
            self.findings.error > OTHER_STEPS_ERROR_TOLERANCE
            and rate * step * STEPS > MAX_DRIFT_SIZE
            and not cadence.sampled
        ):
            self._compare_in_steps(model, round_step(MAX_DRIFT_SIZE / (rate * STEPS), cadence))

    def _compare_in_steps(self, model: Continuous, step: float) -> None:
        findings = self.findings
        if not self.experiments.affords("responses", *self.experiments.attempt, step):
            findings.unmeasured = "that takes too long"
            return
        holdout = run_holdout(self.experiments, step)
        if holdout is None:
            return
        errors = [holdout.errors(sample_model(model, step, reading)) for reading in ("at once", "end of step")]
        worst = [float(np.max(e, initial=0.0)) for e in errors]
        # Outputs are read at the end of steps only where reading them at once is wrong, and ten times worse.
        best = int(worst[0] > PREDICTION_ERROR_TOLERANCE and worst[0] > 10 * worst[1])
        findings.note_fit(errors[best], step, holdout.noise)
        findings.reading = ("at once", "end of step")[best]
        if findings.error > OTHER_STEPS_ERROR_TOLERANCE:
            noise = measure_solver_noise(self.experiments, holdout)
            if findings.error <= COARSE_SOLVER_FACTOR * noise:
                findings.coarse_solver = f"its responses change by {100 * noise:.2g}% when a step is divided into two"

    def _state_coarse_solver(self) -> None:
        """Trust the derivatives where responses differ from them by no more than a solver of low order explains."""
        findings, begin = self.findings, self.setting.begin
        is_doubtful = findings.error > OTHER_STEPS_ERROR_TOLERANCE and not findings.coarse_solver
        if is_doubtful and self._can_be_evaluated_elsewhere() and is_coarse_solver(self.experiments, begin):
            findings.coarse_solver = (
                f"its responses differ from its derivatives by {100 * findings.error:.2g}%, no more than with Euler's "
                f"method in steps of {begin:g} s"
            )
        if findings.coarse_solver:
            text = (
                f"The model's own solver is coarse: {findings.coarse_solver}. The derivatives were trusted, not the "
                "responses. A smaller solver_tolerance= may help."
            )
            findings.extra.append(Remark("solver", text))
            findings.excess = 0.0

    def _can_be_evaluated_elsewhere(self) -> bool:
        return not self.experiments.cadence.sampled


class DirectionalDerivatives(ReadDerivatives):
    """Linearizes by directional derivatives at the communication point, of a model with states that cannot be set."""

    name = "products"
    what = "Directional derivatives at the communication point"
    needs_responses = True

    def why_not(self) -> str:
        """Return that the model answers no directional derivatives where it stands."""
        model, point = self.model, self.point
        n, k = len(point.states), len(point.inputs)
        if not len(model.states) or len(model.constraints):
            return "Directional derivatives alone do not determine a model without states, or with constraints."
        try:
            products = read_products(model, point.time, point.states, point.inputs, np.eye(n), np.zeros((k, n)))
        except FmilinError as error:
            return str(error)
        return "" if products is not None else "The model provides no directional derivatives."

    def identify(self) -> LinearModel:
        """Return the linear model, compared with responses."""
        linear = self._linearize("exact")
        self._compare_with_responses(linear)
        self._state_coarse_solver()
        return linear

    def _can_be_evaluated_elsewhere(self) -> bool:
        return False


# Whether responses that contradict derivatives are those of a coarse solver alone.

STEPS_OF_EULER = 40  # after more, errors of Euler's methods hide those of the model
IMPLICIT_ITERATIONS = 12  # fixed-point iterations of the implicit Euler method
MAX_EULER_ERROR = 0.3  # how far Euler's methods may be from the exact motion, relative, to tell anything


def is_coarse_solver(experiments: Experiments, step: float) -> bool:
    """Whether a solver of first order, in steps of ``step``, would contradict the derivatives as the model does."""
    nu = len(experiments.scales)
    try:
        amplitudes = PART * experiments.choose_amplitudes(step)
        # any fixed numbers: equal calls give equal results
        deviations = np.random.default_rng(27).uniform(-1.0, 1.0, (STEPS_OF_EULER, nu)) * amplitudes
        responses = experiments.odd(deviations, step).after
        exact, explicit, implicit = (
            _simulate(experiments, deviations, step, method)
            for method in (_runge_kutta_step, _explicit_euler_step, _implicit_euler_step)
        )
    except FmilinError:
        return False
    # the shorter the record, the closer are Euler's methods: the longest in which they are close enough decides
    for count in (STEPS_OF_EULER, STEPS_OF_EULER // 2, STEPS_OF_EULER // 4, STEPS_OF_EULER // 8):
        euler = max(_difference(motion[:count], exact[:count]) for motion in (explicit, implicit))
        if euler <= MAX_EULER_ERROR:
            return _difference(responses[:count], exact[:count]) <= max(euler, OTHER_STEPS_ERROR_TOLERANCE)
    return False


def _difference(one: FloatArray, other: FloatArray) -> float:
    """Return how far motions are from each other, relative to either: one may show what the other does not."""
    return max(relative_change(one, other), relative_change(other, one))


Rates = Callable[[FloatArray], FloatArray]


def _simulate(
    experiments: Experiments,
    deviations: FloatArray,
    step: float,
    method: Callable[[Rates, FloatArray, float], FloatArray],
) -> FloatArray:
    """Return how outputs deviate at the end of each step, (K, ny), even terms removed."""
    model, point = experiments.model, experiments.point
    ends = []
    for sign in (1.0, -1.0):
        x, outputs = point.states, []
        for deviation in deviations:
            u = point.inputs + sign * deviation

            def rates(x: FloatArray, u: FloatArray = u) -> FloatArray:
                return model.evaluate(point.time, x, u).derivatives

            x = method(rates, x, step)
            outputs.append(model.evaluate(point.time, x, u).outputs)
        ends.append(np.array(outputs))
    return np.asarray(ends[0] - ends[1], dtype=np.float64) / 2


def _runge_kutta_step(rates: Rates, x: FloatArray, h: float) -> FloatArray:
    return runge_kutta_step(lambda _, y: rates(y), 0.0, x, h, rates(x))


def _explicit_euler_step(rates: Rates, x: FloatArray, h: float) -> FloatArray:
    return x + h * rates(x)


def _implicit_euler_step(rates: Rates, x: FloatArray, h: float) -> FloatArray:
    end = x
    for _ in range(IMPLICIT_ITERATIONS):
        end = x + h * rates(end)
    return end
