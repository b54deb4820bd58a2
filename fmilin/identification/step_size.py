"""How long a step should be: long enough to show the slowest motion, short enough to follow the fastest.

A continuous model counts only when it is confirmed at half the step: there the alias of a fast motion has another
frequency, and a sampled part answers with its own period.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fmilin.errors import FmilinError, NumericalError, UsageError
from fmilin.identification.discrete_models import Continuous, Sampled, find_continuous_model, sample_model
from fmilin.identification.experiments import Experiments
from fmilin.identification.integrator_choice import IntegratorCandidate, find_candidates
from fmilin.identification.integrators import EXACT, OneStepMethod, step_plant
from fmilin.identification.validation import run_holdout
from fmilin.model.stepping import Cadence
from fmilin.options import Stepping
from fmilin.tolerances import (
    AGREES_IN_STEPS,
    INACCURATE_ENTRY_ERROR,
    MAX_PREDICTION_ERROR,
    OTHER_STEPS_ERROR_TOLERANCE,
    PREDICTION_ERROR_TOLERANCE,
)

DEFAULT = 0.01  # seconds: where to begin when the model suggests no step
ATTEMPTS = 8  # steps that are tried: each takes runs of every input
MAX_STEP_ANGLE, IDEAL_STEP_ANGLE, MIN_STEP_ANGLE = (
    1.3,
    0.5,
    0.05,
)  # radians of the fastest motion in a step: at most, as wished, at least
MAX_STEP_RATIO = 100  # times the step that suits the model: longer ones may occupy its solver without end


@dataclass(frozen=True)
class ConfirmedModel:
    """A continuous model, its error in half steps (NaN: not measured), and the integrator that it is the plant of."""

    model: Continuous
    error: float
    integrator: OneStepMethod = EXACT


def confirm_at_half_step(sampled: Sampled, experiments: Experiments, held_out_error: float) -> ConfirmedModel:
    """Return the continuous model, confirmed at half the step: by the logarithm, or as an integrator's plant."""
    model = find_continuous_model(sampled)
    half = run_holdout(experiments, sampled.step / 2) if has_halves(sampled.step, experiments.cadence) else None
    if half is None:
        return ConfirmedModel(model, float("nan"))
    error = half.error(sample_model(model, sampled.step / 2, sampled.reading))
    if error > PREDICTION_ERROR_TOLERANCE and not experiments.cadence.internal:

        def measure_error(candidate: IntegratorCandidate) -> float:
            return half.error(step_plant(candidate.integrator, candidate.plant, half.step, sampled.reading))

        if explained := explain_by_integrator(sampled, model, error, measure_error):
            return explained
    allowed = min(
        # half steps double the noise over h, twice for two models
        max(OTHER_STEPS_ERROR_TOLERANCE, 5 * held_out_error if np.isfinite(held_out_error) else 0.0),
        MAX_PREDICTION_ERROR,
    )
    if not error <= allowed:
        raise NumericalError(
            f"The responses in steps of {sampled.step:g} s and of half of that have no common continuous model: the "
            f"prediction is off by {100 * error:.3g}% of the response at half the step. The model is sampled (use the "
            "discrete model over its base period: fl.Stepping(lifted=True, step=SECONDS)), moves faster than the step "
            "resolves (use a smaller step=), or limits its inputs (use a smaller amplitude=)."
        )
    return ConfirmedModel(model, error)


def explain_by_integrator(
    sampled: Sampled, model: Continuous, error: float, measure_error: Callable[[IntegratorCandidate], float]
) -> ConfirmedModel | None:
    """Return the plant of the integrator that explains half a step, if it does far better than the logarithm.

    A solver that takes each communication step as its own answers half steps as its integrator does. ``error`` is that
    of the logarithm in half steps, ``measure_error`` returns that of a candidate.
    """
    candidates = [c for c in find_candidates(sampled, model) if c.integrator is not EXACT]
    explained = [ConfirmedModel(c.plant, measure_error(c), c.integrator) for c in candidates]
    best = min(explained, key=lambda candidate: candidate.error, default=None)
    allowed = min(AGREES_IN_STEPS * error, INACCURATE_ENTRY_ERROR)
    return best if best is not None and best.error <= allowed else None


Attempt = Callable[[float], tuple[Sampled, float]]  # from a step to a discrete model and its held-out error


def find_usable_step(experiments: Experiments) -> float:
    """Return a step that the model takes, near the one that it suggests."""
    point, cadence = experiments.point, experiments.cadence
    suggested = round_step(cadence.step or cadence.internal or DEFAULT, cadence)
    reason: FmilinError | None = None
    # longer ones first: FMUs reject steps below a smallest one more often than above a longest
    for factor in (1.0, 4.0, 16.0, 64.0, 0.1, 0.01):
        step = round_step(factor * suggested, cadence)
        try:
            experiments.stepped.respond(point, point.inputs[None, :], step)
        except FmilinError as error:
            reason = reason or error
        else:
            return step
    raise reason or NumericalError("The model did not accept any communication step.")


def find_fitting_step(
    attempt: Attempt, experiments: Experiments, fixed_step: float | None = None, runs_of_a_step: int = 0
) -> float:
    """Find a step, in seconds, unless it is ``fixed_step``; an attempt has ``runs_of_a_step`` besides responses."""
    step, cadence = fixed_step or find_usable_step(experiments), experiments.cadence
    runs, steps = (count + runs_of_a_step for count in experiments.attempt)
    experiments.require(runs, steps, step)
    if fixed_step:
        return fixed_step
    longest = MAX_STEP_RATIO * step
    reason: FmilinError | None = None
    tried: dict[float, int] = {}
    least = np.inf
    for _ in range(ATTEMPTS):
        if tried and not experiments.affords(
            f"steps of {step:g} s, which may show other motions", 2 * runs, 2 * steps, step
        ):
            break
        try:
            sampled, error = attempt(step)
            if error > max(OTHER_STEPS_ERROR_TOLERANCE, least):
                break
            A = confirm_at_half_step(sampled, experiments, error).model.A
            fastest = float(np.max(np.abs(np.linalg.eigvals(A)), initial=0.0)) if len(A) else 0.0
        except NumericalError as failure:
            reason = reason or failure
            if any(tried.values()):  # shorter ones fail, too
                break
            tried[step] = 0
            step = round_step(step / 4, cadence)
        else:
            tried[step], least = sampled.order, min(least, error)
            better = _find_better_step(fastest, step, longest)
            if better is None:
                return step
            step = round_step(better, cadence)
        if step in tried:
            break
    best = max(tried.values())
    if best == 0 and reason is not None:
        raise reason
    return max(s for s, order in tried.items() if order == best)


def round_step(step: float, cadence: Cadence) -> float:
    """Return a step of three digits; of the solver's own fixed steps where it has such, one or an even number."""
    if cadence.internal:
        return max(1, 2 * round(step / cadence.internal / 2)) * cadence.internal
    return float(f"{step:.3g}")


def has_halves(step: float, cadence: Cadence) -> bool:
    """Whether half a step is one: of an odd number of the solver's own steps it is not."""
    return not cadence.internal or round(step / cadence.internal) % 2 == 0


def read_given_step(stepping: Stepping, experiments: Experiments) -> float | None:
    """Return the step that is asked for, or the period over which a sampled model is lifted; None where neither is."""
    if stepping.step is not None or not stepping.lifted:
        return stepping.step
    period = experiments.cadence.period or experiments.cadence.internal or experiments.cadence.step
    if period is None:
        raise UsageError(
            "The model does not declare the period of its sampled parts, nor a step: give the base period with "
            "step=SECONDS."
        )
    return period


def _find_better_step(fastest: float, step: float, longest: float) -> float | None:
    """Return a step that suits better; None when this one does."""
    if fastest * step > MAX_STEP_ANGLE:
        return IDEAL_STEP_ANGLE / fastest
    if fastest * step < MIN_STEP_ANGLE and step < longest:
        # 20: at once not further, since a short record shows only fast motions
        return min(IDEAL_STEP_ANGLE / fastest if fastest > 0 else longest, 20 * step, longest)
    return None
