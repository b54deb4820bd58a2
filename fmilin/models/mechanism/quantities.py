"""Everything that may be asked for as an output of a mechanism, by name; energies and orientations as numbers.

Orientations are unit quaternions with continuous signs: that of a link is its parent's times its joint's, and no
branch is taken on the way. A displacement theta_j turns everything beyond it with the angular part w_j of its screw:
de/dtheta_j = (0, w_j) o e / 2.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from fmilin.models.mechanism.mechanism_elements import VECTORS, ZERO, Actuator, Force, JointForce, LineForce, Sensor
from fmilin.models.mechanism.multibody_system import State, System
from fmilin.models.mechanism.parts import COORDINATES, SPEEDS, Joint
from fmilin.models.mechanism.tree import Array, Tree, ad, along, cross, root
from fmilin.models.native_engine import Quantity, list_available_quantities
from fmilin.signals import Signal, Signals

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
    return list_available_quantities(states, inputs, (_of(sensor, system) for sensor in d.sensors), quantities.values())


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
    """Return which state or rate the sensor of a joint measures; None for forces and for angles that balls lack."""
    speed = tree.speeds_of[sensor.of][sensor.coordinate]
    if sensor.quantity == "joint_velocity":
        return "state", tree.n_q + speed
    if sensor.quantity == "joint_acceleration":
        return "rate", tree.n_q + speed
    if sensor.quantity == "joint_position" and speed in tree.screw_speeds:
        return "state", int(tree.freedom_coordinates[speed])
    return None


def energy(system: System, state: State, what: str) -> Array:
    """Return ``kinetic_energy``, ``potential_energy`` (of weight and springs) or their sum, shape (...)."""
    values = 0.0
    if what != "potential_energy":
        values = values + (state.at.V * state.inertia.momentum).sum(axis=(-1, -2)) / 2
        if system.armature.any():
            values = values + (system.armature * state.v * state.v).sum(axis=-1) / 2
    if what != "kinetic_energy":
        weight = state.inertia.P[..., :3, 3].sum(axis=-2) @ system.gravity
        joints = system.forces.joints
        stretch = state.q[..., joints.coordinate] - joints.rest
        springs = (joints.k * stretch * stretch).sum(axis=-1) / 2
        values = values + system.forces.energy(system.stretch(state)[0]) + springs - weight
        if system.forces.s_0 is not None:
            values = values - system.forces.constant_force_work(system.rows, state.now)
        if system.paths is not None and state.drives is not None:
            values = values + system.paths.energy(state.drives)
    return values


def energy_columns(system: System, state: State, what: str) -> tuple[Array, Array]:
    """Return the derivatives with respect to theta and v, each (..., n)."""
    theta, v = np.zeros_like(state.v), np.zeros_like(state.v)
    if what != "potential_energy":
        # The sum of (I V)' psi_j over the links beyond j: the rest of dV/dtheta_j turns V and I alike.
        tree, at = system.tree, state.at
        psi = along(ad(at.V[..., tree.P[tree.L], :]), at.S)
        theta = theta + (psi * (tree.below @ state.inertia.momentum)).sum(axis=-1)
        v = v + (state.M @ state.v[..., None])[..., 0]
    if what != "kinetic_energy":
        theta = theta + _potential(system, state)
    return theta, v


def _potential(system: System, state: State) -> Array:
    tree, S, forces = system.tree, state.at.S, system.forces
    first_moment = tree.below @ state.inertia.P[..., :, 3]  # (m c, m) of what each freedom moves
    moved = S[..., 3:] * first_moment[..., 3:] + cross(S[..., :3], first_moment[..., :3])
    joints = forces.joints
    stretch = state.q[..., joints.coordinate] - joints.rest
    d, _ = system.stretch(state)
    L = np.sqrt((d * d).sum(axis=-1))
    G = system.rows.jacobian(state.rows.W[..., forces.rows, :], S, forces.rows)
    pull = forces.k * np.where(forces.L_0 > 0, (L - forces.L_0) / np.where(L > 0, L, 1.0), 1.0)
    tendons = 0.0
    if system.paths is not None and state.drives is not None:
        R = system.rows.jacobian(state.rows.W, S)
        stretched = system.paths.stretch(state.drives)
        tendons = (stretched[..., None] * system.paths.length_columns(state.drives, R)).sum(axis=-2)
    if forces.s_0 is not None:
        tendons = tendons - (forces.s_0[:, None] * system.rows.jacobian(state.rows.W, S)).sum(axis=-2)
    return joints.k * stretch - moved @ system.gravity + (pull[..., None] * G).sum(axis=-2) + tendons


Floats = NDArray[np.float64]


def compute_quaternion(tree: Tree, q: Array, body: str) -> Array:
    """Return the unit quaternion of a body's frame, shape (..., 4), real part first."""
    link, offset = tree.frame_of[body]
    path = []
    while link:
        path.append(link)
        link = int(tree.P[link])
    e = np.broadcast_to(np.array([1.0, 0.0, 0.0, 0.0]), (*q.shape[:-1], 4))
    balls = tree.balls.tolist()
    for i in reversed(path):
        e = _product(e, _constant(tree.M[i, :3, :3].tobytes()))
        if i in balls:
            coordinates = q[..., tree.ball_coordinates[balls.index(i)]]
            e = _product(e, coordinates / root((coordinates * coordinates).sum(axis=-1, keepdims=True)))
        else:
            freedom = int(np.flatnonzero(i == tree.L)[0])
            axis = tree.axes[freedom, :3]
            if axis.any():
                half = q[..., tree.coordinate[i], None] / 2
                e = _product(e, np.concatenate((np.cos(half), np.sin(half) * axis), axis=-1))
    return _product(e, _constant(offset[:3, :3].tobytes()))


def differentiate_quaternion(tree: Tree, state: State, body: str) -> Array:
    """Return the derivative of the quaternion by displacements, shape (..., 4, n)."""
    link, _ = tree.frame_of[body]
    e = compute_quaternion(tree, state.q, body)
    w = state.at.S[..., :3] * tree.above[link][:, None]
    still = np.concatenate((np.zeros((*w.shape[:-1], 1)), w / 2), axis=-1)
    return np.swapaxes(_product(still, e[..., None, :]), -1, -2)


def _product(a: Array, b: Array) -> Array:
    """Return the product of quaternions (..., 4)."""
    a0, a1, a2, a3 = (a[..., i] for i in range(4))
    b0, b1, b2, b3 = (b[..., i] for i in range(4))
    return np.stack(
        (
            a0 * b0 - a1 * b1 - a2 * b2 - a3 * b3,
            a0 * b1 + a1 * b0 + a2 * b3 - a3 * b2,
            a0 * b2 - a1 * b3 + a2 * b0 + a3 * b1,
            a0 * b3 + a1 * b2 - a2 * b1 + a3 * b0,
        ),
        axis=-1,
    )


@lru_cache(maxsize=4096)
def _constant(R: bytes) -> Floats:
    """Return the quaternion of a rotation, given as the bytes of its matrix, that has the larger real part."""
    return Rotation.from_matrix(np.frombuffer(R).reshape(3, 3)).as_quat(canonical=True, scalar_first=True)
