"""What of a MuJoCo model has no place in a smooth model with ideal constraints: it is named, and left out."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import mujoco
import numpy as np

from fmilin_mujoco.names import SENSOR, name_of
from fmilin_mujoco.start import Start, placed

__all__ = ["remarks", "sensors_left_out"]

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
        remarks.append(f"Limits are left out; at the start these are at theirs: {_listed(limited)}.")
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
