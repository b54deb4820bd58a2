"""Bodies, joints and loops: closed-chain mechanisms with an exact recursive linearization.

Spencer (thesis), chapter 4 and appendices A and B.
"""

from __future__ import annotations

from fmilin.models.mechanism.description import (
    Body,
    Force,
    Joint,
    JointForce,
    LineForce,
    Loop,
    MechanismDescription,
    Placement,
    PointSpring,
    Sensor,
    Skate,
    Torque,
    Wheel,
)

__all__ = [
    "Body",
    "Force",
    "Joint",
    "JointForce",
    "LineForce",
    "Loop",
    "MechanismDescription",
    "Placement",
    "PointSpring",
    "Sensor",
    "Skate",
    "Torque",
    "Wheel",
]
