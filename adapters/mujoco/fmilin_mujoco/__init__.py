"""MuJoCo models for fmilin: MJCF and URDF, with equality constraints made ideal."""

from __future__ import annotations

from fmilin_mujoco.adapter import MujocoAdapter
from fmilin_mujoco.engine import MujocoEngine
from fmilin_mujoco.soft import soft_linearization

__all__ = ["MujocoAdapter", "MujocoEngine", "soft_linearization"]
