"""Mechanisms for tests: random ones with every part there is, and small ones with known answers."""

from __future__ import annotations

from math import acos, asin, pi

import numpy as np
from numpy.typing import NDArray

from fmilin.models.mechanism import (
    Body,
    Force,
    Joint,
    JointForce,
    LineForce,
    Loop,
    MechanismDescription,
    Placement,
    PointSpring,
    Sensor,
    Skate,
    Torque,
    Wheel,
)
from fmilin.models.mechanism.parts import COORDINATES, SPEEDS, JointType, LoopType
from tests.models.mechanism.joint_screws import joint_transformation

Floats = NDArray[np.float64]


class Random:
    """Random parts, the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self.numbers = np.random.default_rng(seed)

    def vector(self) -> tuple[float, float, float]:
        x, y, z = self.numbers.normal(size=3).tolist()
        return x, y, z

    def placement(self) -> Placement:
        return Placement.from_rpy(self.vector(), self.vector())

    def body(self, name: str) -> Body:
        a = self.numbers.normal(size=(3, 3))
        second_moment = a @ a.T + 0.1 * np.eye(3)
        J = np.trace(second_moment) * np.eye(3) - second_moment
        return Body(name, float(self.numbers.uniform(1, 2)), self.vector(), J)

    def position(self, kind: JointType) -> Floats:
        q = self.numbers.uniform(-1, 1, len(COORDINATES[kind]))
        if kind in ("free", "spherical"):
            q[-4:] /= np.linalg.norm(q[-4:])
        return q

    def joint(self, name: str, kind: JointType, parent: str, child: str) -> Joint:
        count = len(SPEEDS[kind])
        soft = 0.0 if kind in ("free", "spherical") else self.numbers.uniform(1, 2, count)
        return Joint(
            name,
            kind,
            parent,
            child,
            self.placement(),
            self.placement(),
            axis=self.vector(),
            pitch=0.3,
            position=self.position(kind),
            stiffness=soft,
            rest=self.numbers.uniform(-1, 1, count),
            damping=self.numbers.uniform(0.1, 0.5, count),
        )


TREE: tuple[tuple[JointType, str], ...] = (
    ("revolute", "ground"),
    ("universal", "b0"),
    ("free", "b1"),
    ("helical", "b1"),
    ("spherical", "b2"),
    ("cylindrical", "b4"),
    ("planar", "b0"),
    ("fixed", "b6"),
    ("prismatic", "b7"),
    ("revolute", "ground"),
)
"""Every type of joint, with the parent of each body."""

LOOPS: tuple[tuple[LoopType, str, str], ...] = (
    ("revolute", "b3", "b5"),
    ("universal", "b9", "b8"),
    ("rod", "ground", "b6"),
    ("point_on_plane", "b5", "ground"),
)


def poses(description: MechanismDescription) -> dict[str, Floats]:
    """Return the frame of every body at the start values, joint by joint."""
    found = {description.ground: np.eye(4)}
    for joint in description.ordered_joints:
        X = found[joint.parent] @ joint.placement.matrix @ joint_transformation(joint, joint.position)
        found[joint.child] = X @ np.linalg.inv(joint.child_placement.matrix)
    return found


def closed_loop(name: str, kind: LoopType, bodies: tuple[str, str], r: Random, at: dict[str, Floats]) -> Loop:
    """Return a loop at a random place of the first body that is closed at the poses ``at``."""
    first = r.placement()
    X = np.linalg.inv(at[bodies[1]]) @ at[bodies[0]] @ first.matrix
    second = Placement(tuple(X[:3, 3]), tuple(tuple(row) for row in X[:3, :3]))
    length = 0.0
    if kind == "rod":
        second = r.placement()
        length = float(np.linalg.norm((at[bodies[0]] @ first.matrix - at[bodies[1]] @ second.matrix)[:3, 3]))
    return Loop(name, kind, *bodies, first, second, axis=r.vector(), length=length)


def touching_wheel(r: Random, body: str, X: Floats) -> Wheel:
    """Return a wheel that touches its plane when its body is at X."""
    center, axis, radius, tube = r.vector(), r.vector(), 1.0, 0.1
    n, e = (np.array(a) / np.linalg.norm(a) for a in (r.vector(), X[:3, :3] @ axis))
    s = np.sqrt(1 - (n @ e) ** 2)
    lowest = X[:3, 3] + X[:3, :3] @ center + radius * ((n @ e) * e - n) / s - tube * n
    across = np.cross(n, r.vector())
    return Wheel("w1", body, center, axis, radius, tube, tuple(lowest + across), tuple(n))


def everything(seed: int = 1, *, closed: bool = True) -> MechanismDescription:
    """Return a mechanism with every joint, loops, wheels, a skate, springs, forces and sensors of every kind."""
    r = Random(seed)
    bodies = [r.body(f"b{i}") for i in range(len(TREE))]
    joints = [r.joint(f"j{i}", kind, parent, f"b{i}") for i, (kind, parent) in enumerate(TREE)]
    at = poses(MechanismDescription("tree", bodies, joints))
    loops = [closed_loop(f"l{i}", kind, (a, b), r, at) for i, (kind, a, b) in enumerate(LOOPS)]
    return MechanismDescription(
        "everything",
        bodies,
        joints,
        loops if closed else (),
        [touching_wheel(r, "b2", at["b2"])] if closed else (),
        [Skate("s1", "b4", r.vector(), r.vector())] if closed else (),
        [
            PointSpring("p1", "b3", "b9", r.vector(), r.vector(), 3.0, 0.3, 0.2),
            PointSpring("p2", "ground", "b9", r.vector(), r.vector(), 3.0),
        ],
        [
            JointForce("u1", "j2", 4, start=0.3),
            Force("u2", "b5", r.vector(), r.vector(), "body", start=0.5),
            Force("u3", "b5", r.vector(), r.vector(), start=-0.4),
            Torque("u4", "b6", r.vector()),
            Torque("u5", "b6", r.vector(), "body", start=0.2),
            LineForce("u6", "b3", "b8", r.vector(), r.vector(), start=0.7),
        ],
        sensors(r, closed=closed),
    )


def sensors(r: Random, *, closed: bool) -> list[Sensor]:
    """Return sensors of every kind for :func:`everything`."""
    found = [
        Sensor(quantity, quantity, "b5", r.vector(), r.vector(), r.vector())
        for quantity in (
            "position",
            "velocity",
            "acceleration",
            "accelerometer",
            "direction",
            "angular_velocity",
            "angular_acceleration",
            "gyroscope",
        )
    ]
    found += [Sensor(q, q, "j5", coordinate=1) for q in ("joint_position", "joint_velocity", "joint_acceleration")]
    found += [Sensor("joint_force", "joint_force", "j3"), Sensor("driven", "joint_force", "j2", coordinate=4)]
    found += [Sensor("length", "distance", "p1"), Sensor("stretching", "distance_rate", "u6")]
    found += [Sensor(q, q) for q in ("kinetic_energy", "potential_energy", "energy")]
    if closed:
        found += [Sensor("hold", "reaction", "l0", coordinate=2), Sensor("grip", "reaction", "w1", coordinate=1)]
    return found


def five_bar_chain(start: tuple[float, ...] | None = None) -> MechanismDescription:
    """Return the five-bar of Spencer (thesis), section 3.2, in the coordinates of ``fmilin.systems.five_bar``."""
    lengths, masses, inertias = (1.0, 1.5, 1.5, 1.0), (2.0, 3.0, 3.0, 2.0), (1.0, 2.0, 2.0, 1.0)
    regular = (2 * pi / 3, pi / 3 + acos(2 / 3), 2 * asin(2 / 3), pi / 3 + acos(2 / 3))
    bodies = [
        Body(f"link{i + 1}", m, (length / 2, 0, 0), (J, J, J))
        for i, (length, m, J) in enumerate(zip(lengths, masses, inertias, strict=True))
    ]
    joints = [
        Joint(
            f"pin{i + 1}",
            "revolute",
            f"link{i}" if i else "ground",
            f"link{i + 1}",
            Placement.from_axis((lengths[i - 1], 0, 0), angle=pi) if i else Placement(),
            position=(start or regular)[i],
            names=(f"q{i + 1}", f"v{i + 1}"),
        )
        for i in range(4)
    ]
    return MechanismDescription(
        "five_bar",
        bodies,
        joints,
        [Loop("support", "revolute", "ground", "link4", Placement((1, 0, 0)), Placement((1, 0, 0)))],
        inputs=[Torque("left_torque", "link1"), Torque("right_torque", "link4")],
        sensors=[
            Sensor("middle.x", "position", "link2", (1.5, 0, 0), (1, 0, 0)),
            Sensor("middle.y", "position", "link2", (1.5, 0, 0), (0, 1, 0)),
            *(Sensor(e, e) for e in ("kinetic_energy", "potential_energy", "energy")),
        ],
        gravity=(0, -9.81, 0),
    )


def four_bar_pins(phi: float) -> MechanismDescription:
    """Return one loop of ``fmilin.systems.four_bar``: three rods of 1 m and 1 kg, pins on the ground at 0 and 1 m."""
    rod = [Body(name, 1.0, (0.5, 0, 0), (0, 1 / 12, 1 / 12)) for name in ("crank", "coupler", "rocker")]
    joints = [
        Joint("pin0", "revolute", "ground", "crank", position=phi),
        Joint("pin1", "revolute", "ground", "rocker", Placement((1, 0, 0)), position=phi),
        Joint("top", "revolute", "crank", "coupler", Placement((1, 0, 0)), position=-phi),
    ]
    return MechanismDescription(
        "four_bar",
        rod,
        joints,
        [Loop("cut", "revolute", "coupler", "rocker", Placement((1, 0, 0)), Placement((1, 0, 0)))],
        springs=[PointSpring("spring", "ground", "rocker", (0, 0, 0), (1, 0, 0), 25.0, 2**0.5)],
        gravity=(0, -9.81, 0),
    )


def rod(name: str) -> Body:
    return Body(name, 1.0, (0.5, 0, 0), (0, 0.1, 0.1))


def triangle(first: float, second: float, base: float = 1.0, **options: object) -> MechanismDescription:
    """Two rods of 1 m in a chain, whose end is to be ``base`` from its beginning."""
    return MechanismDescription(
        "triangle",
        [rod("left"), rod("right")],
        [
            Joint("a", "revolute", "ground", "left", position=first),
            Joint("b", "revolute", "left", "right", Placement((1, 0, 0)), position=second),
        ],
        [Loop("pin", "point_on_line", "ground", "right", Placement((base, 0, 0)), Placement((1, 0, 0)))],
        **options,  # type: ignore[arg-type]
    )
