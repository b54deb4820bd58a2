"""Central differences of one column, extrapolated from h and 2h (Richardson), or one-sided ones; h is made to fit.

Of S(h) = F(h) - 2 F(0) + F(-h) a smooth function has S(2h) = 4 S(h), a jump in slope 2 S(h), a jump in value S(h).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import ModelError, NumericalError, UsageError
from fmilin.numerics.differences.plateau import CONTRADICTION_FACTOR
from fmilin.numerics.differences.sweep import MIN_STEP_SIZE, are_numbers, list_sweep_steps, power_of_two
from fmilin.numerics.differences.thresholds import (
    EQUAL_CHANGE_RATIO,
    MAX_STEP_SIZE,
    MIN_GAIN_RATIO,
    NOISIER_RATIO,
    RETRY_STEP_RATIO,
    STEP_CHANGE_RATIOS,
    SUFFICIENT_ERROR,
    VANISHING_ROUNDING_RATIO,
    VISIBLE_ROUNDING_RATIO,
)
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass
from fmilin.support.kinds import require_field_kinds
from fmilin.tolerances import EPS, ROUNDING_TOLERANCE, SMALLEST_DIVISOR

Line = Callable[[int, float], FloatArray]  # (column j, displacement s along it) -> value, shape (r,)


class Announce(Protocol):
    """Takes displacements in the order in which the function is evaluated at them next."""

    def __call__(self, steps: Sequence[tuple[int, float]] = (), points: Sequence[FloatArray] = ()) -> None:
        """Take displacements s along columns j, (j, s), then ``points`` (k,) of all columns together."""


Terms = Callable[[FloatArray], FloatArray]
"""The largest scaled slope of each row (r,) -> the size of the terms that each row sums, shape (r,)."""


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
        One-sided derivatives, for points at a kink or event; None: central.
    """

    order: Literal[2, 4] = 4
    relative_step: float | None = None
    retries: int = 5
    side: Literal["left", "right"] | None = None

    def __post_init__(self) -> None:
        require_field_kinds(self)
        if self.order not in (2, 4):
            raise UsageError(f"A difference of order {self.order} is not available: give 2 or 4.")
        if self.relative_step is not None and not 0 < self.relative_step < float("inf"):
            raise UsageError(f"A relative step of {self.relative_step:g} must be positive and finite.")
        if self.retries < 0:
            raise UsageError(f"{self.retries} retries of a column must not be negative.")
        if self.side not in ("left", "right", None):
            raise UsageError(f"'{self.side}' is not a side of a difference: give 'left', 'right' or None.")


@dataclass(frozen=True, slots=True)
class Slopes:
    """A Jacobian and how far it can be trusted."""

    J: FloatArray  # shape (r, k)
    error: FloatArray  # (r, k), estimated absolute error of each entry
    # (r, k), right slope minus left slope where they differ; 0 where the function is smooth or not measured
    jump: FloatArray
    bend: FloatArray  # (r, k), |S(h)| / h beyond rounding: large values ask for a step-size sweep
    # of entries that hold near the point only: the step at which they do no longer, and the slope beyond
    narrow: dict[tuple[int, int], tuple[float, float]] = field(default_factory=dict)


SMALLEST_AT_EVENT = 1e-7  # steps, in sizes of the variable, below which an event counts as being at the point itself
WEAK_COLUMN_FRACTION = (
    1e-3  # A column that moves no row by more than this fraction of the row's largest slope is measured as if it did
)
MIN_CURVATURE_FRACTION = (
    0.003  # part of an h^2 term, extrapolated to a smaller step, that is left at least unless it came from a jump
)
SHORT_LENGTH_SIZE = 2.0**-3  # lengths over which a function is as curved as steps tell, in sizes: shorter ones count
ROUGHNESS_FACTOR = (
    50.0  # s(2h) - 4 S(h) beyond this many times what a smooth function leaves asks for a step-size sweep
)
SMOOTH_NOISE_FACTOR = 1e6  # times its noise, that a row which only rounding moves does not change by
FLAT_ROW_FRACTION = (
    1e-4  # A row that changes by less than this fraction of itself over the size of a variable counts as flat there
)


@dataclass(slots=True)
class Column:
    """One measured column: its slope, its h^2 term, second differences, and its noise."""

    h: float
    D: FloatArray
    curvature: FloatArray
    S1: FloatArray
    S2: FloatArray
    noise: FloatArray
    amplified: float  # by how much the noise appears in D
    doubtful: bool = False  # whether other steps gave other derivatives
    curved: bool = True  # whether its h^2 term is as large as that of the first step lets expect of a smooth function

    @property
    def rounding(self) -> FloatArray:
        """The rounding part of the error."""
        return self.amplified * self.noise


@dataclass(frozen=True, slots=True)
class DifferenceSetting:
    """The settings of all columns; ``noise`` (r,) is that of F, ``weights`` (r,) make rows comparable, 0 omits one."""

    line: Line
    base: FloatArray
    scales: FloatArray
    noise: FloatArray
    weights: FloatArray
    options: Differences
    announce: Announce | None = None

    def announce_sweep(self, j: int, value: float) -> None:
        """Say that a sweep of a column follows."""
        if self.announce is not None:
            steps = list_sweep_steps(float(self.scales[j]), value)
            self.announce([(j, s) for h in steps for s in (h, -h)])


def first_difference(setting: DifferenceSetting, j: int, h: float) -> Column:
    """Measure a column, with a smaller step where the model cannot be evaluated."""
    event = None
    while h >= MIN_STEP_SIZE * setting.scales[j]:
        try:
            return difference_at_step(setting, j, h)
        except EventCrossingError as error:
            event = error
            if h <= SMALLEST_AT_EVENT * setting.scales[j]:
                break
        except (ModelError, NumericalError):
            pass
        h /= RETRY_STEP_RATIO
    if event is not None:
        raise event
    raise NumericalError(
        "The model cannot be evaluated near the point, even with the smallest step: it returns NaN or fails, or the "
        "constraints cannot be satisfied there. Choose another point.",
        variable=str(j),
    )


def with_weights(setting: DifferenceSetting, columns: Sequence[Column], terms: Terms | None) -> DifferenceSetting:
    """Make rows comparable: each by its largest slope; rows that are nothing but noise do not choose steps."""
    slope = np.max([np.abs(c.D) * scale for c, scale in zip(columns, setting.scales, strict=True)], axis=0)
    # A result of zero here is not exact elsewhere: rounding is proportional to the size of the variables.
    floor = VANISHING_ROUNDING_RATIO * EPS * slope
    if terms is not None:
        cancelled = is_rounding(slope, terms(slope), setting.noise)
        floor = np.where(cancelled, slope, floor)
    for column in columns:
        column.noise = np.maximum(column.noise, floor)
    rounding = np.max([c.rounding * scale for c, scale in zip(columns, setting.scales, strict=True)], axis=0)
    telling = slope > VISIBLE_ROUNDING_RATIO * rounding
    if not telling.any():
        telling = slope > 0
    # At a stationary point of a row its slope is small by chance: it must not hold back the steps of the others.
    weights = np.where(
        telling, 1 / np.where(telling, np.maximum(slope, FLAT_ROW_FRACTION * np.abs(setting.base)), 1.0), 0.0
    )
    return replace(setting, noise=np.maximum(setting.noise, floor), weights=weights)


def is_rounding(slope: FloatArray, terms: FloatArray, noise: FloatArray) -> NDArray[np.bool_]:
    """Whether rows' largest scaled derivatives are what rounding leaves of their terms: they are noise then."""
    return (slope < ROUNDING_TOLERANCE * terms) & (slope < SMOOTH_NOISE_FACTOR * noise)


def with_best_step(setting: DifferenceSetting, j: int, column: Column) -> Column:
    """Measure a column again, changing the step while that promises a clearly smaller error."""
    options, scale = setting.options, setting.scales[j]
    if options.relative_step is not None:
        return column
    order = 3 if options.side else options.order
    tried = [column]
    for _ in range(options.retries):
        truncation, rounding, _ = _parts(column, setting, scale)
        balance = (rounding / max(truncation, SMALLEST_DIVISOR)) ** (1 / (order + 1))
        shortest, longest = STEP_CHANGE_RATIOS
        better = power_of_two(min(column.h * min(max(balance, shortest), longest), MAX_STEP_SIZE * scale))
        predicted = truncation * (better / column.h) ** order + rounding * column.h / better
        gain = max(truncation, rounding) / max(predicted, SMALLEST_DIVISOR)
        if gain < MIN_GAIN_RATIO or truncation + rounding < SUFFICIENT_ERROR or better == column.h:
            break
        if setting.announce is not None:
            setting.announce([(j, s) for s in list_first_steps(better, options)])
        try:
            column = difference_at_step(setting, j, better)
        except (ModelError, NumericalError):  # an event or the border of the domain: stay where it could be evaluated
            break
        tried.append(column)
        if _is_noisier(tried):
            break

    errors = [(truncation + noise) * size for truncation, noise, size in (_parts(c, setting, scale) for c in tried)]
    best = tried[errors.index(min(errors))]
    best.doubtful = any(_contradict(best, other, setting, scale) for other in tried if other is not best)
    expected = MIN_CURVATURE_FRACTION * np.abs(tried[0].curvature) * (best.h / tried[0].h) ** 2
    best.curved = bool((np.abs(best.curvature) >= expected - NOISIER_RATIO * best.rounding).all())
    return best


def is_rough(column: Column, scale: float) -> bool:
    """Whether second differences at h and 2h are less alike than those of a smooth function: knots of a table."""
    c = column
    smooth = smooth_remainder(c.h, scale, c.D, c.curvature, c.S1, c.noise)
    return bool((np.abs(c.S2 - 4 * c.S1) > ROUGHNESS_FACTOR * smooth).any())


def smooth_remainder(
    h: FloatArray | float,
    scale: FloatArray | float,
    D: FloatArray,
    curvature: FloatArray,
    S1: FloatArray,
    noise: FloatArray,
) -> FloatArray:
    """Return how large S(2h) - 4 S(h) of a smooth function may be, of columns of a size ``scale``; shape of D."""
    part = h / scale
    slope = np.abs(D) * scale
    bend = np.abs(curvature) / np.maximum(np.abs(D), 1e-300)  # the h^2 terms: over these lengths
    bent = np.minimum(np.maximum(bend, part**2), (part / SHORT_LENGTH_SIZE) ** 2)
    return np.asarray(bent * np.abs(S1) + part**4 * slope + noise + EPS * slope * part)


def _contradict(one: Column, other: Column, setting: DifferenceSetting, scale: float) -> bool:
    """Whether the derivatives at two steps differ by more than their errors, or what extrapolation leaves, explain."""
    errors = one.rounding + other.rounding + np.abs(one.curvature) + np.abs(other.curvature)
    gap = np.abs(one.D - other.D)
    if not (beyond := gap > CONTRADICTION_FACTOR * errors).any():
        return False
    truncation_left = max(
        truncation * size for truncation, _, size in (_parts(c, setting, scale) for c in (one, other))
    )
    return bool((setting.weights * gap > truncation_left)[beyond].any())


def _is_noisier(tried: list[Column]) -> bool:
    """Whether the smaller step shows more noise, then noted in all columns: h^2 terms shrink, noise over h grows."""
    before, last = tried[-2:]
    changes = np.array([last.S2 - last.S1, last.S1 - before.S1])
    jumping = (np.abs(changes) <= EQUAL_CHANGE_RATIO * np.abs(last.S1)).all(axis=0) & (last.S1 != 0)
    grown = (np.abs(last.curvature) > np.abs(before.curvature)) & (last.h < before.h) & ~jumping
    noise = np.where(grown, np.maximum(np.abs(last.curvature), np.abs(last.D - before.D)) * last.h, 0.0)
    is_noisier = bool((noise > NOISIER_RATIO * last.noise).any())
    for column in tried:
        column.noise = np.maximum(column.noise, noise)
    return is_noisier


def difference_at_step(setting: DifferenceSetting, j: int, h: float) -> Column:
    """Measure a column at the power of two nearest to a step, centrally or on the requested side."""
    h = power_of_two(h)
    return one_sided_difference(setting, j, h) if setting.options.side else central_difference(setting, j, h)


def list_first_steps(h: float, options: Differences) -> tuple[float, ...]:
    """Return the displacements at which a difference of step h evaluates the function, in that order."""
    h = power_of_two(h)
    if options.side:
        s = -h if options.side == "left" else h
        return (s, 2 * s, 4 * s)
    return (h, -h) if options.order == 2 else (h, -h, 2 * h, -2 * h)


def central_difference(setting: DifferenceSetting, j: int, h: float) -> Column:
    """Return (F(h) - F(-h)) / 2h, of order 2; of order 4 extrapolated with the same at 2h."""
    line, base = setting.line, setting.base
    ahead, behind = _finite(line(j, h)), _finite(line(j, -h))
    noise = np.maximum(setting.noise, 0.5 * np.spacing(np.maximum(np.abs(ahead), np.abs(behind))))
    near, S1 = (ahead - behind) / (2 * h), ahead + behind - 2 * base
    if setting.options.order == 2:
        return Column(h, near, np.zeros_like(near), S1, np.full_like(near, np.nan), noise, 1 / h)
    far_ahead, far_behind = _finite(line(j, 2 * h)), _finite(line(j, -2 * h))
    curvature = (near - (far_ahead - far_behind) / (4 * h)) / 3
    # 1.5: the sum of the weights of noise in (4 D(h) - D(2h))/3
    return Column(h, near + curvature, curvature, S1, far_ahead + far_behind - 2 * base, noise, 1.5 / h)


def one_sided_difference(setting: DifferenceSetting, j: int, h: float) -> Column:
    """(-3 F(0) + 4 F(h) - F(2h)) / 2h at h and 2h, extrapolated; h is negative on the left."""
    s, base = -h if setting.options.side == "left" else h, setting.base
    F1, F2, F4 = (_finite(setting.line(j, factor * s)) for factor in (1, 2, 4))
    narrow, wide = (4 * F1 - F2 - 3 * base) / (2 * s), (4 * F2 - F4 - 3 * base) / (4 * s)
    curvature = (narrow - wide) / 3
    nothing = np.zeros_like(narrow)
    # 6: the same of (4 narrow - wide)/3, in which the values have the weights 3, 4 and 1
    return Column(h, narrow + curvature, curvature, nothing, nothing, setting.noise, 6 / h)


def _finite(values: FloatArray) -> FloatArray:
    if not are_numbers(values):
        raise NumericalError("The model returns NaN near the point.")
    return values


def _parts(column: Column, setting: DifferenceSetting, scale: float) -> tuple[float, float, float]:
    """Return truncation and rounding of a column, relative to its largest slope, rows made comparable, and that."""
    options, weights, noise = setting.options, setting.weights, column.rounding
    size = max(float((weights * np.abs(column.D)).max()) * scale, WEAK_COLUMN_FRACTION) / scale
    rounding = float((weights * noise).max()) / size
    if options.order == 2 and not options.side:
        # h^2/6 of the third derivative, which is as large as the row in its scales
        return (column.h / scale) ** 2 / 6, rounding, size
    bend = max(float((weights * (np.abs(column.curvature) - noise)).max()), 0.0) / size
    return truncation_error(np.float64(bend), column.h / scale, options).item(), rounding, size


def truncation_error(bend: FloatArray | np.float64, h: FloatArray | float, options: Differences) -> FloatArray:
    """Estimate what extrapolation leaves, relative, from the term that it took away and the step in natural lengths."""
    # the next term is as much smaller as the one taken away (order 2, or 3 on one side) is than the slope
    if options.side:
        return np.asarray(4 * bend**1.5 + h**3)
    return np.asarray(4 * bend**2 + h**4)
