"""Bodies, joints and loops: closed-chain mechanisms with an exact recursive linearization.

Spencer (thesis), chapter 4 and appendices A and B.
"""

from typing import TYPE_CHECKING

from fmilin.ground.import_paths import lazily
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

__getattr__, *_ = lazily(
    __name__, {"model": ("Mechanism",), "motions": ("MovedMechanism",), "assembly": ("Assembly", "assemble")}
)
