"""Uniform motions of points: how fast and how curved they are, and whether A stays the same along them.

With x' = f(x) the second derivatives along the motion are x'' = J f. Where all coordinates move uniformly the states
follow from the constraints alone, and the rates there show whether that is the motion. A second A further on, compared
along one direction through all columns, confirms it. Every array has a leading axis: one point is a batch of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from functools import cache, cached_property
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmilin.manifold.continued_motion import SHORT_STEP, ContinuedMotion, Mask, Subset
from fmilin.manifold.derivatives import NUMBERS_IN_CACHE, TangentDerivatives
from fmilin.manifold.rank import fixed_direction
from fmilin.numerics.balanced import HIDDEN_ROUNDING_RATE, is_equilibrium
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass
from fmilin.tolerances import (
    CONSTANT_JACOBIAN_TOLERANCE,
    EQUILIBRIUM_RATE_TOLERANCE,
    EXACT_BALANCE_TOLERANCE,
    ROUNDING_TOLERANCE,
    STEADY_RATE_TOLERANCE,
    UNIFORM_RATE_TOLERANCE,
)

COMPARISON_TIME = 0.3
"""How far further on the motion is compared, in times that its fastest state takes to move by its size; three times
that of the slowest state."""

COMPARISON_SEED = 1851  # of the direction in which A is compared
SLOWEST_RATE = 1e-3  # below this fraction of the fastest rate a state is not waited for
OFFSET_SIZE = 0.3  # sizes by which states that nothing depends on are moved, less than a quaternion's components
DISPLACEMENT_SIGNS = (1.0, -1.0, 1.0)  # of the motion, to which it is displaced at three moments
LATEST_TIME_FACTOR = 2.2  # times as late until A is compared for the last time along a motion that is not curved
LATEST_CURVED_TIME_FACTOR = 2.0  # the same where it is curved: an expansion to second order leads no further
MAX_TURNING_COORDINATES = 40  # with more the eigenvalues are not compared: that may take an evaluation for each
TURNING_POWER_TOLERANCE = 0.1  # of the terms of x' x'' in one unit: what is left of them where vectors turn
EIGENVALUE_CHANGE = 1e-2  # gap of eigenvalues that counts as zero, over the change of A
EIGENVALUE_ROUNDING = 1e-7  # gap of eigenvalues that counts as zero, over their size
SMALL_EIGENVALUE = 1e-3  # over the largest: it may be a multiple zero
DEFECTIVE_SPREAD_RATIO = 1e-4  # over the largest: how far a multiple zero is spread
SLOW_ROW_RATIO = 1e-2  # of the motion's own rate: slower rows may change as they like, the motion sees their mean
NOISE_MARGIN = 10.0  # times the error of a difference at the point: smaller changes count as zero
EQUAL_SPEED_RATIO = 1 - 1e-9  # speeds above this part of the largest are as large


def find_fastest_states(derivatives: TangentDerivatives, sizes: FloatArray) -> NDArray[np.intp]:
    """Return the states that move fastest in their sizes (k, N), shape (k,), the first of equally fast ones.

    Those of points at rest are -1. Rates that are rounding of their terms count as zero.
    """
    rates, terms = derivatives.rates, derivatives.rate_sizes.terms
    speeds = np.abs(rates)
    moving = speeds > np.maximum(HIDDEN_ROUNDING_RATE * sizes, ROUNDING_TOLERANCE * terms)
    small = moving.any(axis=1) & (
        speeds <= np.maximum(EQUILIBRIUM_RATE_TOLERANCE * sizes, EXACT_BALANCE_TOLERANCE * terms)
    ).all(axis=1)
    for k in np.flatnonzero(small) if small.any() else ():
        in_sizes = derivatives.f[k] * derivatives.scales[k]
        errors = np.broadcast_to(derivatives.errors[k, : rates.shape[1]], in_sizes.shape)
        moving[k] &= not is_equilibrium(rates[k], sizes[k], in_sizes, errors, derivatives.order)
    if not moving.any():
        return np.full(len(rates), -1, dtype=np.intp)
    speeds_moving = np.where(moving, speeds / sizes, -1.0)
    first = np.argmax(speeds_moving >= EQUAL_SPEED_RATIO * speeds_moving.max(axis=1, keepdims=True), axis=1)
    return np.asarray(np.where(moving.any(axis=1), first, -1))


def find_uninfluential(derivatives: FloatArray, errors: FloatArray, sizes: FloatArray) -> Mask:
    """Return on which columns (k, n) no rate depends, from derivatives (k, N, n) along variables of ``sizes`` (k, n).

    ``errors`` are those of derivatives times sizes.
    """
    # Ten times, here and below: errors of derivatives are estimates of their order of magnitude.
    effects, noise = np.abs(derivatives) * sizes[:, None], 10 * errors
    rounding = ROUNDING_TOLERANCE * effects.max(axis=2, initial=0.0, keepdims=True)
    return np.asarray((effects <= rounding + noise).all(axis=1))


@dataclass(frozen=True, eq=False)
class MovingBatch:
    """k points in motion: x' (k, N), y' (k, P), derivatives of x' along y (k, N, P) with errors, and sizes."""

    rates: FloatArray
    y_rates: FloatArray
    f_y: FloatArray
    f_y_error: FloatArray  # times the sizes of y, (k, N, P), or (k, N, 1) where those of a row are the same
    largest: FloatArray  # of each row of the derivatives along y and u, in sizes of these, (k, N)
    sizes: FloatArray  # shape (k, N)
    y_sizes: FloatArray  # shape (k, P)
    relative_rates: FloatArray  # |x'| (k, N) in nominal sizes per second, however far an angle has turned

    def __getitem__(self, subset: NDArray[np.intp]) -> MovingBatch:
        part = MovingBatch(**{f.name: getattr(self, f.name)[subset] for f in fields(self)})
        vars(part)["accelerations"] = self.accelerations[subset]  # not computed again
        return part

    @cached_property
    def fastest_rate(self) -> FloatArray:
        """The rate of the fastest state, in nominal sizes per second, shape (k,)."""
        return np.asarray(self.relative_rates.max(axis=1, initial=0.0))

    @cached_property
    def accelerations(self) -> FloatArray:
        """The second derivatives x'' (k, N) beyond their rounding and errors, else 0.

        Rates that a trim leaves where it seeks rest have no part in them.
        """
        fastest = self.fastest_rate[:, None]
        moving = np.where(np.abs(self.y_rates) > STEADY_RATE_TOLERANCE * fastest * self.y_sizes, self.y_rates, 0.0)[
            ..., None
        ]
        second = (self.f_y @ moving)[..., 0]
        in_sizes = np.abs(moving) / self.y_sizes[..., None]
        total = in_sizes.sum(axis=1)
        is_same_in_rows = self.f_y_error.shape[2] == 1
        errors = self.f_y_error[..., 0] * total if is_same_in_rows else (self.f_y_error @ in_sizes)[..., 0]
        size, noise = np.abs(second), 10 * errors + ROUNDING_TOLERANCE * fastest**2 * self.sizes
        # The terms of a row are at most its largest entry times the total: most rows are decided without their sum.
        is_significant = size > UNIFORM_RATE_TOLERANCE * self.largest * total + noise
        points = ((size > noise) & ~is_significant).any(axis=1)
        if points.any():
            terms = (np.abs(self.f_y[points]) @ np.abs(moving[points]))[..., 0]
            is_significant[points] = size[points] > UNIFORM_RATE_TOLERANCE * terms + noise[points]
        return np.where(is_significant, second, 0.0)

    def compute_comparison_times(self) -> tuple[FloatArray, FloatArray]:
        """Return when the motion is compared, in s, each (k,): soon, and when its slowest part has moved far enough."""
        rates = np.concatenate((self.relative_rates, np.sqrt(np.abs(self.accelerations) / self.sizes)), axis=1)
        slowest = np.where(rates > SLOWEST_RATE * self.fastest_rate[:, None], rates, np.inf).min(axis=1, initial=np.inf)
        return COMPARISON_TIME / self.fastest_rate, 3 * COMPARISON_TIME / np.minimum(slowest, self.fastest_rate)


class UniformMotion(NamedTuple):
    """Coordinates that may move uniformly."""

    rates: FloatArray  # y', shape (k, P)
    sizes: FloatArray  # shape (k, P)
    A: FloatArray  # shape (k, P, P)
    leading: Mask  # which must be steady, shape (k, P): not those that are a state on which nothing depends


class Change(NamedTuple):
    """By which part rows of A change along the motion, at most; NaN where that was not compared."""

    part: FloatArray
    later: FloatArray  # how much later that was observed, in s
    turning: Mask  # where its eigenvalues do not change: the coordinates turn with the motion

    @classmethod
    def not_compared(cls, count: int) -> Change:
        """Return that of points at which nothing was compared."""
        return cls(np.full(count, np.nan), np.full(count, np.nan), np.zeros(count, dtype=bool))

    @property
    def is_compared(self) -> Mask:
        """Where A was compared, shape (k,)."""
        return ~np.isnan(self.part)

    def copy(self) -> Change:
        """Return the same, to which more may be written."""
        return Change(self.part.copy(), self.later.copy(), self.turning.copy())

    def write(self, subset: Subset, change: Change) -> None:
        """Write the change at some of the points."""
        for values, part in zip(self, change, strict=True):
            values[subset] = part


class Confirmation(NamedTuple):
    """Where a motion is steady, and what of it is not."""

    steady: Mask  # (k,)
    carried: Mask  # (k, P), coordinates on which nothing depends, with rates or rows of A that change all the same
    later: FloatArray  # (k,), how much later that was observed, in s
    changed: Mask  # (k, N), which rates x' changed
    falls: Mask  # (k,), where all would be steady, and some rates grow for ever as they do now
    good: Mask  # (k,), where the model further on could be evaluated


def confirm_steady(at: MovingBatch, uniform: UniformMotion, continued: ContinuedMotion) -> Confirmation:
    """Continue uniformly, and find out whether rates and A stay what they are."""
    fastest, leading = at.fastest_rate[:, None], uniform.leading
    limit = UNIFORM_RATE_TOLERANCE * fastest * uniform.sizes
    steady, same = np.ones(len(limit), dtype=bool), np.ones(limit.shape, dtype=bool)
    changed, good = np.zeros(at.rates.shape, dtype=bool), np.ones(len(limit), dtype=bool)
    # Nothing depends on the states that need not be steady, wherever they are.
    path, times = np.where(leading, uniform.rates, 0.0), at.compute_comparison_times()
    direction = _direction(uniform.sizes)
    steps = continued.list_displacements(direction)
    offset = None if leading.all() else np.where(leading, 0.0, OFFSET_SIZE * uniform.sizes)
    evaluated = continued.advance_and_displace(path, times, steps, offset)
    accelerations = []
    for ahead in islice(evaluated, len(times)):
        # Where no point is reached, no time has passed, and the rates are NaN.
        accelerations.append((ahead.rates - uniform.rates) / np.maximum(ahead.later, 1e-300)[:, None])
        changed |= ahead.good[:, None] & ~(np.abs(ahead.f - at.rates) <= UNIFORM_RATE_TOLERANCE * fastest * at.sizes)
        same &= np.abs(ahead.rates - uniform.rates) <= limit
        good &= ahead.good
        steady &= good & (same | ~leading).all(axis=1)
        # No motion is left that may be steady: the other evaluations are saved.
        if not steady.any():
            return Confirmation(steady, ~same, ahead.later, changed, np.zeros_like(steady), good)
    # Accelerations of bodies that turn change further on, those of bodies that fall do not.
    falls = ~same & (np.abs(np.ptp(accelerations, axis=0)) <= UNIFORM_RATE_TOLERANCE * np.abs(accelerations[-1]))
    falling = steady & falls.any(axis=1)
    steady &= ~falling
    at_point = (uniform.A @ direction[..., None])[..., 0]
    largest = (np.abs(uniform.A) * uniform.sizes[:, None]).max(axis=2, initial=0.0)
    tolerance = CONSTANT_JACOBIAN_TOLERANCE * np.maximum(largest, fastest * uniform.sizes)
    derivatives, differentiated = continued.differentiate(ahead, list(islice(evaluated, len(steps))))
    same &= np.abs(derivatives - at_point) <= tolerance
    good &= differentiated
    steady &= good & (same | ~leading).all(axis=1)
    if not leading.all() and steady.any():
        displaced = next(evaluated)
        still = displaced.good & (np.abs(displaced.rates - ahead.rates) <= limit).all(axis=1)
        # A may depend on a rotor's angle although no rate does.
        derivatives, differentiated = continued.differentiate(displaced, list(evaluated))
        still &= differentiated & ((np.abs(derivatives - at_point) <= tolerance) | ~leading).all(axis=1)
        good &= leading.all(axis=1) | (displaced.good & differentiated)
        steady &= leading.all(axis=1) | still
    return Confirmation(steady, ~same, ahead.later, changed, falling, good)


def compare_motion(
    at: MovingBatch, uniform: UniformMotion, curvature: FloatArray, continued: ContinuedMotion, turns: Mask
) -> Change:
    """Compare leading rows of A along a motion with y'' = curvature (k, P).

    Where it ``turns`` (k,) and A changes, the eigenvalues of A are compared.
    """
    direction, times = _direction(uniform.sizes), _comparison_times(at, curvature, uniform.leading)
    first = (uniform.A @ direction[..., None])[..., 0]
    noise, good = np.zeros(()), np.ones(len(curvature), dtype=bool)
    # The difference at the point itself shows the error of the differences further on.
    times = times if continued.exact else [0 * times[0], *times]
    ahead = list(continued.advance_with_derivatives(uniform.rates, times, curvature, direction))
    at_point = None
    if not continued.exact:
        at_point, measured = ahead.pop(0)
        first, noise, good = measured, NOISE_MARGIN * np.abs(measured - first), at_point.good
    part, when, turning = Change.not_compared(len(curvature))
    for points, derivatives in ahead:
        gap = np.abs(derivatives - first)
        relative = np.where((gap > noise) & uniform.leading, gap / _row_sizes(at, uniform, derivatives), 0.0)
        observed = np.where(good & points.good, relative.max(axis=1, initial=0.0), np.nan)
        # The last time at which A is the same, else the first at which it changes most.
        still_same = (observed <= CONSTANT_JACOBIAN_TOLERANCE) & ~(part > CONSTANT_JACOBIAN_TOLERANCE)
        better = still_same | (observed > CONSTANT_JACOBIAN_TOLERANCE) & ~(observed <= part)
        part, when = np.where(better, observed, part), np.where(better, points.later, when)
    changing = turns & (part > CONSTANT_JACOBIAN_TOLERANCE)
    if changing.any() and curvature.shape[1] <= MAX_TURNING_COORDINATES:
        A = uniform.A[changing] if at_point is None else continued.compute_A(at_point, uniform.sizes, changing)
        A_ahead = continued.compute_A(points, uniform.sizes, changing)
        sizes = uniform.sizes[changing]
        scaling = sizes[:, None] / sizes[..., None]
        turning[changing] = _same_spectrum(A * scaling, A_ahead * scaling, part[changing])
    return Change(part, when, turning)


def _comparison_times(at: MovingBatch, curvature: FloatArray, leading: Mask) -> list[FloatArray]:
    """Return when A is compared, in s, each (k,)."""
    soon, later = at.compute_comparison_times()
    straight = is_straight(curvature, leading)
    last = np.where(straight, LATEST_TIME_FACTOR * later, LATEST_CURVED_TIME_FACTOR * soon)
    return [soon, np.where(straight, later, last), last] if straight.any() else [last]


def _row_sizes(at: MovingBatch, uniform: UniformMotion, derivatives: FloatArray | float = 0.0) -> FloatArray:
    """Return what changes of derivatives along the direction are compared with, shape (k, P)."""
    rates = (uniform.leading * np.abs(uniform.rates) / uniform.sizes).max(axis=1, initial=0.0)
    # A long way travelled hides no change.
    rate = np.where(rates > SLOWEST_RATE * at.fastest_rate, rates, at.fastest_rate)[:, None]
    terms = (np.abs(uniform.A) @ _direction(uniform.sizes)[..., None])[..., 0]
    return np.maximum(np.maximum(terms, np.abs(derivatives)), SLOW_ROW_RATIO * rate * uniform.sizes)


def detect_falls(at: MovingBatch, uniform: UniformMotion, curvature: FloatArray, continued: ContinuedMotion) -> Change:
    """Return the change of A where all rates continue as A predicts and A stays the same: a fall; NaN elsewhere."""
    step, times = SHORT_STEP * _direction(uniform.sizes), _comparison_times(at, curvature, uniform.leading)
    gaps, good = [], np.ones(len(curvature), dtype=bool)
    # Alternating sides distinguish another A from the error of a difference, which is the same on both sides.
    offsets = [sign * step for sign in DISPLACEMENT_SIGNS]
    for ahead, t, offset in zip(
        continued.advance(uniform.rates, times, curvature, offsets), times, offsets, strict=True
    ):
        displacement = t[:, None] * uniform.rates + t[:, None] ** 2 / 2 * curvature + offset
        gaps.append(ahead.rates - uniform.rates - (uniform.A @ displacement[..., None])[..., 0])
        as_predicted = np.abs(gaps[-1]) <= UNIFORM_RATE_TOLERANCE * at.fastest_rate[:, None] * uniform.sizes
        good &= ahead.good & as_predicted.all(axis=1)
    part = (np.ptp(gaps, axis=0) / _row_sizes(at, uniform)).max(axis=1, initial=0.0) / SHORT_STEP
    falls = good & (part <= CONSTANT_JACOBIAN_TOLERANCE)
    return Change(np.where(falls, part, np.nan), np.where(falls, times[-1], np.nan), np.zeros_like(falls))


def may_turn(at: MovingBatch, independent: Sequence[int], leading: Mask, units: Sequence[str]) -> Mask:
    """Return where the speed in each unit stays, (k,): vectors that turn keep their lengths, x' x'' = 0."""
    power = at.rates * at.accelerations
    power[:, list(independent)] = np.where(leading, power[:, list(independent)], 0.0)
    of_units = sort_by_unit(tuple(units))
    return np.asarray((np.abs(power @ of_units) <= TURNING_POWER_TOLERANCE * (np.abs(power) @ of_units)).all(axis=1))


@cache
def sort_by_unit(units: tuple[str, ...]) -> FloatArray:
    """Return which of the states has which unit, (N, number of units), not to be written to."""
    return np.array([[unit == other for unit in dict.fromkeys(units)] for other in units], dtype=np.float64)


def _same_spectrum(A: FloatArray, B: FloatArray, part: FloatArray) -> Mask:
    """Return where two matrices (k, P, P) that differ by such a part (k,) have the same eigenvalues."""
    from scipy.optimize import linear_sum_assignment

    same = np.asarray(np.isfinite(A).all(axis=(1, 2)) & np.isfinite(B).all(axis=(1, 2)))
    first, last = (np.linalg.eigvals(np.where(same[:, None, None], M, 0.0)) for M in (A, B))
    # Most pairs of spectra differ in their moduli.
    moduli = np.sort(np.abs(first), axis=1), np.sort(np.abs(last), axis=1)
    most = (EIGENVALUE_CHANGE * part + EIGENVALUE_ROUNDING + DEFECTIVE_SPREAD_RATIO) * moduli[0].max(axis=1)
    same &= np.abs(moduli[0] - moduli[1]).max(axis=1) <= most
    for k in np.flatnonzero(same):
        a, b = first[k], last[k]
        gaps, sizes = np.abs(a[:, None] - b), np.abs(a)
        pairs = linear_sum_assignment(gaps)
        defective = np.where(sizes < SMALL_EIGENVALUE * sizes.max(), DEFECTIVE_SPREAD_RATIO * sizes.max(), 0.0)
        allowed = (EIGENVALUE_CHANGE * part[k] + EIGENVALUE_ROUNDING) * sizes + defective
        same[k] = bool((gaps[pairs] <= allowed).all())
    return same


def _influential(dependence: Mask) -> Mask:
    """Return on which coordinates (k, P) others depend, except those that nothing depends on, as a track's."""
    leading = np.asarray(dependence.any(axis=1))
    for _ in range(dependence.shape[1]):
        if leading.all():
            break
        fewer = np.asarray((dependence & leading[:, :, None]).any(axis=1))
        if (fewer == leading).all():
            break
        leading = fewer
    return leading


def find_comparable(at: MovingBatch, curvature: FloatArray, A: FloatArray, errors: FloatArray) -> tuple[Mask, Mask]:
    """Return where A is compared (k,), on straight motions and those with speeds, and which coordinates lead (k, P).

    ``errors`` are those of A times the sizes of y.
    """
    dependence = find_dependence(A, errors, at.y_sizes)
    leading = _influential(dependence)
    # A motion that begins from rest does not move yet; a curved one without a speed is on its way to a rest.
    moving = np.abs(at.y_rates) > STEADY_RATE_TOLERANCE * at.fastest_rate[:, None] * at.y_sizes
    first = dependence.argmax(axis=2)  # that each row depends on
    rows = np.arange(A.shape[1])
    is_one = np.abs(A[np.arange(len(A))[:, None], rows, first] - 1.0) <= UNIFORM_RATE_TOLERANCE
    speeds = moving & is_one & (first != rows)
    points, subset = np.nonzero(speeds)
    speeds[points, subset] = dependence[points, subset].sum(axis=1) == 1
    return np.asarray(speeds.any(axis=1) | is_straight(curvature, leading)), leading


def find_dependence(A: FloatArray, errors: FloatArray, y_sizes: FloatArray) -> Mask:
    """Return which y' depend on which y, (k, P, P): entries of A beyond their errors, which are times sizes of y."""
    dependence = np.empty(A.shape, dtype=bool)
    step = max(1, NUMBERS_IN_CACHE // max(1, A.shape[1] * A.shape[2]))
    for begin in range(0, len(A), step):
        subset = slice(begin, begin + step)
        entries = np.abs(A[subset]) * y_sizes[subset, None]
        noise = 10 * errors[subset] + ROUNDING_TOLERANCE * entries.max(axis=2, initial=0.0, keepdims=True)
        dependence[subset] = entries > noise
    return dependence


def is_straight(curvature: FloatArray, leading: Mask) -> Mask:
    """Return where nothing on which something depends is curved, shape (k,)."""
    return np.asarray(~((curvature != 0) & leading).any(axis=1))


def _direction(sizes: FloatArray) -> FloatArray:
    """Return a direction (k, P) in which A is compared, the same at every call."""
    return fixed_direction(COMPARISON_SEED, 0.5, sizes.shape[1]) * sizes
