"""Slopes by central differences, with steps that fit the function and an error estimate for every entry.

A column is measured at +-h and +-2h; Richardson extrapolation of the two central differences D(h), D(2h)
removes the h^2 term:

    D_R = D(h) + (D(h) - D(2h)) / 3

The estimate of its error has a rounding part (the measured noise over h) and a truncation part. The latter
is bounded by what D(h) - D(2h) shows of the third derivative, squared: with a natural length L the
h^2 term is h^2/L^2 and the h^4 term h^4/L^4 of the slope. When one part dominates, h is changed and the
column measured again. Rows may have any units: each is compared with its own largest slope, which a first round
over all columns tells.

A kink shows in the second differences S(h) = F(h) - 2 F(0) + F(-h): of a smooth function S(2h) = 4 S(h), of a
jump in slope S(2h) = 2 S(h), of a jump in value S(2h) = S(h).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fmilin.derivatives.ladder import CONTRADICTS, climbed, ladder_of
from fmilin.derivatives.look import Around, differs, suspects
from fmilin.derivatives.noise import POINTS, noise_from_table
from fmilin.errors import ModelError, NumericalError
from fmilin.signals import FloatArray
from fmilin.tolerances import INACCURATE, INDISTINCT, KINK, ROUNDING

__all__ = ["Around", "Differences", "EventCrossingError", "Slopes", "jacobian_by_differences", "slopes"]

Line = Callable[[int, float], FloatArray]
"""(column j, displacement s along it) -> value, shape (r,)."""

Terms = Callable[[FloatArray], FloatArray]
"""The largest scaled slope of each row (r,) -> the size of the terms that each row sums, shape (r,)."""

SMALLEST_AT_EVENT = 1e-7
"""Steps, in sizes of the variable, below which an event counts as being at the point itself."""


WEAK = 1e-3
"""A column that moves no row by more than this fraction of the row's largest slope is measured as if it did."""

ROUGH = 50.0
"""S(2h) - 4 S(h) beyond this many times what a smooth function leaves asks for a closer look."""

NARROW = 1e-3
"""A slope that holds over less than this part of the variable's size is said to."""

UNCLEAR = 1e-6
"""Error of an entry, relative to its row, for which other steps are tried where one column was not what it seemed."""

FLAT = 1e-4
"""A row that changes by less than this fraction of itself over the size of a variable counts as flat there."""


class EventCrossingError(NumericalError):
    """A displaced point lies beyond a state event of the model."""


@dataclass(frozen=True, slots=True)
class Differences:
    """How to difference.

    Parameters
    ----------
    order : {2, 4}
        2: plain central differences, two evaluations a column. 4: Richardson, four.
    relative_step : float or None
        Of the column's scale; None: chosen from the measured noise.
    retries : int
        How often a column may be measured again with a better step.
    side : {"left", "right"} or None
        One-sided slopes, for points at a kink or event; None: central.
    """

    order: Literal[2, 4] = 4
    relative_step: float | None = None
    retries: int = 5
    side: Literal["left", "right"] | None = None


@dataclass(frozen=True, slots=True)
class Slopes:
    """A Jacobian and how far it can be trusted.

    Attributes
    ----------
    J : array, shape (r, k)
    error : array, shape (r, k)
        Estimated absolute error of each entry.
    jump : array, shape (r, k)
        Right slope minus left slope where they differ; 0 where the function is smooth or nothing is known.
    bend : array, shape (r, k)
        |S(h)| / h beyond rounding: large values ask for a closer look.
    narrow : mapping of (int, int) to (float, float)
        Of entries that hold near the point only: the step at which they do no longer, and the slope beyond.
    """

    J: FloatArray
    error: FloatArray
    jump: FloatArray
    bend: FloatArray
    narrow: dict[tuple[int, int], tuple[float, float]] = field(default_factory=dict)


@dataclass(slots=True)
class _Column:
    """One measured column: its slope, the h^2 term found in it, second differences, and its noise."""

    h: float
    D: FloatArray
    curvature: FloatArray
    S1: FloatArray
    S2: FloatArray
    noise: FloatArray
    amplified: float
    """By how much the noise appears in D."""
    doubtful: bool = False
    """Whether other steps gave other slopes."""

    @property
    def rounding(self) -> FloatArray:
        """The rounding part of the error."""
        return self.amplified * self.noise


@dataclass(frozen=True, slots=True)
class _Setting:
    """What all columns share; ``noise`` (r,) is that of F, ``weights`` (r,) make rows comparable, 0 leaves one out."""

    line: Line
    base: FloatArray
    scales: FloatArray
    noise: FloatArray
    weights: FloatArray
    options: Differences


def slopes(
    line: Line,
    base: FloatArray,
    scales: FloatArray,
    options: Differences | None = None,
    terms: Terms | None = None,
    around: Around | None = None,
) -> Slopes:
    """Measure dF/ds for every column.

    Parameters
    ----------
    line : callable
        ``line(j, s)`` is F at displacement ``s`` along column ``j``; ``s`` is in the unit of that column.
    base : array, shape (r,)
        F at zero displacement.
    scales : array, shape (k,)
        The size of each column's variable.
    options : Differences, optional
    terms : callable, optional
        Tells rows whose terms all cancel from rows in small units; without it there are none of the former.
    around : Around, optional
        What allows a look at other scales of steps; without it there is none.

    Raises
    ------
    NumericalError
        When F cannot be evaluated in any usable neighbourhood; ``variable`` is the column's number.
    EventCrossingError
        When F has an event at the point itself.
    """
    options = options or Differences()
    k = len(scales)
    if k == 0 or len(base) == 0:
        nothing = np.zeros((len(base), k))
        return Slopes(nothing, nothing, nothing, nothing)
    noise = _noise(line, base, scales, options)
    if around is not None:
        noise = np.maximum(noise, around.forgets)
    start = options.relative_step or _first_step(noise, base, options)
    setting = _Setting(line, base, scales, noise, np.ones_like(base), options)
    columns = [_first(setting, j, start * scales[j]) for j in range(k)]
    setting = _with_weights(setting, columns, terms)
    columns = [_improved(setting, j, column) for j, column in enumerate(columns)]
    J = np.stack([c.D for c in columns], axis=1)
    rounding = np.stack([c.rounding for c in columns], axis=1)
    S1 = np.stack([c.S1 / c.h for c in columns], axis=1)
    S2 = np.stack([c.S2 / c.h for c in columns], axis=1)
    row_size = np.max(np.abs(J) * scales, axis=1, keepdims=True)
    bend = np.where(np.abs(S1) > 30 * rounding, np.abs(S1), 0.0)
    jump = _jumps(S1, S2, rounding, row_size / scales)
    small = np.abs(jump) < KINK * row_size / scales
    error = _errors(columns, J, scales, options) + np.where(small, np.abs(jump) / 2, 0.0)
    found = Slopes(J, error, np.where(small, 0.0, jump), bend)
    if around is not None and options.order == 4 and not options.side and options.relative_step is None:
        with np.errstate(all="ignore"):  # some steps are long: what is no number there is left out
            _look_closer(setting, columns, found, _with_rounding(around, found.J, scales, terms), terms)
    return found


def _with_rounding(around: Around, J: FloatArray, scales: FloatArray, terms: Terms | None) -> Around:
    """Count as forgotten, too, what is left of rows whose terms all cancel."""
    if terms is None:
        return around
    slope = (np.abs(J) * scales).max(axis=1)
    size = terms(slope)
    left = np.where(slope < ROUNDING * size, 4 * np.finfo(float).eps * size, 0.0)
    return replace(around, forgets=np.maximum(around.forgets, left))


def _look_closer(
    setting: _Setting, measured: list[_Column], found: Slopes, around: Around, terms: Terms | None
) -> None:
    """Compare with smaller steps, and climb down the columns that look different there, in place."""
    line, base, scales = setting.line, setting.base, setting.scales
    step, noise = differs(around, base, found.J, found.error, setting.noise, scales)
    rough = [c.doubtful or _is_rough(c, scale) for c, scale in zip(measured, scales, strict=True)]
    columns = set(np.flatnonzero(found.jump.any(axis=0) | np.array(rough)).tolist())
    if step is not None:
        columns.update(suspects(line, step, found.J, found.error, noise, scales))
    for j in sorted(columns):
        _climb(setting, j, found, around, terms)
    # Errors are relative to rows, whose sizes may be known only now; and what is of little use deserves a second try.
    sizes = np.max(np.abs(found.J) * scales, axis=1, keepdims=True)
    least = 0.0 if terms is None else INDISTINCT * terms(sizes[:, 0])[:, None]
    unclear = (found.error * scales > np.maximum((UNCLEAR if columns else INACCURATE) * sizes, least)).any(axis=0)
    for j in sorted(set(np.flatnonzero(unclear).tolist()) - columns):
        _climb(setting, j, found, around, terms)
    sizes = np.max(np.abs(found.J) * scales, axis=1, keepdims=True) / scales
    small = np.abs(found.jump) < KINK * sizes
    found.error[...] += np.where(small, np.abs(found.jump) / 2, 0.0)
    found.jump[small] = 0.0


def jacobian_by_differences(
    function: Callable[[FloatArray], FloatArray], x: FloatArray, scales: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the Jacobian of a function of x and its estimated error, each (r, n), moving one x at a time."""

    def line(j: int, s: float) -> FloatArray:
        moved = x.copy()
        moved[j] += s
        return function(moved)

    result = slopes(line, function(x), scales)
    return result.J, result.error


def _first_step(noise: FloatArray, base: FloatArray, options: Differences) -> float:
    telling = np.abs(base) > 1e3 * noise
    relative = float(np.max(noise[telling] / np.abs(base[telling]), initial=np.finfo(float).eps))
    if options.order == 2:
        return float(np.clip(relative ** (1 / 3), 1e-5, 1e-2))
    return float(np.clip(relative ** (1 / 5), 5e-4, 3e-2))


def _noise(line: Line, base: FloatArray, scales: FloatArray, options: Differences) -> FloatArray:
    """Measure the noise along the first column on a tiny line beside the point: O(1) evaluations."""
    spacing = (-1e-8 if options.side == "left" else 1e-8) * scales[0]
    try:
        values = [line(0, s * spacing) for s in range(1, POINTS)]
    except (ModelError, NumericalError):
        values = []
    if len(values) != POINTS - 1 or not np.isfinite(values).all():
        return 4 * np.spacing(np.abs(base))
    return noise_from_table(np.array([base, *values]))


def _first(setting: _Setting, j: int, h: float) -> _Column:
    """Measure a column, with a smaller step where the model cannot be evaluated."""
    event = None
    for _ in range(setting.options.retries + 1):
        try:
            return _at_step(setting, j, h)
        except EventCrossingError as error:
            event = error
            if h <= SMALLEST_AT_EVENT * setting.scales[j]:
                break
        except (ModelError, NumericalError):
            pass
        h /= 16
    if event is not None:
        raise event
    raise NumericalError(
        "The model cannot be evaluated near the point, however small the step: it returns NaN, refuses, or the "
        "constraints cannot be satisfied there.",
        variable=str(j),
    )


def _with_weights(setting: _Setting, columns: list[_Column], terms: Terms | None) -> _Setting:
    """Make rows comparable: each by its largest slope; rows that are nothing but noise do not choose steps."""
    slope = np.max([np.abs(c.D) * scale for c, scale in zip(columns, setting.scales, strict=True)], axis=0)
    # What comes out as zero here is not exact elsewhere: rounding follows the size of what varies.
    floor = 0.1 * np.finfo(float).eps * slope
    if terms is not None:
        cancelled = slope < ROUNDING * terms(slope)
        floor = np.where(cancelled, slope, floor)
    for column in columns:
        column.noise = np.maximum(column.noise, floor)
    rounding = np.max([c.rounding * scale for c, scale in zip(columns, setting.scales, strict=True)], axis=0)
    telling = slope > 30 * rounding
    if not telling.any():
        telling = slope > 0
    # At a stationary point of a row its slope is small by chance: it must not hold back the steps of the others.
    weights = np.where(telling, 1 / np.where(telling, np.maximum(slope, FLAT * np.abs(setting.base)), 1.0), 0.0)
    return replace(setting, noise=np.maximum(setting.noise, floor), weights=weights)


def _improved(setting: _Setting, j: int, column: _Column) -> _Column:
    """Measure a column again, changing the step while that promises a clearly smaller error."""
    options, scale = setting.options, setting.scales[j]
    if options.relative_step is not None:
        return column
    order = 3 if options.side else options.order
    tried = [column]
    for _ in range(options.retries):
        truncation, rounding = _parts(column, setting.weights, scale, options)
        better = column.h * float(np.clip((rounding / max(truncation, 1e-300)) ** (1 / (order + 1)), 1 / 256, 8))
        better = _representable(min(better, 0.05 * scale))
        predicted = truncation * (better / column.h) ** order + rounding * column.h / better
        gain = max(truncation, rounding) / max(predicted, 1e-300)
        if gain < 20 or truncation + rounding < 1e-12 or better == column.h:
            break
        try:
            column = _at_step(setting, j, better)
        except (ModelError, NumericalError):  # an event or the border of the domain: stay where it could be evaluated
            break
        tried.append(column)
        if _is_noisier(tried):
            break
    weights = setting.weights
    best = min(tried, key=lambda c: sum(_parts(c, weights, scale, options)) * _size(c, weights, scale))
    best.doubtful = any(_contradict(best, other) for other in tried)
    return best


def _climb(setting: _Setting, j: int, found: Slopes, around: Around, terms: Terms | None) -> None:
    """Replace a column by what all scales of steps say of it, in place; a jump as high as rounding of terms is none."""
    along = partial(setting.line, j)
    ladder = ladder_of(along, setting.base, setting.scales[j], around.values[j])
    if ladder is None:
        return
    slope = (np.abs(found.J) * setting.scales).max(axis=1)
    sizes = slope / setting.scales[j]
    rounding = np.zeros(len(slope)) if terms is None else 1e3 * np.finfo(float).eps * terms(slope)
    for row, forgotten in enumerate(around.forgets.tolist()):
        climb = climbed(ladder, row, along, forgotten, float(sizes[row]))
        height = float(np.abs(np.array((ladder.ahead[-1, row], ladder.behind[-1, row])) - ladder.base[row]).max())
        if np.isinf(climb.jump) and height <= rounding[row]:
            climb = climbed(ladder, row, along, max(forgotten, height), float(sizes[row]))
        found.J[row, j], found.error[row, j] = climb.slope, climb.error
        found.jump[row, j], found.bend[row, j] = climb.jump, abs(climb.jump)
        if climb.reach < NARROW * setting.scales[j]:
            found.narrow[row, j] = climb.reach, climb.beyond


def _is_rough(column: _Column, scale: float) -> bool:
    """Whether second differences at h and 2h are less alike than those of a smooth function: knots of a table."""
    h, eps = column.h / scale, np.finfo(float).eps
    slope = np.abs(column.D) * scale
    smooth = h**2 * np.abs(column.S1) + h**4 * slope + column.noise + eps * slope * h
    return bool((np.abs(column.S2 - 4 * column.S1) > ROUGH * smooth).any())


def _contradict(one: _Column, other: _Column) -> bool:
    """Whether the slopes at two steps differ by more than their errors explain."""
    errors = one.rounding + other.rounding + np.abs(one.curvature) + np.abs(other.curvature)
    return bool((np.abs(one.D - other.D) > CONTRADICTS * errors).any())


def _is_noisier(tried: list[_Column]) -> bool:
    """Whether the last, smaller step shows more noise than was thought; it is then noted in all columns.

    The h^2 term of a smooth function shrinks with the step; where it grows it was noise over h, unless the same
    second differences at every step tell a jump.
    """
    before, last = tried[-2:]
    changes = np.array([last.S2 - last.S1, last.S1 - before.S1])
    jumping = (np.abs(changes) <= 0.1 * np.abs(last.S1)).all(axis=0) & (last.S1 != 0)
    grown = (np.abs(last.curvature) > np.abs(before.curvature)) & (last.h < before.h) & ~jumping
    noise = np.where(grown, np.maximum(np.abs(last.curvature), np.abs(last.D - before.D)) * last.h, 0.0)
    found = bool((noise > 10 * last.noise).any())
    for column in tried:
        column.noise = np.maximum(column.noise, noise)
    return found


def _at_step(setting: _Setting, j: int, h: float) -> _Column:
    h = _representable(h)
    return _one_sided(setting, j, h) if setting.options.side else _central(setting, j, h)


def _central(setting: _Setting, j: int, h: float) -> _Column:
    line, base = setting.line, setting.base
    ahead, behind = _finite(line(j, h)), _finite(line(j, -h))
    noise = np.maximum(setting.noise, 0.5 * np.spacing(np.maximum(np.abs(ahead), np.abs(behind))))
    near, S1 = (ahead - behind) / (2 * h), ahead + behind - 2 * base
    if setting.options.order == 2:
        return _Column(h, near, np.zeros_like(near), S1, np.full_like(near, np.nan), noise, 1 / h)
    far_ahead, far_behind = _finite(line(j, 2 * h)), _finite(line(j, -2 * h))
    curvature = (near - (far_ahead - far_behind) / (4 * h)) / 3
    return _Column(h, near + curvature, curvature, S1, far_ahead + far_behind - 2 * base, noise, 1.5 / h)


def _one_sided(setting: _Setting, j: int, h: float) -> _Column:
    """(-3 F(0) + 4 F(h) - F(2h)) / 2h at h and 2h, extrapolated; h is negative on the left."""
    s, base = -h if setting.options.side == "left" else h, setting.base
    F1, F2, F4 = (_finite(setting.line(j, factor * s)) for factor in (1, 2, 4))
    near, far = (4 * F1 - F2 - 3 * base) / (2 * s), (4 * F2 - F4 - 3 * base) / (4 * s)
    curvature = (near - far) / 3
    nothing = np.zeros_like(near)
    return _Column(h, near + curvature, curvature, nothing, nothing, setting.noise, 6 / h)


def _finite(values: FloatArray) -> FloatArray:
    if not np.isfinite(values).all():
        raise NumericalError("The model returns no number beside the point.")
    return values


def _size(column: _Column, weights: FloatArray, scale: float) -> float:
    """Return the largest slope of a column, rows made comparable."""
    return max(float(np.max(weights * np.abs(column.D))) * scale, WEAK) / scale


def _parts(column: _Column, weights: FloatArray, scale: float, options: Differences) -> tuple[float, float]:
    """Return the truncation and the rounding part of a column's error, relative to its largest slope."""
    size = _size(column, weights, scale)
    rounding = float(np.max(weights * column.rounding)) / size
    if options.order == 2 and not options.side:
        return (column.h / scale) ** 2 / 6, rounding
    bend = max(float(np.max(weights * (np.abs(column.curvature) - column.rounding))), 0.0) / size
    return _extrapolated(np.array(bend), column.h / scale, options).item(), rounding


def _extrapolated(bend: FloatArray, h: FloatArray | float, options: Differences) -> NDArray[np.float64]:
    """Estimate what extrapolation leaves, relative, from the term that it took away and the step in natural lengths."""
    if options.side:
        return np.asarray(4 * bend**1.5 + np.asarray(h) ** 3)
    return np.asarray(4 * bend**2 + np.asarray(h) ** 4)


def _errors(columns: list[_Column], J: FloatArray, scales: FloatArray, options: Differences) -> FloatArray:
    """Estimate the absolute error of every entry, comparing rows in scaled columns."""
    h = np.array([c.h for c in columns])
    rounding = np.stack([c.rounding for c in columns], axis=1)
    row_size = np.max(np.abs(J) * scales, axis=1, keepdims=True)
    if options.order == 2 and not options.side:
        plain: FloatArray = 2 * rounding + (h / scales) ** 2 / 6 * row_size / scales
        return plain
    bend = np.stack([np.abs(c.curvature) for c in columns], axis=1) * scales
    bend = np.maximum(bend - rounding * scales, 0.0)
    known = row_size > 0
    relative = np.where(known, bend / np.where(known, row_size, 1.0), 0.0)
    telling = row_size > 30 * np.max(rounding * scales, axis=1, keepdims=True)  # noise over noise tells nothing
    worst = np.max(np.where(telling, relative, 0.0), axis=0, keepdims=True)
    relative = np.minimum(np.maximum(relative, 0.1 * worst), 1.0)
    truncation = _extrapolated(relative, h / scales, options) * np.where(known, row_size, bend) / scales
    total: FloatArray = 2 * rounding + truncation
    return total


def _jumps(S1: FloatArray, S2: FloatArray, rounding: FloatArray, row_size: FloatArray) -> FloatArray:
    """Return (4 S(h) - S(2h)) / 2h where S(2h) / S(h) is nearer to 1 or 2 than to 4 and S is more than rounding."""
    visible = np.abs(S1) > np.maximum(30 * rounding, 1e-5 * row_size)
    ratio = S2 / np.where(visible, S1, 1.0)
    return np.where(visible & (ratio > 0.5) & (ratio < 3.0), (4 * S1 - S2) / 2, 0.0)


def _representable(h: float) -> float:
    """Return a step near h that is a power of two: h and 2h are then exact, and so is their division."""
    return float(2.0 ** np.round(np.log2(h))) if h > 0 else h
