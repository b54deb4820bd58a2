"""How noisy a computed function is: the difference table of Moré and Wild's ECNoise (SIAM J. Sci. Comput. 33, 2011)."""

from __future__ import annotations

from collections.abc import Callable
from math import factorial

import numpy as np

from fmilin.ground.errors import ModelError, NumericalError
from fmilin.ground.signals import FloatArray

__all__ = ["POINTS", "noise_beside", "noise_from_table"]

POINTS = 8
"""Values along the line, equally spaced and very close together."""

_WITHIN = 4.0
"""Three orders whose estimates lie within this factor of each other have found the noise."""


def noise_from_table(values: FloatArray) -> FloatArray:
    """Return the standard deviation of the noise of each component, from values on a tiny equally spaced line.

    Differences of order k of a smooth function vanish with the spacing, those of noise grow: the level is

        sigma_k^2 = (k!)^2 / (2k)!  mean((Delta^k F)^2)

    read where three successive orders agree. At least half a unit in the last place is returned: a
    function that repeats exactly is still rounded.

    Shapes: values (POINTS, r). Returns (r,).
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


def noise_beside(function: Callable[[FloatArray], FloatArray], x: FloatArray, scales: FloatArray) -> FloatArray:
    """Return the noise of a function on a tiny line through x, shape (r,); zero where it cannot be evaluated.

    Shapes: x, scales (n,). ``function``: x (n,) -> values, shape (r,); evaluated :data:`POINTS` times.
    """
    step = 1e-8 * scales * np.random.default_rng(2013).uniform(0.5, 1.0, len(x))
    try:
        values = np.array([function(x + k * step) for k in range(POINTS)])
    except (ModelError, NumericalError):
        return np.zeros_like(function(x))
    return noise_from_table(values) if np.isfinite(values).all() else np.zeros(values.shape[1])
