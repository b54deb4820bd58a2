"""A second look at measured slopes: columns that are not what they seemed are measured at all scales of steps."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import INACCURATE, INDISTINCT, KINK, ROUNDING
from fmilin.numerics.differences.climb import LITTLE, climbed
from fmilin.numerics.differences.columns import Column, Setting, is_rough
from fmilin.numerics.differences.ladder import ladder_of
from fmilin.numerics.differences.look import FINE, Around, Seen, differs, suspects
from fmilin.numerics.differences.slopes import Slopes, Terms

__all__ = ["look_closer", "with_rounding"]

NARROW = 1e-3
"""A slope that holds over less than this part of the variable's size is said to."""

UNCLEAR = 1e-6
"""Error of an entry, relative to its row, for which other steps are tried where one column was not what it seemed."""


def with_rounding(around: Around, J: FloatArray, scales: FloatArray, terms: Terms | None) -> Around:
    """Count as forgotten, too, what is left of rows whose terms all cancel."""
    if terms is None:
        return around
    slope = (np.abs(J) * scales).max(axis=1)
    size = terms(slope)
    left = np.where(slope < ROUNDING * size, 4 * np.finfo(float).eps * size, 0.0)
    return replace(around, forgets=np.maximum(around.forgets, left))


def look_closer(
    setting: Setting,
    measured: list[Column],
    found: Slopes,
    around: Around,
    terms: Terms | None,
    nearby: list[FloatArray],
) -> None:
    """Compare with smaller steps, and climb down the columns that look different there, in place.

    ``found``: made from them; corrected here. ``nearby``, each (r,): F on the line on which the noise was measured.
    """
    scales, before = setting.scales, found.J.copy()
    seen = differs(around, setting.base, before, found.error, setting.noise, scales, nearby)
    found.error[...] += seen.gap[:, None] / scales
    rough = [c.doubtful or is_rough(c, scale) for c, scale in zip(measured, scales, strict=True)]
    columns = set(np.flatnonzero(found.jump.any(axis=0) | np.array(rough)).tolist())
    if seen.step == FINE:
        columns.update(range(len(scales)))  # single columns show what is smooth, too, over such a step
    elif seen.step is not None:
        columns.update(suspects(setting.line, seen.step, before, found.error, seen.noise, scales))
    for j in sorted(columns):
        _climb(setting, j, found, around, terms)
    # Errors are relative to rows, whose sizes may be known only now; and what is of little use deserves a second try.
    sizes = np.max(np.abs(found.J) * scales, axis=1, keepdims=True)
    least = 0.0 if terms is None else INDISTINCT * terms(sizes[:, 0])[:, None]
    unclear = (found.error * scales > np.maximum((UNCLEAR if columns else INACCURATE) * sizes, least)).any(axis=0)
    for j in sorted(set(np.flatnonzero(unclear).tolist()) - columns):
        _climb(setting, j, found, around, terms)
    _with_doubt(found, before, seen, scales)


def _with_doubt(found: Slopes, before: FloatArray, seen: Seen, scales: FloatArray) -> None:
    """Let errors hold, in place, what was seen along all columns together and explained by no single one."""
    sizes = np.max(np.abs(found.J) * scales, axis=1)
    explained = (np.abs(found.J - before) * scales).sum(axis=1) >= seen.ripple / 2
    doubts = (seen.stairs, LITTLE), (seen.kink / 2, KINK), (np.where(explained, 0.0, seen.ripple), LITTLE)
    for doubt, most in doubts:  # more than that shows in columns, too
        small = np.where(doubt <= most * sizes, doubt, 0.0)
        found.error[...] = np.maximum(found.error, small[:, None] / scales)
    jumps = np.abs(found.jump) < KINK * sizes[:, None] / scales
    found.error[...] += np.where(jumps, np.abs(found.jump) / 2, 0.0)
    found.jump[jumps] = 0.0


def _climb(setting: Setting, j: int, found: Slopes, around: Around, terms: Terms | None) -> None:
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
