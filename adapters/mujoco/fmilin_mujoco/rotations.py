"""Rotations of MuJoCo's quaternions."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from fmilin.signals import FloatArray

__all__ = ["matrix_of"]


def matrix_of(quaternion: Any) -> FloatArray:
    """Return the rotation of a unit quaternion, shape (3, 3)."""
    R = np.zeros(9)
    mujoco.mju_quat2Mat(R, np.asarray(quaternion, dtype=np.float64))
    return R.reshape(3, 3)
