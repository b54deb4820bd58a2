"""Linkages of bodies and joints in Python: the four-bars, the five-bar and the robot of the pictures.

``fmilin linearize linkages.py:five_bar_mechanism`` takes them from the command line.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import acos, asin, atan2, cos, pi, radians, sin
from typing import Literal

from fmilin.errors import UsageError
from fmilin.models.mechanism import (
    Body,
    Joint,
    JointForce,
    Loop,
    Mechanism,
    MechanismDescription,
    Placement,
    PointSpring,
    Sensor,
    Torque,
)
from fmilin.systems.four_bar_linkage import NATURAL_LENGTH, STIFFNESS, equilibrium_angle

Pin = tuple[float, float]
Vector = tuple[float, float, float]


@dataclass(frozen=True)
class PlaneFrame:
    """The frame of a link in the drawing: the origin in m, and the angle of its x axis in rad."""

    origin: Pin
    angle: float = 0.0

    @classmethod
    def along(cls, first: Pin, second: Pin) -> PlaneFrame:
        """Return the frame at the first pin with its x axis towards the second."""
        return cls(first, atan2(second[1] - first[1], second[0] - first[0]))

    def local(self, point: Pin) -> Vector:
        """Return a point of the drawing, seen from this frame."""
        dx, dy = point[0] - self.origin[0], point[1] - self.origin[1]
        c, s = cos(self.angle), sin(self.angle)
        return (c * dx + s * dy, c * dy - s * dx, 0.0)


GROUND = PlaneFrame((0.0, 0.0))


def rod(name: str, mass: float, last: float, *, first: float = 0.0) -> Body:
    """Return a uniform thin rod along the x axis of its frame, from ``first`` to ``last``."""
    moment = mass * (last - first) ** 2 / 12
    return Body(name, mass, ((first + last) / 2, 0.0, 0.0), (0.0, moment, moment))


def pinned(
    name: str, parent: tuple[str, PlaneFrame], child: tuple[str, PlaneFrame], *, names: tuple[str, ...] = ()
) -> Joint:
    """Return the pin at the origin of a link on another: its coordinate is the angle between the x axes."""
    where = Placement(parent[1].local(child[1].origin))
    return Joint(name, "revolute", parent[0], child[0], where, position=child[1].angle - parent[1].angle, names=names)


def pinned_loop(
    name: str,
    at: Pin,
    first: tuple[str, PlaneFrame],
    second: tuple[str, PlaneFrame],
    kind: Literal["point_on_line", "revolute"] = "point_on_line",
) -> Loop:
    """Return the pin at a point of the drawing that closes a loop.

    As ``point_on_line`` across the plane it holds two directions, all that a plane mechanism needs; a ``revolute``
    one holds three more, which are held already.
    """
    return Loop(name, kind, first[0], second[0], Placement(first[1].local(at)), Placement(second[1].local(at)))


def four_bar_mechanism(
    loops: int = 1, damping: float = 0.0, *, pins: Literal["point_on_line", "revolute"] = "point_on_line"
) -> Mechanism:
    """Return the N-loop four-bar linkage of González et al. as a mechanism: 4N + 2 states, of which 2 are independent.

    It is `fmilin.systems.four_bar` at its "upper" equilibrium in the angles of the joints: rods A_i B_i turn
    about the ground (``phi`` is the last one's), and each coupler turns about the end of the rod on its left and
    closes a loop with the next, by two constraints, or as ``pins`` says by five of which three are redundant.

    >>> four_bar_mechanism().states.names
    ('rod0.q', 'coupler1.q', 'phi', 'rod0.v', 'coupler1.v', 'w')
    """
    if loops < 1 or int(loops) != loops:
        raise UsageError(f"A four-bar linkage has 1 loop or more, not {loops}.")
    if pins not in ("point_on_line", "revolute"):
        raise UsageError(f"'{pins}' is not a way to close a loop of this linkage: 'point_on_line' or 'revolute'.")
    n = int(loops)
    phi = equilibrium_angle(n, "upper")
    rods = [PlaneFrame((float(i), 0.0), phi) for i in range(n + 1)]
    ends = [(i + cos(phi), sin(phi)) for i in range(n + 1)]
    joints, closed, springs = [], [], []
    for i in range(n + 1):
        if i:
            coupler, left = (f"coupler{i}", PlaneFrame(ends[i - 1])), (f"rod{i - 1}", rods[i - 1])
            joints.append(pinned(f"coupler{i}", left, coupler))
            closed.append(pinned_loop(f"B{i}", ends[i], coupler, (f"rod{i}", rods[i]), pins))
            ends_of_spring = ("ground", f"rod{i}", (i - 1.0, 0, 0), (1, 0, 0))
            springs.append(PointSpring(f"spring{i}", *ends_of_spring, STIFFNESS, NATURAL_LENGTH, damping))
        joints.append(pinned(f"rod{i}", ("ground", GROUND), (f"rod{i}", rods[i]), names=("phi", "w") if i == n else ()))
    return Mechanism(
        MechanismDescription(
            "four_bar_mechanism" if n == 1 else f"four_bar_mechanism_{n}",
            [rod(joint.child, 1.0, 1.0) for joint in joints],
            joints,
            closed,
            springs=springs,
            inputs=[JointForce("torque", f"rod{n}")],
            sensors=[
                Sensor("phi", "joint_position", f"rod{n}"),
                Sensor("w", "joint_velocity", f"rod{n}"),
                Sensor("coupler.y", "position", f"coupler{n}", point=(0.5, 0, 0), axis=(0, 1, 0)),
            ],
            gravity=(0, -GRAVITY, 0),
            independent=("phi", "w"),
        )
    )


def five_bar_mechanism(*, singular: bool = False) -> Mechanism:
    """Return the five-bar mechanism of Spencer (thesis), section 3.2, as a mechanism: 8 states, 4 of them independent.

    It is `fmilin.systems.five_bar`, in the same coordinates: a chain of four links with its end pinned to (1
    m, 0).

    >>> five_bar_mechanism().states.names
    ('q1', 'q2', 'q3', 'q4', 'v1', 'v2', 'v3', 'v4')
    """
    lengths, masses, moments = (1.0, 1.5, 1.5, 1.0), (2.0, 3.0, 3.0, 2.0), (1.0, 2.0, 2.0, 1.0)
    regular = (2 * pi / 3, pi / 3 + acos(2 / 3), 2 * asin(2 / 3), pi / 3 + acos(2 / 3))
    start = (pi, 0.0, pi, 0.0) if singular else regular
    bodies = [
        Body(f"link{i}", m, (length / 2, 0, 0), (0, J, J))
        for i, (length, m, J) in enumerate(zip(lengths, masses, moments, strict=True), 1)
    ]
    joints = []
    for i, q in enumerate(start, 1):
        # Interior angles: theta_i = theta_(i-1) + pi + q_i, from the end of the link before.
        where = Placement() if i == 1 else Placement((lengths[i - 2], 0, 0), ((-1, 0, 0), (0, -1, 0), (0, 0, 1)))
        parent = "ground" if i == 1 else f"link{i - 1}"
        joints.append(Joint(f"joint{i}", "revolute", parent, f"link{i}", where, position=q, names=(f"q{i}", f"v{i}")))
    middle = (1.5, 0.0, 0.0)
    return Mechanism(
        MechanismDescription(
            "five_bar_mechanism",
            bodies,
            joints,
            [Loop("support", "point_on_line", "ground", "link4", Placement((1, 0, 0)), Placement((1, 0, 0)))],
            inputs=[JointForce("left_torque", "joint1"), Torque("right_torque", "link4")],
            sensors=[
                Sensor("middle.x", "position", "link2", point=middle),
                Sensor("middle.y", "position", "link2", point=middle, axis=(0, 1, 0)),
                Sensor("kinetic_energy", "kinetic_energy"),
                Sensor("potential_energy", "potential_energy"),
                Sensor("energy", "energy"),
            ],
            gravity=(0, -9.81, 0),
        )
    )


GRAVITY = 9.81
L1, L2 = 0.25, 0.7
REACH = 0.6
MASSES = (1.5, 8.0, 5.0, 1.0)


def parallel_robot(*, crank: float = radians(200), arm: float = radians(65)) -> Mechanism:
    """Return the parallel four-bar robot of Spencer (thesis), section 2.4.1: 8 states, of which 4 are independent.

    Link 1 (a crank of length L1) and link 2 (the upper arm, L2) turn about the same point of the ground by q1 and
    q2. Link 3, the forearm, turns about the end of link 2 by q3; link 4 (L2) turns about link 3, L1 from its joint,
    by q4. Its end is pinned to the end of link 1, so that the four form a parallelogram, and

        q3 = q1 - q2,    q4 = q2 - q1 - pi,    K = dq/d(q1, q2) = ((1, 0), (0, 1), (1, -1), (-1, 1))

    at every configuration but sin(q1 - q2) = 0, where it is flat. Here the forearm reaches 0.6 m beyond its joint,
    away from link 4. Gravity points to -y. Dimensions are not in the thesis; these are L1 = 0.25 m, L2 = 0.7 m,
    uniform links of 1.5, 8, 5 and 1 kg. It starts in equilibrium at q1, q2 = ``crank``, ``arm``, held by motors on
    links 1 and 2. With c_1 = g (m_1 L1/2 + m_3 (L1 - reach)/2 + m_4 L1) and c_2 = g (m_2 L2/2 + m_3 L2 + m_4 L2/2),
    the potential energy is c_1 sin(q1) + c_2 sin(q2).
    """
    m1, m2, m3, m4 = MASSES
    q = (crank, arm, crank - arm, arm - crank - pi)
    length3 = L1 + REACH
    bodies = [
        rod("link1", m1, L1),
        rod("link2", m2, L2),
        rod("link3", m3, L1, first=-REACH),
        rod("link4", m4, L2),
    ]
    parents = (("ground", 0.0), ("ground", 0.0), ("link2", L2), ("link3", L1))
    joints = [
        Joint(f"joint{i}", "revolute", parent, f"link{i}", Placement((x, 0, 0)), position=q[i - 1],
              names=(f"q{i}", f"v{i}"))
        for i, (parent, x) in enumerate(parents, 1)
    ]  # fmt: skip
    c1 = GRAVITY * (m1 * L1 / 2 + m3 * (length3 / 2 - REACH) + m4 * L1)
    c2 = GRAVITY * (m2 * L2 / 2 + m3 * L2 + m4 * L2 / 2)
    tool = (-REACH, 0.0, 0.0)
    return Mechanism(
        MechanismDescription(
            "parallel_robot",
            bodies,
            joints,
            [Loop("A", "point_on_line", "link1", "link4", Placement((L1, 0, 0)), Placement((L2, 0, 0)))],
            inputs=[
                JointForce("torque1", "joint1", start=c1 * cos(crank)),
                JointForce("torque2", "joint2", start=c2 * cos(arm)),
            ],
            sensors=[
                Sensor("tool.x", "position", "link3", point=tool),
                Sensor("tool.y", "position", "link3", point=tool, axis=(0, 1, 0)),
            ],
            gravity=(0, -GRAVITY, 0),
            independent=("q1", "q2", "v1", "v2"),
        )
    )
