"""Everything that may be asked for as an output of a mechanism, by name, with its unit."""

from __future__ import annotations

from fmilin.ground.signals import Signal, Signals
from fmilin.native.mechanism.elements import Actuator, Force, JointForce, LineForce, Sensor
from fmilin.native.mechanism.parts import COORDINATES, SPEEDS, Joint
from fmilin.native.mechanism.system import System
from fmilin.native.native_engine import Quantity, offered

__all__ = ["available", "input_signals", "state_signals"]

AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
UNITS = {
    "position": "m",
    "velocity": "m/s",
    "acceleration": "m/s2",
    "accelerometer": "m/s2",
    "specific_force": "m/s2",
    "velocimeter": "m/s",
    "orientation": "1",
    "direction": "1",
    "angular_velocity": "rad/s",
    "angular_acceleration": "rad/s2",
    "gyroscope": "rad/s",
    "distance": "m",
    "distance_rate": "m/s",
    "kinetic_energy": "J",
    "potential_energy": "J",
    "energy": "J",
}
LINEAR = {"prismatic": ("q",), "cylindrical": ("stroke",), "planar": ("x", "y"), "free": ("x", "y", "z")}
"""Coordinates that are lengths."""


def state_signals(system: System) -> Signals:
    """Return the states: positions of all joints, then velocities, then activations."""
    positions, speeds = [], []
    for joint in system.description.joints:
        for name, what, value in zip(joint.state_names[0], COORDINATES[joint.type], joint.position, strict=True):
            unit = "m" if _is_length(joint, what) else "" if what[0] == "e" else "rad"
            positions.append(Signal(name, unit, 1.0 if what[0] == "e" else None, value, f"{what} of {joint.name}"))
        for i, (name, value) in enumerate(zip(joint.state_names[1], joint.velocity, strict=True)):
            unit = "m/s" if speed_is_linear(joint, i) else "rad/s"
            speeds.append(Signal(name, unit, None, value, f"{SPEEDS[joint.type][i]} of {joint.name}"))
    acting = [a for a in system.description.inputs if isinstance(a, Actuator) and a.dynamics != "none"]
    activations = [Signal(f"{a.name}.act", "", None, a.activation, f"activation of {a.name}") for a in acting]
    return Signals([*positions, *speeds, *activations])


def input_signals(system: System) -> Signals:
    """Return the inputs."""
    joints = {j.name: j for j in system.description.joints}
    found = []
    for force in system.description.inputs:
        if isinstance(force, Actuator):  # its unit depends on its law
            found.append(Signal(force.name, "", force.nominal, force.start))
            continue
        linear = isinstance(force, Force | LineForce)
        if isinstance(force, JointForce):
            linear = speed_is_linear(joints[force.joint], force.coordinate)
        found.append(Signal(force.name, "N" if linear else "N.m", force.nominal, force.start))
    return Signals(found)


def speed_is_linear(joint: Joint, index: int) -> bool:
    """Whether a speed of a joint is that of a length."""
    places = COORDINATES[joint.type]
    return index < len(places) and _is_length(joint, places[index])


def _is_length(joint: Joint, coordinate: str) -> bool:
    return coordinate in LINEAR.get(joint.type, ())


def available(system: System, states: Signals, inputs: Signals) -> dict[str, Quantity]:
    """Return all outputs by name; what is declared goes before what comes by itself.

    Their sources are sensors, or ("gap" | "slip", number) beside those of every shell.
    """
    d = system.description
    found: dict[str, Quantity] = {}
    for i, loop in enumerate(system.loop_constraints):
        found[f"{loop.of}.reaction[{loop.index}]"] = _of(
            Sensor(f"{loop.of}.reaction[{loop.index}]", "reaction", loop.of, coordinate=loop.index - 1)
        )
        if loop.level == "position":
            found[f"{loop.of}.gap[{loop.index}]"] = Quantity(Signal(f"{loop.of}.gap[{loop.index}]"), ("gap", i))
        found[f"{loop.of}.slip[{loop.index}]"] = Quantity(Signal(f"{loop.of}.slip[{loop.index}]"), ("slip", i))
    for body in d.bodies:
        for quantity, letter in (("position", ""), ("velocity", "v"), ("acceleration", "a")):
            for axis, e in AXES.items():
                name = f"{body.name}.{letter}{axis}"
                found[name] = _of(Sensor(name, quantity, body.name, axis=e))  # type: ignore[arg-type]
    for marker in d.markers:
        for quantity, letter in (("position", ""), ("velocity", "v"), ("acceleration", "a")):
            for axis, e in AXES.items():
                name = f"{marker.name}.{letter}{axis}"
                found[name] = _of(Sensor(name, quantity, marker.body, marker.point, e))  # type: ignore[arg-type]
    lines = [*(s.name for s in d.springs), *(t.name for t in d.tendons)]
    lines += [f.name for f in d.inputs if isinstance(f, LineForce)]
    for actuator in (a for a in d.inputs if isinstance(a, Actuator)):
        found[f"{actuator.name}.force"] = _of(Sensor(f"{actuator.name}.force", "actuator_force", actuator.name))
    for line in lines:
        found[f"{line}.length"] = _of(Sensor(f"{line}.length", "distance", line))
    for energy in ("kinetic_energy", "potential_energy", "energy"):
        found[energy] = _of(Sensor(energy, energy))
    return offered(states, inputs, (_of(sensor, system) for sensor in d.sensors), found.values())


def _of(sensor: Sensor, system: System | None = None) -> Quantity:
    unit = UNITS.get(sensor.quantity, "")
    if sensor.quantity == "contact":
        unit = "N" if sensor.coordinate < 3 else "N.m"
    if system is None or not sensor.quantity.startswith("joint_"):
        return Quantity(Signal(sensor.name, unit), sensor)
    joint = next(j for j in system.description.joints if j.name == sensor.of)
    base = "m" if speed_is_linear(joint, sensor.coordinate) else "rad"
    unit = {
        "joint_position": base,
        "joint_velocity": f"{base}/s",
        "joint_acceleration": f"{base}/s2",
        "joint_force": "N" if base == "m" else "N.m",
        "joint_drive": "N" if base == "m" else "N.m",
    }[sensor.quantity]
    return Quantity(Signal(sensor.name, unit), _state_or_rate(sensor, system) or sensor)


def _state_or_rate(sensor: Sensor, system: System) -> tuple[str, int] | None:
    """Return which state or rate the sensor of a joint looks at; None for forces and for angles that balls lack."""
    tree = system.tree
    speed = tree.speeds_of[sensor.of][sensor.coordinate]
    if sensor.factor != 1.0:
        return None
    if sensor.quantity == "joint_velocity":
        return "state", tree.n_q + speed
    if sensor.quantity == "joint_acceleration":
        return "rate", tree.n_q + speed
    if sensor.quantity == "joint_position" and speed in tree.screw_speeds:
        return "state", int(tree.screw_coordinates[tree.screw_speeds.tolist().index(speed)])
    return None
