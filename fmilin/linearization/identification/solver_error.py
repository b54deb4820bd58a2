"""What a fit does not show: the error that the model's own solver makes.

An identified model fits the solver, not the plant: Euler's method in steps of 1 ms is predicted to ten digits and is
off by 1e-3 of the fastest rate per second. The same experiment is run in the steps that the model was identified from
and in far shorter ones, of which a solver with a fixed step must take smaller ones, too; and with a smaller tolerance,
which a solver asks that chooses its steps itself. What the answers differ by is put into the accuracy.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fmilin.ground.errors import FmilinError
from fmilin.ground.remarks import Remark
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import INACCURATE, PREDICTED, QUIET
from fmilin.linear_model.model import LinearModel, relative_error
from fmilin.linearization.identification.impulse_response import Runner

__all__ = ["SolverError", "solver_error", "with_solver_error"]

PARTS = (16, 256)
"""Into how many a step is divided."""

TIGHTER = 0.1
"""Times the tolerance, that the solver is asked for in comparison."""

COUNT = 8
"""Steps of the experiment."""

PART = 0.3
"""Of the amplitudes of single pulses, as in held-out responses."""

SEEN = 10.0
"""Differences up to this many times what equal runs differ by are noise."""


@dataclass(frozen=True)
class SolverError:
    """By how much responses change with the step or the tolerance, relative to them."""

    change: float
    # used, compared: what was compared: in steps of which length, or with which tolerance
    used: str
    compared: str


def solver_error(runner: Runner, step: float) -> SolverError | None:
    """Compare responses over the same time in steps and in parts of them; None where they agree or cannot be compared.

    ``step``: in seconds.
    """
    nu = len(runner.scales)
    if not nu or not len(runner.model.outputs):
        return None
    try:
        deviations = np.random.default_rng(12).uniform(-1.0, 1.0, (COUNT, nu)) * runner.choose_amplitudes(step) * PART
        whole, again = (_response(runner, deviations, step, 1) for _ in range(2))
    except FmilinError:
        return None
    size = np.linalg.norm(whole, axis=0)
    heard = size > QUIET * float(np.max(size, initial=0.0))  # an output that nothing moves shows rounding alone
    if not heard.any():
        return None

    def apart(other: FloatArray) -> float:
        return float(np.max(np.linalg.norm(other - whole, axis=0)[heard] / size[heard]))

    found, noise = None, apart(again)
    for parts in PARTS:
        try:
            change = apart(_response(runner, deviations, step, parts))
        except FmilinError:  # it takes no such steps
            break
        if not np.isfinite(change):
            break
        seen = change if change > max(SEEN * noise, PREDICTED) else 0.0
        if found is None or seen > found.change:
            found = SolverError(seen, f"in steps of {step:g} s", f"in steps of {step / parts:g} s")
    tolerance = runner.stepped.solver_tolerance
    if tolerance is not None:
        try:
            change = apart(_response(runner, deviations, step, 1, TIGHTER * tolerance))
        except FmilinError:  # it does not know such a tolerance
            change = 0.0
        if change > max(SEEN * noise, PREDICTED, found.change if found else 0.0):
            used, compared = (f"with a tolerance of {value:g}" for value in (tolerance, TIGHTER * tolerance))
            found = SolverError(change, used, compared)
    return found if found is not None and found.change else None


def _response(
    runner: Runner, deviations: FloatArray, step: float, parts: int, tolerance: float | None = None
) -> FloatArray:
    """Return by how much the outputs are moved at the end of every step, each taken in so many parts."""
    held = np.repeat(deviations, parts, axis=0)
    moved, still = (runner.run(inputs, step / parts, tolerance).after for inputs in (held, np.zeros_like(held)))
    return moved[parts - 1 :: parts] - still[parts - 1 :: parts]


def with_solver_error(linear: LinearModel, found: SolverError) -> LinearModel:
    """Return the linear model, no entry of it better known than the responses, with a remark that states both steps."""
    errors = linear.errors
    sizes = np.abs(np.concatenate((linear.states.scales(linear.y0), linear.inputs.scales())))

    def doubted(error: FloatArray, matrix: FloatArray, columns: FloatArray, row: FloatArray) -> FloatArray:
        return np.maximum(error, found.change * row[:, None] / columns) if matrix.size else error

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
        f"The responses {found.used}, which the model was identified from, and {found.compared} differ by "
        f"{found.change:.1e} of their size: that is the error of the model's own solver, and no entry is closer to the "
        "plant than that."
    )
    remark = Remark("accuracy" if found.change > INACCURATE else "fit", text)
    return replace(linear, errors=new, accuracy=accuracy, warnings=(remark, *linear.warnings))


def _pairs(linear: LinearModel) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
    return (linear.A, linear.B), (linear.C, linear.D)
