"""The parallel four-bar robot, whose null space basis K is constant."""

from __future__ import annotations

from math import cos, pi, radians

from fmilin.native.mechanism import Body, Joint, JointForce, Loop, Mechanism, MechanismDescription, Placement, Sensor

__all__ = ["parallel_robot"]

GRAVITY = 9.81
L1, L2 = 0.25, 0.7
REACH = 0.6
MASSES = (1.5, 8.0, 5.0, 1.0)


def parallel_robot(*, crank: float = radians(200), arm: float = radians(65)) -> Mechanism:
    """Return the parallel four-bar robot of Spencer (thesis), section 2.4.1: 8 states, of which 4 are independent.

    Link 1 (a crank of length L1) and link 2 (the upper arm, L2) turn about the same point of the ground by q1 and q2.
    Link 3, the forearm, turns about the end of link 2 by q3; link 4 (L2) turns about link 3, L1 from its joint, by q4.
    Its end is pinned to the end of link 1, so that the four form a parallelogram, and

        q3 = q1 - q2,    q4 = q2 - q1 - pi,    K = dq/d(q1, q2) = ((1, 0), (0, 1), (1, -1), (-1, 1))

    at every configuration. Here the forearm reaches 0.6 m beyond its joint, away from link 4. Gravity points to -y.
    Dimensions are not in the thesis; these are L1 = 0.25 m, L2 = 0.7 m, uniform links of 1.5, 8, 5 and 1 kg.

    The inputs are the torques of the two motors at the ground, ``torque1`` on link 1 and ``torque2`` on link 2, in N m.
    They start with the values that hold the robot in equilibrium. The outputs are the position of the tool, ``tool.x``
    and ``tool.y`` in m.

    ``crank``, ``arm``: q1 and q2 at the start, in rad; any but sin(q1 - q2) = 0, where the parallelogram is flat.

    With c_1 = g (m_1 L1/2 + m_3 (L1 - reach)/2 + m_4 L1) and c_2 = g (m_2 L2/2 + m_3 L2 + m_4 L2/2), the potential
    energy is c_1 sin(q1) + c_2 sin(q2).
    """
    m1, m2, m3, m4 = MASSES
    q = (crank, arm, crank - arm, arm - crank - pi)
    length3 = L1 + REACH
    bodies = [
        _uniform("link1", m1, 0.0, L1),
        _uniform("link2", m2, 0.0, L2),
        _uniform("link3", m3, -REACH, L1),
        _uniform("link4", m4, 0.0, L2),
    ]
    where = (
        ("ground", Placement()),
        ("ground", Placement()),
        ("link2", Placement((L2, 0, 0))),
        ("link3", Placement((L1, 0, 0))),
    )
    joints = [
        Joint(f"joint{i}", "revolute", parent, f"link{i}", place, position=q[i - 1], names=(f"q{i}", f"v{i}"))
        for i, (parent, place) in enumerate(where, 1)
    ]
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


def _uniform(name: str, mass: float, first: float, last: float) -> Body:
    """Return a uniform thin rod on the x axis of its frame."""
    moment = mass * (last - first) ** 2 / 12
    return Body(name, mass, ((first + last) / 2, 0, 0), (0, moment, moment))
