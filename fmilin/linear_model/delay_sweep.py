"""Rightmost eigenvalues over delays, and the delays at which the number of those that grow changes.

Between two points of a sweep where that number differs, the crossing eigenvalue is followed by Brent's method on its
real part: the eigenvalues themselves are exact to rounding at each delay.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import UsageError
from fmilin.linear_model.delay_sweep_record import DelaySweep, StabilityChange
from fmilin.linear_model.model import DelayedLinearModel
from fmilin.linear_model.stability import SAFETY_FACTOR
from fmilin.numerics.delay_eigenvalues import solve_newton
from fmilin.signals import FloatArray
from fmilin.tolerances import EPS

DEFAULT_SWEEP_EIGENVALUE_COUNT = 2
FIRST_EIGENVALUE_COUNT = 4  # that are computed at first, to count those that grow
MAX_BISECTION_COUNT = 40  # of an interval of a sweep in which several pairs of eigenvalues cross the imaginary axis
CROSSING_TOLERANCE = 1e-9  # real over imaginary part of an eigenvalue that crosses the imaginary axis
POSITION_TOLERANCE = 4 * EPS  # of a delay at which stability changes, relative to the interval of the sweep


def sweep_delays(
    model: DelayedLinearModel,
    delays: Mapping[str, Sequence[float] | FloatArray],
    count: int = DEFAULT_SWEEP_EIGENVALUE_COUNT,
) -> DelaySweep:
    """Return the rightmost eigenvalues for other delays, which are varied together."""
    axes = {name: np.asarray(values, dtype=np.float64) for name, values in delays.items()}
    sizes = {values.shape for values in axes.values()}
    if len(sizes) != 1 or len(next(iter(sizes))) != 1 or not next(iter(sizes))[0]:
        raise UsageError("The delays of a sweep are sequences of the same length, {'u': [0.1, 0.2, 0.3]}.")
    (size,) = next(iter(sizes))

    def make_model(position: float) -> DelayedLinearModel:
        numbers = np.arange(size)
        return model.with_delay_values(
            {name: float(np.interp(position, numbers, values)) for name, values in axes.items()}
        )

    eigenvalues = np.full((size, count), np.nan, dtype=np.complex128)
    errors = np.full((size, count), np.nan)
    models = [make_model(k) for k in range(size)]
    for k, changed in enumerate(models):
        eigenvalues[k], errors[k] = compute_rightmost(changed, count)
    unstable = [count_growing(changed) for changed in models]
    return DelaySweep(axes, eigenvalues, errors, np.array(unstable), locate_changes(make_model, unstable))


def compute_rightmost(model: DelayedLinearModel, count: int) -> tuple[NDArray[np.complex128], FloatArray]:
    """Return the rightmost eigenvalues and their errors, (count,) each; NaN where there are fewer."""
    eigenvalues = np.full(count, np.nan, dtype=np.complex128)
    errors = np.full(count, np.nan)
    rightmost = model.eigenvalues(max(count, FIRST_EIGENVALUE_COUNT))[-count:]  # of a pair that is split, one
    eigenvalues[count - len(rightmost) :] = rightmost
    errors[count - len(rightmost) :] = model.eigenvalue_errors(max(count, FIRST_EIGENVALUE_COUNT))[-count:]
    return eigenvalues, errors


def locate_changes(
    make_model: Callable[[float], DelayedLinearModel], unstable: Sequence[int | None]
) -> tuple[StabilityChange, ...]:
    """Return where the number of eigenvalues that grow changes between the positions 0, 1, ... of a sweep.

    ``unstable`` are the numbers there; with None nothing is located.
    """
    changes = []
    for k, (low, high) in enumerate(pairwise(unstable)):
        if low is None or high is None:
            continue
        for position, before, after in _find_changes(make_model, (k, low), (k + 1, high)):
            at = make_model(position)
            crossing = _select_eigenvalue(at, min(before, after))
            changes.append(StabilityChange(at.delays, abs(crossing.imag), before, after))
    return tuple(changes)


def count_growing(model: DelayedLinearModel) -> int:
    """Return how many eigenvalues grow, each by more than its error."""
    count = FIRST_EIGENVALUE_COUNT
    while True:
        values, errors = model.eigenvalues(count), SAFETY_FACTOR * model.eigenvalue_errors(count)
        growing = int(np.count_nonzero(values.real > errors))
        if growing < len(values) or len(values) < count:
            return growing
        count *= 2


def _find_changes(
    make_model: Callable[[float], DelayedLinearModel],
    low: tuple[float, int],
    high: tuple[float, int],
    depth: int = 0,
) -> Iterator[tuple[float, int, int]]:
    """Yield where single eigenvalues or pairs cross the imaginary axis between two positions, and both numbers."""
    (start, before), (end, after) = low, high
    if before == after:
        return
    if abs(after - before) > 2 and depth < MAX_BISECTION_COUNT:
        middle = (start + end) / 2
        between = middle, count_growing(make_model(middle))
        yield from _find_changes(make_model, low, between, depth + 1)
        yield from _find_changes(make_model, between, high, depth + 1)
        return
    yield _solve_crossing(make_model, start, end, min(before, after)), before, after


def _solve_crossing(make_model: Callable[[float], DelayedLinearModel], start: float, end: float, number: int) -> float:
    """Return where the real part of the eigenvalue of a number, counted from the right, is zero.

    It is followed by Newton's method alone. Where that loses it, all rightmost eigenvalues are computed at each
    position.
    """
    first, last = (_select_eigenvalue(make_model(position), number) for position in (start, end))
    if first.real * last.real >= 0:  # one of the two lies on the axis within rounding
        return end if abs(last.real) < abs(first.real) else start
    crossings: dict[float, complex] = {start: first, end: last}

    def follow(position: float) -> float:
        if position not in crossings:
            form = make_model(position).form.close_undelayed()
            nearest = crossings[min(crossings, key=lambda other: (other == start, abs(other - position)))]
            crossings[position] = solve_newton(form, nearest) or complex(math.nan)
        return crossings[position].real

    def compute(position: float) -> float:
        return _select_eigenvalue(make_model(position), number).real

    position = _find_zero(follow, start, end)
    if not math.isnan(position):
        crossing = _select_eigenvalue(make_model(position), number)
        if abs(crossing.real) <= CROSSING_TOLERANCE * abs(crossing.imag):
            return position
    return _find_zero(compute, start, end)


def _find_zero(function: Callable[[float], float], start: float, end: float) -> float:
    from scipy.optimize import brentq

    return float(brentq(function, start, end, xtol=POSITION_TOLERANCE, disp=False))


def _select_eigenvalue(model: DelayedLinearModel, number: int) -> complex:
    """Return the eigenvalue of this number, from 0, counted from the right; pairs may be split in either way."""
    values: NDArray[np.complex128] = model.eigenvalues(max(number + 1, FIRST_EIGENVALUE_COUNT))
    ordered = values[np.argsort(-values.real, kind="stable")]
    return complex(ordered[min(number, len(ordered) - 1)])
