"""Rotations and vectors of MuJoCo as a mechanism has them."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from fmilin.signals import FloatArray

__all__ = ["matrix_of", "triple"]


def matrix_of(quaternion: Any) -> FloatArray:
    """Return the rotation of a unit quaternion, shape (3, 3)."""
    R = np.zeros(9)
    mujoco.mju_quat2Mat(R, np.asarray(quaternion, dtype=np.float64))
    return R.reshape(3, 3)


def triple(numbers: Any) -> tuple[float, float, float]:
    """Return three numbers as such."""
    x, y, z = (float(a) for a in numbers)
    return x, y, z
