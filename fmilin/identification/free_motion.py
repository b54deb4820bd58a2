"""The linear model of a model that no input moves, or that shows nothing: its free motion, or that there is nothing.

With inputs held, x[k+1] = A x[k] + d and y[k] = C x[k]: the differences y[k+1] - y[k] = C A^k d are the Markov
parameters of a model with the only input d, and are realized as pulses are.
"""

from dataclasses import replace

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.errors import FmilinError, NumericalError
from fmilin.identification.discrete_models import (
    Sampled,
    compute_entry_differences,
    find_continuous_model,
    sample_model,
)
from fmilin.identification.pulse_responses import LONG_RUN_STEPS, SHORT_RUN_STEPS
from fmilin.identification.realization import Markov, Realized, before_growth, realize
from fmilin.identification.step_size import find_fitting_step, has_halves, read_given_step
from fmilin.identification.way import MeasuredWay
from fmilin.linear_model.model import LinearModel
from fmilin.signals import FloatArray
from fmilin.tolerances import (
    MAX_ENTRY_ERROR,
    MOTION_RATE_TOLERANCE,
    OTHER_STEPS_ERROR_TOLERANCE,
    PREDICTION_ERROR_TOLERANCE,
    VANISHED_EIGENVALUE_SIZE,
)

MAX_ORDER_OF_MOTION = 20  # the highest that one motion can tell
NEGLIGIBLE_MOTION_SIZE = 1e-6  # a motion of this size, relative to its beginning, is rounding and the solver's noise
UNDAMPED_TOLERANCE = 1e-3  # damping, and distance from a multiple of a frequency, that count as zero
OTHER_START_FACTOR = 1.001  # times the start values
_ADVICE_ON_PARAMETERS = " Tunable parameters can be taken as inputs (inputs=)."


class FreeMotion(MeasuredWay):
    """Linearizes by the motion that the model makes by itself."""

    name = "free motion"
    option = "response"
    what = "The free motion"

    def why_not(self) -> str:
        """Return that inputs move outputs, which shows more."""
        return "The responses of outputs to inputs contain more." if self.setting.has_channels else ""

    def identify(self) -> LinearModel:
        """Return the linear model."""

        def attempt(step: float) -> tuple[Sampled, float]:
            return self._without_input(self._realize(step, SHORT_RUN_STEPS).model), float("nan")

        step = find_fitting_step(attempt, self.experiments, read_given_step(self.stepping, self.experiments))
        realized = self._choose_order(step)
        order = realized.model.order
        findings = self.findings
        findings.step, findings.order = step, order
        findings.singular_values = realized.singular_values
        findings.extra.append(self._describe(order))
        coordinates, S, S_half = self.choose_coordinates(realized)
        sampled = self._without_input(realized.model.in_coordinates(S))
        half = self._without_input(realized.half.in_coordinates(S_half))
        if self.stepping.lifted:
            return self.name_model(sampled, compute_entry_differences(sampled, half), coordinates, "free motion", step)
        model = find_continuous_model(sampled)
        return self.name_model(
            model, compute_entry_differences(model, find_continuous_model(half)), coordinates, "free motion", step
        )

    def _realize(self, step: float, count: int, order: int | None = None) -> Realized:
        """Realize the differences of a run."""
        run, again = self.experiments.once(
            ("free", step, count), lambda: [self._measure_changes(step, count) for _ in range(2)]
        )
        ny = len(self.model.outputs)
        no_feedthrough = np.zeros((ny, 1))
        markov = before_growth(Markov(no_feedthrough, run, np.abs(run - again), "at once", step))
        return realize(markov, ny, None, order, np.ones(1))

    def _measure_changes(self, step: float, count: int) -> FloatArray:
        """Return the changes of outputs and states from step to step, shape (count, ny + N, 1); 0 where rounding."""
        run = self.experiments.run(self._hold_inputs(count + 1), step)
        states = np.vstack((self.point.states, run.states[:-1]))
        motion = np.hstack((run.at_once, states))
        if not np.isfinite(motion).all():
            raise NumericalError(f"The model diverges within {count} steps of {step:g} s. Use a smaller step=.")
        sizes = np.concatenate((self.model.outputs.scales(run.at_once[0]), self.model.states.scales(self.point.states)))
        change = np.diff(motion, axis=0)
        return np.where(np.max(np.abs(change), axis=0) > MOTION_RATE_TOLERANCE * step * sizes, change, 0.0)[:, :, None]

    def _hold_inputs(self, count: int) -> FloatArray:
        return np.zeros((count, len(self.experiments.scales)))

    def _without_input(self, model: Sampled) -> Sampled:
        """Return the model with its pulse as its drift, and with the inputs of the FMU, none of which moves it."""
        nu = len(self.experiments.scales)
        B, D = np.zeros((model.order, nu)), np.zeros((len(model.C), nu))
        return replace(model, B=B, D=D, drift=model.B[:, 0])

    def _choose_order(self, step: float) -> Realized:
        """Return the smallest order that predicts the motion in half steps, which it was not made from."""
        # an estimate for the budget: long runs, repeated, in halves, and from another start
        self.experiments.require(20, 15 * LONG_RUN_STEPS, step)
        largest = self._realize(step, LONG_RUN_STEPS)
        if not largest.model.order:
            return largest
        halves = not self.stepping.lifted and has_halves(step, self.experiments.cadence)
        short_step = step / 2 if halves else step
        rows = len(self.model.outputs) + len(self.model.states)
        changes = self._measure_changes(short_step, SHORT_RUN_STEPS)[:, :rows, 0]
        orders = range(1, min(largest.model.order, MAX_ORDER_OF_MOTION) + 1)
        if self.stepping.order is not None:
            orders = range(self.stepping.order, self.stepping.order + 1)
        candidates = [self._realize(step, LONG_RUN_STEPS, order) for order in orders]
        misfits = np.array([self._compute_misfit(c.model, short_step, changes) for c in candidates])
        best = float(np.min(misfits))
        if not best <= MAX_ENTRY_ERROR:
            raise _not_linear(f"the error for its motion in half steps is {100 * best:.3g}%")
        number = int(np.flatnonzero(misfits <= max(2.0 * best, PREDICTION_ERROR_TOLERANCE))[0])
        chosen = candidates[number]
        self.findings.half_error = float(misfits[number])
        self._require_linear(chosen.model, step)
        return chosen

    def _compute_misfit(self, model: Sampled, step: float, changes: FloatArray) -> float:
        """Return how far the predicted changes in steps of ``step`` are from the measured ones, relative."""
        try:
            free = self._without_input(model)
            half = free if self.stepping.lifted else sample_model(find_continuous_model(free), step, "at once")
        except NumericalError:
            return float("inf")
        C = np.vstack((half.C, half.T))
        predicted, x = np.empty_like(changes), half.drift
        for k in range(len(changes)):
            predicted[k] = C @ x
            x = half.A @ x
        size = np.linalg.norm(changes)
        misfit = float(np.linalg.norm(changes - predicted) / size) if size else 0.0
        return misfit if np.isfinite(misfit) else float("inf")

    def _require_linear(self, model: Sampled, step: float) -> None:
        """Raise a NumericalError for a motion that continues otherwise, or is another one from another start."""
        # Any motion is that of a linear model of sufficient order for a while, a limit cycle without end: by multiples
        # of one frequency. The difference of two motions of a linear model obeys the same A and C.
        if cycle := _find_limit_cycle(np.linalg.eigvals(model.A), step):
            raise _not_linear(f"a limit cycle of about {cycle:.3g} rad/s, as its harmonics show")
        rows, power = [], np.vstack((model.C, model.T))
        for _ in range(4 * LONG_RUN_STEPS):
            rows.append(power)
            power = power @ model.A
        observed = np.array(rows)  # outputs and states of step k for every state of the model
        try:
            changes = self._measure_changes(step, len(observed))[:, :, 0]
        except FmilinError:  # it ends, or grows beyond all numbers, before that
            return
        if (late := _find_departure(observed @ model.B[:, 0], changes)) is not None:
            raise _not_linear(f"after {late * step:.3g} s it differs from one of order {model.order}")
        try:
            base = self.experiments.run(self._hold_inputs(len(observed)), step).at_once
            inputs = np.tile(self.point.inputs, (len(observed), 1))
            other = self.setting.stepped.respond_elsewhere(OTHER_START_FACTOR, self.point, inputs, step).at_once
        except FmilinError:  # it has no other start
            return
        difference, observed = other - base, observed[:, : base.shape[1]]
        if np.linalg.norm(difference[:SHORT_RUN_STEPS]) > NEGLIGIBLE_MOTION_SIZE * np.linalg.norm(
            changes[:SHORT_RUN_STEPS]
        ):
            # directions below 1e-10 of the largest are rounding of the observations
            x = np.linalg.lstsq(
                observed[:LONG_RUN_STEPS].reshape(-1, model.order), difference[:LONG_RUN_STEPS].ravel(), rcond=1e-10
            )[0]
            if _find_departure(observed @ x, difference) is not None:
                raise _not_linear(
                    f"from start values {OTHER_START_FACTOR} times as large it exceeds order {model.order}: a limit "
                    "cycle, or an oscillation with a frequency that depends on its amplitude"
                )

    def _describe(self, order: int) -> Remark:
        why = f"The model has no {' and no '.join(self.setting.missing_channels)}, and its states cannot be set"
        advice = "" if self.model.inputs or not self.model.moves_parameters else _ADVICE_ON_PARAMETERS
        if not order:
            return Remark(
                "no-response",
                f"{why}; it is in equilibrium or its outputs do not show its motion, so the linear model has no "
                f"states (order 0). Export it with inputs and outputs, or for model exchange.{advice}",
            )
        return Remark("no-response", f"{why}: the linear model is that of its free motion from the point.{advice}")


def _not_linear(why: str) -> NumericalError:
    return NumericalError(
        f"The model moves by itself, but not as a linear model does: {why}. Let it settle first (fl.snapshots(model, "
        "times=[T])), or choose another point."
    )


def _find_departure(predicted: FloatArray, motion: FloatArray) -> int | None:
    """Return the first step from which a motion is missed, relative to what it is by then; None if it never is."""
    largest = np.linalg.norm(motion[:SHORT_RUN_STEPS])
    for first in range(0, len(motion) - SHORT_RUN_STEPS + 1, SHORT_RUN_STEPS):
        part = slice(first, first + SHORT_RUN_STEPS)
        size = np.linalg.norm(motion[part])
        if not np.isfinite(size) or size <= NEGLIGIBLE_MOTION_SIZE * largest:
            return None
        if not np.linalg.norm(predicted[part] - motion[part]) <= OTHER_STEPS_ERROR_TOLERANCE * size:
            return first
    return None


def _find_limit_cycle(eigenvalues: np.ndarray, step: float) -> float:
    """Return the frequency of an undamped oscillation together with multiples of itself, in rad/s; 0 without any."""
    values = np.log(eigenvalues[np.abs(eigenvalues) > VANISHED_EIGENVALUE_SIZE].astype(complex))
    values = values[values.imag > 0] / step
    for w in values.imag[np.abs(values.real) < UNDAMPED_TOLERANCE * values.imag]:
        multiples = np.abs(values.imag / w - np.maximum(1.0, np.round(values.imag / w))) < UNDAMPED_TOLERANCE
        if np.count_nonzero(multiples) > 1:
            return float(w)
    return 0.0
