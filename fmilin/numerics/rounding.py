"""The effect of rounding on a result, from the same computation at points that are some bits apart."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from fmilin.signals import FloatArray
from fmilin.tolerances import EPS


def move_some_bits(states: FloatArray, sizes: FloatArray) -> FloatArray:
    """Return states (..., N) moved by some bits of their sizes: also where they are zero, as angles at rest are."""
    return np.asarray(states + 2 * EPS * np.maximum(np.abs(states), sizes) * _random_signs(states.shape[-1]))


@cache
def _random_signs(count: int) -> FloatArray:
    """Return signs at random, the same every time, shape (count,)."""
    return np.random.default_rng(1952).choice([-1.0, 1.0], count)


def estimate_rounding(samples: Sequence[FloatArray]) -> FloatArray:
    """Return what rounding does to a result, from two or three samples some bits apart: of three, twice their range."""
    # Three may lie close together by chance, and the truth outside; two are compared as they are.
    factor = 1.0 if len(samples) == 2 else 2.0
    return np.asarray(factor * np.ptp(samples, axis=0))
