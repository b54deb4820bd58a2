"""Mechanisms described by the files beside this one: slider-crank, Furuta pendulum, wheel loader, double wishbone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import asin, cos, pi, sin
from pathlib import Path
from types import MappingProxyType

from fmilin.native.mechanism import Mechanism
from fmilin.native.mechanism.files import read_mechanism_file

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
    hydraulic cylinders, tube and rod each, for lifting and tilting, whose forces push. Three loops close at the
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
    wheel (42 kg) hangs on the lower one by a ball and closes loops with the upper one and with a tie rod, whose
    inner end is held as by a steering rack at rest. A strut stands on the lower wishbone (45 kN/m, 3 kN s/m). The
    tyre is a spring from the wheel's centre to the road below (200 kN/m). Free lengths are such that the car stands
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
