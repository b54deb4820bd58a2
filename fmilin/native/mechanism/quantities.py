"""Everything that may be asked for as an output of a mechanism, by name, with its unit."""

from __future__ import annotations

from fmilin.ground.signals import Signal, Signals
from fmilin.native.mechanism.elements import VECTORS, ZERO, Actuator, Force, JointForce, LineForce, Sensor
from fmilin.native.mechanism.parts import COORDINATES, SPEEDS, Joint
from fmilin.native.mechanism.system import System
from fmilin.native.mechanism.tree import Tree
from fmilin.native.native_engine import Quantity, offered

ENERGIES = ("kinetic_energy", "potential_energy", "energy")
AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
UNITS = {quantity: unit for quantity, (_, unit) in VECTORS.items()} | {"orientation": "1"}
UNITS |= {"distance": "m", "distance_rate": "m/s", **dict.fromkeys(ENERGIES, "J")}
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
    signals = []
    for force in system.description.inputs:
        if isinstance(force, Actuator):  # its unit depends on its law
            signals.append(Signal(force.name, "", force.nominal, force.start))
            continue
        linear = isinstance(force, Force | LineForce)
        if isinstance(force, JointForce):
            linear = speed_is_linear(joints[force.joint], force.coordinate)
        signals.append(Signal(force.name, "N" if linear else "N.m", force.nominal, force.start))
    return Signals(signals)


def speed_is_linear(joint: Joint, index: int) -> bool:
    """Whether a speed of a joint is that of a length."""
    coordinates = COORDINATES[joint.type]
    return index < len(coordinates) and _is_length(joint, coordinates[index])


def _is_length(joint: Joint, coordinate: str) -> bool:
    return coordinate in LINEAR.get(joint.type, ())


def available(system: System, states: Signals, inputs: Signals) -> dict[str, Quantity]:
    """Return all outputs by name, declared ones first; sources are sensors, ("gap" | "slip", number) or native."""
    d = system.description
    quantities: dict[str, Quantity] = {}
    for i, loop in enumerate(system.loop_constraints):
        reaction, gap, slip = (f"{loop.of}.{what}[{loop.index}]" for what in ("reaction", "gap", "slip"))
        quantities[reaction] = _of(Sensor(reaction, "reaction", loop.of, coordinate=loop.index - 1))
        if loop.level == "position":
            quantities[gap] = Quantity(Signal(gap), ("gap", i))
        quantities[slip] = Quantity(Signal(slip), ("slip", i))
    points = [(body.name, body.name, ZERO) for body in d.bodies] + [(m.name, m.body, m.point) for m in d.markers]
    for name, body, point in points:
        for quantity, letter in (("position", ""), ("velocity", "v"), ("acceleration", "a")):
            for axis, e in AXES.items():
                of = f"{name}.{letter}{axis}"
                quantities[of] = _of(Sensor(of, quantity, body, point, e))  # type: ignore[arg-type]
    lines = [*(s.name for s in d.springs), *(t.name for t in d.tendons)]
    lines += [f.name for f in d.inputs if isinstance(f, LineForce)]
    for actuator in (a for a in d.inputs if isinstance(a, Actuator)):
        quantities[f"{actuator.name}.force"] = _of(Sensor(f"{actuator.name}.force", "actuator_force", actuator.name))
    for line in lines:
        quantities[f"{line}.length"] = _of(Sensor(f"{line}.length", "distance", line))
    for energy in ENERGIES:
        quantities[energy] = _of(Sensor(energy, energy))  # type: ignore[arg-type]
    return offered(states, inputs, (_of(sensor, system) for sensor in d.sensors), quantities.values())


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
    source = state_or_rate(sensor, system.tree) if sensor.factor == 1.0 and not sensor.limits else None
    return Quantity(Signal(sensor.name, unit), source or sensor)


def state_or_rate(sensor: Sensor, tree: Tree) -> tuple[str, int] | None:
    """Return which state or rate the sensor of a joint looks at; None for forces and for angles that balls lack."""
    speed = tree.speeds_of[sensor.of][sensor.coordinate]
    if sensor.quantity == "joint_velocity":
        return "state", tree.n_q + speed
    if sensor.quantity == "joint_acceleration":
        return "rate", tree.n_q + speed
    if sensor.quantity == "joint_position" and speed in tree.screw_speeds:
        return "state", int(tree.freedom_coordinates[speed])
    return None
