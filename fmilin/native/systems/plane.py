"""The slider-crank mechanism, of bodies and joints."""

from __future__ import annotations

from math import asin, atan2, cos, pi, sin

from fmilin.native.mechanism import (
    Body,
    Joint,
    JointForce,
    Mechanism,
    MechanismDescription,
    Placement,
    Sensor,
)
from fmilin.native.systems.drawing import GROUND, PlaneFrame, pinned, pinned_loop, rod


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
    pin = (a * cos(angle), a * sin(angle))
    slider = (pin[0] + b * cos(asin(pin[1] / b)), 0.0)
    crank = PlaneFrame((0.0, 0.0), angle)
    coupler = PlaneFrame(pin, atan2(slider[1] - pin[1], slider[0] - pin[0]))
    return Mechanism(
        MechanismDescription(
            "slider_crank",
            [rod("crank", 0.8, a), rod("rod", 0.5, b), Body("slider", 0.4, inertia=(1e-4, 1e-4, 1e-4))],
            [
                Joint("crank", "revolute", "ground", "crank", Placement(), position=angle, names=("phi", "w")),
                pinned("rod", ("crank", crank), ("rod", coupler)),
                Joint("slider", "prismatic", "ground", "slider", axis=(1, 0, 0), position=slider[0]),
            ],
            [pinned_loop("wrist", slider, ("rod", coupler), ("slider", PlaneFrame(slider, GROUND.angle)))],
            inputs=[JointForce("torque", "crank"), JointForce("force", "slider")],
            sensors=[
                Sensor("slider.x", "joint_position", "slider"),
                Sensor("slider.v", "joint_velocity", "slider"),
                Sensor("slider.a", "joint_acceleration", "slider"),
            ],
            gravity=(0, -9.81, 0),
            independent=("phi", "w"),
        )
    )
