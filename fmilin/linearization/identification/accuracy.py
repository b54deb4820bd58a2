"""The accuracy of an identified model: what its solver and its differences leave, and whether that is enough.

An identified model fits the solver, not the plant: Euler's method in steps of 1 ms is predicted to ten digits and is
off by 1e-3 of the fastest rate per second. The same experiment is run in the steps that the model was identified from
and in far shorter ones, of which a solver with a fixed step must take smaller ones, too; and with a smaller tolerance,
where a solver chooses its steps itself. What the responses differ by is put into the accuracy. The limits of what is
returned are those of differenced models.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fmilin.ground.errors import FmilinError, NumericalError
from fmilin.ground.remarks import Remark, inaccurate_entry
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import INACCURATE, PREDICTED, QUIET, TOO_INACCURATE
from fmilin.linear_model.model import LinearModel, relative_error
from fmilin.linearization.identification.impulse_response import Runner, relative_change

PARTS = (16, 256)  # into how many a step is divided
TIGHTER = 0.1  # the tolerance of the comparison, in that of the solver
COUNT = 8  # steps of the experiment
PART = 0.3  # of the amplitudes of single pulses, as in held-out responses
SEEN = 10.0  # differences up to this many times what equal runs differ by are noise


@dataclass(frozen=True)
class SolverError:
    """By how much responses change with the step or the tolerance, relative to them."""

    change: float
    # used, compared: what was compared: in steps of which length, or with which tolerance
    used: str
    compared: str


def solver_error(runner: Runner, step: float) -> SolverError | None:
    """Compare responses over the same time in steps and in parts of them; None where they agree or there are none."""
    nu = len(runner.scales)
    if not nu or not len(runner.model.outputs):
        return None
    try:
        deviations = np.random.default_rng(12).uniform(-1.0, 1.0, (COUNT, nu)) * runner.choose_amplitudes(step) * PART
        whole, again = (_response(runner, deviations, step, 1) for _ in range(2))
    except FmilinError:
        return None
    if not whole.any():
        return None
    largest, noise = None, relative_change(again, whole)
    for parts in () if runner.cadence.internal else PARTS:
        try:
            change = relative_change(_response(runner, deviations, step, parts), whole)
        except FmilinError:  # it takes no such steps
            break
        if not np.isfinite(change):
            break
        seen = change if change > max(SEEN * noise, PREDICTED) else 0.0
        if largest is None or seen > largest.change:
            largest = SolverError(seen, f"in steps of {step:g} s", f"in steps of {step / parts:g} s")
    tolerance = runner.stepped.solver_tolerance
    if tolerance is not None:
        try:
            change = relative_change(_response(runner, deviations, step, 1, TIGHTER * tolerance), whole)
        except FmilinError:  # it does not know such a tolerance
            change = 0.0
        if change > max(SEEN * noise, PREDICTED, largest.change if largest else 0.0):
            used, compared = (f"with a tolerance of {value:g}" for value in (tolerance, TIGHTER * tolerance))
            largest = SolverError(change, used, compared)
    return largest if largest is not None and largest.change else None


def _response(
    runner: Runner, deviations: FloatArray, step: float, parts: int, tolerance: float | None = None
) -> FloatArray:
    """Return by how much the outputs are moved at the end of every step, each taken in so many parts."""
    held = np.repeat(deviations, parts, axis=0)
    moved, still = (runner.run(inputs, step / parts, tolerance).after for inputs in (held, np.zeros_like(held)))
    return moved[parts - 1 :: parts] - still[parts - 1 :: parts]


def with_solver_error(linear: LinearModel, difference: SolverError) -> LinearModel:
    """Return the linear model, no entry more accurate than the responses, with a remark that states both steps."""
    errors = linear.errors
    sizes = np.abs(np.concatenate((linear.states.scales(linear.y0), linear.inputs.scales())))

    def doubted(error: FloatArray, matrix: FloatArray, columns: FloatArray, row: FloatArray) -> FloatArray:
        return np.maximum(error, difference.change * row[:, None] / columns) if matrix.size else error

    n = len(linear.A)
    rows = [(np.abs(np.hstack(pair)) * sizes).max(axis=1, initial=0.0) for pair in _pairs(linear)]
    new = replace(
        errors,
        A=doubted(errors.A, linear.A, sizes[:n], rows[0]),
        B=doubted(errors.B, linear.B, sizes[n:], rows[0]),
        C=doubted(errors.C, linear.C, sizes[:n], rows[1]),
    )
    accuracy = replace(
        linear.accuracy,
        A=relative_error(new.A, linear.A),
        B=relative_error(new.B, linear.B),
        C=relative_error(new.C, linear.C),
    )
    text = (
        f"The responses {difference.used}, which the model was identified from, and {difference.compared} differ by "
        f"{difference.change:.1e} of their size: that is the error of the model's own solver, and no entry is closer "
        "to the plant than that."
    )
    remark = Remark("accuracy" if difference.change > INACCURATE else "fit", text)
    return replace(linear, errors=new, accuracy=accuracy, warnings=(remark, *linear.warnings))


def _pairs(linear: LinearModel) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
    return (linear.A, linear.B), (linear.C, linear.D)


def with_accuracy_required(linear: LinearModel, *, keep: bool) -> LinearModel:
    """Return the linear model, with a remark on an entry doubtful beside others of its row; refuse it unless kept."""
    sizes = np.abs(np.concatenate((linear.states.scales(linear.y0), linear.inputs.scales())))
    J = np.block([[linear.A, linear.B], [linear.C, linear.D]]) * sizes
    E = np.block([[linear.errors.A, linear.errors.B], [linear.errors.C, linear.errors.D]]) * sizes
    largest = np.abs(J).max(axis=1, keepdims=True, initial=0.0)
    shown = largest[len(linear.states) :]  # an output that nothing moves has a row of rounding
    np.maximum(shown, QUIET * np.max(shown[np.isfinite(shown)], initial=0.0), out=shown)
    part = np.where(largest > 0, E / np.where(largest > 0, largest, 1.0), 0.0)
    if not part.size or part.max() <= INACCURATE:
        return linear
    i, j = np.unravel_index(int(np.argmax(part)), part.shape)
    rows = (*(f"der({name})" for name in linear.states.names), *linear.outputs.names)
    columns = (*linear.states.names, *linear.inputs.names)
    name, value, error = f"d {rows[i]} / d {columns[j]}", J[i, j] / sizes[j], E[i, j] / sizes[j]
    reasons = " ".join(str(w) for w in linear.warnings if w.kind == "accuracy")
    if part[i, j] > TOO_INACCURATE and not keep:
        raise NumericalError(
            f"{name} cannot be told: it is {value:.4g} +- {error:.2g}, more than {TOO_INACCURATE:.0%} of the largest "
            f"entry of its row. {reasons} Ask the solver inside for a smaller tolerance (--solver-tolerance), or take "
            "another --step. --keep-inaccurate (keep_inaccurate=True in Python) returns the linear model all the same.",
            variable=columns[j],
        )
    if reasons:
        return linear
    return replace(linear, warnings=(*linear.warnings, inaccurate_entry(name, value, error)))
