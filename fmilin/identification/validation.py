"""Responses that a model was not made from: against the model, against smaller steps, and against another tolerance.

An identified model fits the solver, not the plant. So the same experiment is run in far shorter steps, and with a
smaller tolerance; the difference of the responses is a part of the stated error.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.errors import FmilinError
from fmilin.identification.discrete_models import Sampled
from fmilin.identification.experiments import Experiments, relative_change
from fmilin.linear_model.accuracy import comparable_sizes, matrix_and_errors, require_parts
from fmilin.linear_model.builder import with_errors
from fmilin.linear_model.model import LinearModel
from fmilin.signals import FloatArray
from fmilin.tolerances import INACCURATE_ENTRY_ERROR, PREDICTION_ERROR_TOLERANCE, QUIET_RESPONSE_SIZE

STEPS = 60  # of a held-out experiment
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
        responding = size > QUIET_RESPONSE_SIZE * largest
        part = off / np.where(responding, size, 1.0)
        errors: FloatArray = np.where(responding, part, np.where(off > QUIET_RESPONSE_SIZE * largest, 1.0, 0.0))
        return np.where(np.isfinite(errors), errors, np.inf)

    def error(self, model: Sampled) -> float:
        """Return the largest of :meth:`errors`."""
        return float(np.max(self.errors(model), initial=0.0))


def run_holdout(experiments: Experiments, step: float) -> HeldOut | None:
    """Return the held-out experiment in steps of ``step``, which is run once.

    Returns None without inputs or outputs, and where the model does not take such steps.
    """
    return experiments.once(("held out", step), lambda: _run_holdout(experiments, step))


def _run_holdout(experiments: Experiments, step: float) -> HeldOut | None:
    nu, ny = len(experiments.scales), len(experiments.model.outputs)
    if not nu or not ny:
        return None
    # any fixed numbers that no other experiment has: the responses must be new
    random = np.random.default_rng(8)
    try:
        amplitudes = experiments.choose_amplitudes(step)
        inputs = random.uniform(-1.0, 1.0, (STEPS, nu)) * amplitudes * PART
        up, down, again = (experiments.run(sign * inputs, step) for sign in (1.0, -1.0, 1.0))
    except FmilinError:
        return None
    at_once, after = (up.at_once - down.at_once) / 2, (up.after - down.after) / 2
    # half the difference of two has the noise of two runs, as half the difference of up and down has
    noise, size = np.linalg.norm(up.after - again.after, axis=0) / 2, np.linalg.norm(after, axis=0)
    relative = np.where(size > 0, noise / np.where(size > 0, size, 1.0), 0.0)
    return HeldOut(inputs, at_once, after, step, relative)


def measure_solver_noise(experiments: Experiments, holdout: HeldOut) -> float:
    """Return how much held-out responses change when each step is taken as two; 0 where that is not possible."""
    inputs = np.repeat(holdout.inputs, 2, axis=0)
    try:
        change = relative_change(experiments.odd(inputs, holdout.step / 2).after[1::2], holdout.after)
    except FmilinError:
        return 0.0
    return change if np.isfinite(change) else 0.0


PARTS_OF_STEP = (16, 256)  # into how many a step is divided
STEPS_IN_PARTS = 8  # of the experiment with the fewest parts
FEWEST_STEPS = 2  # of the experiment with the most parts
TIGHTER_TOLERANCE_FACTOR = 0.1  # the tolerance of the comparison, in that of the solver
NOISE_FACTOR = 10.0  # differences up to this many times those of equal runs are noise


@dataclass(frozen=True)
class SolverError:
    """By how much responses change with the step or the tolerance, relative to them."""

    change: float
    used: str  # in which steps, or with which tolerance
    compared: str


def measure_solver_error(experiments: Experiments, step: float) -> SolverError | None:
    """Compare responses over the same time in steps and in parts of them; None where they agree or there are none."""
    nu = len(experiments.scales)
    if not nu or not len(experiments.model.outputs):
        return None
    # any fixed numbers: equal calls give equal results
    random = np.random.default_rng(12).uniform(-1.0, 1.0, (STEPS_IN_PARTS, nu))
    try:
        deviations = random * experiments.choose_amplitudes(step) * PART
        undivided, again = (_respond_in_parts(experiments, deviations, step, 1) for _ in range(2))
    except FmilinError:
        return None
    if not undivided.any():
        return None
    largest = _compare_parts(experiments, deviations, step, undivided, again)
    tolerance = experiments.stepped.solver_tolerance
    if tolerance is not None:
        try:
            change = relative_change(
                _respond_in_parts(experiments, deviations, step, 1, TIGHTER_TOLERANCE_FACTOR * tolerance), undivided
            )
        except FmilinError:  # it does not know such a tolerance
            change = 0.0
        noise = relative_change(again, undivided)
        if change > max(NOISE_FACTOR * noise, PREDICTION_ERROR_TOLERANCE, largest.change if largest else 0.0):
            used, compared = (
                f"with a tolerance of {value:g}" for value in (tolerance, TIGHTER_TOLERANCE_FACTOR * tolerance)
            )
            largest = SolverError(change, used, compared)
    return largest if largest is not None and largest.change else None


def _compare_parts(
    experiments: Experiments, deviations: FloatArray, step: float, undivided: FloatArray, again: FloatArray
) -> SolverError | None:
    """Return the largest change of responses when steps are divided; ``again``: an equal run, which shows noise."""
    largest: SolverError | None = None
    for parts in () if experiments.cadence.internal else PARTS_OF_STEP:
        count = max(FEWEST_STEPS, STEPS_IN_PARTS * PARTS_OF_STEP[0] // parts)  # short communication steps cost, too
        short = step / parts
        what = f"a comparison with steps of {short:g} s"
        if parts > PARTS_OF_STEP[0] and not experiments.affords(what, 2, 2 * count * parts, short):
            break
        try:
            response = _respond_in_parts(experiments, deviations[:count], step, parts)
        except FmilinError:  # it takes no such steps
            break
        change = relative_change(response, undivided[:count])
        if not np.isfinite(change):
            break
        noise = relative_change(again[:count], undivided[:count])
        if change <= max(NOISE_FACTOR * noise, PREDICTION_ERROR_TOLERANCE):
            change = 0.0
        if largest is None or change > largest.change:
            largest = SolverError(change, f"in steps of {step:g} s", f"in steps of {short:g} s")
    return largest


def _respond_in_parts(
    experiments: Experiments, deviations: FloatArray, step: float, parts: int, tolerance: float | None = None
) -> FloatArray:
    """Return by how much the outputs are moved at the end of every step, each taken in so many parts."""
    inputs = np.repeat(deviations, parts, axis=0)
    moved = experiments.run(inputs, step / parts, tolerance).after
    still = experiments.run(np.zeros_like(inputs), step / parts, tolerance).after
    return moved[parts - 1 :: parts] - still[parts - 1 :: parts]


def with_solver_error(linear: LinearModel, difference: SolverError) -> LinearModel:
    """Return the linear model, no entry more accurate than the responses, with a diagnostic that states both steps."""
    errors = linear.errors
    sizes = np.abs(np.concatenate((linear.states.scales(linear.y0), linear.inputs.scales())))

    def enlarge(error: FloatArray, matrix: FloatArray, columns: FloatArray, row: FloatArray) -> FloatArray:
        return np.maximum(error, difference.change * row[:, None] / columns) if matrix.size else error

    n = len(linear.A)
    rows = [
        (np.abs(np.hstack(pair)) * sizes).max(axis=1, initial=0.0)
        for pair in ((linear.A, linear.B), (linear.C, linear.D))
    ]
    new = replace(
        errors,
        A=enlarge(errors.A, linear.A, sizes[:n], rows[0]),
        B=enlarge(errors.B, linear.B, sizes[n:], rows[0]),
        C=enlarge(errors.C, linear.C, sizes[:n], rows[1]),
    )
    text = (
        f"The responses {difference.used}, which the model was identified from, and {difference.compared} differ by "
        f"{difference.change:.1e} of their size: this is the error of the model's own solver, which limits the "
        "accuracy of all entries."
    )
    remark = Remark("accuracy" if difference.change > INACCURATE_ENTRY_ERROR else "fit", text)
    return with_errors(replace(linear, warnings=(remark, *linear.warnings)), new)


def with_accuracy_required(linear: LinearModel, *, keep: bool) -> LinearModel:
    """Return the linear model, with a diagnostic on an entry that is doubtful relative to others of its row.

    Raises a NumericalError where it is too inaccurate, unless ``keep``.
    """
    sizes = np.abs(np.concatenate((linear.states.scales(linear.y0), linear.inputs.scales())))
    J, E = (M * sizes for M in matrix_and_errors(linear))
    largest = np.abs(J).max(axis=1, keepdims=True, initial=0.0)
    n = len(linear.states)
    if n:  # a rate that nothing moves has a row of rounding, too: it is compared with rows as fast as the others
        fastest = max(1.0, float(np.max(largest[:n, 0] / sizes[:n])))
        worst = E[:n].max(axis=1, initial=0.0)
        largest[:n, 0] = comparable_sizes(largest[:n, 0], worst, sizes[:n] * fastest)
    outputs = largest[len(linear.states) :]  # an output that nothing moves has a row of rounding
    largest[len(linear.states) :] = np.maximum(
        outputs, QUIET_RESPONSE_SIZE * np.max(outputs[np.isfinite(outputs)], initial=0.0)
    )
    part = np.where(largest > 0, E / np.where(largest > 0, largest, 1.0), 0.0)
    reasons = " ".join(str(w) for w in linear.warnings if w.kind == "accuracy")
    option = "FmuOptions(solver_tolerance=...)"
    advice = f" {reasons} Set a smaller tolerance of the solver inside ({option}), or use another step=."
    return require_parts(linear, part, lambda *_: advice, keep=keep, is_reported=bool(reasons))
