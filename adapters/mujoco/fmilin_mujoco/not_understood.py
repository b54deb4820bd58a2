"""What of MuJoCo has no place in a native mechanism: with it, a model runs in the engine."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from fmilin_mujoco.names import ACTUATOR, JOINT, TENDON, name_of

__all__ = ["NotUnderstoodError", "require_understood"]


class NotUnderstoodError(Exception):
    """Something that a native mechanism does not have; the text is the reason, half a sentence."""


_GLOBAL = (
    ("nflex", "it has flexible bodies"),
    ("nplugin", "it has plugins"),
    ("nplastic", "it has plastic springs"),
    ("nhistory", "it has delays"),
)
_SWITCHED_OFF = ("ACTUATION", "SPRING", "DAMPER", "SENSOR")


def require_understood(model: Any) -> None:
    """Refuse what no part of the mechanism could express.

    Raises
    ------
    NotUnderstoodError
        With the first reason.
    """
    for count, reason in _GLOBAL:
        if getattr(model, count, 0):
            raise NotUnderstoodError(reason)
    option = model.opt
    if option.density or option.viscosity:
        raise NotUnderstoodError("it moves in a fluid (density, viscosity)")
    for flag in _SWITCHED_OFF:
        if option.disableflags & int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}")):
            raise NotUnderstoodError(f"the option flag '{flag.lower()}' is off")
    if option.disableactuator:
        raise NotUnderstoodError("groups of actuators are switched off")
    if model.nbody and (model.body_gravcomp * model.body_mass).any() and model.jnt_actgravcomp.any():
        raise NotUnderstoodError("actuators carry the compensation of gravity")
    for j in range(model.njnt):
        if (
            mujoco.mjtJoint(model.jnt_type[j]) in (mujoco.mjtJoint.mjJNT_BALL, mujoco.mjtJoint.mjJNT_FREE)
            and model.jnt_stiffness[j]
        ):
            raise NotUnderstoodError(f"the ball of the joint '{name_of(model, JOINT, j, 'joint')}' has a spring")
    for kind, word, arrays in (
        (JOINT, "joint", ("jnt_stiffnesspoly",)),
        (JOINT, "joint", ("dof_dampingpoly",)),
        (TENDON, "tendon", ("tendon_stiffnesspoly", "tendon_dampingpoly", "tendon_armature")),
        (ACTUATOR, "actuator", ("actuator_damping", "actuator_dampingpoly", "actuator_armature", "actuator_delay")),
    ):
        for array in arrays:
            _require_zero(model, array, kind, word)


def _require_zero(model: Any, array: str, kind: Any, word: str) -> None:
    values = getattr(model, array, None)
    if values is None or not np.any(values):
        return
    i = int(np.flatnonzero(np.any(np.reshape(values, (len(values), -1)), axis=1))[0])
    i = int(model.dof_jntid[i]) if array.startswith("dof_") else i
    what = array.split("_", 1)[1]
    raise NotUnderstoodError(f"the {word} '{name_of(model, kind, i, word)}' has '{what}'")
