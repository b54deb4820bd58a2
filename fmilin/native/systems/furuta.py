"""The rotary inverted pendulum of Furuta."""

from __future__ import annotations

from math import pi

from fmilin.native.mechanism import Body, Joint, JointForce, Mechanism, MechanismDescription, Placement, Sensor

__all__ = ["furuta_pendulum"]


def furuta_pendulum(*, hanging: bool = False) -> Mechanism:
    """Return a Furuta pendulum: an arm that a motor turns about the vertical, and a pendulum at its end; 4 states.

    The arm is 0.2 m long, its moment of inertia about the motor's axis 2e-3 kg m2. The pendulum is a uniform rod of
    0.3 m and 0.1 kg that turns about the arm's direction, by ``pendulum.q`` from hanging down. Gravity is -z, the
    damping of the motor 1e-3 N m s/rad. It starts at rest in the upright, unstable equilibrium.

    The input is the ``torque`` of the motor in N m. The outputs are both angles in rad, ``arm.q`` and ``pendulum.q``.

    ``hanging``: start in the other, stable equilibrium.

    With J = 2e-3 kg m2, r = 0.2 m, l = 0.3 m, m = 0.1 kg, to first order about the equilibria (upper sign: hanging)

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
