"""The noise level of a computed function: the difference table of Moré and Wild's ECNoise.

SIAM Journal on Scientific Computing 33, 2011.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial
from typing import TypeVar

import numpy as np

from fmilin.ground.errors import ModelError, NumericalError
from fmilin.ground.signals import FloatArray

S = TypeVar("S")

LARGEST = 1e300  # of a value beside the point

POINTS = 8  # values along the line, equally spaced and very close together
_WITHIN = 4.0  # three orders whose estimates lie within this factor of each other show the noise


def noise_from_table(values: FloatArray) -> FloatArray:
    """Return the standard deviation of the noise of each component (r,) from values (POINTS, r) on a tiny line.

    Differences of order k of a smooth function vanish with the spacing, those of noise grow; read where three
    orders agree:

        sigma_k^2 = (k!)^2 / (2k)!  mean((Delta^k F)^2)

    At least half a unit in the last place: a function that repeats exactly is still rounded.
    """
    rounding = 0.5 * np.spacing(np.max(np.abs(values), axis=0))
    table = values
    levels = []
    for k in range(1, len(values) - 1):
        table = np.diff(table, axis=0)
        gamma = factorial(k) ** 2 / factorial(2 * k)
        levels.append(np.sqrt(gamma * np.mean(table**2, axis=0)))
    sigma = np.array(levels)  # orders 1 .. POINTS - 2
    result = sigma[-1].copy()
    for k in range(len(sigma) - 3, 0, -1):  # the lowest order at which three agree
        three = sigma[k : k + 3]
        agree = three.max(axis=0) <= _WITHIN * three.min(axis=0)
        result = np.where(agree, sigma[k], result)
    noise: FloatArray = np.maximum(result, rounding)
    return noise


def noise_level(function: Callable[[FloatArray], FloatArray], x: FloatArray, scales: FloatArray) -> FloatArray:
    """Return the noise of a function on a tiny line through x (n,), shape (r,); zero where it cannot be evaluated."""
    step = 1e-8 * scales * np.random.default_rng(2013).uniform(0.5, 1.0, len(x))
    values = finite_values(function, *(x + k * step for k in range(POINTS)))
    return np.zeros_like(function(x)) if values is None else noise_from_table(np.array(values))


def finite_values(function: Callable[[S], FloatArray], *points: S) -> list[FloatArray] | None:
    """Return F at points; None where it cannot be evaluated at one of them, or is no number."""
    try:
        values = [function(point) for point in points]
    except (ModelError, NumericalError):
        return None
    return values if are_numbers(values) else None


def are_numbers(values: Sequence[FloatArray] | FloatArray) -> bool:
    """Whether values can be reckoned with: differences of larger ones overflow."""
    return bool((np.abs(values) < LARGEST).all())
