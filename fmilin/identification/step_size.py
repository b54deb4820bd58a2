"""How long a step should be: long enough to show the slowest motion, short enough to follow the fastest.

A continuous model counts only when it is confirmed at half the step: there the alias of a fast motion has another
frequency, and a sampled part answers with its own period.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fmilin.errors import FmilinError, NumericalError, UsageError
from fmilin.identification.discrete_models import Continuous, Sampled, continuous_of, sampled_from
from fmilin.identification.experiments import Runner, relative_change
from fmilin.identification.integrator_choice import find_candidates
from fmilin.identification.integrators import EXACT, Integrator, stepped_by
from fmilin.model.stepping import Cadence
from fmilin.options import Stepping
from fmilin.signals import FloatArray
from fmilin.tolerances import AGREES_IN_STEPS, CONFIRMED, INACCURATE, MISSES, PREDICTED, QUIET

COUNT = 60
PART = 0.3  # of the amplitudes of single pulses: many steps add up


@dataclass(frozen=True)
class HeldOut:
    """One held-out experiment: every input moves at every step, up and down by turns."""

    inputs: FloatArray  # (K, nu), deviations
    at_once: FloatArray  # (K, ny), deviations of the outputs, odd terms
    after: FloatArray
    step: float
    noise: FloatArray  # (ny,), by which equal runs differ, of each output's response

    def errors(self, model: Sampled) -> FloatArray:
        """Return the error of each output, (ny,), relative to its own response; 0 of one that stays far more quiet."""
        measured = self.at_once if model.reading == "at once" else self.after
        off = np.linalg.norm(measured - model.response(self.inputs), axis=0)
        size = np.linalg.norm(measured, axis=0)
        largest = float(np.max(size, initial=0.0))
        responding = size > QUIET * largest
        part = off / np.where(responding, size, 1.0)
        errors: FloatArray = np.where(responding, part, np.where(off > QUIET * largest, 1.0, 0.0))
        return np.where(np.isfinite(errors), errors, np.inf)

    def error(self, model: Sampled) -> float:
        """Return the largest of :meth:`errors`."""
        return float(np.max(self.errors(model), initial=0.0))


def solver_noise(runner: Runner, held: HeldOut) -> float:
    """Return how much held-out responses change when each step is taken as two; 0 where it cannot be told."""
    inputs = np.repeat(held.inputs, 2, axis=0)
    try:
        change = relative_change(runner.odd(inputs, held.step / 2).after[1::2], held.after)
    except FmilinError:
        return 0.0
    return change if np.isfinite(change) else 0.0


def held_out(runner: Runner, step: float) -> HeldOut | None:
    """Measure one, once; None when there are no inputs or outputs, or the model does not take such steps."""
    return runner.once(("held out", step), lambda: _held_out(runner, step))


def _held_out(runner: Runner, step: float) -> HeldOut | None:
    nu, ny = len(runner.scales), len(runner.model.outputs)
    if not nu or not ny:
        return None
    random = np.random.default_rng(8)
    try:
        amplitudes = runner.choose_amplitudes(step)
        inputs = random.uniform(-1.0, 1.0, (COUNT, nu)) * amplitudes * PART
        up, down, again = (runner.run(sign * inputs, step) for sign in (1.0, -1.0, 1.0))
    except FmilinError:
        return None
    answer = (up.after - down.after) / 2
    # half the difference of two has the noise of two runs, as half the difference of up and down has
    noise, size = np.linalg.norm(up.after - again.after, axis=0) / 2, np.linalg.norm(answer, axis=0)
    relative = np.where(size > 0, noise / np.where(size > 0, size, 1.0), 0.0)
    return HeldOut(inputs, (up.at_once - down.at_once) / 2, answer, step, relative)


DEFAULT = 0.01  # seconds: where to begin when the model suggests no step
ATTEMPTS = 8
FASTEST, IDEAL, SLOWEST = 1.3, 0.5, 0.05  # radians of the fastest motion in a step: at most, as wished, at least
LONGEST = 100  # times the step that suits the model: longer ones may take its solver for ever


@dataclass(frozen=True)
class ConfirmedModel:
    """A continuous model, its error on responses in half steps (NaN: not seen), and the integrator that it is for."""

    model: Continuous
    error: float
    integrator: Integrator = EXACT


def confirmed(sampled: Sampled, runner: Runner, held_out_error: float) -> ConfirmedModel:
    """Return the continuous model, confirmed at half the step: by the logarithm, or as an integrator's plant."""
    model = continuous_of(sampled)
    half = held_out(runner, sampled.step / 2) if has_halves(sampled.step, runner.cadence) else None
    if half is None:
        return ConfirmedModel(model, float("nan"))
    error = half.error(sampled_from(model, sampled.step / 2, sampled.reading))
    if error > PREDICTED and not runner.cadence.internal:
        # a solver that takes each communication step as its own answers half steps as its integrator does
        tried = [
            ConfirmedModel(
                c.plant, half.error(stepped_by(c.integrator, c.plant, half.step, sampled.reading)), c.integrator
            )
            for c in find_candidates(sampled, model)
            if c.integrator is not EXACT
        ]
        best = min(tried, key=lambda other: other.error, default=ConfirmedModel(model, error))
        if best.error <= AGREES_IN_STEPS * error and best.error <= INACCURATE:
            return best
    allowed = min(max(CONFIRMED, 5 * held_out_error if np.isfinite(held_out_error) else 0.0), MISSES)
    if not error <= allowed:
        raise NumericalError(
            f"The responses in steps of {sampled.step:g} s and of half of that belong to no common continuous model: "
            f"the prediction is off by {100 * error:.3g}% of the response at half the step. The model is sampled (ask "
            f"for the discrete model over its base period: fl.Stepping(lifted=True, step=SECONDS)), moves faster than "
            f"the step shows (take a smaller step=), or limits its inputs (move them less: amplitude=A)."
        )
    return ConfirmedModel(model, error)


Try = Callable[[float], tuple[Sampled, float]]  # from a step to a discrete model and its held-out error


def usable_step(runner: Runner) -> float:
    """Return a step that the model takes, near the one that it suggests."""
    point, cadence = runner.point, runner.cadence
    suggested = rounded(cadence.step or cadence.internal or DEFAULT, cadence)
    reason: FmilinError | None = None
    for factor in (1.0, 4.0, 16.0, 64.0, 0.1, 0.01):
        step = rounded(factor * suggested, cadence)
        try:
            runner.stepped.respond(point, point.inputs[None, :], step)
        except FmilinError as error:
            reason = reason or error
        else:
            return step
    raise reason or NumericalError("The model takes no step.")


def fitting_step(attempt: Try, runner: Runner, given: float | None = None, visits: int = 0) -> float:
    """Find a step, in seconds, unless it is ``given``; an attempt takes ``visits`` runs of a step beside responses."""
    step, cadence = given or usable_step(runner), runner.cadence
    runs, steps = (count + visits for count in runner.attempt)
    runner.require(runs, steps, step)
    if given:
        return given
    longest = LONGEST * step
    reason: FmilinError | None = None
    tried: dict[float, int] = {}
    least = np.inf
    for _ in range(ATTEMPTS):
        if tried and not runner.affords(
            f"steps of {step:g} s, which may show other motions", 2 * runs, 2 * steps, step
        ):
            break
        try:
            sampled, error = attempt(step)
            if error > max(CONFIRMED, least):
                break
            A = confirmed(sampled, runner, error).model.A
            fastest = float(np.max(np.abs(np.linalg.eigvals(A)), initial=0.0)) if len(A) else 0.0
        except NumericalError as failure:
            reason = reason or failure
            if any(tried.values()):  # shorter ones fail, too
                break
            tried[step] = 0
            step = rounded(step / 4, cadence)
        else:
            tried[step], least = sampled.order, min(least, error)
            wanted = _better(fastest, step, longest)
            if wanted is None:
                return step
            step = rounded(wanted, cadence)
        if step in tried:
            break
    best = max(tried.values())
    if best == 0 and reason is not None:
        raise reason
    return max(s for s, order in tried.items() if order == best)


def rounded(step: float, cadence: Cadence) -> float:
    """Return a step of three digits; of the solver's own fixed steps where it has such, one or an even number."""
    if cadence.internal:
        return max(1, 2 * round(step / cadence.internal / 2)) * cadence.internal
    return float(f"{step:.3g}")


def has_halves(step: float, cadence: Cadence) -> bool:
    """Whether half a step is one: of an odd number of the solver's own steps it is not."""
    return not cadence.internal or round(step / cadence.internal) % 2 == 0


def given_step(stepping: Stepping, runner: Runner) -> float | None:
    """Return the step that is asked for, or the period over which a sampled model is lifted; None where neither is."""
    if stepping.step is not None or not stepping.lifted:
        return stepping.step
    period = runner.cadence.period or runner.cadence.internal or runner.cadence.step
    if period is None:
        raise UsageError(
            "The model does not declare the period of its sampled parts, nor a step: say the base period with "
            "step=SECONDS."
        )
    return period


def _better(fastest: float, step: float, longest: float) -> float | None:
    """Return a step that suits better; None when this one does."""
    if fastest * step > FASTEST:
        return IDEAL / fastest
    if fastest * step < SLOWEST and step < longest:
        return min(IDEAL / fastest if fastest > 0 else longest, 20 * step, longest)
    return None
