"""Where a MuJoCo model starts: at a keyframe, whole, or at the reference positions when it has none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mujoco

from fmilin.signals import FloatArray

__all__ = ["Start", "placed"]


@dataclass(frozen=True)
class Start:
    """Values of a keyframe: all of them count.

    Attributes
    ----------
    keyframe : str
        Its name; empty for the reference positions.
    keyframes : tuple of str
        All names that there are.
    qpos, qvel, act, ctrl : array
    mocap : tuple of two arrays, shape (nmocap, 3), (nmocap, 4)
        Positions and quaternions of mocap bodies.
    time : float
    remarks : tuple of str
        That one was taken of several.
    """

    keyframe: str
    keyframes: tuple[str, ...]
    qpos: FloatArray
    qvel: FloatArray
    act: FloatArray
    ctrl: FloatArray
    mocap: tuple[FloatArray, FloatArray]
    time: float = 0.0
    remarks: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All keyframes, the one that was taken first."""
        return (self.keyframe, *(n for n in self.keyframes if n != self.keyframe)) if self.keyframe else ()


def placed(model: Any, start: Start) -> Any:
    """Return data of the model at its start, with everything computed that depends on it."""
    data = mujoco.MjData(model)
    data.time, data.qpos[:], data.qvel[:], data.act[:], data.ctrl[:] = (
        start.time,
        start.qpos,
        start.qvel,
        start.act,
        start.ctrl,
    )
    data.mocap_pos[:], data.mocap_quat[:] = start.mocap
    mujoco.mj_forward(model, data)
    return data
