"""A robot on two legs with two closed loops each: a rod that drives the ankle, and one that drives the foot.

The links and loops are those of the birds among the legged robots: hip of three pins, knee, shin, tarsus, foot, a rod
with a ball at the hip that ends at the heel, a crank and a rod to the foot. Lengths and masses are of our own making.
"""

from __future__ import annotations

import numpy as np

from fmilin.models.mechanism import Body, Joint, JointForce, Loop, Mechanism, MechanismDescription, Placement
from fmilin.models.mechanism.part import Vector
from fmilin.signals import FloatArray

__all__ = ["leg_robot"]

ROLL, PITCH, YAW = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
LINKS = (
    ("roll", "trunk", (0.02, 0.13, 0.0), ROLL, 1.8, 0.02),
    ("yaw", "roll", (0.0, 0.0, -0.07), YAW, 1.2, -0.04),
    ("thigh", "yaw", (0.0, 0.0, -0.09), PITCH, 4.0, -0.6),
    ("shin", "thigh", (0.0, 0.0, -0.4), PITCH, 1.0, 1.1),
    ("tarsus", "shin", (0.0, 0.0, -0.38), PITCH, 0.8, -0.9),
    ("heel", "tarsus", (-0.03, 0.0, 0.04), PITCH, 0.1, 0.2),
    ("foot", "tarsus", (0.0, 0.0, -0.36), PITCH, 0.3, 0.7),
    ("crank", "tarsus", (0.05, 0.0, -0.02), PITCH, 0.15, 0.3),
    ("plantar", "crank", (0.06, 0.0, 0.0), PITCH, 0.12, -0.4),
)
"""Name, what it hangs on, where, its axis, its mass, the angle at the start."""


def leg_robot() -> Mechanism:
    """Return the robot: 63 states, of which loops and the quaternion leave 40; two rows of the loops are redundant."""
    bodies, joints, loops = [Body("trunk", 12.0, (0.0, 0.0, 0.1), (0.2, 0.2, 0.1))], [], []
    joints.append(Joint("base", "free", "ground", "trunk", position=(0, 0, 1.0, 1, 0, 0, 0)))
    for side, sign in (("left", 1.0), ("right", -1.0)):
        for name, parent, at, axis, mass, angle in LINKS:
            there = Placement((at[0], sign * at[1], at[2]))
            hangs_on = parent if parent == "trunk" else f"{side}_{parent}"
            bodies.append(Body(f"{side}_{name}", mass, (0.0, 0.0, -0.1), mass * np.array([0.01, 0.01, 0.002])))
            joint = Joint(f"{side}_{name}_pin", "revolute", hangs_on, f"{side}_{name}", there, axis=axis)
            joints.append(_at(joint, sign * angle if axis == ROLL else angle))
        bodies.append(Body(f"{side}_rod", 0.2, (0.0, 0.0, -0.25), (0.004, 0.004, 1e-4)))
        hip = Placement((0.0, sign * 0.03, 0.0))
        joints.append(Joint(f"{side}_rod_ball", "spherical", f"{side}_thigh", f"{side}_rod", hip))
    frames = _frames(joints)
    for side in ("left", "right"):
        loops.append(_ball(frames, f"{side}_rod", f"{side}_heel", (-0.06, 0.0, 0.0)))
        loops.append(_ball(frames, f"{side}_plantar", f"{side}_foot", (0.03, 0.0, 0.02)))
    inputs = [
        JointForce(f"{side}_{name}_torque", f"{side}_{name}_pin")
        for side in ("left", "right")
        for name in ("roll", "yaw", "thigh", "shin", "crank")
    ]
    return Mechanism(MechanismDescription("leg_robot", bodies, joints, loops, inputs=inputs, gravity=(0.0, 0.0, -9.81)))


def _at(joint: Joint, angle: float) -> Joint:
    return Joint(joint.name, joint.type, joint.parent, joint.child, joint.placement, axis=joint.axis, position=angle)


def _frames(joints: list[Joint]) -> dict[str, FloatArray]:
    """Return where the bodies are at the start."""
    at: dict[str, FloatArray] = {"ground": np.eye(4)}
    for joint in joints:
        turn = np.eye(4)
        if joint.type == "revolute":
            turn = Placement.from_axis(axis=joint.axis, angle=joint.position[0]).matrix
        elif joint.type == "free":
            turn = Placement(joint.position[:3]).matrix
        at[joint.child] = at[joint.parent] @ joint.placement.matrix @ turn
    return at


def _ball(frames: dict[str, FloatArray], first: str, second: str, point: Vector) -> Loop:
    """Return a ball that holds a point of the second body where it is seen from the first."""
    x, y, z = np.linalg.solve(frames[first], frames[second] @ np.array([*point, 1.0]))[:3].tolist()
    return Loop(f"{first}_to_{second}", "spherical", first, second, Placement((x, y, z)), Placement(point))
