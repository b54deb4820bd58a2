"""Bodies, joints and loops: closed-chain mechanisms with an exact recursive linearization.

Spencer (thesis), chapter 4 and appendices A and B.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fmilin.models.mechanism.description import (
    Actuator,
    Body,
    Coupling,
    Force,
    Joint,
    JointForce,
    LineForce,
    Loop,
    Marker,
    MechanismDescription,
    Placement,
    PointSpring,
    Sensor,
    Skate,
    Tendon,
    Torque,
    Wheel,
)

if TYPE_CHECKING:
    from fmilin.models.mechanism.model import Mechanism

__all__ = [
    "Actuator",
    "Body",
    "Coupling",
    "Force",
    "Joint",
    "JointForce",
    "LineForce",
    "Loop",
    "Marker",
    "Mechanism",
    "MechanismDescription",
    "Placement",
    "PointSpring",
    "Sensor",
    "Skate",
    "Tendon",
    "Torque",
    "Wheel",
]


def __getattr__(name: str) -> Any:
    """Import the model when it is first used: descriptions alone need less."""
    if name != "Mechanism":
        raise AttributeError(f"module 'fmilin.models.mechanism' has no attribute '{name}'")
    from fmilin.models.mechanism.model import Mechanism

    return Mechanism
