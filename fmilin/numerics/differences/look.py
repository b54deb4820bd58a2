"""One look at smaller steps, along all columns at once: whether the slope of one scale holds at the others.

A few pairs of visits along one direction d, at steps that lie decades apart, against J d. A feature narrower than the
steps of the columns shows at every step below its width, until rounding hides it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fmilin.ground.errors import ModelError, NumericalError
from fmilin.ground.signals import FloatArray

__all__ = ["SPACING", "Around", "Beside", "Seen", "differs", "direction_of", "suspects"]

Beside = Callable[[FloatArray], FloatArray]
"""Displacement of all columns, shape (k,) -> value, shape (r,)."""

FINE = 2.0**-13
"""A step, in sizes of the variables, at which truncation is known from two wide ones."""

STEPS = (FINE, 2.0**-20, 2.0**-33, 2.0**-40, 2.0**-46)
"""All; the noise was measured between the second and the third."""

WIDE = 2.0**-3
"""Ratio of the two wide steps."""

BEND = 2.0**-20
"""The step at which a kink is looked for."""

SPACING = 1e-8
"""Of the line on which the noise is measured, in sizes of the variables."""

SMOOTH = 10.0
"""Times what a smooth function adds beyond h^4."""

VISIBLE = 12.0
"""Gaps up to this many times the noise over the step are noise."""


ONE_SIDED = 5.0
"""Times the noise, that a difference on one side may have: it holds that of the point itself."""

ABSENT = 0.02
"""Differences below this part of the noise show that there is none so near to the point."""


STRAIGHT = 0.2
"""Part of its slope by which a row may change its slope far away."""


@dataclass(frozen=True, slots=True)
class Around:
    """What is known of the surroundings beside single columns."""

    beside: Beside  # F at a displacement of all columns, shape (k,)
    values: FloatArray  # (k,), of the columns' variables at the point
    forgets: FloatArray  # (r,), by how much F differs when the point is visited again, and what else is surely rounding
    # each (r,), F far away along :func:`direction_of`, by the step in sizes of the variables, where it can be evaluated
    far: Mapping[float, FloatArray]


def direction_of(scales: FloatArray) -> FloatArray:
    """Return one direction through all columns, the same every time, shape (k,)."""
    random = np.random.default_rng(1905)
    direction: FloatArray = random.uniform(0.5, 1.0, len(scales)) * random.choice([-1.0, 1.0], len(scales)) * scales
    return direction


@dataclass(frozen=True, slots=True)
class Seen:
    """What smaller steps and wider ones say of slopes; arrays of shape (r,), in slopes times sizes but the noise."""

    step: float | None  # where a row contradicts most clearly, in sizes of the variables; None when none does
    # what is left of the noise: at the smallest step, none may be seen of what is a feature and no noise
    noise: FloatArray
    gap: FloatArray  # by how much F along the direction, over :data:`FINE`, is not what J says
    kink: FloatArray  # one that is seen as soon as what is smooth is taken away
    stairs: FloatArray  # what a slope may change by over the wide steps, where nothing closer to the point says so
    ripple: FloatArray  # by how much slopes may differ close to the point, where smaller steps contradict


def differs(  # noqa: PLR0917 - all of them arrays of one measurement
    around: Around,
    base: FloatArray,
    J: FloatArray,
    error: FloatArray,
    noise: FloatArray,
    scales: FloatArray,
    nearby: Sequence[FloatArray] = (),
) -> Seen:
    """Compare with J d at smaller and smaller steps, and far away.

    Shapes: base (r,), J, error (r, k), noise (r,), scales (k,). ``nearby``, each (r,): F at 1, 2, ... times
    :data:`SPACING` along the direction, where it is known.
    """
    d, nothing = direction_of(scales), np.zeros(len(base))
    slope, doubt, size = J @ d, error @ np.abs(d), np.abs(J) @ np.abs(d)
    rounding = np.maximum(0.5 * np.spacing(np.abs(base)), np.finfo(float).eps * size)
    rounding = np.maximum(rounding, around.forgets)
    noise, wide, pairs = np.maximum(noise, rounding), _wide(around, d, slope), _pairs(around.beside, d, base)
    if not pairs:
        return Seen(None, noise, nothing, nothing, nothing, nothing)
    gaps = {s: np.abs((ahead - behind) / (2 * s) - slope - wide.term * s**2) for s, (ahead, behind) in pairs.items()}
    least = min(gaps)
    noise = np.where(gaps[least] * least < ABSENT * noise, rounding, noise)
    allowed = {s: VISIBLE * (noise / s + doubt) + wide.unsure * s**2 for s in gaps}
    kink = nothing
    if FINE in pairs and BEND in pairs:
        bends = {s: (ahead + behind) / s for s, (ahead, behind) in pairs.items()}
        kink = np.abs(bends[BEND] - bends[FINE] * BEND / FINE)
        kink = np.where(kink < VISIBLE * noise / BEND, 0.0, kink)
        if len(nearby):
            s = len(nearby) * SPACING
            gaps[s] = np.abs((nearby[-1] - base) / s - slope - bends[BEND] / 2 * s / BEND)
            allowed[s] = VISIBLE * (ONE_SIDED * noise / s + doubt)
    seen = {s: float(np.max(g / np.where(g > 0, allowed[s], 1.0), initial=0.0, where=g > 0)) for s, g in gaps.items()}
    bare = [(pairs[s][0] - s * slope, pairs[s][1] + s * slope) for s in STEPS[2:] if s in pairs]
    if any(_jumps(np.array(two), rounding) for two in pairwise(bare)):
        seen[least] = np.inf
    if _bends(around.far, base, slope, size, doubt):
        seen[max(map(abs, around.far))] = 2.0
    worst, gap, ripple = max(seen, key=lambda s: seen[s]), gaps.get(FINE, nothing), _unexplained(gaps, allowed, nothing)
    far = (gap > allowed.get(FINE, nothing)) & (ripple == 0)
    stairs = np.where(far, gap * (wide.less / FINE) ** 2, 0.0)
    return Seen(worst if seen[worst] > 1.0 else None, noise, gap, kink, stairs, ripple)


def _pairs(beside: Beside, d: FloatArray, base: FloatArray) -> dict[float, tuple[FloatArray, FloatArray]]:
    """Return F(s d) - F(0) and F(-s d) - F(0) by step s, where they have values."""
    pairs = {}
    for step in STEPS:
        try:
            pair = beside(step * d) - base, beside(-step * d) - base
        except (ModelError, NumericalError):
            continue
        if np.isfinite(pair).all():
            pairs[step] = pair
    return pairs


def _unexplained(
    gaps: Mapping[float, FloatArray], allowed: Mapping[float, FloatArray], nothing: FloatArray
) -> FloatArray:
    """Return by how much slopes near the point may differ where smaller steps contradict, shape (r,).

    As much as is seen, and as is hidden by rounding at the next smaller step.
    """
    found = nothing
    for step in sorted((step for step in gaps if step < FINE), reverse=True):
        found = np.where(gaps[step] > allowed[step], np.maximum(found, gaps[step]), found)
        found = np.where((found > 0) & (gaps[step] <= allowed[step]), np.maximum(found, allowed[step]), found)
    return found


@dataclass(frozen=True, slots=True)
class _Wide:
    """The h^2 term of central differences along the direction, in slopes over steps squared, and its error, (r,)."""

    term: FloatArray
    unsure: FloatArray
    less: float
    """The less wide of the two steps that it comes from."""


def _wide(around: Around, d: FloatArray, slope: FloatArray) -> _Wide:
    """Take the h^2 term, beside the h^4 term, from the difference far away and from another one."""
    unknown = _Wide(np.zeros(len(slope)), np.abs(slope), 0.0)
    steps = [step for step in around.far if step > 0 and -step in around.far]
    if not steps:
        return unknown
    wide, less = steps[0], steps[0] * WIDE
    try:
        pair = around.beside(less * d), around.beside(-less * d)
    except (ModelError, NumericalError):
        return unknown
    at_wide = ((around.far[wide] - around.far[-wide]) / (2 * wide) - slope) / wide**2
    at_less = ((pair[0] - pair[1]) / (2 * less) - slope) / less**2
    quartic = (at_wide - at_less) / (wide**2 - less**2)
    term = at_less - quartic * less**2
    beyond = quartic**2 / np.maximum(np.maximum(np.abs(term), np.abs(at_wide)), 1e-300)
    return _Wide(term, SMOOTH * beyond * wide**2 * less**2, less)


def _jumps(changes: FloatArray, rounding: FloatArray) -> bool:
    """Whether F changes by the same at all steps (steps, 2, r): it jumps at the point."""
    sizes = np.abs(changes).max(axis=0)
    return bool(((np.ptp(changes, axis=0) <= 0.1 * sizes) & (sizes > 40 * rounding)).any())


def _bends(
    far: Mapping[float, FloatArray], base: FloatArray, slope: FloatArray, size: FloatArray, doubt: FloatArray
) -> bool:
    """Whether the slope says nothing about the change over a good part of the variables: a stair, or a deadzone."""
    steps = [step for step in far if step > 0 and -step in far]
    if not steps:
        return False
    gap = np.abs((far[steps[0]] - far[-steps[0]]) / (2 * steps[0]) - slope)
    rounding = np.spacing(np.abs(base)) / steps[0]
    return bool((gap > STRAIGHT * size + VISIBLE * (doubt + rounding)).any())


def suspects(
    line: Callable[[int, float], FloatArray],
    step: float,
    J: FloatArray,
    error: FloatArray,
    noise: FloatArray,
    scales: FloatArray,
) -> list[int]:
    """Return the columns that contradict J at a step; all of them where none does alone."""
    found: list[int] = []
    for j, scale in enumerate(scales):
        h = float(2.0 ** np.round(np.log2(step * scale)))
        try:
            measured = (line(j, h) - line(j, -h)) / (2 * h)
        except (ModelError, NumericalError):
            found.append(j)
            continue
        rounding = np.maximum(noise, np.finfo(float).eps * np.abs(J[:, j]) * scale)
        seen: NDArray[np.bool_] = np.abs(measured - J[:, j]) > VISIBLE / 2 * (rounding / h + error[:, j])
        if seen.any() or not np.isfinite(measured).all():
            found.append(j)
    return found or list(range(len(scales)))
