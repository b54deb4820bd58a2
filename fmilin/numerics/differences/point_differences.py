"""Central differences at many points at once, for functions that look smooth there.

The steps, the error estimates and the comparisons are those of :func:`fmilin.numerics.differences.differences.slopes`,
in arrays with a leading axis over k points, and all displacements of all points are evaluated together. A point at
which that function would look closer is doubtful here: at a kink or a jump, in noise that grows, where the slope at
smaller steps or far away is another one, or where the function does not repeat itself. Nothing is measured again.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fmilin.numerics.differences.differences import (
    SUSPECT_GROWTH_EXPONENT,
    estimate_errors,
    find_jumps,
)
from fmilin.numerics.differences.directional import (
    ABSENT_NOISE_RATIO,
    FINE_STEP_SIZE,
    KINK_STEP_SIZE,
    ONE_SIDED_NOISE_FACTOR,
    SMOOTH_TERM_FACTOR,
    STEPS,
    STRAIGHT_SLOPE_RATIO,
    VISIBLE_NOISE_FACTOR,
    WIDE_STEP_RATIO,
)
from fmilin.numerics.differences.plateau import CONTRADICTION_FACTOR
from fmilin.numerics.differences.richardson import (
    FLAT_ROW_FRACTION,
    ROUGHNESS_FACTOR,
    SHORT_LENGTH_SIZE,
    WEAK_COLUMN_FRACTION,
    Differences,
    is_rounding,
    smooth_remainder,
)
from fmilin.numerics.differences.sweep import MAX_VALUE, NOISE_SPACING_SIZE, POINTS, noise_from_table
from fmilin.numerics.differences.thresholds import (
    CLEAR_ROUNDING_RATIO,
    EQUAL_CHANGE_RATIO,
    FIRST_STEPS,
    JUMP_ROUNDING_RATIO,
    MAX_STEP_SIZE,
    MIN_GAIN_RATIO,
    NOISIER_RATIO,
    STEP_CHANGE_RATIOS,
    SUFFICIENT_ERROR,
    TELLING_NOISE_RATIO,
    VANISHING_ROUNDING_RATIO,
    VISIBLE_ROUNDING_RATIO,
)
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass
from fmilin.tolerances import EPS, INACCURATE_ENTRY_ERROR, INDISTINCT_ROW_ERROR, KINK_TOLERANCE, SMALLEST_DIVISOR

Mask = NDArray[np.bool_]
Numbers = NDArray[np.intp]
DisplacedFunction = Callable[[Numbers, FloatArray], FloatArray]
"""(numbers (j,) of points, displacements (j, c)) -> values (j, r), evaluated in this order."""
TermsOfPoints = Callable[[FloatArray, FloatArray], FloatArray]
"""Values (k, r) and the largest scaled slope of each row (k, r) -> the size of the terms that it sums, (k, r)."""

FAR_STEP_SIZE = 2.0**-3  # in sizes of the variables, of displacements of all columns together
RETURNS = (0.0, FAR_STEP_SIZE, 0.0, -FAR_STEP_SIZE, -FAR_STEP_SIZE, 0.0)
AT_POINT_INDICES = (2, 5)  # indices of RETURNS: the point again, after evaluations far away on each side
"""Displacements along one direction between which a function that keeps memory changes its values at the point."""
FIRST_STEP_SIZE = float(EPS ** (1 / 5))  # of a function with rounding alone
OPTIONS = Differences()
SMOOTH_SHRINKAGE_FACTOR = 8.0  # of a fourth-order term when the step is halved, which is 16 without terms beyond it
FACTORS = (1.0, -1.0, 2.0, -2.0)  # of the step, at which a column is evaluated


@dataclass(frozen=True, eq=False)
class PointDifferences:
    """A function at k points with its derivatives along c columns."""

    base: FloatArray  # (k, r)
    J: FloatArray  # (k, r, c)
    error: FloatArray  # (k, r, c), estimated absolute errors
    is_doubtful: Mask  # (k,), where more has to be examined


@dataclass(frozen=True, eq=False)
class _DifferencedColumns:
    """Differences of j columns of points, each with rows (j, r)."""

    h: FloatArray  # (j,)
    D: FloatArray
    curvature: FloatArray
    S1: FloatArray
    S2: FloatArray
    noise: FloatArray

    @property
    def rounding(self) -> FloatArray:
        """The rounding part of the error, (j, r)."""
        # the sum of the weights of Richardson's combination: 4/3 of D(h) and 1/3 of D(2h)
        return 1.5 / self.h[:, None] * self.noise

    def select(self, indices: Numbers) -> _DifferencedColumns:
        """Return some of the columns."""
        return _DifferencedColumns(*(part[indices] for part in self._parts))

    def replace(self, indices: Numbers, other: _DifferencedColumns) -> _DifferencedColumns:
        """Return the same with other differences of some columns."""
        parts = [part.copy() for part in self._parts]
        for part, new in zip(parts, other._parts, strict=True):
            part[indices] = new
        return _DifferencedColumns(*parts)

    def with_noise(self, noise: FloatArray) -> _DifferencedColumns:
        """Return the same with at least such a noise (j, r)."""
        return _DifferencedColumns(self.h, self.D, self.curvature, self.S1, self.S2, np.maximum(self.noise, noise))

    @property
    def _parts(self) -> tuple[FloatArray, ...]:
        return self.h, self.D, self.curvature, self.S1, self.S2, self.noise


def difference_points(
    function: DisplacedFunction,
    scales: FloatArray,
    values: FloatArray,
    direction: FloatArray,
    terms: TermsOfPoints,
) -> PointDifferences:
    """Return a function at k points with derivatives along c columns of sizes ``scales`` (k, c).

    They are compared with differences along one ``direction`` (k, c) of about these sizes; ``values`` (k, c) are those
    of the variables at the points.
    """
    with np.errstate(all="ignore"):
        return _PointDifferencing(function, scales, values, direction, terms).measure()


class _PointDifferencing:
    """One measurement."""

    def __init__(
        self,
        function: DisplacedFunction,
        scales: FloatArray,
        values: FloatArray,
        direction: FloatArray,
        terms: TermsOfPoints,
    ) -> None:
        self._function, self._scales, self._values, self._terms = function, scales, values, terms
        self._direction = direction
        self._count, self._width = scales.shape
        self._sizes = scales.reshape(-1)  # of all columns of all points, (j,)
        self._points = np.repeat(np.arange(self._count), self._width)
        self._is_doubtful = np.zeros(self._count, dtype=bool)

    def measure(self) -> PointDifferences:
        """Return the derivatives with their errors."""
        h = _round_steps(FIRST_STEP_SIZE * self._sizes)
        compared = [s for step in (FAR_STEP_SIZE * WIDE_STEP_RATIO, *STEPS) for s in (step, -step)]
        nearby_steps = [s * NOISE_SPACING_SIZE for s in range(1, POINTS)]
        line, first_values = self._evaluate_first([*RETURNS, *nearby_steps], compared, h)
        returned, nearby, pairs = np.split(line, (len(RETURNS), len(RETURNS) + len(nearby_steps)), axis=1)
        self._base = base = returned[:, 0]
        self._doubt(~np.isfinite(line).all(axis=(1, 2)) | ~(np.abs(line) < MAX_VALUE).all(axis=(1, 2)))
        self._doubt((returned[:, AT_POINT_INDICES] != base[:, None]).any(axis=(1, 2)))
        self._doubt((returned[:, 3] != returned[:, 4]).any(axis=1))
        noise = noise_from_table(nearby.swapaxes(0, 1).reshape(nearby.shape[1], -1)).reshape(base.shape)
        self._noise = np.maximum(noise, 0.5 * np.spacing(np.abs(base)))
        columns = self._measure_first(h, first_values)
        self._far_values = {FAR_STEP_SIZE: returned[:, 1], -FAR_STEP_SIZE: returned[:, 3]}
        self._doubt(self._grow_beyond_powers(columns))
        columns = self._measure_best(self._make_comparable(columns))
        return self._judge(columns, nearby[:, -1], pairs)

    def _doubt(self, is_doubtful: Mask | np.bool_) -> None:
        self._is_doubtful |= is_doubtful

    def _doubt_columns(self, is_doubtful: Mask | np.bool_) -> None:
        self._is_doubtful |= np.reshape(is_doubtful, (self._count, self._width)).any(axis=1)

    # ------------------------------------------------------------------ evaluations

    def _evaluate_first(self, before: list[float], after: list[float], h: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return values on a line (k, steps, r), and of all columns (j, 4, r), evaluated point by point in this order.

        Steps along the line are evaluated before the columns, and after them.
        """
        count, width = self._count, self._width
        steps = np.array([*before, *after])
        line = steps[:, None] * self._direction[:, None]
        columns = np.zeros((count, width, len(FACTORS), width))
        all_columns = np.arange(width)
        columns[:, all_columns, :, all_columns] = np.multiply.outer(h.reshape(count, width).T, FACTORS)
        parts = line[:, : len(before)], columns.reshape(count, -1, width), line[:, len(before) :]
        displacements = np.concatenate(parts, axis=1)
        rows = displacements.shape[1]
        answers = self._function(np.repeat(np.arange(count), rows), displacements.reshape(-1, width))
        answers = answers.reshape(count, rows, -1)
        end = rows - len(after)
        on_line = np.concatenate((answers[:, : len(before)], answers[:, end:]), axis=1)
        return on_line, answers[:, len(before) : end].reshape(len(h), len(FACTORS), -1)

    def _evaluate_columns(self, indices: Numbers, h: FloatArray) -> FloatArray:
        """Return the values (i, 4, r) of some columns with steps h (i,)."""
        displacements = np.zeros((len(indices), len(FACTORS), self._width))
        displacements[np.arange(len(indices)), :, indices % self._width] = np.multiply.outer(h, FACTORS)
        numbers = np.repeat(self._points[indices], len(FACTORS))
        answers = self._function(numbers, displacements.reshape(-1, self._width))
        return answers.reshape(len(indices), len(FACTORS), -1)

    def _difference(self, indices: Numbers, h: FloatArray, values: FloatArray) -> _DifferencedColumns:
        """Return extrapolated central differences of some columns from values (i, 4, r)."""
        ahead, behind, far_ahead, far_behind = values.swapaxes(0, 1)
        base, step = self._base[self._points[indices]], h[:, None]
        rounding = 0.5 * np.spacing(np.maximum(np.abs(ahead), np.abs(behind)))
        near = (ahead - behind) / (2 * step)
        curvature = (near - (far_ahead - far_behind) / (4 * step)) / 3
        S1, S2 = ahead + behind - 2 * base, far_ahead + far_behind - 2 * base
        noise = np.maximum(self._noise[self._points[indices]], rounding)
        return _DifferencedColumns(h, near + curvature, curvature, S1, S2, noise)

    # ------------------------------------------------------------------ steps

    def _measure_first(self, h: FloatArray, values: FloatArray) -> _DifferencedColumns:
        """Return differences with steps as the noise asks for them; ``values`` (j, 4, r) are those at steps h (j,)."""
        base, noise = self._base, self._noise
        relative = np.where(np.abs(base) > TELLING_NOISE_RATIO * noise, noise / np.abs(base), EPS).max(
            axis=1, initial=EPS
        )
        start = np.clip(relative ** (1 / 5), *FIRST_STEPS)
        self._start = np.where(np.isfinite(start), start, FIRST_STEP_SIZE)
        fitting = _round_steps(self._start[self._points] * self._sizes)
        all_columns = np.arange(len(h))
        columns = self._difference(all_columns, h, values)
        indices = np.flatnonzero((fitting != h) & ~self._is_doubtful[self._points])
        if len(indices):
            steps = fitting[indices]
            repeated = self._difference(indices, steps, self._evaluate_columns(indices, steps))
            columns = columns.replace(indices, repeated)
        self._doubt_columns(~np.isfinite(columns.D).all(axis=1))
        return columns

    def _make_comparable(self, columns: _DifferencedColumns) -> _DifferencedColumns:
        """Weigh the rows of each point, and count what is left of terms that cancel as noise."""
        shape, sizes = (self._count, self._width, -1), self._sizes[:, None]
        slope = (np.abs(columns.D) * sizes).reshape(shape).max(axis=1)
        is_cancelled = is_rounding(slope, self._terms(self._base, slope), self._noise)
        floor = np.where(is_cancelled, slope, VANISHING_ROUNDING_RATIO * EPS * slope)
        columns = columns.with_noise(floor[self._points])
        self._noise = np.maximum(self._noise, floor)
        rounding = (columns.rounding * sizes).reshape(shape).max(axis=1)
        is_telling = slope > VISIBLE_ROUNDING_RATIO * rounding
        is_telling |= ~is_telling.any(axis=1, keepdims=True) & (slope > 0)
        comparable = np.maximum(slope, FLAT_ROW_FRACTION * np.abs(self._base))
        self._weights = np.where(is_telling, 1 / np.where(is_telling, comparable, 1.0), 0.0)
        return columns

    def _measure_best(self, columns: _DifferencedColumns) -> _DifferencedColumns:
        """Measure columns again with other steps while these promise clearly smaller errors."""
        best, last = columns, columns
        truncation, rounding, size = self._estimate_parts(np.arange(len(columns.h)), columns)
        best_error = (truncation + rounding) * size
        indices = np.flatnonzero(~self._is_doubtful[self._points])
        tried: list[tuple[Numbers, _DifferencedColumns]] = []
        last, truncation, rounding = columns.select(indices), truncation[indices], rounding[indices]
        for _ in range(OPTIONS.retries):
            scale = self._sizes[indices]
            ratio = (rounding / np.maximum(truncation, SMALLEST_DIVISOR)) ** (1 / (OPTIONS.order + 1))
            better = _round_steps(np.minimum(last.h * np.clip(ratio, *STEP_CHANGE_RATIOS), MAX_STEP_SIZE * scale))
            predicted = truncation * (better / last.h) ** OPTIONS.order + rounding * last.h / better
            gain = np.maximum(truncation, rounding) / np.maximum(predicted, SMALLEST_DIVISOR)
            is_worth = (gain >= MIN_GAIN_RATIO) & (truncation + rounding >= SUFFICIENT_ERROR) & (better != last.h)
            if not is_worth.any():
                break
            chosen = np.flatnonzero(is_worth)
            indices, before, better = indices[chosen], last.select(chosen), better[chosen]
            new = self._difference(indices, better, self._evaluate_columns(indices, better))
            is_finite = np.isfinite(new.D).all(axis=1)
            self._doubt_points(indices[~is_finite | _find_noisier(before, new)])
            indices, last = indices[is_finite], new.select(np.flatnonzero(is_finite))
            tried.append((indices, last))
            truncation, rounding, size = self._estimate_parts(indices, last)
            error = (truncation + rounding) * size
            is_better = error < best_error[indices]
            best_error[indices[is_better]] = error[is_better]
            best = best.replace(indices[is_better], last.select(np.flatnonzero(is_better)))
        if tried:
            all_columns = np.arange(len(columns.h))
            for numbers, other in [(all_columns, columns), *tried]:
                self._doubt_points(numbers[self._contradict(numbers, best.select(numbers), other)])
        return best

    def _doubt_points(self, columns: Numbers) -> None:
        self._is_doubtful[self._points[columns]] = True

    def _estimate_parts(
        self, indices: Numbers, columns: _DifferencedColumns
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return truncation and rounding of columns relative to their largest derivatives, and these, each (i,)."""
        weights, scale = self._weights[self._points[indices]], self._sizes[indices]
        noise = columns.rounding
        size = np.maximum((weights * np.abs(columns.D)).max(axis=1) * scale, WEAK_COLUMN_FRACTION) / scale
        rounding = (weights * noise).max(axis=1) / size
        bend = np.maximum((weights * (np.abs(columns.curvature) - noise)).max(axis=1), 0.0) / size
        return 4 * bend**2 + (columns.h / scale) ** 4, rounding, size

    def _contradict(self, indices: Numbers, one: _DifferencedColumns, other: _DifferencedColumns) -> Mask:
        """Return where the derivatives at two steps differ by more than their errors explain, (i,)."""
        errors = one.rounding + other.rounding + np.abs(one.curvature) + np.abs(other.curvature)
        gap = np.abs(one.D - other.D)
        parts = [self._estimate_parts(indices, columns) for columns in (one, other)]
        truncation_limit = np.maximum(*(truncation * size for truncation, _, size in parts))[:, None]
        is_beyond = (gap > CONTRADICTION_FACTOR * errors) & (
            self._weights[self._points[indices]] * gap > truncation_limit
        )
        return np.asarray(is_beyond.any(axis=1))

    # ------------------------------------------------------------------ judgements

    def _grow_beyond_powers(self, columns: _DifferencedColumns) -> Mask:
        """Return where the function grows so much faster than steps that sizes are too large for it, (k,)."""
        shape, h = (self._count, self._width, -1), columns.h[:, None]
        near = np.abs(columns.D - columns.curvature) * h + np.abs(columns.S1) / 2
        twice = np.abs(columns.D - 4 * columns.curvature) * 2 * h + np.abs(columns.S2) / 2
        is_visible = near > CLEAR_ROUNDING_RATIO * self._noise[self._points]
        grows = (is_visible & (twice > 2**SUSPECT_GROWTH_EXPONENT * near)).reshape(shape).any(axis=(1, 2))
        longest = (columns.h / self._sizes).reshape(shape[:2]).max(axis=1)
        limit = (FAR_STEP_SIZE / longest[:, None]) ** SUSPECT_GROWTH_EXPONENT * near.reshape(shape).sum(axis=1)
        is_beyond = np.any(
            [np.abs(far_values - self._base) > limit for far_values in self._far_values.values()], axis=0
        )
        return np.asarray(grows | (is_visible.reshape(shape).any(axis=1) & is_beyond).any(axis=1))

    def _judge(self, columns: _DifferencedColumns, nearby: FloatArray, pairs: FloatArray) -> PointDifferences:
        """Return derivatives and errors from the best differences; doubt points at which they do not hold."""
        count, width, base = self._count, self._width, self._base
        J, curvature, rounding, S1, S2 = (
            part.reshape(count, width, -1).swapaxes(1, 2)
            for part in (
                columns.D,
                columns.curvature,
                columns.rounding,
                columns.S1 / columns.h[:, None],
                columns.S2 / columns.h[:, None],
            )
        )
        scales, h = self._scales[:, None], columns.h.reshape(count, width)
        row_size = np.max(np.abs(J) * scales, axis=2, keepdims=True)
        jump = find_jumps(S1, S2, rounding, row_size / scales)
        is_small = np.abs(jump) < KINK_TOLERANCE * row_size / scales
        error = estimate_errors(J, rounding, curvature, h, self._scales, OPTIONS)
        error += np.where(is_small, np.abs(jump) / 2, 0.0)
        self._doubt(((jump != 0) & ~is_small).any(axis=(1, 2)))
        is_short = np.minimum(1.0, h / (self._start[:, None] * self._scales)) < SHORT_LENGTH_SIZE
        self._doubt(is_short.any(axis=1))
        self._require_smooth(columns)
        error += self._compare_along_direction(J, error, nearby, pairs)[..., None] / scales
        sizes = row_size[..., 0]
        terms = self._terms(base, sizes)
        limit = np.maximum(INACCURATE_ENTRY_ERROR * sizes, INDISTINCT_ROW_ERROR * terms)[..., None]
        self._doubt(~(error * scales <= limit).all(axis=(1, 2)))
        return PointDifferences(base, J, error, self._is_doubtful)

    def _require_smooth(self, columns: _DifferencedColumns) -> None:
        """Doubt columns of which second differences at h and 2h are less alike than those of a smooth function.

        Where second differences vanish by chance the next term of a smooth function looks the same. It shrinks with
        the fourth power of the step, which knots of a table do not do.
        """
        remainder = np.abs(columns.S2 - 4 * columns.S1)
        allowed = ROUGHNESS_FACTOR * smooth_remainder(
            columns.h[:, None], self._sizes[:, None], columns.D, columns.curvature, columns.S1, columns.noise
        )
        is_rough = ~(remainder <= allowed)
        indices = np.flatnonzero(is_rough.any(axis=1) & ~self._is_doubtful[self._points])
        if not len(indices):
            return
        halves = self._difference(
            indices, columns.h[indices] / 2, self._evaluate_columns(indices, columns.h[indices] / 2)
        )
        expected = remainder[indices] / SMOOTH_SHRINKAGE_FACTOR + ROUGHNESS_FACTOR * halves.noise
        is_smooth = np.abs(halves.S2 - 4 * halves.S1) <= expected
        self._doubt_points(indices[(is_rough[indices] & ~is_smooth).any(axis=1)])

    def _compare_along_direction(
        self, J: FloatArray, error: FloatArray, nearby: FloatArray, pairs: FloatArray
    ) -> FloatArray:
        """Compare derivatives with differences at smaller steps and far away; return what to add to errors (k, r).

        ``nearby`` (k, r) is the last value of the line on which noise was measured, ``pairs`` are the values at both
        ends of a wide step and of :data:`STEPS`.
        """
        base, d = self._base, self._direction[..., None]
        slope, doubt, size = (J @ d)[..., 0], (error @ np.abs(d))[..., 0], (np.abs(J) @ np.abs(d))[..., 0]
        row_slope = (np.abs(J) * self._scales[:, None]).max(axis=2)
        row_terms = self._terms(base, row_slope)
        cancelled = np.where(is_rounding(row_slope, row_terms, self._noise), 4 * EPS * row_terms, 0.0)
        steps_of_values = (np.abs(J) @ np.spacing(np.abs(self._values))[..., None])[..., 0]
        rounding = np.maximum.reduce([0.5 * np.spacing(np.abs(base)), EPS * size, steps_of_values, cancelled])
        noise = np.maximum(self._noise, rounding)
        ahead, behind = pairs[:, 0::2] - base[:, None], pairs[:, 1::2] - base[:, None]

        # The h^2 term of differences along the direction, from the two wide steps.
        wide, less = FAR_STEP_SIZE, FAR_STEP_SIZE * WIDE_STEP_RATIO
        far_slope = (self._far_values[wide] - self._far_values[-wide]) / (2 * wide)
        at_wide = (far_slope - slope) / wide**2
        at_less = ((ahead[:, 0] - behind[:, 0]) / (2 * less) - slope) / less**2
        quartic = (at_wide - at_less) / (wide**2 - less**2)
        term = at_less - quartic * less**2
        beyond = quartic**2 / np.maximum(np.maximum(np.abs(term), np.abs(at_wide)), SMALLEST_DIVISOR)
        uncertainty = SMOOTH_TERM_FACTOR * beyond * wide**2 * less**2

        pair_of = {step: (ahead[:, i], behind[:, i]) for i, step in enumerate(STEPS, 1)}
        gaps = {s: np.abs((a - b) / (2 * s) - slope - term * s**2) for s, (a, b) in pair_of.items()}
        least = min(gaps)
        noise = np.where(gaps[least] * least < ABSENT_NOISE_RATIO * noise, rounding, noise)
        allowed = {s: VISIBLE_NOISE_FACTOR * (noise / s + doubt) + uncertainty * s**2 for s in gaps}
        bends = {s: (pair_of[s][0] + pair_of[s][1]) / s for s in (FINE_STEP_SIZE, KINK_STEP_SIZE)}
        kink = np.abs(bends[KINK_STEP_SIZE] - bends[FINE_STEP_SIZE] * KINK_STEP_SIZE / FINE_STEP_SIZE)
        kink = np.where(kink < VISIBLE_NOISE_FACTOR * noise / KINK_STEP_SIZE, 0.0, kink)
        s = (POINTS - 1) * NOISE_SPACING_SIZE
        gaps[s] = np.abs((nearby - base) / s - slope - bends[KINK_STEP_SIZE] / 2 * s / KINK_STEP_SIZE)
        allowed[s] = VISIBLE_NOISE_FACTOR * (ONE_SIDED_NOISE_FACTOR * noise / s + doubt)
        for step, gap in gaps.items():
            self._doubt(((gap > allowed[step]) & (gap > 0)).any(axis=1))
        self._doubt(_find_constant_changes([pair_of[s] for s in STEPS[2:]], STEPS[2:], slope, rounding))
        is_bent = np.abs(far_slope - slope) > STRAIGHT_SLOPE_RATIO * size + VISIBLE_NOISE_FACTOR * (
            doubt + np.spacing(np.abs(base)) / wide
        )
        self._doubt(is_bent.any(axis=1))
        small_kink = np.where(kink / 2 <= KINK_TOLERANCE * row_slope, kink / 2, 0.0)
        return np.asarray(gaps[FINE_STEP_SIZE] + small_kink)


def _round_steps(h: FloatArray) -> FloatArray:
    """Return the powers of two nearest to positive steps."""
    return np.asarray(2.0 ** np.rint(np.log2(h)))


def _find_noisier(before: _DifferencedColumns, last: _DifferencedColumns) -> Mask:
    """Return where the smaller step shows more noise (i,): h^2 terms shrink with the step, noise over h grows."""
    changes = np.array([last.S2 - last.S1, last.S1 - before.S1])
    is_jump = (np.abs(changes) <= EQUAL_CHANGE_RATIO * np.abs(last.S1)).all(axis=0) & (last.S1 != 0)
    is_finer = (last.h < before.h)[:, None]
    grows = (np.abs(last.curvature) > np.abs(before.curvature)) & is_finer & ~is_jump
    noise = np.maximum(np.abs(last.curvature), np.abs(last.D - before.D)) * last.h[:, None]
    return np.asarray((grows & (noise > NOISIER_RATIO * last.noise)).any(axis=1))


def _find_constant_changes(
    pairs: list[tuple[FloatArray, FloatArray]], steps: tuple[float, ...], slope: FloatArray, rounding: FloatArray
) -> Mask:
    """Return where the function changes by the same at two steps in a row (k,): it jumps at the point."""
    bare = [np.array([a - s * slope, b + s * slope]) for s, (a, b) in zip(steps, pairs, strict=True)]
    is_jump = np.zeros(len(slope), dtype=bool)
    for one, other in pairwise(bare):
        size = np.maximum(np.abs(one), np.abs(other))
        is_same = (np.abs(one - other) <= EQUAL_CHANGE_RATIO * size) & (size > JUMP_ROUNDING_RATIO * rounding)
        is_jump |= is_same.any(axis=(0, 2))
    return is_jump
