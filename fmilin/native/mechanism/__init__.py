"""Bodies, joints and loops: closed-chain mechanisms with an exact recursive linearization.

Spencer (thesis), chapter 4 and appendices A and B.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fmilin.native.mechanism.bushings import Bushing
from fmilin.native.mechanism.description import MechanismDescription
from fmilin.native.mechanism.elements import (
    Actuator,
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
from fmilin.native.mechanism.parts import Body, Joint, Loop
from fmilin.native.mechanism.placement import Placement

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


def __getattr__(name: str) -> Any:
    """Import the model and the assembly when they are first used: descriptions alone need less."""
    if name == "Mechanism":
        from fmilin.native.mechanism.model import Mechanism

        return Mechanism
    if name == "MovedMechanism":
        from fmilin.native.mechanism.motions import MovedMechanism

        return MovedMechanism
    if name in ("Assembly", "assemble"):
        from fmilin.native.mechanism import assembly

        return getattr(assembly, name)
    raise AttributeError(f"module 'fmilin.native.mechanism' has no attribute '{name}'")
