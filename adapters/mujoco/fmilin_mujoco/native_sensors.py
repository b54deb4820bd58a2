"""Sensors of a compiled MuJoCo model as those of a mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import mujoco
import numpy as np

from fmilin.models.mechanism import Body, Joint, Placement, Sensor
from fmilin.signals import FloatArray
from fmilin_mujoco.left_out import NotUnderstoodError, sensors_left_out
from fmilin_mujoco.names import ACTUATOR, SENSOR, joint_name, name_of
from fmilin_mujoco.native_drives import tendon_name
from fmilin_mujoco.rotations import matrix_of, triple

__all__ = ["Sensors", "sensors_of"]

OBJ, SENS = mujoco.mjtObj, mujoco.mjtSensor

_OF_FRAMES = {
    SENS.mjSENS_FRAMEPOS: "position",
    SENS.mjSENS_FRAMELINVEL: "velocity",
    SENS.mjSENS_FRAMEANGVEL: "angular_velocity",
    SENS.mjSENS_FRAMELINACC: "specific_force",
    SENS.mjSENS_FRAMEANGACC: "angular_acceleration",
}
_IN_FRAMES = {
    SENS.mjSENS_ACCELEROMETER: "accelerometer",
    SENS.mjSENS_VELOCIMETER: "velocimeter",
    SENS.mjSENS_GYRO: "gyroscope",
}
_AXES = {SENS.mjSENS_FRAMEXAXIS: 0, SENS.mjSENS_FRAMEYAXIS: 1, SENS.mjSENS_FRAMEZAXIS: 2}
_OF_JOINTS = {
    SENS.mjSENS_JOINTPOS: "joint_position",
    SENS.mjSENS_JOINTVEL: "joint_velocity",
    SENS.mjSENS_BALLANGVEL: "joint_velocity",
    SENS.mjSENS_JOINTACTFRC: "joint_drive",
}
_OF_PATHS = {
    SENS.mjSENS_TENDONPOS: "distance",
    SENS.mjSENS_TENDONVEL: "distance_rate",
    SENS.mjSENS_ACTUATORPOS: "distance",
    SENS.mjSENS_ACTUATORVEL: "distance_rate",
    SENS.mjSENS_ACTUATORFRC: "actuator_force",
}
_OF_ALL = {SENS.mjSENS_E_KINETIC: "kinetic_energy", SENS.mjSENS_E_POTENTIAL: "potential_energy"}


@dataclass(frozen=True)
class Sensors:
    """Sensors, and the frames that they need in addition to the bodies.

    Attributes
    ----------
    sensors : list of Sensor
    bodies : list of Body
        Without mass, one for each frame with a measured orientation.
    joints : list of Joint
        Which fix these.
    """

    sensors: list[Sensor]
    bodies: list[Body]
    joints: list[Joint]


@dataclass(frozen=True)
class _Frame:
    body: str
    point: tuple[float, float, float]
    R: FloatArray


def sensors_of(model: Any, names: Sequence[str]) -> Sensors:
    """Return all sensors but those that are left out in the engine, too.

    Parameters
    ----------
    model : mujoco.MjModel
    names : sequence of str
        Of the bodies.

    Raises
    ------
    NotUnderstoodError
        When a sensor is not understood.
    """
    sensors = Sensors([], [], [])
    left_out = sensors_left_out(model, constrained=bool(model.eq_active0.any()))
    for i in range(model.nsensor):
        if i in left_out:
            continue
        name, size = name_of(model, SENSOR, i, "sensor"), int(model.sensor_dim[i])
        parts = [name] if size == 1 else [f"{name}[{k + 1}]" for k in range(size)]
        first, cutoff = len(sensors.sensors), float(model.sensor_cutoff[i])
        _add(model, i, names, parts, sensors)
        if cutoff > 0 and model.sensor_datatype[i] == mujoco.mjtDataType.mjDATATYPE_REAL:
            sensors.sensors[first:] = [replace(s, limits=(-cutoff, cutoff)) for s in sensors.sensors[first:]]
    return sensors


def _add(model: Any, i: int, names: Sequence[str], parts: list[str], sensors: Sensors) -> None:
    kind, of = SENS(model.sensor_type[i]), int(model.sensor_objid[i])
    name = name_of(model, SENSOR, i, "sensor")
    if kind in _OF_ALL:
        _require_no_offset(model, kind, name)
        sensors.sensors.append(Sensor(parts[0], _OF_ALL[kind]))  # type: ignore[arg-type]
        return
    if kind in _OF_JOINTS:
        if kind == SENS.mjSENS_JOINTACTFRC and _pulled(model):
            raise NotUnderstoodError(f"the sensor '{name}' adds forces that act between points")
        quantity: Any = _OF_JOINTS[kind]
        joint = joint_name(model, of)
        sensors.sensors.extend(Sensor(part, quantity, joint, coordinate=k) for k, part in enumerate(parts))
        return
    if kind in _OF_PATHS:
        tendon = kind in (SENS.mjSENS_TENDONPOS, SENS.mjSENS_TENDONVEL)
        path = tendon_name(model, of) if tendon else name_of(model, ACTUATOR, of, "actuator")
        if not tendon and mujoco.mjtTrn(model.actuator_trntype[of]) not in (
            mujoco.mjtTrn.mjTRN_JOINT,
            mujoco.mjtTrn.mjTRN_TENDON,
        ):
            raise NotUnderstoodError(f"the sensor '{name}' measures an actuator that has no length")
        quantity = _OF_PATHS[kind]
        sensors.sensors.append(Sensor(parts[0], quantity, path))
        return
    if kind not in (*_OF_FRAMES, *_IN_FRAMES, *_AXES, SENS.mjSENS_FRAMEQUAT, SENS.mjSENS_MAGNETOMETER):
        word = kind.name.removeprefix("mjSENS_").lower()
        raise NotUnderstoodError(f"the sensor '{name}' is of the kind '{word}'")
    if model.sensor_refid[i] >= 0:
        raise NotUnderstoodError(f"the sensor '{name}' is measured in another frame")
    _add_of_frame(kind, _frame(model, i, name, names), parts, sensors, model)


def _add_of_frame(kind: Any, frame: _Frame, parts: list[str], sensors: Sensors, model: Any) -> None:
    body, point = frame.body, frame.point
    quantity: Any
    if kind in _OF_FRAMES:
        quantity = _OF_FRAMES[kind]
        axes = zip(parts, np.eye(3), strict=True)
        sensors.sensors.extend(Sensor(part, quantity, body, point, triple(e)) for part, e in axes)
    elif kind in _IN_FRAMES:
        quantity = _IN_FRAMES[kind]
        sensors.sensors.extend(
            Sensor(part, quantity, body, point, triple(e)) for part, e in zip(parts, frame.R.T, strict=True)
        )
    elif kind in _AXES:
        pointer = triple(frame.R[:, _AXES[kind]])
        sensors.sensors.extend(
            Sensor(part, "direction", body, axis=triple(e), pointer=pointer)
            for part, e in zip(parts, np.eye(3), strict=True)
        )
    elif kind == SENS.mjSENS_MAGNETOMETER:
        size = float(np.linalg.norm(model.opt.magnetic))
        if not size:
            raise NotUnderstoodError("a magnetometer has no field")
        field = triple(model.opt.magnetic / size)
        sensors.sensors.extend(
            Sensor(part, "direction", body, axis=field, pointer=triple(e), factor=size)
            for part, e in zip(parts, frame.R.T, strict=True)
        )
    else:
        own = f"{parts[0].removesuffix('[1]')}/frame"
        sensors.bodies.append(Body(own, None))
        sensors.joints.append(Joint(f"{own}/fixed", "fixed", body, own, Placement(point, frame.R)))
        sensors.sensors.extend(Sensor(part, "orientation", own, coordinate=k) for k, part in enumerate(parts))


def _frame(model: Any, i: int, name: str, names: Sequence[str]) -> _Frame:
    """Return the frame that a sensor is fixed to, in its body."""
    kind, of = OBJ(model.sensor_objtype[i]), int(model.sensor_objid[i])
    if kind == OBJ.mjOBJ_XBODY:
        return _Frame(names[of], (0.0, 0.0, 0.0), np.eye(3))
    if kind == OBJ.mjOBJ_BODY:
        return _Frame(names[of], triple(model.body_ipos[of]), matrix_of(model.body_iquat[of]))
    for object_kind, word in ((OBJ.mjOBJ_SITE, "site"), (OBJ.mjOBJ_GEOM, "geom")):
        if kind == object_kind:
            position, quaternion = getattr(model, f"{word}_pos")[of], getattr(model, f"{word}_quat")[of]
            return _Frame(names[int(getattr(model, f"{word}_bodyid")[of])], triple(position), matrix_of(quaternion))
    raise NotUnderstoodError(f"the sensor '{name}' is fixed to a {kind.name.removeprefix('mjOBJ_').lower()}")


def _pulled(model: Any) -> bool:
    """Whether an actuator pulls along points or at a site."""
    kinds = mujoco.mjtTrn
    for kind, (of, _) in zip(model.actuator_trntype, model.actuator_trnid, strict=True):
        spatial = kind == kinds.mjTRN_TENDON and model.wrap_type[model.tendon_adr[of]] != mujoco.mjtWrap.mjWRAP_JOINT
        if spatial or kind == kinds.mjTRN_SITE:
            return True
    return False


def _require_no_offset(model: Any, kind: Any, name: str) -> None:
    """Reject potential energies that differ by a constant, or by what compensates gravity."""
    still = model.body_mass[1:][model.body_weldid[1:] == 0]
    if kind == SENS.mjSENS_E_POTENTIAL and (still.any() or (model.body_gravcomp * model.body_mass).any()):
        raise NotUnderstoodError(f"the sensor '{name}' counts bodies that do not move, or are carried")
