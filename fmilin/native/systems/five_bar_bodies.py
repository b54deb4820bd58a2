"""The five-bar mechanism once more, as bodies and joints."""

from __future__ import annotations

from math import acos, asin, pi

from fmilin.native.mechanism import (
    Body,
    Joint,
    JointForce,
    Loop,
    Mechanism,
    MechanismDescription,
    Placement,
    Sensor,
    Torque,
)

__all__ = ["five_bar_mechanism"]


def five_bar_mechanism(*, singular: bool = False) -> Mechanism:
    """Return the five-bar mechanism of Spencer (thesis), section 3.2, as a mechanism: 8 states, 4 of them independent.

    The same as :func:`fmilin.systems.five_bar`, in the same coordinates: the angle q1 of the first link and the
    interior angles q2, q3, q4; table 3.1 has the data. A chain of four links whose end is pinned to (1 m, 0).

    The inputs are the torques of the supports on links 1 and 4, in N m. The outputs are the joint of links 2 and 3,
    ``middle.x`` and ``middle.y`` in m, and the energies in J. It starts at rest, which is no equilibrium.

    ``singular``: start with all links on the x axis, where the constraints depend on each other.

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
