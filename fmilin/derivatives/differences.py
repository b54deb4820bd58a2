"""Slopes by central differences, with steps that fit the function and an error estimate for every entry.

A column is measured at +-h and +-2h; Richardson extrapolation of the two central differences D(h), D(2h)
removes the h^2 term:

    D_R = D(h) + (D(h) - D(2h)) / 3

The estimate of its error has a rounding part (the measured noise over h) and a truncation part. The latter
is bounded by what D(h) - D(2h) shows of the third derivative, squared: with a natural length L the
h^2 term is h^2/L^2 and the h^4 term h^4/L^4 of the slope. When one part dominates, h is changed and the
column measured again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fmilin.derivatives.noise import POINTS, noise_from_table
from fmilin.errors import ModelError, NumericalError
from fmilin.signals import FloatArray

__all__ = ["Differences", "Slopes", "jacobian_by_differences", "slopes"]

Line = Callable[[int, float], FloatArray]
"""(column j, displacement s along it) -> value, shape (r,)."""


@dataclass(frozen=True, slots=True)
class Differences:
    """How to difference.

    Parameters
    ----------
    order : {2, 4}
        2: plain central differences, two evaluations a column. 4: Richardson, four.
    relative_step : float or None
        Of the column's scale; None: chosen from the measured noise.
    """

    order: int = 4
    relative_step: float | None = None

    retries: int = 5
    """How often a column may be measured again with a better step."""


@dataclass(frozen=True, slots=True)
class Slopes:
    """A Jacobian and how far it can be trusted.

    Attributes
    ----------
    J : array, shape (r, k)
    error : array, shape (r, k)
        Estimated absolute error of each entry.
    """

    J: FloatArray
    error: FloatArray


@dataclass(slots=True)
class _Column:
    """One measured column at step h: D (r,), the h^2 term found in it, and the rounding part of its error."""

    h: float
    D: FloatArray
    curvature: FloatArray
    rounding: FloatArray


def slopes(line: Line, base: FloatArray, scales: FloatArray, options: Differences | None = None) -> Slopes:
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

    Raises
    ------
    NumericalError
        When F cannot be evaluated in any usable neighbourhood; ``variable`` is the column's number.
    """
    options = options or Differences()
    k = len(scales)
    if k == 0 or len(base) == 0:
        return Slopes(np.zeros((len(base), k)), np.zeros((len(base), k)))
    noise = _noise(line, base, scales)
    size = np.maximum(np.max(np.abs(base)), np.finfo(float).tiny)
    start = options.relative_step or float(np.clip((np.max(noise) / size) ** (1 / (options.order + 1)), 5e-4, 3e-2))
    if options.order == 2 and options.relative_step is None:
        start = float(np.clip((np.max(noise) / size) ** (1 / 3), 1e-5, 1e-2))
    columns = [_measure(line, j, start * scales[j], scales[j], noise, options) for j in range(k)]
    J = np.stack([c.D for c in columns], axis=1)
    return Slopes(J, _errors(columns, J, scales, options))


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


def _noise(line: Line, base: FloatArray, scales: FloatArray) -> FloatArray:
    """Measure the noise along the first column on a tiny line around the point: O(1) evaluations."""
    spacing = 1e-8 * scales[0]
    try:
        values = [line(0, s * spacing) for s in range(1, POINTS)]
    except (ModelError, NumericalError):
        values = []
    if len(values) != POINTS - 1 or not np.isfinite(values).all():
        return 4 * np.spacing(np.abs(base)) + np.finfo(float).eps * np.max(np.abs(base))
    floor = 0.1 * np.finfo(float).eps * np.max(np.abs(base))  # rows that are zero here are not exact elsewhere
    return np.maximum(noise_from_table(np.array([base, *values])), floor)


def _measure(line: Line, j: int, h: float, scale: float, noise: FloatArray, options: Differences) -> _Column:
    """Measure a column, changing the step while that promises a clearly smaller error."""
    best: _Column | None = None
    best_error = np.inf
    for attempt in range(options.retries + 1):
        h = _representable(h)
        column = _at_step(line, j, h, noise, options.order)
        if column is None:
            h /= 16
            continue
        truncation, rounding = _parts(column, scale, options.order)
        if truncation + rounding < best_error:
            best, best_error = column, truncation + rounding
        better = h * float(np.clip((rounding / max(truncation, 1e-300)) ** (1 / (options.order + 1)), 1 / 256, 8))
        better = min(better, 0.05 * scale)
        gain = max(truncation, rounding) / max(_predicted(truncation, rounding, better / h, options.order), 1e-300)
        if (
            options.relative_step is not None
            or gain < 20
            or truncation + rounding < 1e-12
            or attempt == options.retries
        ):
            break
        h = better
    if best is None:
        raise NumericalError(
            "The model cannot be evaluated near the point, however small the step: it returns NaN, refuses, or the "
            "constraints cannot be satisfied there.",
            variable=str(j),
        )
    return best


def _at_step(line: Line, j: int, h: float, noise: FloatArray, order: int) -> _Column | None:
    try:
        ahead, behind = line(j, h), line(j, -h)
        far_ahead, far_behind = (line(j, 2 * h), line(j, -2 * h)) if order == 4 else (ahead, behind)
    except (ModelError, NumericalError):
        return None
    if not (np.isfinite(ahead).all() and np.isfinite(behind).all()):
        return None
    if not (np.isfinite(far_ahead).all() and np.isfinite(far_behind).all()):
        return None
    near = (ahead - behind) / (2 * h)
    noise = np.maximum(noise, 0.5 * np.spacing(np.maximum(np.abs(ahead), np.abs(behind))))
    if order == 2:
        return _Column(h, near, np.full_like(near, np.nan), noise / h)
    far = (far_ahead - far_behind) / (4 * h)
    curvature = (near - far) / 3
    return _Column(h, near + curvature, curvature, 1.5 * noise / h)


def _parts(column: _Column, scale: float, order: int) -> tuple[float, float]:
    """Return the truncation and the rounding part of a column's error, relative to its largest slope."""
    size = max(float(np.max(np.abs(column.D))), 1e-300)
    rounding = float(np.max(column.rounding)) / size
    if order == 2:
        return (column.h / scale) ** 2 / 6, rounding
    bend = max(float(np.max(np.abs(column.curvature))) - float(np.max(column.rounding)), 0.0) / size
    return 4 * bend**2 + (column.h / scale) ** 4 / 30, rounding


def _predicted(truncation: float, rounding: float, factor: float, order: int) -> float:
    return truncation * factor**order + rounding / factor


def _errors(columns: list[_Column], J: FloatArray, scales: FloatArray, options: Differences) -> FloatArray:
    """Estimate the absolute error of every entry, comparing rows in scaled columns."""
    h = np.array([c.h for c in columns])
    rounding = np.stack([c.rounding for c in columns], axis=1)
    row_size = np.max(np.abs(J) * scales, axis=1, keepdims=True)
    if options.order == 2:
        return 2 * rounding + (h / scales) ** 2 / 6 * row_size / scales
    bend = np.stack([np.abs(c.curvature) for c in columns], axis=1) * scales
    bend = np.maximum(bend - rounding * scales, 0.0)
    known = row_size > 0
    relative = np.where(known, bend / np.where(known, row_size, 1.0), 0.0)
    relative = np.maximum(relative, 0.1 * np.max(relative, axis=0, keepdims=True))
    relative = np.minimum(relative, 1.0)
    truncation = (4 * relative**2 + (h / scales) ** 4 / 30) * np.where(known, row_size, bend) / scales
    return 2 * rounding + truncation


def _representable(h: float) -> float:
    """Return a step near h that is a power of two: h and 2h are then exact, and so is their division."""
    return float(2.0 ** np.round(np.log2(h))) if h > 0 else h
