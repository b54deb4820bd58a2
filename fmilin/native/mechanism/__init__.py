"""Bodies, joints and loops: closed-chain mechanisms with an exact recursive linearization.

Spencer (thesis), chapter 4 and appendices A and B.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fmilin.native.mechanism.description import MechanismDescription
from fmilin.native.mechanism.elements import (
    Actuator,
    Bushing,
    Coupling,
    Force,
    JointForce,
    LineForce,
    Marker,
    Motion,
    PointSpring,
    Sensor,
    Skate,
    Tendon,
    Torque,
    Wheel,
)
from fmilin.native.mechanism.part import Placement
from fmilin.native.mechanism.parts import Body, Joint, Loop

if TYPE_CHECKING:
    from fmilin.native.mechanism.assembly import Assembly, assemble
    from fmilin.native.mechanism.model import Mechanism
    from fmilin.native.mechanism.motions import MovedMechanism

__all__ = [
    "Actuator",
    "Assembly",
    "Body",
    "Bushing",
    "Coupling",
    "Force",
    "Joint",
    "JointForce",
    "LineForce",
    "Loop",
    "Marker",
    "Mechanism",
    "MechanismDescription",
    "Motion",
    "MovedMechanism",
    "Placement",
    "PointSpring",
    "Sensor",
    "Skate",
    "Tendon",
    "Torque",
    "Wheel",
    "assemble",
]


_LATE = {"Mechanism": "model", "MovedMechanism": "motions", "Assembly": "assembly", "assemble": "assembly"}


def __getattr__(name: str) -> Any:
    """Import the model and the assembly when they are first used: descriptions alone need less."""
    if name not in _LATE:
        raise AttributeError(f"module 'fmilin.native.mechanism' has no attribute '{name}'")
    return getattr(import_module(f"fmilin.native.mechanism.{_LATE[name]}"), name)
