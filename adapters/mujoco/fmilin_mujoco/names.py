"""Names and units of what a MuJoCo model holds: its states, inputs and sensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mujoco

from fmilin.signals import Signal, Signals
from fmilin_mujoco.start import Start

__all__ = [
    "input_signals",
    "joint_name",
    "name_of",
    "quaternion_places",
    "sensor_signals",
    "state_names",
    "state_signals",
    "straight_places",
]

JOINT, BODY, ACTUATOR, SENSOR, EQUALITY, SITE, TENDON = (
    mujoco.mjtObj.mjOBJ_JOINT,
    mujoco.mjtObj.mjOBJ_BODY,
    mujoco.mjtObj.mjOBJ_ACTUATOR,
    mujoco.mjtObj.mjOBJ_SENSOR,
    mujoco.mjtObj.mjOBJ_EQUALITY,
    mujoco.mjtObj.mjOBJ_SITE,
    mujoco.mjtObj.mjOBJ_TENDON,
)
HINGE, SLIDE, BALL, FREE = (
    mujoco.mjtJoint.mjJNT_HINGE,
    mujoco.mjtJoint.mjJNT_SLIDE,
    mujoco.mjtJoint.mjJNT_BALL,
    mujoco.mjtJoint.mjJNT_FREE,
)
QUATERNION = ("qw", "qx", "qy", "qz")

_POSITIONS: dict[Any, list[tuple[str, str]]] = {
    HINGE: [("q", "rad")],
    SLIDE: [("q", "m")],
    BALL: [(part, "1") for part in QUATERNION],
    FREE: [(part, "m") for part in "xyz"] + [(part, "1") for part in QUATERNION],
}
_VELOCITIES: dict[Any, list[tuple[str, str]]] = {
    HINGE: [("v", "rad/s")],
    SLIDE: [("v", "m/s")],
    BALL: [(part, "rad/s") for part in ("wx", "wy", "wz")],
    FREE: [(part, "m/s") for part in ("vx", "vy", "vz")] + [(part, "rad/s") for part in ("wx", "wy", "wz")],
}
_SENSOR_UNITS = {
    "ACCELEROMETER": "m/s2", "VELOCIMETER": "m/s", "GYRO": "rad/s", "MAGNETOMETER": "T", "RANGEFINDER": "m",
    "ACTUATORFRC": "", "FRAMEPOS": "m", "FRAMEQUAT": "1", "FRAMEXAXIS": "1", "FRAMEYAXIS": "1", "FRAMEZAXIS": "1",
    "FRAMELINVEL": "m/s", "FRAMEANGVEL": "rad/s", "FRAMELINACC": "m/s2", "FRAMEANGACC": "rad/s2", "SUBTREECOM": "m",
    "SUBTREELINVEL": "m/s", "SUBTREEANGMOM": "kg.m2/s", "BALLQUAT": "1", "BALLANGVEL": "rad/s", "CLOCK": "s",
    "FORCE": "N", "TORQUE": "N.m", "E_POTENTIAL": "J", "E_KINETIC": "J",
}  # fmt: skip


def name_of(model: Any, kind: Any, index: int, word: str) -> str:
    """Return the name of an object; ``word`` and its number, from 1, when it has none."""
    return mujoco.mj_id2name(model, kind, index) or f"{word}{index + 1}"


def state_signals(model: Any, start: Start) -> Signals:
    """Return the states: qpos, then qvel, then the activations of actuators."""
    positions, velocities = [], []
    for j in range(model.njnt):
        kind, name = mujoco.mjtJoint(model.jnt_type[j]), joint_name(model, j)
        positions += [(f"{name}.{part}", unit) for part, unit in _POSITIONS[kind]]
        velocities += [(f"{name}.{part}", unit) for part, unit in _VELOCITIES[kind]]
    activations = [
        (f"{name_of(model, ACTUATOR, i, 'actuator')}.act[{k + 1}]" if model.actuator_actnum[i] > 1
         else f"{name_of(model, ACTUATOR, i, 'actuator')}.act", "")
        for i in range(len(model.actuator_actnum)) for k in range(model.actuator_actnum[i])
    ]  # fmt: skip
    starts = [*start.qpos.tolist(), *start.qvel.tolist(), *start.act.tolist()]
    named = [*positions, *velocities, *activations]
    return Signals(Signal(name, unit, start=start) for (name, unit), start in zip(named, starts, strict=True))


def state_names(model: Any, j: int) -> tuple[str, ...]:
    """Return the names of a joint's positions and velocities."""
    kind, name = mujoco.mjtJoint(model.jnt_type[j]), joint_name(model, j)
    return tuple(f"{name}.{part}" for part, _ in (*_POSITIONS[kind], *_VELOCITIES[kind]))


def quaternion_places(model: Any) -> Iterator[tuple[str, int, int]]:
    """Yield for every ball and free joint: its name, the place of its quaternion in qpos, of its rates in qvel."""
    for j in range(model.njnt):
        q, v = int(model.jnt_qposadr[j]), int(model.jnt_dofadr[j])
        if model.jnt_type[j] == BALL:
            yield joint_name(model, j), q, v
        elif model.jnt_type[j] == FREE:
            yield joint_name(model, j), q + 3, v + 3


def straight_places(model: Any) -> Iterator[tuple[int, int, int]]:
    """Yield where positions are integrals of velocities: the place in qpos, that in qvel, and how many."""
    for j in range(model.njnt):
        size = {FREE: 3, BALL: 0}.get(mujoco.mjtJoint(model.jnt_type[j]), 1)
        yield int(model.jnt_qposadr[j]), int(model.jnt_dofadr[j]), size


def input_signals(model: Any, ctrl: Any) -> Signals:
    """Return one input for each actuator, or several where it takes several; starting at ``ctrl``."""
    counts = getattr(model, "actuator_ctrlnum", [1] * model.nu)  # new in MuJoCo 4
    names = [(name_of(model, ACTUATOR, i, "actuator"), int(count)) for i, count in enumerate(counts)]
    every = [name if count == 1 else f"{name}[{k + 1}]" for name, count in names for k in range(count)]
    return Signals(Signal(name, start=float(value)) for name, value in zip(every, ctrl, strict=True))


def sensor_signals(model: Any, left_out: set[int]) -> tuple[Signals, list[int]]:
    """Return the entries of ``sensordata`` that are outputs, and their numbers in it."""
    signals: list[Signal] = []
    numbers: list[int] = []
    for i in range(model.nsensor):
        if i in left_out:
            continue
        name, size = name_of(model, SENSOR, i, "sensor"), int(model.sensor_dim[i])
        unit = _sensor_unit(model, i)
        parts = [name] if size == 1 else [f"{name}[{k + 1}]" for k in range(size)]
        signals += [Signal(part, unit) for part in parts]
        numbers += range(int(model.sensor_adr[i]), int(model.sensor_adr[i]) + size)
    return Signals(signals), numbers


def _sensor_unit(model: Any, i: int) -> str:
    kind = mujoco.mjtSensor(model.sensor_type[i]).name.removeprefix("mjSENS_")
    if kind in ("JOINTPOS", "JOINTVEL"):
        slides = model.jnt_type[model.sensor_objid[i]] == SLIDE
        return ("m" if slides else "rad") + ("/s" if kind == "JOINTVEL" else "")
    return _SENSOR_UNITS.get(kind, "")


def joint_name(model: Any, j: int) -> str:
    """Return the joint's name; of a free joint without one, that of its body."""
    if model.jnt_type[j] == FREE and not mujoco.mj_id2name(model, JOINT, j):
        return name_of(model, BODY, int(model.jnt_bodyid[j]), "body")
    return name_of(model, JOINT, j, "joint")
