"""Numbers out of files: what a file holds must be what a linear model can have."""

from __future__ import annotations

from typing import Any

import numpy as np

from fmilin.ground.signals import FloatArray

__all__ = ["finite_array", "real_array"]


def real_array(value: Any, what: str) -> FloatArray:
    """Return an array of doubles; None and NaN stay NaN."""
    array = np.asarray(value)
    if np.iscomplexobj(array):
        if array.imag.any():
            raise ValueError(f"{what} is complex, and a linear model is real: its imaginary part would be lost")
        array = array.real
    return np.array(array, dtype=np.float64)


def finite_array(value: Any, what: str) -> FloatArray:
    """Return an array of doubles, each of them a number."""
    array = real_array(value, what)
    if not np.isfinite(array).all():
        place = ", ".join(str(int(i) + 1) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{what} has NaN, infinite or missing entries, the first at ({place})")
    return array
