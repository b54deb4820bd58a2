"""Directional differences, along all columns at once: whether the slope of one step size holds at the others."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise

import numpy as np

from fmilin.numerics.differences.plateau import PLATEAU_END_RATIO, SMALL_JUMP_RATIO
from fmilin.numerics.differences.plateau_rows import plateau_slopes
from fmilin.numerics.differences.richardson import Column, DifferenceSetting, Line, Slopes, Terms, is_rough, is_rounding
from fmilin.numerics.differences.sweep import NOISE_SPACING_SIZE, finite_values, power_of_two, step_sweep
from fmilin.numerics.differences.thresholds import EQUAL_CHANGE_RATIO, JUMP_ROUNDING_RATIO
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass
from fmilin.tolerances import EPS, INACCURATE_ENTRY_ERROR, INDISTINCT_ROW_ERROR, KINK_TOLERANCE, SMALLEST_DIVISOR

FINE_STEP_SIZE = 2.0**-13  # A step, in sizes of the variables, at which the truncation error follows from two wide ones
STEPS = (
    FINE_STEP_SIZE,
    2.0**-20,
    2.0**-33,
    2.0**-40,
    2.0**-46,
)  # all; the noise was measured between the second and the third
WIDE_STEP_RATIO = 2.0**-3  # ratio of the two wide steps
KINK_STEP_SIZE = 2.0**-20  # the step at which a kink would show
SMOOTH_TERM_FACTOR = 10.0  # times what a smooth function adds beyond h^4
VISIBLE_NOISE_FACTOR = 12.0  # gaps up to this many times the noise over the step are noise
ONE_SIDED_NOISE_FACTOR = (
    5.0  # times the noise, that a difference on one side may have: it holds that of the point itself
)
ABSENT_NOISE_RATIO = 0.02  # differences below this part of the noise show that there is none so near to the point
STRAIGHT_SLOPE_RATIO = 0.2  # part of its slope by which a row may change its slope far away
STRAIGHT_PART = 4.0  # lengths that many times a step leave a slope over it as it is, to a tenth
NARROW_RANGE_SIZE = 1e-3  # A slope that holds over less than this part of the variable's size is reported
LONG_STEP_FRACTION = 1e-2  # of a length, a step
LAG_NOISE_FACTOR = 5.0  # times the noise, that a solver inside which starts from its last solution is more than noise
LAG_RATIO = 8.0  # times what was seen of it at steps of that ratio, that it may be between them
UNCLEAR_ENTRY_ERROR = 1e-6
DIRECTION_SEED = 1905  # any fixed one: equal calls give equal results, and no direction is an axis
CANCELLED_TERMS_RATIO = 1e3  # roundings of the terms of a row that cancel: sums of hundreds of terms
"""Error of an entry, relative to its row, for which other steps are tried where one column was not what it seemed."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The function near the point and far from it, apart from single columns."""

    function: Callable[[FloatArray], FloatArray]  # displacement of all columns, shape (k,) -> F, shape (r,)
    values: FloatArray  # (k,), of the columns' variables at the point
    # (r,), by how much F differs when it is evaluated at the point again, and what else is surely rounding
    repeat_error: FloatArray
    # each (r,), F far away along :func:`direction_of`, by the step in sizes of the variables, where it can be evaluated
    far_values: Mapping[float, FloatArray]
    # () -> (r,), by how much F at the point lags behind evaluations near it; requested where a result is suspicious
    lag: Callable[[], FloatArray] | None = None

    @property
    def far_pair(self) -> tuple[float, FloatArray, FloatArray] | None:
        """A wide step s with F(s d) and F(-s d), where these are numbers."""
        pairs = (
            (step, self.far_values[step], self.far_values[-step])
            for step in self.far_values
            if step > 0 and -step in self.far_values
        )
        with np.errstate(invalid="ignore"):  # infinite values of both signs
            return next((pair for pair in pairs if np.isfinite(pair[1] + pair[2]).all()), None)


def with_rounding(
    around: Surroundings, J: FloatArray, scales: FloatArray, terms: Terms | None, noise: FloatArray
) -> Surroundings:
    """Count as repeat error, too, what is left of rows with terms that all cancel."""
    if terms is None:
        return around
    slope = (np.abs(J) * scales).max(axis=1)
    size = terms(slope)
    rounding = np.where(is_rounding(slope, size, noise), 4 * EPS * size, 0.0)
    return replace(around, repeat_error=np.maximum(around.repeat_error, rounding))


def choose_direction(scales: FloatArray) -> FloatArray:
    """Return one direction through all columns, the same every time, shape (k,)."""
    return _direction(len(scales)) * scales


@cache
def _direction(count: int) -> FloatArray:
    random = np.random.default_rng(DIRECTION_SEED)
    return np.asarray(random.uniform(0.5, 1.0, count) * random.choice([-1.0, 1.0], count))


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A contradiction of derivatives by other step sizes; arrays (r,), in derivatives times sizes but the noise."""

    step: float | None  # where a row contradicts most clearly, in sizes of the variables; None when none does
    # what is left of the noise: at the smallest step, none may be seen of what is a feature and no noise
    noise: FloatArray
    gap: FloatArray  # by how much F along the direction, over :data:`FINE_STEP_SIZE`, is not what J says
    kink: FloatArray  # one that is seen as soon as what is smooth is taken away
    stairs: FloatArray  # what a slope may change by over the wide steps, where nothing closer to the point says so
    ripple: FloatArray  # by how much derivatives may differ close to the point, where smaller steps contradict


def directional_check(  # noqa: PLR0917 - all of them arrays of one measurement
    around: Surroundings,
    base: FloatArray,
    J: FloatArray,
    error: FloatArray,
    noise: FloatArray,
    scales: FloatArray,
    nearby: Sequence[FloatArray] = (),
) -> Contradiction:
    """Compare with J d at smaller steps and far away.

    ``nearby`` holds F (r,) at 1, 2, ... :data:`NOISE_SPACING_SIZE` along d.
    """
    d, nothing = choose_direction(scales), np.zeros(len(base))
    slope, doubt, size = J @ d, error @ np.abs(d), np.abs(J) @ np.abs(d)
    rounding = np.maximum(0.5 * np.spacing(np.abs(base)), EPS * size)
    rounding = np.maximum(rounding, np.abs(J) @ np.spacing(np.abs(around.values)))  # steps are rounded, too
    rounding = np.maximum(rounding, around.repeat_error)
    noise, wide, pairs = np.maximum(noise, rounding), _wide(around, d, slope), _pairs(around, d, base)
    if not pairs:
        return Contradiction(None, noise, nothing, nothing, nothing, nothing)
    gaps = {s: np.abs((ahead - behind) / (2 * s) - slope - wide.term * s**2) for s, (ahead, behind) in pairs.items()}
    least = min(gaps)
    noise = np.where(gaps[least] * least < ABSENT_NOISE_RATIO * noise, rounding, noise)
    allowed = {s: VISIBLE_NOISE_FACTOR * (noise / s + doubt) + wide.unsure * s**2 for s in gaps}
    kink = nothing
    if FINE_STEP_SIZE in pairs and KINK_STEP_SIZE in pairs:
        bends = {s: (ahead + behind) / s for s, (ahead, behind) in pairs.items()}
        kink = np.abs(bends[KINK_STEP_SIZE] - bends[FINE_STEP_SIZE] * KINK_STEP_SIZE / FINE_STEP_SIZE)
        kink = np.where(kink < VISIBLE_NOISE_FACTOR * noise / KINK_STEP_SIZE, 0.0, kink)
        if len(nearby):
            s = len(nearby) * NOISE_SPACING_SIZE
            gaps[s] = np.abs((nearby[-1] - base) / s - slope - bends[KINK_STEP_SIZE] / 2 * s / KINK_STEP_SIZE)
            allowed[s] = VISIBLE_NOISE_FACTOR * (ONE_SIDED_NOISE_FACTOR * noise / s + doubt)
    excess = {s: float(np.max(g / np.where(g > 0, allowed[s], 1.0), initial=0.0, where=g > 0)) for s, g in gaps.items()}
    bare = [(pairs[s][0] - s * slope, pairs[s][1] + s * slope) for s in STEPS[2:] if s in pairs]
    if any(_jumps(np.array(two), rounding) for two in pairwise(bare)):
        excess[least] = np.inf
    if _bends(around, base, slope, size, doubt):
        excess[max(map(abs, around.far_values))] = 2.0
    worst, gap, ripple = (
        max(excess, key=lambda s: excess[s]),
        gaps.get(FINE_STEP_SIZE, nothing),
        _ripple(gaps, allowed, nothing),
    )
    is_coarse_only = (gap > allowed.get(FINE_STEP_SIZE, nothing)) & (ripple == 0)
    stairs = np.where(is_coarse_only, gap * (wide.less / FINE_STEP_SIZE) ** 2, 0.0)
    return Contradiction(worst if excess[worst] > 1.0 else None, noise, gap, kink, stairs, ripple)


def list_compared_points(around: Surroundings, scales: FloatArray) -> list[FloatArray]:
    """Return the displacements (k,) at which :func:`directional_check` evaluates the function, in that order."""
    d = choose_direction(scales)
    less = [] if around.far_pair is None else [around.far_pair[0] * WIDE_STEP_RATIO]
    return [side * step * d for step in (*less, *STEPS) for side in (1.0, -1.0)]


def _pairs(around: Surroundings, d: FloatArray, base: FloatArray) -> dict[float, tuple[FloatArray, FloatArray]]:
    """Return F(s d) - F(0) and F(-s d) - F(0) by step s, where they have values."""
    values = {step: finite_values(around.function, step * d, -step * d) for step in STEPS}
    return {step: (pair[0] - base, pair[1] - base) for step, pair in values.items() if pair is not None}


def _ripple(gaps: Mapping[float, FloatArray], allowed: Mapping[float, FloatArray], nothing: FloatArray) -> FloatArray:
    """Return by how much (r,) derivatives may differ where smaller steps contradict: visible and hidden by rounding."""
    ripple = nothing
    for step in sorted((step for step in gaps if step < FINE_STEP_SIZE), reverse=True):
        ripple = np.where(gaps[step] > allowed[step], np.maximum(ripple, gaps[step]), ripple)
        ripple = np.where((ripple > 0) & (gaps[step] <= allowed[step]), np.maximum(ripple, allowed[step]), ripple)
    return ripple


@dataclass(frozen=True, slots=True)
class _Wide:
    """The h^2 term of central differences along the direction, per step squared, and its error, (r,)."""

    term: FloatArray
    unsure: FloatArray
    less: float  # the less wide of the two steps that it comes from


def _wide(around: Surroundings, d: FloatArray, slope: FloatArray) -> _Wide:
    """Take the h^2 term, apart from the h^4 term, from the difference far away and from another one."""
    undetermined = _Wide(np.zeros(len(slope)), np.abs(slope), 0.0)
    if around.far_pair is None:
        return undetermined
    wide, ahead, behind = around.far_pair
    less = wide * WIDE_STEP_RATIO
    pair = finite_values(around.function, less * d, -less * d)
    if pair is None:
        return undetermined
    at_wide = ((ahead - behind) / (2 * wide) - slope) / wide**2
    at_less = ((pair[0] - pair[1]) / (2 * less) - slope) / less**2
    quartic = (at_wide - at_less) / (wide**2 - less**2)
    term = at_less - quartic * less**2
    beyond = quartic**2 / np.maximum(np.maximum(np.abs(term), np.abs(at_wide)), SMALLEST_DIVISOR)
    return _Wide(term, SMOOTH_TERM_FACTOR * beyond * wide**2 * less**2, less)


def _jumps(changes: FloatArray, rounding: FloatArray) -> bool:
    """Whether F changes by the same at all steps (steps, 2, r): it jumps at the point."""
    sizes = np.abs(changes).max(axis=0)
    return bool(
        ((np.ptp(changes, axis=0) <= EQUAL_CHANGE_RATIO * sizes) & (sizes > JUMP_ROUNDING_RATIO * rounding)).any()
    )


def _bends(around: Surroundings, base: FloatArray, slope: FloatArray, size: FloatArray, doubt: FloatArray) -> bool:
    """Whether the slope says nothing about the change over a good part of the variables: a stair, or a deadzone."""
    if around.far_pair is None:
        return False
    step, ahead, behind = around.far_pair
    gap = np.abs((ahead - behind) / (2 * step) - slope)
    rounding = np.spacing(np.abs(base)) / step
    return bool((gap > STRAIGHT_SLOPE_RATIO * size + VISIBLE_NOISE_FACTOR * (doubt + rounding)).any())


def find_contradicting_columns(
    line: Line, step: float, J: FloatArray, error: FloatArray, noise: FloatArray, scales: FloatArray
) -> list[int]:
    """Return the columns that contradict J at a step; all of them where none does alone."""

    def contradicts(j: int, scale: float) -> bool:
        h = power_of_two(step * scale)
        pair = finite_values(partial(line, j), h, -h)
        if pair is None:
            return True
        rounding = np.maximum(noise, EPS * np.abs(J[:, j]) * scale)
        gap = np.abs((pair[0] - pair[1]) / (2 * h) - J[:, j])
        return bool((gap > VISIBLE_NOISE_FACTOR / 2 * (rounding / h + error[:, j])).any())

    return [j for j, scale in enumerate(scales) if contradicts(j, scale)] or list(range(len(scales)))


def correct_by_sweeps(
    setting: DifferenceSetting,
    measured: list[Column],
    slopes: Slopes,
    around: Surroundings,
    terms: Terms | None,
    nearby: list[FloatArray],
    *,
    close: tuple[DifferenceSetting, Surroundings, list[FloatArray]] | None = None,
) -> None:
    """Compare with smaller steps and with F where the noise was measured; sweep the columns that differ, in place.

    ``close``: the same over the lengths that good steps tell of, far below the sizes of some variables. Where all
    agrees over these, nothing else is asked but whether it holds over a thousandth of the sizes, too.
    """
    scales, before = setting.scales, slopes.J.copy()
    check, columns = None, set[int]()
    if close is not None:
        check = _compare_nearby(close[0], slopes, *close[1:])
        columns = _rough(measured, slopes, close[0].scales) | {j for j, c in enumerate(measured) if not c.curved}
        if check.step is None:
            columns.update(_narrow(setting, close[0].scales, slopes, check.noise))
            sizes = np.max(np.abs(slopes.J) * scales, axis=1, keepdims=True)  # where an h^2 term vanishes others do not
            parts = np.array([c.h for c in measured]) / close[0].scales
            least = np.where(
                parts < LONG_STEP_FRACTION, parts**4, 0.0
            )  # steps are longer where noise is what errors are
            slopes.error[...] = np.maximum(slopes.error, least * sizes / scales)
            scales = close[0].scales
        else:
            check = None
    if check is None:
        check = _compare_nearby(setting, slopes, around, nearby)
        columns = _rough(measured, slopes, scales)
    slopes.error[...] += check.gap[:, None] / scales
    if check.step == FINE_STEP_SIZE:
        columns.update(range(len(scales)))  # single columns show what is smooth, too, over such a step
    elif check.step is not None:
        columns.update(find_contradicting_columns(setting.line, check.step, before, slopes.error, check.noise, scales))
    if around.lag is not None and (columns or around.repeat_error.any()):
        lag = around.lag()
        if (lag > LAG_NOISE_FACTOR * check.noise).any():
            around, scales = (
                replace(around, repeat_error=np.maximum(around.repeat_error, LAG_RATIO * lag)),
                setting.scales,
            )
            check = directional_check(around, setting.base, before, slopes.error, setting.noise, scales, nearby)
            columns.update(range(len(scales)))
    for j in sorted(columns):
        _sweep_column(setting, j, slopes, around, terms)
    # Errors are relative to rows, with sizes that may be known only now; and inaccurate columns deserve a second try.
    sizes = np.max(np.abs(slopes.J) * scales, axis=1, keepdims=True)
    floor = 0.0 if terms is None else INDISTINCT_ROW_ERROR * terms(sizes[:, 0])[:, None]
    unclear = (
        slopes.error * scales > np.maximum((UNCLEAR_ENTRY_ERROR if columns else INACCURATE_ENTRY_ERROR) * sizes, floor)
    ).any(axis=0)
    for j in sorted(set(np.flatnonzero(unclear).tolist()) - columns):
        _sweep_column(setting, j, slopes, around, terms)
    _add_doubt(slopes, before, check, scales)


def _compare_nearby(
    setting: DifferenceSetting, slopes: Slopes, around: Surroundings, nearby: list[FloatArray]
) -> Contradiction:
    return directional_check(around, setting.base, slopes.J, slopes.error, setting.noise, setting.scales, nearby)


def _rough(measured: list[Column], slopes: Slopes, scales: FloatArray) -> set[int]:
    rough = [c.doubtful or is_rough(c, scale) for c, scale in zip(measured, scales, strict=True)]
    return set(np.flatnonzero(slopes.jump.any(axis=0) | np.array(rough)).tolist())


def _narrow(setting: DifferenceSetting, lengths: FloatArray, slopes: Slopes, noise: FloatArray) -> list[int]:
    """Return the columns with derivatives that do not hold over :data:`NARROW_RANGE_SIZE` of the variables' sizes."""
    narrow = []
    for j in np.flatnonzero(lengths < STRAIGHT_PART * NARROW_RANGE_SIZE * setting.scales).tolist():
        h, slope = NARROW_RANGE_SIZE * setting.scales[j], slopes.J[:, j]
        pair = finite_values(partial(setting.line, j), h, -h)
        least = (
            PLATEAU_END_RATIO * np.max(np.abs(slopes.J) * setting.scales, axis=1) / setting.scales[j]
            + VISIBLE_NOISE_FACTOR * noise / h
        )
        if pair is None or (np.abs((pair[0] - pair[1]) / (2 * h) - slope) > least).any():
            narrow.append(j)
    return narrow


def _add_doubt(slopes: Slopes, before: FloatArray, check: Contradiction, scales: FloatArray) -> None:
    """Let errors hold, in place, what was seen along all columns together and explained by no single one."""
    sizes = np.max(np.abs(slopes.J) * scales, axis=1)
    explained = (np.abs(slopes.J - before) * scales).sum(axis=1) >= check.ripple / 2
    doubts = (
        (check.stairs, SMALL_JUMP_RATIO),
        (check.kink / 2, KINK_TOLERANCE),
        (np.where(explained, 0.0, check.ripple), SMALL_JUMP_RATIO),
    )
    for doubt, most in doubts:  # more than that shows in columns, too
        small = np.where(doubt <= most * sizes, doubt, 0.0)
        slopes.error[...] = np.maximum(slopes.error, small[:, None] / scales)
    jumps = np.abs(slopes.jump) < KINK_TOLERANCE * sizes[:, None] / scales
    slopes.error[...] += np.where(jumps, np.abs(slopes.jump) / 2, 0.0)
    slopes.jump[jumps] = 0.0


def _sweep_column(
    setting: DifferenceSetting, j: int, slopes: Slopes, around: Surroundings, terms: Terms | None
) -> None:
    """Replace a column by what a sweep says of it, in place; a jump as high as the rounding of terms counts as none."""
    # Rows that are searched for jumps halve the same intervals: each point is evaluated once for all of them.
    line = cache(partial(setting.line, j))
    setting.announce_sweep(j, float(around.values[j]))
    sweep = step_sweep(line, setting.base, setting.scales[j], around.values[j])
    if sweep is None:
        return
    largest = (np.abs(slopes.J) * setting.scales).max(axis=1)
    sizes = largest / setting.scales[j]
    rounding = np.zeros(len(largest)) if terms is None else CANCELLED_TERMS_RATIO * EPS * terms(largest)
    rows = plateau_slopes(sweep, line, around.repeat_error, sizes, rounding)
    slopes.J[:, j], slopes.error[:, j] = rows.slope, rows.error
    slopes.jump[:, j], slopes.bend[:, j] = rows.jump, np.abs(rows.jump)
    for row in np.flatnonzero(rows.reach < NARROW_RANGE_SIZE * setting.scales[j]).tolist():
        slopes.narrow[row, j] = float(rows.reach[row]), float(rows.beyond[row])
