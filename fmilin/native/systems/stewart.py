"""A Stewart platform."""

from __future__ import annotations

from math import cos, pi, radians, sin

import numpy as np

from fmilin.native.mechanism import Body, Joint, JointForce, Loop, Mechanism, MechanismDescription, Placement, Sensor

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
