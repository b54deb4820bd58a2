"""Models of MuJoCo and Pinocchio through the adapters, where they are installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import fmilin as fl

__all__ = ["CASES", "PACKAGES"]

EXAMPLES = Path(__file__).parents[2] / "examples"
LEGS = ["FL", "FR", "RL", "RR"]
TRUNK = [f"trunk.{name}" for name in ("x", "y", "z", "qx", "qy", "qz", "vx", "vy", "vz", "wx", "wy", "wz")]
"""Coordinates of the quadruped: among those of its legs, which are alike, rounding would choose."""

PACKAGES = {"mujoco": "fmilin_mujoco", "pinocchio": "fmilin_pinocchio"}
"""What must be installed, by the first word of a case."""


def _opened(source: str) -> fl.LinearModel:
    with fl.load(source) as model:
        return fl.linearize(model)


def _stance() -> fl.LinearModel:
    with fl.load(EXAMPLES / "standing_robot/quadruped.xml", options={"keyframe": "stance", "hold": LEGS}) as model:
        return fl.linearize(model, fl.trim(model, free=model.inputs.names), independent=TRUNK)


CASES: Mapping[str, Callable[[], fl.LinearModel]] = {
    "mujoco: four_bar.xml": lambda: _opened(f"mujoco:{EXAMPLES / 'one_mechanism/four_bar.xml'}"),
    "mujoco: spatial.xml": lambda: _opened(f"mujoco:{EXAMPLES / 'one_mechanism/spatial.xml'}"),
    "mujoco: quadruped.xml": _stance,
    "pinocchio: four_bar.urdf": lambda: _opened(f"pinocchio:{EXAMPLES / 'one_mechanism/four_bar.urdf'}"),
    "pinocchio: spatial.urdf": lambda: _opened(f"pinocchio:{EXAMPLES / 'one_mechanism/spatial.urdf'}"),
}
