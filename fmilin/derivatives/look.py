"""One look at smaller steps, along all columns at once: whether the slope of one scale holds at the others.

A few pairs of visits along one direction d, at steps that lie decades apart, against J d. A feature narrower than the
steps of the columns shows at every step below its width, until rounding hides it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import ModelError, NumericalError
from fmilin.signals import FloatArray

__all__ = ["Around", "Beside", "differs", "direction_of", "suspects"]

Beside = Callable[[FloatArray], FloatArray]
"""Displacement of all columns, shape (k,) -> value, shape (r,)."""

STEPS = (2.0**-20, 2.0**-31, 2.0**-39, 2.0**-46)
"""In sizes of the variables."""

FINE = 2.0**-13
"""One where truncation is still seen, and extrapolated away with the help of its double."""

VISIBLE = 12.0
"""Gaps up to this many times the noise over the step are noise."""


ABSENT = 0.02
"""Differences below this part of the noise show that there is none so near to the point."""


STRAIGHT = 0.2
"""Part of its slope by which a row may change its slope far away."""


@dataclass(frozen=True, slots=True)
class Around:
    """What is known of the surroundings beside single columns.

    Attributes
    ----------
    beside : callable
        F at a displacement of all columns, shape (k,).
    values : array, shape (k,)
        Of the columns' variables at the point.
    forgets : array, shape (r,)
        By how much F differs when the point is visited again, and what else is surely rounding.
    far : mapping of float to array, shape (r,)
        F far away along :func:`direction_of`, by the step in sizes of the variables, where it can be evaluated.
    """

    beside: Beside
    values: FloatArray
    forgets: FloatArray
    far: Mapping[float, FloatArray]


def direction_of(scales: FloatArray) -> FloatArray:
    """Return one direction through all columns, the same every time, shape (k,)."""
    random = np.random.default_rng(1905)
    direction: FloatArray = random.uniform(0.5, 1.0, len(scales)) * random.choice([-1.0, 1.0], len(scales)) * scales
    return direction


def differs(
    around: Around, base: FloatArray, J: FloatArray, error: FloatArray, noise: FloatArray, scales: FloatArray
) -> tuple[float | None, FloatArray]:
    """Compare with J d at smaller and smaller steps, and far away.

    Returns
    -------
    step : float or None
        Where a row contradicts most clearly, in sizes of the variables; None when none does.
    noise : array, shape (r,)
        What is left of the noise: at the smallest step, none may be seen of what is a feature and no noise.
    """
    d = direction_of(scales)
    slope, doubt = J @ d, error @ np.abs(d)
    rounding = np.maximum(0.5 * np.spacing(np.abs(base)), np.finfo(float).eps * (np.abs(J) @ np.abs(d)))
    rounding = np.maximum(rounding, around.forgets)
    noise = np.maximum(noise, rounding)
    pairs: dict[float, tuple[FloatArray, FloatArray]] = {}
    for step in (2 * FINE, FINE, *STEPS):
        try:
            pair = around.beside(step * d) - base, around.beside(-step * d) - base
        except (ModelError, NumericalError):
            continue
        if np.isfinite(pair).all():
            pairs[step] = pair
    found = {step: (ahead - behind) / (2 * step) for step, (ahead, behind) in pairs.items()}
    if (double := found.pop(2 * FINE, None)) is not None and FINE in found:
        found[FINE] += (found[FINE] - double) / 3
    gaps = {step: np.abs(rate - slope) for step, rate in found.items()}
    if not gaps:
        return None, noise
    least = min(gaps)
    noise = np.where(gaps[least] * least < ABSENT * noise, rounding, noise)
    allowed = {step: VISIBLE * (noise / step + doubt) for step in gaps}
    seen = {s: float(np.max(g / np.where(g > 0, allowed[s], 1.0), initial=0.0, where=g > 0)) for s, g in gaps.items()}
    bare = [(pairs[s][0] - s * slope, pairs[s][1] + s * slope) for s in STEPS[1:] if s in pairs]
    if bare and _jumps(np.array(bare), rounding):
        seen[least] = np.inf
    if _bends(around.far, base, slope, np.abs(J) @ np.abs(d), doubt):
        seen[max(map(abs, around.far))] = 2.0
    worst = max(seen, key=lambda s: seen[s])
    return (worst if seen[worst] > 1.0 else None), noise


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
