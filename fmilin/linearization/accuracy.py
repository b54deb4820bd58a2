"""Whether every entry is known well enough to be handed out: a remark beyond one limit, a refusal beyond the next.

An entry's estimate counts against the largest entry of its row of [A B] or [C D], in sizes of the variables. A row that
is nothing but error is compared with the size of its terms instead: zero is known well when noise makes 1e-8 of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fmilin.ground.errors import NumericalError
from fmilin.ground.remarks import inaccurate_entry
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import INACCURATE, INDISTINCT, TOO_INACCURATE
from fmilin.linear_model.model import LinearModel
from fmilin.manifold.neighbourhood import Neighbourhood
from fmilin.numerics.differences.sweep import StepSweep, step_sweep

SHOWN = 6  # scales of steps at which slopes are listed


@dataclass(frozen=True)
class _Entry:
    """One entry of [A B; C D]."""

    row: int
    column: int
    value: float
    error: float
    part: float  # of the largest entry of its row, or of its terms


def require_accuracy(linear: LinearModel, nearby: Neighbourhood, *, keep: bool) -> LinearModel:
    """Return the linear model with a remark where an entry is doubtful; refuse it there unless it is to be kept."""
    doubtful = _doubtful(linear, nearby)
    if not doubtful:
        return linear
    worst = doubtful[0]
    name = _name(linear, worst)
    if worst.part > TOO_INACCURATE and not keep:
        raise NumericalError(_refusal(nearby, worst, name), variable=nearby.columns[worst.column])
    others = len(doubtful) - 1
    more = f" So {'is' if others == 1 else 'are'} {others} more." if others else ""
    return replace(linear, warnings=(*linear.warnings, inaccurate_entry(name, worst.value, worst.error, more)))


def _doubtful(linear: LinearModel, nearby: Neighbourhood) -> list[_Entry]:
    """Return the entries whose estimates are beyond :data:`INACCURATE`, worst first."""
    errors = linear.errors
    J = np.block([[linear.A, linear.B], [linear.C, linear.D]])
    E = np.block([[errors.A, errors.B], [errors.C, errors.D]])
    if not J.size:
        return []
    scaled = E * nearby.scales
    largest = (np.abs(J) * nearby.scales).max(axis=1)
    sizes = comparable_sizes(largest, scaled.max(axis=1), _terms(linear, nearby, largest))
    part = np.where(scaled > 0, scaled / np.where(sizes > 0, sizes, 1.0)[:, None], 0.0)
    entries = [
        _Entry(int(i), int(j), float(J[i, j]), float(E[i, j]), float(part[i, j]))
        for i, j in np.argwhere(part > INACCURATE)
    ]
    return sorted(entries, key=lambda entry: -entry.part)


def comparable_sizes(largest: FloatArray, error: FloatArray, terms: FloatArray) -> FloatArray:
    """Return what the errors of rows are compared with: the largest entry, or terms where it is nothing but error."""
    return np.where(largest <= 10 * error, np.maximum(largest, INDISTINCT / INACCURATE * terms), largest)


def _terms(linear: LinearModel, nearby: Neighbourhood, largest: FloatArray) -> FloatArray:
    """Return the size of what each row sums, shape (P + ny,): rates by the fastest one, outputs by their own sizes."""
    p = nearby.p
    sizes = nearby.scales[:p]
    fastest = max(1.0, float(np.max(np.maximum(largest[:p], np.abs(linear.f0)) / sizes, initial=0.0)))
    return np.concatenate((sizes * fastest, linear.outputs.scales(nearby.base[nearby.n :])))


def _name(linear: LinearModel, entry: _Entry) -> str:
    rows = (*(f"der({name})" for name in linear.states.names), *linear.outputs.names)
    columns = (*linear.states.names, *linear.inputs.names)
    return f"d {rows[entry.row]} / d {columns[entry.column]}"


def _refusal(nearby: Neighbourhood, entry: _Entry, name: str) -> str:
    """Say what was found at each scale of steps, and what to do."""
    j, column = entry.column, nearby.columns[entry.column]
    unit = np.eye(len(nearby.scales))[j]
    with np.errstate(all="ignore"):
        value = float(np.concatenate((nearby.frame.y0, nearby.point.inputs))[j])
        sweep = step_sweep(lambda s: nearby.at(s * unit), nearby.base, float(nearby.scales[j]), value)
    slopes = "" if sweep is None else f" The slope found at steps of {_scales(nearby, sweep, entry.row)}."
    if nearby.revisited and (change := float(np.max(nearby.revisit_change, initial=0.0))):
        slopes += f" Evaluated again at the same point the model differs by up to {change:.2g}: it keeps memory."
    return (
        f"{name} cannot be told: it is {entry.value:.4g} +- {entry.error:.2g}, more than {TOO_INACCURATE:.0%} of "
        f"the largest entry of its row.{slopes} A slope that changes with the step means friction, a deadzone, a "
        f"switch, rounding or noise in the model: give '{column}' a nominal value of the size at which the model is "
        "smooth, tighten the tolerance of solvers inside, provide exact derivatives, or move the point. "
        "--keep-inaccurate (keep_inaccurate=True in Python) returns the linear model all the same."
    )


def _scales(nearby: Neighbourhood, sweep: StepSweep, row: int) -> str:
    """List the slopes of one row of [A; C] at some of the steps."""
    p, D = nearby.p, sweep.D
    slopes = D[:, : nearby.n] @ nearby.frame.coordinates.R[row] if row < p else D[:, nearby.n + row - p]
    steps: Sequence[int] = np.unique(np.linspace(0, len(D) - 1, SHOWN).round().astype(int)).tolist()
    return ", ".join(f"{sweep.h[k]:.1g} is {slopes[k]:.4g}" for k in steps)
