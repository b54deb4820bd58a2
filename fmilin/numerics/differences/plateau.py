"""The slope of one entry from a step-size sweep: which plateau of the Richardson table it is, and where that ends.

A *plateau* is where E(h) = D(h/4) + (D(h/4) - D(h)) / 15 stands still; the one nearest to the point is the slope,
unless what differs is noise. Beyond it F(s) - F(0) - s E leaves zero: in several jumps, where the model rounds to their
height.
"""

from collections.abc import Callable

import numpy as np

from fmilin.numerics.differences.sweep import (
    CONSTANT_KINK_TOLERANCE,
    RATIO,
    StepSweep,
    find_stairs,
    jumps_at_point,
    kink_at_point,
    odd_remainder,
)  # fmt: skip
from fmilin.numerics.differences.thresholds import DRIFT_STEPS, JUMP_ROUNDING_RATIO, UNSEEN_ROUNDING_RATIO
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass
from fmilin.tolerances import EPS, MAX_ENTRY_ERROR

CONTRADICTION_FACTOR = 10.0  # A slope nearer to the point is another one when they differ by this many of their errors
PLATEAU_END_RATIO = 0.1  # of what the slope makes: where F is farther away from it than that, the plateau has ended
RIPPLE_RATIO = 1e-9
"""Of what the slope makes over the variable's size: a smaller wave is noise, if it changes the slope by little."""

RIPPLE_SLOPE_RATIO = 0.2  # of the largest slope of the row, that a ripple may change the slope by
MAX_COUNTED_ERROR = 0.9 * MAX_ENTRY_ERROR
"""The same that counts as error: more would be rejected, though what a ripple lies on is determined well."""

SMALL_JUMP_RATIO = 0.05  # the same up to which one jump near the point counts as error
DRIFT_ROUNDING_FACTOR = 10.0  # units of rounding by which E must change from step to step, to be seen to drift
MIN_DRIFT_RATIO = 1 / RATIO  # ratio of one change to the one before it, from which on it is a drift and no truncation
MAX_DRIFT_RATIO = 1.1 * RATIO  # the same up to which it is one: near a jump it is the ratio of the steps


@dataclass(frozen=True, slots=True)
class PlateauSlope:
    """The result of a step-size sweep for one entry."""

    slope: float
    error: float
    jump: float  # right slope minus left slope at the point; 0 where there is no kink, infinite where F itself jumps
    reach: float  # the step at which it holds no longer; infinite where it always does
    beyond: float  # the slope farther away


def plateau_slope(
    sweep: StepSweep, row: int, line: Callable[[float], FloatArray], noise: float = 0.0, size: float = 0.0
) -> PlateauSlope:
    """Return the slope of one row, its error, and how far it holds; ``size`` is the row's largest slope."""
    h, a, b, base = sweep.h, sweep.ahead[:, row], sweep.behind[:, row], float(sweep.base[row])
    ulp = 0.5 * np.spacing(np.maximum(np.maximum(np.abs(a), np.abs(b)), abs(base))) + noise
    D = (a - b) / (2 * h)
    E = D[1:] + (D[1:] - D[:-1]) / (RATIO**2 - 1)
    constant = jumps_at_point(h / sweep.scale, a - base, b - base, ulp)
    jumping = PlateauSlope(float(D[-1]), abs(float(D[-1])), np.inf, 0.0, float(D[0]))
    if constant[-1]:
        return _slope_at_jump(sweep, row, line, E, ulp) or jumping
    plateau = _plateau(sweep, row, E, ulp, line, size)
    slope, beyond = float(E[plateau.index]), float(E[plateau.outer if plateau.outer < plateau.index else 0])
    unit = ulp + h * plateau.error + _cancellation(sweep, size)
    bare = jumps_at_point(h / sweep.scale, a - base - h * slope, b - base + h * slope, unit)
    if not plateau.stairs and np.any(constant[plateau.index :] | bare[plateau.index :]):
        return jumping
    beyond_plateau = np.flatnonzero(
        np.abs(odd_remainder(sweep, row, slope)) > PLATEAU_END_RATIO * h * max(abs(slope), abs(beyond))
    )
    ends = len(beyond_plateau) > 0 and beyond_plateau[-1] < plateau.index and not plateau.stairs
    kink, rounded_off = kink_at_point(sweep, a + b - 2 * base, np.maximum(ulp, plateau.stairs), plateau.index)
    if rounded_off is not None:
        error = errors_of_plateaus(E, 2 * ulp[1:] / h[1:])
        finest = min(int(np.argmin(error[rounded_off:])) + rounded_off, len(E) - 1)
        return PlateauSlope(
            float(E[finest]), float(error[finest]), 0.0, float(h[rounded_off]), beyond if ends else slope
        )
    return PlateauSlope(slope, plateau.error, kink, float(h[beyond_plateau[-1]]) if ends else np.inf, beyond)


def _slope_at_jump(
    sweep: StepSweep, row: int, line: Callable[[float], FloatArray], E: FloatArray, ulp: FloatArray
) -> PlateauSlope | None:
    """Return the slope at the edge of a stair; None where the jump at the point is a switch."""
    h, base = sweep.h, sweep.base[row]
    error = errors_of_plateaus(E, 2 * ulp[1:] / h[1:])
    best = int(np.argmin(error))
    height = 0.0
    for trend, doubt in ((float(E[best]), float(error[best])), (0.0, 0.0)):
        height = height or find_stairs(sweep, row, trend, JUMP_ROUNDING_RATIO * ulp + h * doubt, len(h) - 1, line)[0]
    if height == 0.0:
        return None
    height = max(height, abs(sweep.ahead[-1, row] - base), abs(sweep.behind[-1, row] - base))
    error = errors_of_plateaus(E, 2 * height / h[1:])
    best = int(np.argmin(error))
    return PlateauSlope(float(E[best]), float(error[best]), 0.0, np.inf, float(E[best]))


@dataclass(frozen=True, slots=True)
class _Plateau:
    """Where E stands still: the index, the error there, the index of least error, and the height of stairs before."""

    index: int
    error: float
    outer: int
    stairs: float


def _plateau(
    sweep: StepSweep, row: int, E: FloatArray, ulp: FloatArray, line: Callable[[float], FloatArray], size: float
) -> _Plateau:
    """Return the plateau nearest to the point, unless it is a stair: then the nearest beyond the stairs."""
    h, quantum = sweep.h, 0.0
    error = errors_of_plateaus(E, 2 * ulp[1:] / h[1:])
    while True:
        outer = int(np.argmin(error))
        chosen, doubt = _nearest(E, error, outer, h / sweep.scale, size)
        unseen = UNSEEN_ROUNDING_RATIO * ulp + CONTRADICTION_FACTOR * h * error[chosen]
        jump, begin, change = find_stairs(sweep, row, float(E[chosen]), unseen, chosen, line)
        if jump <= 2 * quantum:
            if change <= SMALL_JUMP_RATIO * max(abs(float(E[chosen])), size):
                doubt = max(doubt, change)
            if not quantum:
                floor = np.maximum(ulp, _cancellation(sweep, size))
                doubt = max(doubt, _drift(E, chosen, 2 * floor[1:] / h[1:]))
            return _Plateau(chosen, max(float(error[chosen]), doubt), outer, quantum)
        quantum = jump
        outside = np.arange(len(E)) < begin  # both steps of a pair have left the first stair
        if not outside[:-1].any() or np.isinf(error[outside]).all():
            return _Plateau(chosen, max(float(error[chosen]), abs(float(E[chosen])), jump / h[0]), outer, quantum)
        ulp = np.maximum(ulp, jump)
        error = np.where(outside, errors_of_plateaus(E, jump / h[1:]), np.inf)


def _cancellation(sweep: StepSweep, size: float) -> float:
    """Return what may be lost of terms that cancel at the point: a rod's length squared, less 1."""
    return 0.5 * EPS * size * sweep.scale


def errors_of_plateaus(E: FloatArray, floor: FloatArray) -> FloatArray:
    """Return by how much E, (steps, ...), changes around each step, mostly on the finer side, at least the floor."""
    change = np.abs(np.diff(E, axis=0))
    error = np.full(E.shape, np.inf)
    count = len(change) - 2
    error[:count] = np.max([change[k : k + count] / RATIO**k for k in range(3)], axis=0)
    error[count] = 2 * np.maximum(change[count], change[count + 1] / RATIO)
    error[1:count] = np.maximum(error[1:count], change[: count - 1] / RATIO**4)
    return error + floor


def _nearest(E: FloatArray, error: FloatArray, chosen: int, h: FloatArray, size: float) -> tuple[int, float]:
    """Return the plateau nearest to the point and the doubt that remains; a ripple on it counts as noise."""
    while True:
        finer, change = np.arange(len(E)) > chosen, np.abs(E - E[chosen])
        large = max(abs(float(E[chosen])), size)
        ripple = (change <= RIPPLE_SLOPE_RATIO * large) & (change * h[:-1] <= RIPPLE_RATIO * large)
        contradicts = finer & (change > CONTRADICTION_FACTOR * (error + error[chosen]))
        against = contradicts & ~ripple
        if not against.any():
            return chosen, min(float(np.max(change, where=contradicts, initial=0.0)), MAX_COUNTED_ERROR * large)
        chosen = int(np.argmin(np.where(against, error, np.inf)))


def _drift(E: FloatArray, chosen: int, floor: FloatArray) -> float:
    """Return how far E goes on from a step by a power of h that is not h^2: slower, as of |x|^1.2, or up to a jump."""
    changes = np.diff(E)
    is_above_rounding = np.abs(changes) > DRIFT_ROUNDING_FACTOR * (floor[1:] + floor[:-1])
    worst = 0.0
    for k in range(max(chosen - DRIFT_STEPS, 0), len(changes) - 2):
        four = changes[k : k + 4]  # noise grows by the ratio of the steps, too: three would agree too often
        ratios = four[1:] / np.where(four[:-1] == 0, np.inf, four[:-1])
        ratio = float(ratios[-1])
        slow = ratio < 1
        drifts = slow or (len(four) == 4 and k >= chosen)
        if not (drifts and is_above_rounding[k : k + 4].all() and MIN_DRIFT_RATIO <= ratio <= MAX_DRIFT_RATIO):
            continue
        if np.ptp(ratios) > CONSTANT_KINK_TOLERANCE * ratios.max():
            continue
        tail = abs(float(four[-1])) * ratio / (1 - ratio) if slow else 0.0
        worst = max(worst, abs(float(E[k + len(four)] - E[chosen])) + tail)
    return worst
