"""One look at smaller steps, along all columns at once: does the slope found at one scale hold at the others?

Three pairs of visits along one direction d, at steps that lie decades apart, against J d. A feature narrower than the
steps of the columns shows at every step below its width, until rounding hides it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import ModelError, NumericalError
from fmilin.signals import FloatArray

__all__ = ["Beside", "direction_of", "differs", "suspects"]

Beside = Callable[[FloatArray], FloatArray]
"""Displacement of all columns, shape (k,) -> value, shape (r,)."""

STEPS = (2.0**-18, 2.0**-29, 2.0**-40)
"""In sizes of the variables."""

VISIBLE = 12.0
"""Gaps up to this many times the noise over the step are noise."""


ABSENT = 0.02
"""Differences below this part of the noise show that there is none so near to the point."""


def direction_of(scales: FloatArray) -> FloatArray:
    """Return one direction through all columns, the same every time, shape (k,)."""
    random = np.random.default_rng(1905)
    direction: FloatArray = random.uniform(0.5, 1.0, len(scales)) * random.choice([-1.0, 1.0], len(scales)) * scales
    return direction


def differs(
    beside: Beside, base: FloatArray, J: FloatArray, error: FloatArray, noise: FloatArray, scales: FloatArray
) -> tuple[float | None, FloatArray]:
    """Compare with J d at smaller and smaller steps.

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
    noise = np.maximum(noise, rounding)
    gaps: dict[float, FloatArray] = {}
    for step in STEPS:
        try:
            found = (beside(step * d) - beside(-step * d)) / (2 * step) - slope
        except (ModelError, NumericalError):
            continue
        if np.isfinite(found).all():
            gaps[step] = np.abs(found)
    if not gaps:
        return None, noise
    least = min(gaps)
    noise = np.where(gaps[least] * least < ABSENT * noise, rounding, noise)
    seen = {s: float(np.max(g / (VISIBLE * (noise / s + doubt)), initial=0.0, where=g > 0)) for s, g in gaps.items()}
    worst = max(seen, key=lambda s: seen[s])
    return (worst if seen[worst] > 1.0 else None), noise


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
