"""Jumps, stairs and kinks that a ladder of steps shows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fmilin.ground.errors import ModelError, NumericalError
from fmilin.ground.signals import FloatArray
from fmilin.numerics.differences.ladder import RATIO, Ladder

__all__ = ["jumps_at_point", "kink_at_point", "odd_part_left", "stairs_beyond"]

EVEN = 0.1
"""Bends over h that stay the same to this part, from rung to rung, are a kink's."""

STILL = 1e-3
"""Changes of F that stay the same to this part are a jump's: noise does so less often."""

RUN = 4
"""Rungs over which they must."""

AT_POINT = 2.0**-49
"""In sizes of the variable: a jump as close as that counts as being at the point."""

STAIRS = 4.0
"""Jumps of one height that are no accident."""

SUDDEN = 0.02
"""Of what F changes by over a rung, that it changes by within 2^-14 of it: a jump."""

HALVINGS = 14


def odd_part_left(ladder: Ladder, row: int, slope: float) -> FloatArray:
    """Return the odd part of F(s) - F(0) - s E, shape (K,)."""
    left: FloatArray = (ladder.ahead[:, row] - ladder.behind[:, row]) / 2 - ladder.h * slope
    return left


def stairs_beyond(
    ladder: Ladder, row: int, slope: float, error: FloatArray, chosen: int, line: Callable[[float], FloatArray]
) -> tuple[float, int, float]:
    """Return the height of stairs beyond a plateau and the rung where they begin; 0 and 0 where there are none.

    One jump is a switch beside the point; stairs go on. What grows with h^3 from rung to rung is smooth. Stairs
    that are low beside what is smooth show only once: last, what one jump changes the slope by is returned.
    """
    h, left = ladder.h, odd_part_left(ladder, row, slope)

    def rest(s: float) -> float:
        return float(line(s)[row] - line(-s)[row]) / 2 - s * slope

    first, begin, beside = 0.0, 0, 0.0
    for k in range(min(chosen, len(h) - 2), -1, -1):
        growth = abs(left[k]) / max(abs(left[k + 1]), 1e-300)
        if abs(left[k]) <= error[k] or RATIO**3 / 2 <= growth <= RATIO**3 * 2:
            continue
        height = _jump(rest, (h[k + 1], h[k]), (left[k + 1], left[k]))
        if first == 0.0:
            first, begin, beside = height, k, height / float(h[k + 1])
        elif height > 0.2 * first:
            stairs = float(np.abs(left[: begin + 1]).max()) >= STAIRS / 2 * first
            return (first, begin, beside) if stairs else (0.0, 0, beside)
    return 0.0, 0, beside


def _jump(rest: Callable[[float], float], interval: tuple[float, float], ends: tuple[float, float]) -> float:
    """Return the height of the jump in an interval at whose ends something is known; 0 when there is none."""
    (low, high), (at_low, at_high) = interval, ends
    whole = max(abs(at_high), abs(at_low))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        try:
            found = rest(middle)
        except (ModelError, NumericalError):
            return 0.0
        if abs(found - at_low) >= abs(at_high - found):
            high, at_high = middle, found
        else:
            low, at_low = middle, found
    height = float(abs(at_high - at_low))
    return height if height > SUDDEN * whole else 0.0


def jumps_at_point(h: FloatArray, right: FloatArray, left: FloatArray, ulp: FloatArray) -> NDArray[np.bool_]:
    """Return where runs of rungs begin over which F is the same on a side, and not F(0), as at all finer rungs.

    Not where it is the same on both sides: there the steps are lost in rounding, and what differs from F(0) is noise.
    """
    sides = np.stack((right, left))
    runs = np.lib.stride_tricks.sliding_window_view(sides, RUN, axis=1)
    sizes, unit = np.abs(runs).max(axis=2), ulp[: runs.shape[1]]
    apart = np.abs(runs[0] - runs[1]).min(axis=1)
    same = (np.ptp(runs, axis=2) <= np.maximum(STILL * sizes, 4 * unit)) & (sizes > 40 * unit) & (apart > EVEN * sizes)
    steps = h >= AT_POINT
    found = np.zeros(len(unit), dtype=np.bool_)
    for k in np.flatnonzero(same.any(axis=0)).tolist():
        finer = (np.abs(sides[:, k:] - sides[:, k, None])[:, steps[k:]] <= sizes[:, k, None] / 2).all(axis=1)
        found[k] = (same[:, k] & finer).any()
    return found


def kink_at_point(h: FloatArray, S: FloatArray, ulp: FloatArray, chosen: int) -> tuple[float, int | None]:
    """Return S / h where it is the same over rungs that the plateau contains, 0 otherwise.

    A kink is one at all finer rungs that can tell. Where it is none there, it is rounded off, or lies beside the point:
    then 0 and the first of those rungs are returned.
    """
    bend, seen = S / h, np.abs(S) > 30 * ulp
    for k in range(len(h) - RUN, -1, -1):
        run = slice(k, k + RUN)
        finer = float(np.abs(S[k + RUN :]).max(initial=0.0))
        if k + RUN - 1 < chosen or not seen[run].all() or abs(S[k]) < 30 * finer:  # noise does not fall with h
            continue
        if np.ptp(bend[run]) > EVEN * np.abs(bend[run]).max():
            continue
        kink = float(np.mean(bend[run]))
        none = (np.abs(kink * h) > 100 * ulp) & (np.abs(bend - kink) > abs(kink) / 2)
        none[: k + RUN] = False
        return (0.0, int(np.argmax(none))) if none.any() else (kink, None)
    return 0.0, None
