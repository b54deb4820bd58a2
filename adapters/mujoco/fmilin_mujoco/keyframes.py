"""Which keyframe a MuJoCo model starts at."""

from __future__ import annotations

from typing import Any

import mujoco

from fmilin.ground.errors import UnknownNameError, UsageError
from fmilin_mujoco.names import name_of
from fmilin_mujoco.start import Start

__all__ = ["start_of"]

KEY = mujoco.mjtObj.mjOBJ_KEY
HOME = "home"


def start_of(model: Any, keyframe: str | None = None) -> Start:
    """Return a keyframe by name; without a name ``home``, else the first, else the reference positions.

    Raises
    ------
    UnknownNameError
        When there is no keyframe of this name.
    UsageError
        When there are no keyframes at all.
    """
    names = tuple(name_of(model, KEY, i, "keyframe") for i in range(model.nkey))
    if keyframe is not None and not isinstance(keyframe, str):
        raise UsageError(f"'keyframe' is the name of a keyframe, not {keyframe!r}.")
    if keyframe is not None and keyframe not in names:
        if not names:
            raise UsageError(f"There is no keyframe '{keyframe}': the model has none, and starts at its qpos0.")
        raise UnknownNameError.among(keyframe, list(names), "a keyframe of the model")
    data = mujoco.MjData(model)
    if not names:
        return _start("", names, data, ())
    taken = keyframe if keyframe is not None else HOME if HOME in names else names[0]
    mujoco.mj_resetDataKeyframe(model, data, names.index(taken))
    remarks: tuple[str, ...] = ()
    if keyframe is None and len(names) > 1:
        remarks = (f"The model starts at the keyframe '{taken}', one of {len(names)} ({_listed(names)}).",)
    return _start(taken, names, data, remarks)


def _start(taken: str, names: tuple[str, ...], data: Any, remarks: tuple[str, ...]) -> Start:
    return Start(
        keyframe=taken,
        keyframes=names,
        qpos=data.qpos.copy(),
        qvel=data.qvel.copy(),
        act=data.act.copy(),
        ctrl=data.ctrl.copy(),
        mocap=(data.mocap_pos.copy(), data.mocap_quat.copy()),
        time=float(data.time),
        remarks=remarks,
    )


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
