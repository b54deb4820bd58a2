"""A robot in MuJoCo's own simulation, with contacts that lift off and slide, under a sampled controller."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mujoco
import numpy as np

from fmilin.signals import FloatArray

__all__ = ["Push", "Run", "pushed"]

Controller = Callable[[FloatArray, FloatArray], FloatArray]
"""(qpos, qvel) -> ctrl."""


@dataclass(frozen=True)
class Push:
    """A force on a body for a while, in N and s."""

    force: tuple[float, float, float]
    start: float = 0.1
    duration: float = 0.2


@dataclass(frozen=True)
class Run:
    """What the trunk did: times (k,), positions (k, 3) and quaternions (k, 4), feet on the ground (k,)."""

    time: FloatArray
    position: FloatArray
    quaternion: FloatArray
    standing: FloatArray

    @property
    def excursion(self) -> FloatArray:
        """How far the trunk is from where it stood, in m, shape (k,)."""
        return np.asarray(np.linalg.norm(self.position - self.position[0], axis=1))

    @property
    def tilt(self) -> FloatArray:
        """By how much the trunk is turned, in degrees, shape (k,)."""
        along = np.abs(self.quaternion @ self.quaternion[0])
        return np.asarray(np.rad2deg(2 * np.arccos(np.clip(along, 0.0, 1.0))))


def pushed(
    path: str, controller: Controller, push: Push, *, body: str, sample_time: float, stop_time: float = 2.0
) -> Run:
    """Let a robot stand at its first keyframe until its feet have settled, and push it."""
    model = mujoco.MjModel.from_xml_path(path)
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    number = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, body)
    per_sample = round(sample_time / model.opt.timestep)
    settling = round(0.5 / model.opt.timestep)
    rows = []
    for k in range(settling + round(stop_time / model.opt.timestep)):
        if k % per_sample == 0:
            data.ctrl[:] = controller(data.qpos.copy(), data.qvel.copy())
        t = (k - settling) * model.opt.timestep
        data.xfrc_applied[number, :3] = push.force if push.start <= t < push.start + push.duration else 0.0
        mujoco.mj_step(model, data)
        if k >= settling:
            rows.append((t, *data.xpos[number], *data.xquat[number], data.ncon))
    table = np.array(rows)
    return Run(table[:, 0], table[:, 1:4], table[:, 4:8], table[:, 8])
