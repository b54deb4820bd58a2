"""A function along a line: its noise, and its values at steps of eighteen decades, with jumps, stairs and kinks."""

from collections.abc import Callable, Sequence
from math import factorial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import ModelError, NumericalError
from fmilin.numerics.differences.thresholds import (
    CLEAR_ROUNDING_RATIO,
    JUMP_ROUNDING_RATIO,
    MIN_SWEEP_STEPS,
    SAME_STAIR_RATIO,
    VISIBLE_ROUNDING_RATIO,
)
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass
from fmilin.tolerances import SMALLEST_DIVISOR

S = TypeVar("S")
MAX_VALUE = 1e300  # of a value near the point
POINTS = 8  # values along the line, equally spaced and very close together
NOISE_SPACING_SIZE = 1e-8  # of these values, in sizes of the variables
NOISE_DIRECTION_SEED = 2013  # of the line's direction: any fixed one
_NOISE_AGREEMENT_FACTOR = 4.0  # three orders with estimates within this factor of each other show the noise


def noise_from_table(values: FloatArray) -> FloatArray:
    """Return the noise of each component (r,) from values (POINTS, r) on a tiny line, half a unit of rounding at least.

    ECNoise (Moré and Wild, SIAM Journal on Scientific Computing 33, 2011): sigma_k^2 = (k!)^2 / (2k)! mean((Delta^k
    F)^2), read where three orders k agree.
    """
    rounding = 0.5 * np.spacing(np.max(np.abs(values), axis=0))
    table = values
    levels = []
    for k in range(1, len(values) - 1):
        table = table[1:] - table[:-1]
        gamma = factorial(k) ** 2 / factorial(2 * k)
        levels.append(np.sqrt(gamma * (table**2).mean(axis=0)))
    sigma = np.array(levels)  # orders 1 .. POINTS - 2
    result = sigma[-1].copy()
    for k in range(len(sigma) - 3, 0, -1):  # the lowest order at which three agree
        three = sigma[k : k + 3]
        agree = three.max(axis=0) <= _NOISE_AGREEMENT_FACTOR * three.min(axis=0)
        result = np.where(agree, sigma[k], result)
    noise: FloatArray = np.maximum(result, rounding)
    return noise


def noise_level(function: Callable[[FloatArray], FloatArray], x: FloatArray, scales: FloatArray) -> FloatArray:
    """Return the noise of a function on a tiny line through x (n,), shape (r,); zero where it cannot be evaluated."""
    step = NOISE_SPACING_SIZE * scales * np.random.default_rng(NOISE_DIRECTION_SEED).uniform(0.5, 1.0, len(x))
    values = finite_values(function, *(x + k * step for k in range(POINTS)))
    return np.zeros_like(function(x)) if values is None else noise_from_table(np.array(values))


def finite_values(function: Callable[[S], FloatArray], *points: S) -> list[FloatArray] | None:
    """Return F at points; None where it cannot be evaluated at one of them, or is not a number."""
    try:
        values = [function(point) for point in points]
    except (ModelError, NumericalError):
        return None
    return values if are_numbers(values) else None


def are_numbers(values: Sequence[FloatArray] | FloatArray) -> bool:
    """Whether values can be reckoned with: differences of larger ones overflow."""
    return b"\0" not in (np.abs(values) < MAX_VALUE).tobytes()


RATIO = 4.0  # of a step to the next smaller one
MIN_STEP_SIZE = 2.0**-54
"""Step, in sizes of the variable; where the variable is not zero, none is smaller than :data:`LOST_DIGITS_FRACTION` "
"of it."""

LOST_DIGITS_FRACTION = 2.0**-50  # of a value: a shorter step from there is lost in its rounding
CONSTANT_KINK_TOLERANCE = (
    0.1  # second differences over h that stay the same to this part, from step to step, are a kink's
)
CONSTANT_JUMP_TOLERANCE = 1e-3  # changes of F that stay the same to this part are a jump's: noise does so less often
RUN_STEPS = 4  # steps over which they must
AT_POINT_STEP_SIZE = 2.0**-49  # in sizes of the variable: a jump as close as that counts as being at the point
MIN_STAIRS_COUNT = 4.0  # jumps of one height that are not accident
JUMP_SIZE_FRACTION = (
    0.02  # of what F changes by from one step to the next, that it changes by within 2^-14 of it: a jump
)
HALVINGS = 14  # of the interval of a change: 2^-14 of it tells a jump from a steep slope
DRAG_GROWTH_TOLERANCE = (
    0.02  # relative deviation of a growth from that of |s| s; looser: stairs that happen to grow alike are missed
)


@dataclass(frozen=True, slots=True)
class StepSweep:
    """F at K steps +-h along one column, largest first."""

    h: FloatArray  # shape (K,)
    ahead: FloatArray  # shape (K, r)
    behind: FloatArray  # shape (K, r)
    base: FloatArray  # shape (r,)
    scale: float  # the size of the variable

    @property
    def D(self) -> FloatArray:
        """Central differences, shape (K, r)."""
        return (self.ahead - self.behind) / (2 * self.h[:, None])


def list_sweep_steps(scale: float, value: float) -> list[float]:
    """Return the steps of a sweep from ``value`` along a column of this size, largest first."""
    h, least = power_of_two(scale), max(MIN_STEP_SIZE * scale, LOST_DIGITS_FRACTION * abs(value))
    steps = []
    while h >= least:
        steps.append(h)
        h /= RATIO
    return steps


def step_sweep(line: Callable[[float], FloatArray], base: FloatArray, scale: float, value: float) -> StepSweep | None:
    """Evaluate F at smaller and smaller steps from ``value`` along one column; None after six steps without values."""
    steps: list[float] = []
    pairs: list[list[FloatArray]] = []
    for h in list_sweep_steps(scale, value):
        pair = finite_values(line, h, -h)
        if pair is None:  # what lies beyond an event or the border of the domain says nothing about the point
            steps, pairs = [], []
        else:
            steps.append(h)
            pairs.append(pair)
    if len(steps) < MIN_SWEEP_STEPS:
        return None
    ahead, behind = (np.array(side) for side in zip(*pairs, strict=True))
    return StepSweep(np.array(steps), ahead, behind, base, scale)


def power_of_two(h: float) -> float:
    """Return the power of two nearest to a positive step: h and 2h are then exact, and so is their division."""
    return float(2.0 ** np.rint(np.log2(h)))


def odd_remainder(sweep: StepSweep, row: int, slope: float) -> FloatArray:
    """Return the odd part of F(s) - F(0) - s E, shape (K,)."""
    return (sweep.ahead[:, row] - sweep.behind[:, row]) / 2 - sweep.h * slope


def find_stairs(
    sweep: StepSweep, row: int, slope: float, error: FloatArray, chosen: int, line: Callable[[float], FloatArray]
) -> tuple[float, int, float]:
    """Return the height of stairs beyond a plateau (0: none), where they begin, and what a jump does to the slope."""
    h, remainder = sweep.h, odd_remainder(sweep, row, slope)

    def compute_remainder(s: float) -> float:
        return float(line(s)[row] - line(-s)[row]) / 2 - s * slope

    growths = np.abs(remainder[:-1]) / np.maximum(np.abs(remainder[1:]), SMALLEST_DIVISOR)
    # A remainder that grows as |s| s over two steps in a row is drag of a body at rest, not a stair: to search for a
    # jump costs 28 evaluations for each step, row and column.
    is_drag = np.abs(growths / RATIO**2 - 1.0) <= DRAG_GROWTH_TOLERANCE
    first, begin, change = 0.0, 0, 0.0
    for k in range(min(chosen, len(h) - 2), -1, -1):
        if abs(remainder[k]) <= error[k] or RATIO**3 / 2 <= growths[k] <= RATIO**3 * 2:
            continue
        if is_drag[k] and is_drag[min(k + 1, len(growths) - 1)]:
            continue
        height = _jump(compute_remainder, (h[k + 1], h[k]), (remainder[k + 1], remainder[k]))
        if first == 0.0:
            first, begin, change = height, k, height / float(h[k + 1])
        elif height > SAME_STAIR_RATIO * first:
            stairs = float(np.abs(remainder[: begin + 1]).max()) >= MIN_STAIRS_COUNT / 2 * first
            return (first, begin, change) if stairs else (0.0, 0, change)
    return 0.0, 0, change


def _jump(function: Callable[[float], float], interval: tuple[float, float], ends: tuple[float, float]) -> float:
    """Return the height of the jump in an interval, by bisection from the values at its ends; 0 if there is none."""
    (low, high), (at_low, at_high) = interval, ends
    largest = max(abs(at_high), abs(at_low))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        try:
            value = function(middle)
        except (ModelError, NumericalError):
            return 0.0
        if abs(value - at_low) >= abs(at_high - value):
            high, at_high = middle, value
        else:
            low, at_low = middle, value
    height = float(abs(at_high - at_low))
    return height if height > JUMP_SIZE_FRACTION * largest else 0.0


def jumps_at_point(h: FloatArray, forward: FloatArray, backward: FloatArray, ulp: FloatArray) -> NDArray[np.bool_]:
    """Return where runs of steps begin over which F is the same on one side (on both it is rounding), and not F(0)."""
    sides = np.stack((forward, backward))
    runs = np.lib.stride_tricks.sliding_window_view(sides, RUN_STEPS, axis=1)
    sizes, unit = np.abs(runs).max(axis=2), ulp[: runs.shape[1]]
    apart = np.abs(runs[0] - runs[1]).min(axis=1)
    same = (
        (np.ptp(runs, axis=2) <= np.maximum(CONSTANT_JUMP_TOLERANCE * sizes, 4 * unit))
        & (sizes > JUMP_ROUNDING_RATIO * unit)
        & (apart > CONSTANT_KINK_TOLERANCE * sizes)
    )
    steps = h >= AT_POINT_STEP_SIZE
    jumps = np.zeros(len(unit), dtype=np.bool_)
    for k in np.flatnonzero(same.any(axis=0)).tolist():
        finer = (np.abs(sides[:, k:] - sides[:, k, None])[:, steps[k:]] <= sizes[:, k, None] / 2).all(axis=1)
        jumps[k] = (same[:, k] & finer).any()
    return jumps


def kink_at_point(sweep: StepSweep, S: FloatArray, ulp: FloatArray, chosen: int) -> tuple[float, int | None]:
    """Return S / h of a kink that all finer steps show; else 0 and the first that does not: rounded off, or near."""
    h = sweep.h
    is_run_start = (h / sweep.scale >= AT_POINT_STEP_SIZE) & (np.arange(len(h)) < len(h) - RUN_STEPS)
    curvature, is_above_rounding = S / h, np.abs(S) > VISIBLE_ROUNDING_RATIO * ulp
    for k in range(len(h) - RUN_STEPS, -1, -1):
        run = slice(k, k + RUN_STEPS)
        finer = float(np.abs(S[k + RUN_STEPS :]).max(initial=0.0))
        if (
            k + RUN_STEPS - 1 < chosen or not is_above_rounding[run].all() or abs(S[k]) < VISIBLE_ROUNDING_RATIO * finer
        ):  # noise does not fall with h
            continue
        if np.ptp(curvature[run]) > CONSTANT_KINK_TOLERANCE * np.abs(curvature[run]).max():
            continue
        kink = float(np.mean(curvature[run]))
        none = (
            (np.abs(kink * h) > CLEAR_ROUNDING_RATIO * ulp) & (np.abs(curvature - kink) > abs(kink) / 2) & is_run_start
        )
        none[: k + RUN_STEPS] = False
        return (0.0, int(np.argmax(none))) if none.any() else (kink, None)
    return 0.0, None
