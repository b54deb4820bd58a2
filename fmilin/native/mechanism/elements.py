"""What acts on a mechanism and what is measured: wheels and skates, springs, inputs, sensors. All units are SI."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from fmilin.ground.errors import ModelError
from fmilin.native.mechanism.parts import QUANTITIES, Quantity, check_name, check_nominal, check_type, unit
from fmilin.native.mechanism.placement import Vector, vector

__all__ = [
    "Coupling",
    "Force",
    "JointForce",
    "LineForce",
    "Marker",
    "PointSpring",
    "Sensor",
    "Skate",
    "Torque",
    "Wheel",
]

ZERO = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Coupling:
    """Holds the coordinates of two joints with one freedom together: q = offset + ratio q_leader.

    A gear, a belt, or a finger that mimics another one; with ``powers`` a cam. One constraint on positions.
    """

    name: str
    # joint, leader: the joint that follows, and the one that it follows; without a leader it is held at the offset
    joint: str
    leader: str = ""
    ratio: float = 1.0  # without unit, or in m/rad or rad/m
    offset: float = 0.0  # in rad or m
    powers: Sequence[float] = ()  # factors of q_leader^2, q_leader^3, ..., added to the offset and the ratio

    def __post_init__(self) -> None:
        check_name(self.name, "coupling")
        if self.joint == self.leader:
            raise ModelError(f"The coupling '{self.name}' couples the joint '{self.joint}' with itself.")
        for what in ("ratio", "offset"):
            if not np.isfinite(getattr(self, what)):
                raise ModelError(f"'{what}' of the coupling '{self.name}' must be a finite number.")
        object.__setattr__(self, "powers", tuple(float(p) for p in self.powers))
        if not np.isfinite(self.powers).all():
            raise ModelError(f"'powers' of the coupling '{self.name}' must be finite numbers.")
        if self.powers and not self.leader:
            raise ModelError(f"The coupling '{self.name}' has 'powers' but no leader of which they could be.")


@dataclass(frozen=True)
class Wheel:
    """Rolling without slip on a plane of the ground: a disk, a torus (a tyre) or a ball.

    The lowest point of the body touches the plane (a constraint on positions) and does not slide in it (two
    nonholonomic ones).
    """

    name: str
    body: str
    center: Vector = ZERO  # the wheel's centre, in the body's frame, in m
    axis: Vector = (0.0, 1.0, 0.0)  # the axle, in the body's frame
    radius: float = 0.0  # from the axle to the middle of the tyre, in m; 0 for a ball
    tube: float = 0.0  # radius of the tyre's section, or of the ball, in m; 0 for a thin disk
    # point, normal: of the plane, in the ground's frame; the normal points to the wheel's side
    point: Vector = ZERO
    normal: Vector = (0.0, 0.0, 1.0)

    def __post_init__(self) -> None:
        check_name(self.name, "wheel")
        where = f"the wheel '{self.name}'"
        for what in ("center", "point"):
            object.__setattr__(self, what, vector(getattr(self, what), f"'{what}' of {where}"))
        for what in ("axis", "normal"):
            object.__setattr__(self, what, unit(getattr(self, what), f"'{what}' of {where}"))
        if not (self.radius >= 0 and self.tube >= 0 and 0 < self.radius + self.tube < np.inf):
            raise ModelError(f"A radius of {where} is negative, or both are zero: one must be positive.")


@dataclass(frozen=True)
class Skate:
    """A point of a body that cannot move along a direction fixed in the body: a knife edge, an idealized wheel.

    One nonholonomic constraint.
    """

    name: str
    body: str
    point: Vector = ZERO  # in the body's frame
    direction: Vector = (0.0, 1.0, 0.0)  # in the body's frame

    def __post_init__(self) -> None:
        check_name(self.name, "skate")
        object.__setattr__(self, "point", vector(self.point, f"The point of the skate '{self.name}'"))
        object.__setattr__(self, "direction", unit(self.direction, f"The direction of the skate '{self.name}'"))


@dataclass(frozen=True)
class Marker:
    """A point of a body with a name: its place is among the outputs, and it can be held as a foot on the ground."""

    name: str
    body: str
    point: Vector = ZERO  # in the body's frame, in m
    friction: float | None = None  # coefficient of sliding friction of a foot there

    def __post_init__(self) -> None:
        check_name(self.name, "marker")
        object.__setattr__(self, "point", vector(self.point, f"The point of the marker '{self.name}'"))
        if self.friction is not None and not (np.isfinite(self.friction) and self.friction >= 0):
            raise ModelError(f"The friction of the marker '{self.name}' must not be negative, and is {self.friction}.")


@dataclass(frozen=True)
class PointSpring:
    """A spring and a damper along the line between points of two bodies.

    They pull with the force stiffness (L - length) + damping L', L the distance of the points.
    """

    name: str
    # first, second: bodies; one may be the ground
    first: str
    second: str
    # first_point, second_point: in the frames of the bodies, in m
    first_point: Vector = ZERO
    second_point: Vector = ZERO
    stiffness: float = 0.0  # in N/m
    length: float = 0.0  # without force, in m
    damping: float = 0.0  # in N s/m

    def __post_init__(self) -> None:
        check_name(self.name, "spring")
        for what in ("first_point", "second_point"):
            object.__setattr__(self, what, vector(getattr(self, what), f"'{what}' of the spring '{self.name}'"))
        for what in ("stiffness", "length", "damping"):
            if not np.isfinite(getattr(self, what)):
                raise ModelError(f"'{what}' of the spring '{self.name}' must be a finite number.")
        if self.length < 0:
            raise ModelError(f"The free length of the spring '{self.name}' is negative.")


@dataclass(frozen=True)
class JointForce:
    """An input: a force or torque on one coordinate of a joint."""

    name: str  # of the input
    joint: str
    coordinate: int = 0  # which speed of the joint it drives, from 0
    start: float = 0.0  # initial value, in N or N m
    nominal: float | None = None  # typical size: what searches and errors measure it in

    def __post_init__(self) -> None:
        check_name(self.name, "force")
        check_nominal(self.nominal, f"the force '{self.name}'")


@dataclass(frozen=True)
class Force:
    """An input: a force at a point of a body."""

    name: str  # of the input, in N
    body: str
    point: Vector = ZERO  # in the body's frame
    direction: Vector = (1.0, 0.0, 0.0)
    frame: Literal["ground", "body"] = "ground"  # where the direction is fixed
    start: float = 0.0  # as for :class:`JointForce`
    nominal: float | None = None  # as for :class:`JointForce`

    def __post_init__(self) -> None:
        check_name(self.name, "force")
        check_nominal(self.nominal, f"the force '{self.name}'")
        object.__setattr__(self, "point", vector(self.point, f"The point of the force '{self.name}'"))
        object.__setattr__(self, "direction", unit(self.direction, f"The direction of the force '{self.name}'"))
        check_type(self.frame, ("ground", "body"), f"the force '{self.name}'", "frame")


@dataclass(frozen=True)
class Torque:
    """An input: a torque on a body; as :class:`Force`, in N m, without a point."""

    name: str
    body: str
    direction: Vector = (0.0, 0.0, 1.0)
    frame: Literal["ground", "body"] = "ground"
    start: float = 0.0
    nominal: float | None = None

    def __post_init__(self) -> None:
        check_name(self.name, "torque")
        check_nominal(self.nominal, f"the torque '{self.name}'")
        object.__setattr__(self, "direction", unit(self.direction, f"The direction of the torque '{self.name}'"))
        check_type(self.frame, ("ground", "body"), f"the torque '{self.name}'", "frame")


@dataclass(frozen=True)
class LineForce:
    """An input: a force along the line between points of two bodies, positive when it pushes them apart (cylinder)."""

    name: str  # of the input, in N
    # first, second: bodies; one may be the ground
    first: str
    second: str
    first_point: Vector = ZERO
    second_point: Vector = ZERO
    start: float = 0.0  # as for :class:`JointForce`
    nominal: float | None = None  # as for :class:`JointForce`

    def __post_init__(self) -> None:
        check_name(self.name, "force")
        check_nominal(self.nominal, f"the force '{self.name}'")
        for what in ("first_point", "second_point"):
            object.__setattr__(self, what, vector(getattr(self, what), f"'{what}' of the force '{self.name}'"))


@dataclass(frozen=True)
class Sensor:
    """An output.

    quantity: of a body: ``position``, ``velocity``, ``acceleration`` of a ``point`` along an ``axis`` of the ground;
        ``accelerometer``, along an axis of the body: acceleration minus gravity, what such a sensor shows;
        ``specific_force``, the same along an axis of the ground; ``velocimeter``, velocity along an axis of the body;
        ``angular_velocity``, ``angular_acceleration`` about an axis of the ground; ``gyroscope``, angular velocity
        about an axis of the body; ``direction``: the component along ``axis`` (ground) of ``pointer``, a unit vector of
        the body. ``orientation``: one ``coordinate`` of the unit quaternion of the body, its real part being number 0;
        its sign is continuous. Of a joint: ``joint_position``, ``joint_velocity``, ``joint_acceleration`` and
        ``joint_force`` (of spring, damper, inputs and tendons) and ``joint_drive`` (of actuators) of one
        ``coordinate``. Of a spring, tendon, line force or actuator: ``distance`` of its points, its length, and
        ``distance_rate``. Of an actuator: ``actuator_force``. Of a loop, wheel or skate: ``reaction``, the multiplier
        of its constraint number ``coordinate``. Of a spherical or fixed loop from the ground: ``contact``, the force on
        its second body along the axes of the loop's frame on the ground (``coordinate`` 0 to 2), and of a fixed one the
        torque about its origin (3 to 5). Of the whole: ``kinetic_energy``, ``potential_energy`` and ``energy``, in J.
    """

    name: str  # of the output
    quantity: Quantity
    of: str = ""  # name of the body, joint, spring, line force, loop, wheel or skate; empty for the whole
    point: Vector = ZERO  # in the body's frame
    axis: Vector = (1.0, 0.0, 0.0)
    pointer: Vector = (1.0, 0.0, 0.0)
    coordinate: int = 0  # from 0
    factor: float = 1.0  # what the quantity is multiplied with

    def __post_init__(self) -> None:
        check_name(self.name, "sensor")
        where = f"the sensor '{self.name}'"
        check_type(self.quantity, QUANTITIES, where, "quantity")
        object.__setattr__(self, "point", vector(self.point, f"The point of {where}"))
        object.__setattr__(self, "axis", unit(self.axis, f"The axis of {where}"))
        object.__setattr__(self, "pointer", unit(self.pointer, f"The pointer of {where}"))
        if not isinstance(self.coordinate, int) or self.coordinate < 0:
            raise ModelError(f"The coordinate of {where} must be 0, 1, .., not {self.coordinate!r}.")
        if not np.isfinite(self.factor):
            raise ModelError(f"The factor of {where} must be a finite number.")
        if self.quantity == "orientation" and self.coordinate > 3:
            raise ModelError(f"The coordinate of {where} must be 0, 1, 2 or 3: a quaternion has four.")

    @classmethod
    def three(cls, name: str, quantity: Quantity, of: str, point: Any = ZERO) -> tuple[Sensor, Sensor, Sensor]:
        """Return sensors ``name.x``, ``name.y``, ``name.z`` along the three axes."""
        x, y, z = (
            replace(cls(f"{name}.{c}", quantity, of, point), axis=axis)
            for c, axis in zip("xyz", ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)), strict=True)
        )
        return x, y, z
