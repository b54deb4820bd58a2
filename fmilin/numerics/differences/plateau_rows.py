"""The derivatives of all rows of a step-size sweep at once; see :mod:`fmilin.numerics.differences.plateau`.

Most rows of a large model are smooth: their plateau is the step of least error, nothing nearer to the point contradicts
it, and no jump, stair or kink shows at any step. All that is tested for the rows together. Where a test leaves a doubt
the row is examined alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fmilin.numerics.differences.plateau import (
    CONTRADICTION_FACTOR,
    DRIFT_ROUNDING_FACTOR,
    MAX_COUNTED_ERROR,
    MAX_DRIFT_RATIO,
    MIN_DRIFT_RATIO,
    PLATEAU_END_RATIO,
    RIPPLE_RATIO,
    RIPPLE_SLOPE_RATIO,
    errors_of_plateaus,
    plateau_slope,
)  # fmt: skip
from fmilin.numerics.differences.sweep import (
    CONSTANT_JUMP_TOLERANCE,
    CONSTANT_KINK_TOLERANCE,
    DRAG_GROWTH_TOLERANCE,
    RATIO,
    RUN_STEPS,
    StepSweep,
)
from fmilin.numerics.differences.thresholds import (
    DRIFT_STEPS,
    JUMP_ROUNDING_RATIO,
    UNSEEN_ROUNDING_RATIO,
    VISIBLE_ROUNDING_RATIO,
)
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass
from fmilin.tolerances import EPS, SMALLEST_DIVISOR

Mask = NDArray[np.bool_]
Line = Callable[[float], FloatArray]


@dataclass(frozen=True, slots=True)
class PlateauRows:
    """The results of a sweep for all entries of a column, in arrays (r,); ``PlateauSlope`` is that for one entry."""

    slope: FloatArray
    error: FloatArray
    jump: FloatArray
    reach: FloatArray
    beyond: FloatArray


def plateau_slopes(
    sweep: StepSweep, line: Line, noise: FloatArray, sizes: FloatArray, rounding: FloatArray
) -> PlateauRows:
    """Return the derivatives of all rows from a sweep along ``line``.

    ``noise`` is that of each row, ``sizes`` its largest slope. A jump at the point that is as high as ``rounding`` is
    noise.
    """
    rows, is_doubtful = _find_smooth_slopes(sweep, noise, sizes)
    for row in np.flatnonzero(is_doubtful).tolist():
        size = float(sizes[row])
        entry = plateau_slope(sweep, row, line, float(noise[row]), size)
        height = float(np.abs(np.array((sweep.ahead[-1, row], sweep.behind[-1, row])) - sweep.base[row]).max())
        if np.isinf(entry.jump) and height <= rounding[row]:
            entry = plateau_slope(sweep, row, line, max(float(noise[row]), height), size)
        rows.slope[row], rows.error[row], rows.jump[row] = entry.slope, entry.error, entry.jump
        rows.reach[row], rows.beyond[row] = entry.reach, entry.beyond
    return rows


def _find_smooth_slopes(sweep: StepSweep, noise: FloatArray, sizes: FloatArray) -> tuple[PlateauRows, Mask]:
    """Return the derivatives of smooth rows, and which rows may be none: those have to be examined alone."""
    h, a, b, base = sweep.h[:, None], sweep.ahead, sweep.behind, sweep.base
    ulp = 0.5 * np.spacing(np.maximum(np.maximum(np.abs(a), np.abs(b)), np.abs(base))) + noise
    D = (a - b) / (2 * h)
    E = D[1:] + (D[1:] - D[:-1]) / (RATIO**2 - 1)
    cancellation = 0.5 * EPS * sizes * sweep.scale
    error = errors_of_plateaus(E, 2 * ulp[1:] / h[1:])
    chosen = error.argmin(axis=0)
    rows = np.arange(len(base))
    slope, least_error = E[chosen, rows], error[chosen, rows]
    is_finer = np.arange(len(E))[:, None] > chosen

    change, large = np.abs(E - slope), np.maximum(np.abs(slope), sizes)
    contradicts = is_finer & (change > CONTRADICTION_FACTOR * (error + least_error))
    is_ripple = (change <= RIPPLE_SLOPE_RATIO * large) & (change * (h[:-1] / sweep.scale) <= RIPPLE_RATIO * large)
    is_doubtful = (contradicts & ~is_ripple).any(axis=0)
    doubt = np.minimum(np.max(change, axis=0, where=contradicts, initial=0.0), MAX_COUNTED_ERROR * large)

    remainder = (a - b) / 2 - h * slope
    unseen = UNSEEN_ROUNDING_RATIO * ulp + CONTRADICTION_FACTOR * h * least_error
    is_doubtful |= _may_have_stairs(remainder, unseen, chosen)
    floor = np.maximum(ulp, cancellation)
    doubt = np.maximum(doubt, _find_drifts(E, chosen, 2 * floor[1:] / h[1:]))
    total_error = np.maximum(least_error, doubt)

    forward, backward = a - base, b - base
    is_doubtful |= _may_jump(forward, backward, ulp)
    unit = ulp + h * total_error + cancellation
    is_doubtful |= _may_jump(forward - h * slope, backward + h * slope, unit)
    is_doubtful |= _may_have_kink(h, a + b - 2 * base, ulp, chosen)

    beyond = E[0]  # the step of least error is the plateau itself
    has_left = np.abs(remainder) > PLATEAU_END_RATIO * h * np.maximum(np.abs(slope), np.abs(beyond))
    last_left = len(h) - 1 - has_left[::-1].argmax(axis=0)
    ends = has_left.any(axis=0) & (last_left < chosen)
    reach = np.where(ends, sweep.h[last_left], np.inf)
    return PlateauRows(slope, total_error, np.zeros(len(base)), reach, beyond.copy()), is_doubtful


def _may_have_stairs(remainder: FloatArray, unseen: FloatArray, chosen: NDArray[np.intp]) -> Mask:
    """Whether what is left of F beyond the plateau grows as neither h^3 nor drag: a jump would be searched for."""
    size = np.abs(remainder)
    growths = size[:-1] / np.maximum(size[1:], SMALLEST_DIVISOR)
    is_drag = np.abs(growths / RATIO**2 - 1.0) <= DRAG_GROWTH_TOLERANCE
    is_drag &= np.concatenate((is_drag[1:], is_drag[-1:]))
    is_smooth = (size[:-1] <= unseen[:-1]) | ((growths >= RATIO**3 / 2) & (growths <= RATIO**3 * 2)) | is_drag
    is_beyond = np.arange(len(growths))[:, None] <= chosen
    return np.asarray((is_beyond & ~is_smooth).any(axis=0))


def _find_drifts(E: FloatArray, chosen: NDArray[np.intp], floor: FloatArray) -> FloatArray:
    """Return how far E goes on from a step by a power of h that is not h^2; see ``_drift`` of single rows."""
    changes = np.diff(E, axis=0)
    is_seen = np.abs(changes) > DRIFT_ROUNDING_FACTOR * (floor[1:] + floor[:-1])
    ratios = changes[1:] / np.where(changes[:-1] == 0, np.inf, changes[:-1])
    worst = np.zeros(E.shape[1])
    for k in range(len(changes) - 2):
        end = min(k + 4, len(changes))
        run = ratios[k : end - 1]
        ratio = run[-1]
        is_slow = ratio < 1
        drifts = (
            is_seen[k:end].all(axis=0)
            & (ratio >= MIN_DRIFT_RATIO)
            & (ratio <= MAX_DRIFT_RATIO)
            & (k >= chosen - DRIFT_STEPS)
        )
        if end == k + 4:
            drifts &= is_slow | (k >= chosen)
        else:
            drifts &= is_slow
        if not drifts.any():
            continue
        largest = run.max(axis=0)
        drifts &= largest - run.min(axis=0) <= CONSTANT_KINK_TOLERANCE * largest
        tail = np.where(is_slow, np.abs(changes[end - 1]) * ratio / np.where(is_slow, 1 - ratio, 1.0), 0.0)
        size = np.abs(E[end] - E[chosen, np.arange(len(chosen))]) + tail
        worst = np.where(drifts, np.maximum(worst, size), worst)
    return worst


def _may_jump(forward: FloatArray, backward: FloatArray, unit: FloatArray) -> Mask:
    """Whether F is the same, and not F(0), over a run of steps on one side; see ``jumps_at_point``."""
    count = len(forward) - RUN_STEPS + 1
    runs = [(forward[i : i + count], backward[i : i + count]) for i in range(RUN_STEPS)]
    apart = np.abs(runs[0][0] - runs[0][1])
    for one, other in runs[1:]:
        apart = np.minimum(apart, np.abs(one - other))
    result = np.zeros(forward.shape[1], dtype=bool)
    for side in (0, 1):
        parts = [run[side] for run in runs]
        largest, least = parts[0], parts[0]
        for part in parts[1:]:
            largest, least = np.maximum(largest, part), np.minimum(least, part)
        sizes = np.maximum(np.abs(largest), np.abs(least))
        is_same = (largest - least <= np.maximum(CONSTANT_JUMP_TOLERANCE * sizes, 4 * unit[:count])) & (
            sizes > JUMP_ROUNDING_RATIO * unit[:count]
        )
        result |= (is_same & (apart > CONSTANT_KINK_TOLERANCE * sizes)).any(axis=0)
    return result


def _may_have_kink(h: FloatArray, S: FloatArray, ulp: FloatArray, chosen: NDArray[np.intp]) -> Mask:
    """Whether second differences over h are the same over a run of steps; see ``kink_at_point``."""
    bend, size = S / h, np.abs(S)
    is_seen = size > VISIBLE_ROUNDING_RATIO * ulp
    result = np.zeros(S.shape[1], dtype=bool)
    for k in range(len(h) - RUN_STEPS + 1):
        run = slice(k, k + RUN_STEPS)
        is_kink = (k + RUN_STEPS - 1 >= chosen) & is_seen[run].all(axis=0)
        if not is_kink.any():
            continue
        largest, least = bend[run].max(axis=0), bend[run].min(axis=0)
        is_kink &= largest - least <= CONSTANT_KINK_TOLERANCE * np.maximum(np.abs(largest), np.abs(least))
        finer = size[k + RUN_STEPS :].max(axis=0, initial=0.0)
        result |= is_kink & (size[k] >= VISIBLE_ROUNDING_RATIO * finer)
    return result
