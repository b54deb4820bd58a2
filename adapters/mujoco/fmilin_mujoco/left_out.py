"""The parts of a model that are omitted, with warnings, and those that have no form as a native mechanism."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import mujoco
import numpy as np

from fmilin_mujoco.names import ACTUATOR, JOINT, SENSOR, TENDON, name_of
from fmilin_mujoco.start import Start, placed

__all__ = ["NotUnderstoodError", "remarks", "require_understood", "sensors_left_out"]


_OF_CONTACTS = ("TOUCH", "CONTACT", "TACTILE", "JOINTLIMITPOS", "JOINTLIMITVEL", "JOINTLIMITFRC", "TENDONLIMITPOS",
                "TENDONLIMITVEL", "TENDONLIMITFRC", "PLUGIN", "USER", "INSIDESITE")  # fmt: skip
_OF_FORCES = ("FORCE", "TORQUE")


def remarks(model: Any, start: Start, held: Collection[int] = ()) -> list[str]:
    """Return what a user should know, a sentence each.

    Contacts and limits at the start, dry friction, and sensors of these are left out. The contacts of the bodies
    ``held`` are not.
    """
    remarks = []
    data = placed(model, start)
    touching = _touching(model, data, {int(model.body_weldid[b]) for b in held})
    if touching:
        remarks.append(f"Contacts are left out; at the start these bodies touch: {_listed(touching)}.")
    limited = _at_limits(model, data)
    if limited:
        remarks.append(f"Limits are left out; at the start these are at a limit: {_listed(limited)}.")
    rubbing = [_joint(model, int(model.dof_jntid[i])) for i in np.flatnonzero(model.dof_frictionloss)]
    if rubbing:
        remarks.append(f"Dry friction (frictionloss) is left out: {_listed(list(dict.fromkeys(rubbing)))}.")
    unread = [name_of(model, SENSOR, i, "sensor") for i in sorted(sensors_left_out(model, bool(model.neq)))]
    if unread:
        remarks.append(f"These sensors measure contacts, limits or cut forces, and are left out: {_listed(unread)}.")
    return remarks


def sensors_left_out(model: Any, constrained: bool) -> set[int]:  # noqa: FBT001 - a fact, no switch
    """Return the sensors that need forces which are not computed here."""
    kinds = {*_OF_CONTACTS, *(_OF_FORCES if constrained else ())}
    names = [mujoco.mjtSensor(kind).name.removeprefix("mjSENS_") for kind in model.sensor_type]
    return {i for i, name in enumerate(names) if name in kinds}


def _touching(model: Any, data: Any, held: Collection[int]) -> list[str]:
    pairs = []
    for i in range(data.ncon):
        bodies = [int(model.geom_bodyid[g]) for g in data.contact[i].geom if g >= 0]
        if not any(int(model.body_weldid[b]) in held for b in bodies):
            pairs.append(" and ".join(name_of(model, mujoco.mjtObj.mjOBJ_BODY, b, "body") for b in bodies))
    return list(dict.fromkeys(pairs))


def _at_limits(model: Any, data: Any) -> list[str]:
    kinds = (mujoco.mjtConstraint.mjCNSTR_LIMIT_JOINT, mujoco.mjtConstraint.mjCNSTR_LIMIT_TENDON)
    limited = []
    for kind, index in zip(data.efc_type, data.efc_id, strict=True):
        if kind == kinds[0]:
            limited.append(f"the joint {_joint(model, int(index))}")
        elif kind == kinds[1]:
            limited.append(f"the tendon {name_of(model, mujoco.mjtObj.mjOBJ_TENDON, int(index), 'tendon')}")
    return list(dict.fromkeys(limited))


def _joint(model: Any, j: int) -> str:
    return name_of(model, mujoco.mjtObj.mjOBJ_JOINT, j, "joint")


def _listed(names: list[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


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
    """Reject what no part of the mechanism could express.

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
