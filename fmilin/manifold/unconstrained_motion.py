"""How one point without constraints moves, and how A changes along its motion.

It does for one point what :mod:`fmilin.manifold.point_motion` does for any.

The coordinates are all states, so that there are no others in which the motion may be steady, and the model is
evaluated near the point without a search for the manifold. What is computed is that of
:mod:`fmilin.manifold.uniform`, in arrays without an axis over points: loops of calls have no time for more.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fmilin.manifold.continued_motion import SHORT_STEP, Mask
from fmilin.manifold.rank import fixed_direction
from fmilin.manifold.uniform import (
    COMPARISON_SEED,
    COMPARISON_TIME,
    EQUAL_SPEED_RATIO,
    LATEST_CURVED_TIME_FACTOR,
    LATEST_TIME_FACTOR,
    NOISE_MARGIN,
    SLOW_ROW_RATIO,
    SLOWEST_RATE,
    TURNING_POWER_TOLERANCE,
    sort_by_unit,
)
from fmilin.numerics.balanced import HIDDEN_ROUNDING_RATE
from fmilin.signals import FloatArray
from fmilin.tolerances import (
    CONSTANT_JACOBIAN_TOLERANCE,
    EQUILIBRIUM_RATE_TOLERANCE,
    EXACT_BALANCE_TOLERANCE,
    ROUNDING_TOLERANCE,
    STEADY_RATE_TOLERANCE,
    UNIFORM_RATE_TOLERANCE,
)

AT_REST_CODE = -1
NOT_DECIDED_CODE = -2  # rates so small that a Newton step decides


def find_fastest_state(rates: FloatArray, sizes: FloatArray, terms: FloatArray) -> int:
    """Return the state that moves fastest in its size, or :data:`AT_REST_CODE`, or :data:`NOT_DECIDED_CODE`.

    ``terms`` (N,) are the sums of the entries of the derivatives of the rates, in sizes of their variables.
    """
    speeds = np.abs(rates)
    moving = speeds > np.maximum(HIDDEN_ROUNDING_RATE * sizes, ROUNDING_TOLERANCE * terms)
    if not moving.any():
        return AT_REST_CODE
    # More than rounding, and yet so slow that it passes for an equilibrium.
    if (speeds <= np.maximum(EQUILIBRIUM_RATE_TOLERANCE * sizes, EXACT_BALANCE_TOLERANCE * terms)).all():
        return NOT_DECIDED_CODE
    moving_speeds = np.where(moving, speeds / sizes, -1.0)
    return int((moving_speeds >= EQUAL_SPEED_RATIO * moving_speeds.max()).argmax())


class FreePoint(NamedTuple):
    """A point in motion: x', A with its entries in sizes of the states, errors of its rows, and sizes."""

    states: FloatArray  # (N,)
    rates: FloatArray  # (N,)
    A: FloatArray  # (N, N)
    entries: FloatArray  # (N, N), |A| times the sizes of its columns
    errors: FloatArray  # (N,), of the rows of A, times the sizes of its columns
    largest: FloatArray  # (N,), of each row of the derivatives along states and inputs, in sizes of these
    sizes: FloatArray  # (N,)
    relative_rates: FloatArray  # |x'| (N,) in nominal sizes per second


class MotionComparison(NamedTuple):
    """Where the model is evaluated to compare A along the motion of a point, each moment on two sides."""

    point: FreePoint
    fastest_rate: float
    accelerations: FloatArray  # (N,)
    leading: Mask  # (N,), states on which others depend
    direction: FloatArray  # (N,), along which A is compared
    moments: list[float]  # how much later, in s; the first is 0
    states: FloatArray  # (2 m, N), on both sides of each of m moments

    @property
    def later(self) -> FloatArray:
        """How much later each of the states is reached, (2 m,)."""
        return np.repeat(self.moments, 2)

    def measure_change(self, rates: FloatArray) -> tuple[float, float]:
        """Return by which part A changes, at most, and how much later in s; from rates (2 m, N) at the states."""
        point, direction = self.point, self.direction
        derivatives = (rates[0::2] - rates[1::2]) / (2 * SHORT_STEP)
        first = derivatives[0]
        noise = NOISE_MARGIN * np.abs(first - point.A @ direction)
        gaps = np.abs(derivatives[1:] - first)
        lead_rate = float((self.leading * np.abs(point.rates) / point.sizes).max())
        # The rate of leading states: a long way along a track, on which nothing depends, hides no change.
        rate = lead_rate if lead_rate > SLOWEST_RATE * self.fastest_rate else self.fastest_rate
        terms = np.maximum(np.abs(point.A) @ direction, SLOW_ROW_RATIO * rate * point.sizes)
        sizes = np.maximum(terms, np.abs(derivatives[1:]))
        observed = np.where((gaps > noise) & self.leading, gaps / sizes, 0.0).max(axis=1).tolist()
        part, when = math.nan, math.nan
        for change, moment in zip(observed, self.moments[1:], strict=True):
            # The last time at which A is the same, else the first at which it changes most.
            still_same = change <= CONSTANT_JACOBIAN_TOLERANCE and not part > CONSTANT_JACOBIAN_TOLERANCE
            if still_same or (change > CONSTANT_JACOBIAN_TOLERANCE and not change <= part):
                part, when = change, moment
        return part, when

    def may_turn(self, units: tuple[str, ...]) -> bool:
        """Whether the speed in each unit stays: eigenvalues of A may be the same then although A changes."""
        power = np.where(self.leading, self.point.rates * self.accelerations, 0.0)
        of_units = sort_by_unit(units)
        return bool((np.abs(power @ of_units) <= TURNING_POWER_TOLERANCE * (np.abs(power) @ of_units)).all())


def plan_comparison(point: FreePoint) -> MotionComparison | None:
    """Return where A is compared along the motion; None where it is not: a curved motion without a speed."""
    rates, sizes, entries = point.rates, point.sizes, point.entries
    fastest_rate = float(point.relative_rates.max())
    is_moving = np.abs(rates) > STEADY_RATE_TOLERANCE * fastest_rate * sizes
    accelerations = compute_accelerations(point, np.where(is_moving, rates, 0.0), fastest_rate)
    # Ten times, here and below: errors of derivatives are estimates of their order of magnitude.
    noise = 10 * point.errors + ROUNDING_TOLERANCE * entries.max(axis=1)
    dependence = entries > noise[:, None]
    leading = find_leading_states(dependence)
    is_straight = not (accelerations[leading] != 0.0).any()
    if not is_straight and not has_speeds(point.A, dependence, is_moving):
        return None
    motion_rates = np.concatenate((point.relative_rates, np.sqrt(np.abs(accelerations) / sizes)))
    slowest = float(motion_rates.min(where=motion_rates > SLOWEST_RATE * fastest_rate, initial=np.inf))
    soon = COMPARISON_TIME / fastest_rate
    later = 3 * COMPARISON_TIME / min(slowest, fastest_rate)
    moments = [0.0, LATEST_CURVED_TIME_FACTOR * soon]
    if is_straight:
        moments = [0.0, soon, later, LATEST_TIME_FACTOR * later]
    direction = fixed_direction(COMPARISON_SEED, 0.5, len(sizes)) * sizes
    step = SHORT_STEP * direction
    states = np.empty((2 * len(moments), len(rates)))
    for row, moment in enumerate(moments):
        center = point.states + moment * rates
        if not is_straight:
            center += moment**2 / 2 * accelerations
        states[2 * row] = center + step
        states[2 * row + 1] = center - step
    return MotionComparison(point, fastest_rate, accelerations, leading, direction, moments, states)


def compute_accelerations(point: FreePoint, moving: FloatArray, fastest_rate: float) -> FloatArray:
    """Return the second derivatives x'' (N,) beyond their rounding and errors, else 0, from rates ``moving`` (N,)."""
    second = point.A @ moving
    total = float((np.abs(moving) / point.sizes).sum())
    size = np.abs(second)
    noise = (10 * total) * point.errors + ROUNDING_TOLERANCE * fastest_rate**2 * point.sizes
    # The terms of a row are at most its largest entry times the total: most rows are decided without their sum.
    is_significant = size > UNIFORM_RATE_TOLERANCE * total * point.largest + noise
    if ((size > noise) & ~is_significant).any():
        terms = np.abs(point.A) @ np.abs(moving)
        is_significant = size > UNIFORM_RATE_TOLERANCE * terms + noise
    return np.where(is_significant, second, 0.0)


def find_leading_states(dependence: Mask) -> Mask:
    """Return on which states (N,) others depend, except those that nothing depends on, as a track's."""
    leading = np.asarray(dependence.any(axis=0))
    while not leading.all():
        fewer = np.asarray(dependence[leading].any(axis=0))
        if (fewer == leading).all():
            break
        leading = fewer
    return leading


def has_speeds(A: FloatArray, dependence: Mask, is_moving: Mask) -> bool:
    """Whether a state that moves has another state as its rate."""
    rows = np.arange(len(A))
    first = dependence.argmax(axis=1)  # that each row depends on
    is_one = np.abs(A[rows, first] - 1.0) <= UNIFORM_RATE_TOLERANCE
    speeds = is_moving & is_one & (first != rows)
    return bool((dependence[speeds].sum(axis=1) == 1).any())
