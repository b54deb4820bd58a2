"""The rate of change along a given path, where only points of the path may be visited."""

from __future__ import annotations

from collections.abc import Callable

from fmilin.ground.signals import FloatArray

EIGHTH_ORDER = (4 / 5, -1 / 5, 4 / 105, -1 / 280)  # weights of F(s) - F(-s) at s = h, 2h, 3h, 4h
STEP = 2.0**-8  # of the path's natural length: truncation h^8/630 and rounding eps/h are then both below 1e-13


def derivative_along(function: Callable[[float], FloatArray], step: float) -> FloatArray:
    """Return dF/ds (r,) at s = 0 by the central difference of order 8, with error h^8 F^(9) / 630 and rounding.

    h is about :data:`STEP` of the length on which F changes; eight evaluations.

    >>> import numpy as np
    >>> bool(abs(derivative_along(lambda s: np.array([np.exp(s)]), STEP)[0] - 1.0) < 1e-13)
    True
    """
    total = EIGHTH_ORDER[0] * (function(step) - function(-step))
    for k, weight in enumerate(EIGHTH_ORDER[1:], start=2):
        total = total + weight * (function(k * step) - function(-k * step))
    rate: FloatArray = total / step
    return rate
