"""Mechanisms described by the files next to this one, and a Stewart platform."""

from collections.abc import Mapping
from dataclasses import replace
from math import asin, cos, pi, radians, sin
from pathlib import Path
from types import MappingProxyType

import numpy as np

from fmilin.models.mechanism import Body, Joint, JointForce, Loop, Mechanism, MechanismDescription, Placement, Sensor
from fmilin.models.mechanism.mechanism_model import read_mechanism_file

NOTHING: Mapping[str, float] = MappingProxyType({})
HOLDING = {"lift_force": 69868.38694710382, "tilt_force": 16072.144342615231}  # forces in N at which the loader rests


def slider_crank(*, angle: float = -pi / 2) -> Mechanism:
    """Return a slider-crank mechanism: 6 states, of which 2 are independent.

    A crank of 0.1 m and 0.8 kg turns about the ground, a rod of 0.3 m and 0.5 kg connects its end with a slider of
    0.4 kg that moves along the x axis. Crank and rod are uniform; gravity points to -y. It starts at phi =
    ``angle`` from the x axis, by default hanging in its (stable) equilibrium, where the rod moves without turning,
    so that to first order

        [m_c a^2/3 + (m_r + m_s) a^2] phi'' = torque + a force - (m_c + m_r) g a/2 (phi + pi/2) + ..

    with a frequency of 7.393 rad/s.

    >>> slider_crank().states.names
    ('phi', 'rod.q', 'slider.q', 'w', 'rod.v', 'slider.v')
    """
    a, b = 0.1, 0.3
    rod = -asin(a * sin(angle) / b)  # the angle of the rod from the x axis
    return _read("slider_crank", {"crank": angle, "rod": rod - angle, "slider": a * cos(angle) + b * cos(rod)})


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
    return _read("furuta_pendulum", {"pendulum": 0.0} if hanging else {})


def loader(*, at_rest: bool = False) -> Mechanism:
    """Return the linkage of a wheel loader: 16 states, of which 4 are independent.

    A Z-bar linkage in the manner of Spencer (thesis), section 4.5, with dimensions of its own: a boom on the frame
    of the vehicle, a bucket at its end, a bell crank on the boom, a link from there to the bucket, and two
    hydraulic cylinders, tube and rod each, for lifting and tilting; their forces push. Three loops close at the
    pins D, G and I. Gravity is -y; ``edge`` is that of the bucket. As in the thesis it starts at rest with the
    cylinders free of force: no equilibrium, and its eigenvalues depend on the coordinates that are kept, the angles
    of boom and bucket or the cylinders (``independent=["lift.q", "tilt.q"]``). ``at_rest`` starts with the forces
    that hold it: then they do not.

    >>> model = loader()
    >>> len(model.states), model.independent
    (16, ('boom.q', 'bucket.q', 'boom.v', 'bucket.v'))
    """
    return _read("loader", inputs=HOLDING if at_rest else {})


def double_wishbone() -> Mechanism:
    """Return a quarter of a car on a double-wishbone suspension: 17 states, of which 4 are independent.

    The sprung mass (330 kg) moves up and down. Two wishbones turn about inclined axes on it, the upright with the
    wheel (42 kg) hangs on the lower one by a ball and closes loops with the upper one and with a tie rod; its
    inner end is held as by a steering rack at rest. A strut stands on the lower wishbone (45 kN/m, 3 kN s/m). The
    tyre is a spring from the wheel's centre to the ground below (200 kN/m). Free lengths are such that the car stands
    in equilibrium. Gravity is -z; x is forward, y to the left. Loads act upwards, ``strut_force`` pushes;
    ``camber`` and ``toe`` (out) are the sines of the axle's slope and of its component backwards.

    >>> model = double_wishbone()
    >>> len(model.states), model.independent
    (17, ('body.q', 'lower.q', 'body.v', 'lower.v'))
    """
    return _read("double_wishbone")


def _read(name: str, positions: Mapping[str, float] = NOTHING, inputs: Mapping[str, float] = NOTHING) -> Mechanism:
    """Return the mechanism of a file, with other positions of joints and other start values of inputs."""
    description, _ = read_mechanism_file(Path(__file__).with_name(f"{name}.toml"))
    return Mechanism(
        replace(
            description,
            joints=[replace(j, position=positions.get(j.name, j.position)) for j in description.joints],
            inputs=[replace(i, start=inputs.get(i.name, i.start)) for i in description.inputs],
        )
    )


GRAVITY = 9.81
BASE, TABLE, HEIGHT = 1.0, 0.6, 1.0
"""Radii of the circles on which the legs end below and above, and the height between them, in m."""
TUBE_MASS, ROD_MASS, LOAD_MASS = 15.0, 8.0, 250.0
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
    bodies = [Body("table", LOAD_MASS, (0, 0, HALF_TABLE), (25.0, 25.0, 45.0))]
    joints = [Joint("table", "free", "ground", "table", position=(0, 0, HEIGHT, 1, 0, 0, 0))]
    loops = []
    # of the two pairs of heads near a foot the nearer one, and in it the nearer head
    for i, (foot, head) in enumerate(zip(base_points, [table_points[(k - 1) % 6] for k in range(6)], strict=True), 1):
        axis = np.array([head[0] - foot[0], head[1] - foot[1], HEIGHT])
        length = float(np.linalg.norm(axis))
        bodies += [
            Body(f"tube{i}", TUBE_MASS, (0, 0, TUBE_CENTER), (0.7, 0.7, 0.03)),
            Body(f"rod{i}", ROD_MASS, (0, 0, -ROD_CENTER), (0.5, 0.5, 0.01)),
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
    weight = LOAD_MASS * GRAVITY / 6
    weight += GRAVITY * (TUBE_MASS * TUBE_CENTER * aside + ROD_MASS * (1 - ROD_CENTER * aside))
    return weight * length / HEIGHT
