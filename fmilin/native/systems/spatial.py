"""Mechanisms in space: a Furuta pendulum, a Stewart platform, a double-wishbone suspension."""

from __future__ import annotations

from math import cos, pi, radians, sin
from typing import Any

import numpy as np

from fmilin.native.mechanism import (
    Body,
    Force,
    Joint,
    JointForce,
    LineForce,
    Loop,
    Mechanism,
    MechanismDescription,
    Placement,
    PointSpring,
    Sensor,
)
from fmilin.native.systems.drawing import holding_forces


def furuta_pendulum(*, hanging: bool = False) -> Mechanism:
    """Return a Furuta pendulum: an arm that a motor turns about the vertical, and a pendulum at its end; 4 states.

    The arm is 0.2 m long, its moment of inertia about the motor's axis 2e-3 kg m2. The pendulum is a uniform rod of
    0.3 m and 0.1 kg that turns about the arm's direction, by ``pendulum.q`` from hanging down. Gravity is -z, the
    damping of the motor 1e-3 N m s/rad. It starts at rest in the upright, unstable equilibrium, or ``hanging`` in
    the other, stable one. With J = 2e-3 kg m2, r = 0.2 m, l = 0.3 m, m = 0.1 kg, to first order about the
    equilibria (upper sign: hanging)

        (J + m r^2) alpha'' +- m r l/2 theta'' = torque - c alpha',
        +- m r l/2 alpha'' + m l^2/3 theta'' = -+ m g l/2 theta.

    >>> furuta_pendulum().states.names
    ('arm.q', 'pendulum.q', 'arm.v', 'pendulum.v')
    """
    r, length, mass = 0.2, 0.3, 0.1
    J, arm_mass = 2e-3, 0.15
    about_center = J - arm_mass * (r / 2) ** 2
    swing = mass * length**2 / 12
    return Mechanism(
        MechanismDescription(
            "furuta_pendulum",
            [
                Body("arm", arm_mass, (r / 2, 0, 0), (0, about_center, about_center)),
                Body("pendulum", mass, (0, 0, -length / 2), (swing, swing, 0)),
            ],
            [
                Joint("arm", "revolute", "ground", "arm", damping=1e-3),
                Joint("pendulum", "revolute", "arm", "pendulum", Placement((r, 0, 0)), axis=(1, 0, 0),
                      position=0.0 if hanging else pi),
            ],
            inputs=[JointForce("torque", "arm")],
            sensors=[Sensor("arm.q", "joint_position", "arm"), Sensor("pendulum.q", "joint_position", "pendulum")],
        )
    )  # fmt: skip


GRAVITY = 9.81
BASE, TABLE, HEIGHT = 1.0, 0.6, 1.0
"""Radii of the circles on which the legs end below and above, and the height between them, in m."""
TUBE, ROD, LOAD = 15.0, 8.0, 250.0
TUBE_CENTER, ROD_CENTER, HALF_TABLE = 0.35, 0.4, 0.05
"""Centres of mass: of a tube from its foot, of a rod from its head, of the table above the heads, in m."""
STIFFNESS, DAMPING = 4e5, 2e3


def stewart_platform() -> Mechanism:
    """Return a Stewart platform: 49 states, of which 12 are independent.

    Each of six legs is a tube on a universal joint at the base and a rod that slides in it, up to a ball at the
    table. The table moves freely (seven coordinates: its position and a quaternion), and the six balls are loops.
    Feet and heads are in pairs at -+10 degrees about three directions, those of the table between those of the
    base, on circles of 1 m and 0.6 m; the table is 1 m above the base. Table 250 kg, tubes 15 kg, rods 8 kg;
    gravity is -z. The drives of the legs are stiff to 4e5 N/m and damped with 2e3 N s/m, and pretensioned so that
    the table is in equilibrium in the middle; the inputs push there. With c = h/l for legs of length l over the
    height h, and r^2 = l^2 - h^2, the table sinks by dz against the forces

        6 f c = m g + 6 g [m_tube c_t r^2/l^3 + m_rod (1 - c_r r^2/l^3)].

    >>> model = stewart_platform()
    >>> len(model.states), len(model.inputs), len(model.independent)
    (49, 6, 12)
    """
    base_points, table_points = _circle(BASE, 0.0), _circle(TABLE, pi / 3)
    bodies = [Body("table", LOAD, (0, 0, HALF_TABLE), (25.0, 25.0, 45.0))]
    joints = [Joint("table", "free", "ground", "table", position=(0, 0, HEIGHT, 1, 0, 0, 0))]
    loops = []
    # of the two pairs of heads beside a foot the near one, and in it the near one
    for i, (foot, head) in enumerate(zip(base_points, [table_points[(k - 1) % 6] for k in range(6)], strict=True), 1):
        axis = np.array([head[0] - foot[0], head[1] - foot[1], HEIGHT])
        length = float(np.linalg.norm(axis))
        bodies += [
            Body(f"tube{i}", TUBE, (0, 0, TUBE_CENTER), (0.7, 0.7, 0.03)),
            Body(f"rod{i}", ROD, (0, 0, -ROD_CENTER), (0.5, 0.5, 0.01)),
        ]
        joints += [
            Joint(f"foot{i}", "universal", "ground", f"tube{i}", _leg_frame((*foot, 0.0), axis), axis=(1, 0, 0),
                  second_axis=(0, 1, 0)),
            Joint(f"leg{i}", "prismatic", f"tube{i}", f"rod{i}", axis=(0, 0, 1), position=length,
                  stiffness=STIFFNESS, rest=length + _push(length) / STIFFNESS, damping=DAMPING),
        ]  # fmt: skip
        loops.append(Loop(f"head{i}", "spherical", "table", f"rod{i}", Placement((*head, 0.0))))
    legs = range(1, 7)
    return Mechanism(
        MechanismDescription(
            "stewart_platform",
            bodies,
            joints,
            loops,
            inputs=[JointForce(f"leg{i}.force", f"leg{i}") for i in legs],
            sensors=[
                *Sensor.three("table", "position", "table"),
                Sensor("table.a", "acceleration", "table", axis=(0, 0, 1)),
            ],
            independent=[f"leg{i}.{c}" for c in "qv" for i in legs],
        )
    )


def _circle(radius: float, offset: float) -> list[tuple[float, float]]:
    """Return six points in pairs on a circle."""
    angles = [offset + k * 2 * pi / 3 + side * radians(10) for k in range(3) for side in (-1, 1)]
    return [(radius * cos(a), radius * sin(a)) for a in angles]


def _leg_frame(foot: tuple[float, float, float], axis: np.ndarray) -> Placement:
    """Return the frame at a foot with its z axis along the leg and its x axis level."""
    z = axis / np.linalg.norm(axis)
    x = np.cross(z, (0.0, 0.0, 1.0))
    x = x / np.linalg.norm(x)
    return Placement(foot, np.stack((x, np.cross(z, x), z), axis=1))


def _push(length: float) -> float:
    """Return the force f in each leg that carries the table, in N."""
    aside = (length**2 - HEIGHT**2) / length**3
    weight = LOAD * GRAVITY / 6
    weight += GRAVITY * (TUBE * TUBE_CENTER * aside + ROD * (1 - ROD_CENTER * aside))
    return weight * length / HEIGHT


Point = tuple[float, float, float]

# Points at the start, in m: x forward, y to the left, z up from the road. A left wheel.
LOWER_FRONT, LOWER_REAR = (0.16, 0.35, 0.20), (-0.20, 0.35, 0.20)
UPPER_FRONT, UPPER_REAR = (0.12, 0.42, 0.47), (-0.15, 0.42, 0.45)
LOWER_BALL, UPPER_BALL = (0.00, 0.70, 0.18), (-0.02, 0.66, 0.45)
TIE_INNER, TIE_OUTER = (-0.13, 0.38, 0.25), (-0.14, 0.69, 0.24)
STRUT_FOOT, STRUT_TOP = (0.00, 0.58, 0.20), (0.00, 0.47, 0.62)
WHEEL, ROAD = (0.00, 0.75, 0.31), (0.00, 0.75, 0.0)
BODY = (0.00, 0.42, 0.40)

STRUT_STIFFNESS, STRUT_DAMPING = 45e3, 3000.0
TYRE_STIFFNESS, TYRE_DAMPING = 200e3, 60.0


def double_wishbone() -> Mechanism:
    """Return a quarter of a car on a double-wishbone suspension: 17 states, of which 4 are independent.

    The sprung mass (330 kg) moves up and down. Two wishbones turn about inclined axes on it, the upright with the
    wheel (42 kg) hangs on the lower one by a ball and closes loops with the upper one and with a tie rod, whose
    inner end is held as by a steering rack at rest. A strut stands on the lower wishbone (45 kN/m, 3 kN s/m). The
    tyre is a spring from the wheel's centre to the road below (200 kN/m). Free lengths are such that the car stands
    in equilibrium. Gravity is -z; x is forward, y to the left. Loads act upwards, ``strut_force`` pushes;
    ``camber`` and ``toe`` (out) are the sines of the axle's slope and of its component backwards.

    >>> model = double_wishbone()
    >>> len(model.states), model.independent
    (17, ('body.q', 'lower.q', 'body.v', 'lower.v'))
    """
    tyre = ROAD[2] + WHEEL[2]
    push, support = holding_forces(_suspension((_length(STRUT_FOOT, STRUT_TOP), tyre), holding=True))
    return _suspension((_length(STRUT_FOOT, STRUT_TOP) + push / STRUT_STIFFNESS, tyre + support / TYRE_STIFFNESS))


def _suspension(free: tuple[float, float], *, holding: bool = False) -> Mechanism:
    """Return it with given free lengths of strut and tyre; ``holding``: with the two forces that carry it as inputs."""
    strut: dict[str, Any] = {
        "first": "body",
        "second": "lower_arm",
        "first_point": _from(BODY, STRUT_TOP),
        "second_point": _from(LOWER_FRONT, STRUT_FOOT),
    }
    tyre: dict[str, Any] = {
        "first": "ground",
        "second": "upright",
        "first_point": ROAD,
        "second_point": _from(LOWER_BALL, WHEEL),
    }
    wheel = _from(LOWER_BALL, WHEEL)
    holders = [LineForce("strut_force", **strut), LineForce("tyre_force", **tyre)]
    forces = [Force("body_load", "body", direction=(0, 0, 1)), Force("wheel_load", "upright", wheel, (0, 0, 1))]
    return Mechanism(
        MechanismDescription(
            "double_wishbone",
            _bodies(),
            _joints(),
            [
                _ball("upper_ball", UPPER_BALL, ("upper_arm", UPPER_FRONT)),
                _ball("tie_ball", TIE_OUTER, ("tie_rod", TIE_INNER)),
            ],
            springs=[
                PointSpring("strut", stiffness=STRUT_STIFFNESS, length=free[0], damping=STRUT_DAMPING, **strut),
                PointSpring("tyre", stiffness=TYRE_STIFFNESS, length=free[1], damping=TYRE_DAMPING, **tyre),
            ],
            inputs=holders if holding else [*forces, holders[0]],
            sensors=[
                Sensor("body.a", "acceleration", "body", axis=(0, 0, 1)),
                Sensor("body.z", "joint_position", "body"),
                Sensor("wheel.z", "position", "upright", wheel, axis=(0, 0, 1)),
                Sensor("strut", "distance", "strut"),
                Sensor("camber", "direction", "upright", axis=(0, 0, 1), pointer=(0, 1, 0)),
                Sensor("toe", "direction", "upright", axis=(-1, 0, 0), pointer=(0, 1, 0)),
            ],
            independent=("body.q", "lower.q", "body.v", "lower.v"),
        )
    )


def _bodies() -> list[Body]:
    """Return the bodies, with frames parallel to the car at the start."""
    return [
        Body("body", 330.0, _from(BODY, (0.0, 0.3, 0.55)), (60.0, 60.0, 60.0)),
        Body("lower_arm", 6.0, _from(LOWER_FRONT, (-0.01, 0.53, 0.19)), (0.07, 0.06, 0.12)),
        Body("upper_arm", 3.5, _from(UPPER_FRONT, (-0.02, 0.54, 0.455)), (0.02, 0.03, 0.045)),
        Body("upright", 42.0, _from(LOWER_BALL, (0.0, 0.73, 0.31)), (1.1, 1.9, 1.1)),
        Body("tie_rod", 1.2, _from(TIE_INNER, (-0.135, 0.535, 0.245)), (0.01, 0.0002, 0.01)),
    ]


def _joints() -> list[Joint]:
    """Return the tree: each child's frame is where its joint is."""
    return [
        Joint("body", "prismatic", "ground", "body", Placement(BODY), axis=(0, 0, 1)),
        Joint("lower", "revolute", "body", "lower_arm", _on_body(LOWER_FRONT), axis=_from(LOWER_REAR, LOWER_FRONT)),
        Joint("upper", "revolute", "body", "upper_arm", _on_body(UPPER_FRONT), axis=_from(UPPER_REAR, UPPER_FRONT)),
        Joint("ball", "spherical", "lower_arm", "upright", Placement(_from(LOWER_FRONT, LOWER_BALL))),
        Joint("rack", "universal", "body", "tie_rod", _on_body(TIE_INNER), axis=(1, 0, 0), second_axis=(0, 0, 1)),
    ]


def _ball(name: str, at: Point, arm: tuple[str, Point]) -> Loop:
    """Return the ball between an arm, whose frame has the given origin, and the upright."""
    return Loop(name, "spherical", arm[0], "upright", Placement(_from(arm[1], at)), Placement(_from(LOWER_BALL, at)))


def _on_body(point: Point) -> Placement:
    return Placement(_from(BODY, point))


def _from(origin: Point, point: Point) -> Point:
    return (point[0] - origin[0], point[1] - origin[1], point[2] - origin[2])


def _length(a: Point, b: Point) -> float:
    dx, dy, dz = _from(a, b)
    return float((dx * dx + dy * dy + dz * dz) ** 0.5)
