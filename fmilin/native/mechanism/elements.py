"""What acts on a mechanism and what is measured: wheels, springs, tendons, inputs, sensors. All units are SI."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from fmilin.ground.errors import ModelError
from fmilin.native.mechanism.parts import QUANTITIES, Quantity, check_finite, check_name, check_type, check_vectors
from fmilin.native.mechanism.placement import ORIGIN, Placement, Vector, vector

ZERO = (0.0, 0.0, 0.0)
VECTORS = {
    "position": ("p", "m"),
    "velocity": ("v", "m/s"),
    "acceleration": ("a", "m/s2"),
    "accelerometer": ("f", "m/s2"),
    "specific_force": ("f", "m/s2"),
    "velocimeter": ("v", "m/s"),
    "direction": ("e", "1"),
    "angular_velocity": ("w", "rad/s"),
    "gyroscope": ("w", "rad/s"),
    "angular_acceleration": ("alpha", "rad/s2"),
}
"""Sensors of bodies that are components of a vector: which one, and their units."""


@dataclass(frozen=True)
class Coupling:
    """Holds q = offset + ratio q_leader of two joints: a gear, a belt or a mimic finger; with ``powers`` a cam.

    With further ``leaders`` it holds q = offset + ratio q_leader + sum ratios_k q_k: a planetary gear by Willis'
    equation, (w_sun - w_carrier) z_sun = -(w_ring - w_carrier) z_ring, or a differential.

    >>> sun, ring = 20, 60  # numbers of teeth; the carrier follows both
    >>> Coupling("planets", "carrier", "sun", sun / (sun + ring), leaders=["ring"], ratios=[ring / (sun + ring)]).ratios
    (0.75,)
    """

    name: str
    # joint, leader: the joint that follows, and the one that it follows; without a leader it is held at the offset
    joint: str
    leader: str = ""
    ratio: float = 1.0  # without unit, or in m/rad or rad/m
    offset: float = 0.0  # in rad or m
    powers: Sequence[float] = ()  # factors of q_leader^2, q_leader^3, ..., added to the offset and the ratio
    leaders: Sequence[str] = ()  # further joints that it follows, with one of the ``ratios`` each
    ratios: Sequence[float] = ()

    def __post_init__(self) -> None:
        where = check_name(self, "coupling")
        object.__setattr__(self, "leaders", tuple(self.leaders))
        if self.joint in self.followed:
            raise ModelError(f"The coupling '{self.name}' couples the joint '{self.joint}' with itself.")
        if len(set(self.followed)) < len(self.followed):
            raise ModelError(f"The coupling '{self.name}' follows a joint twice: add its ratios up.")
        if self.leaders and not self.leader:
            raise ModelError(f"The coupling '{self.name}' has further 'leaders' but no first 'leader'.")
        object.__setattr__(self, "ratios", numbers(self.ratios, len(self.leaders), f"'ratios' of {where}"))
        check_finite(self, where, "ratio", "offset")
        object.__setattr__(self, "powers", tuple(float(p) for p in self.powers))
        if not np.isfinite(self.powers).all():
            raise ModelError(f"'powers' of {where} must be finite numbers.")
        if self.powers and not self.leader:
            raise ModelError(f"The coupling '{self.name}' has 'powers' but no leader of which they could be.")

    @property
    def followed(self) -> tuple[str, ...]:
        """All joints that it follows."""
        return (*([self.leader] if self.leader else ()), *self.leaders)


@dataclass(frozen=True)
class Wheel:
    """A disk, torus or ball that touches a plane (one constraint on positions) and does not slip (two nonholonomic)."""

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
        where = check_name(self, "wheel")
        check_vectors(self, where, "center", "point", "axis", "normal", quoted=True)
        if not (self.radius >= 0 and self.tube >= 0 and 0 < self.radius + self.tube < np.inf):
            raise ModelError(f"A radius of {where} is negative, or both are zero: one must be positive.")


@dataclass(frozen=True)
class Skate:
    """A point that cannot move along a direction fixed in its body (a knife edge): one nonholonomic constraint."""

    name: str
    body: str
    point: Vector = ZERO  # in the body's frame
    direction: Vector = (0.0, 1.0, 0.0)  # in the body's frame

    def __post_init__(self) -> None:
        check_vectors(self, check_name(self, "skate"), "point", "direction")


@dataclass(frozen=True)
class Marker:
    """A point of a body with a name: its place is among the outputs, and it can be held as a foot on the ground."""

    name: str
    body: str
    point: Vector = ZERO  # in the body's frame, in m
    friction: float | None = None  # coefficient of sliding friction of a foot there

    def __post_init__(self) -> None:
        where = check_name(self, "marker")
        check_vectors(self, where, "point")
        if self.friction is not None and not (np.isfinite(self.friction) and self.friction >= 0):
            raise ModelError(f"The friction of {where} must not be negative, and is {self.friction}.")


@dataclass(frozen=True)
class PointSpring:
    """A spring and damper between points of two bodies, a distance L apart: stiffness (L - length) + damping L'."""

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
        where = check_name(self, "spring")
        check_vectors(self, where, "first_point", "second_point", quoted=True)
        check_finite(self, where, "stiffness", "length", "damping")
        if self.length < 0:
            raise ModelError(f"The free length of {where} is negative.")


@dataclass(frozen=True)
class JointForce:
    """An input: a force or torque on one coordinate of a joint."""

    name: str  # of the input
    joint: str
    coordinate: int = 0  # which speed of the joint it drives, from 0
    start: float = 0.0  # initial value, in N or N m
    nominal: float | None = None  # typical size: what searches and errors measure it in

    def __post_init__(self) -> None:
        check_name(self, "force")


@dataclass(frozen=True)
class Motion:
    """An input: the position of a joint with one freedom, which has no states; ``NAME.v``, ``NAME.a`` are its rates."""

    name: str  # of the input, in m or rad
    joint: str
    start: float = 0.0  # initial position, velocity and acceleration of the joint
    velocity: float = 0.0
    acceleration: float = 0.0
    nominal: float | None = None  # typical size of the motion

    def __post_init__(self) -> None:
        check_finite(self, check_name(self, "motion"), "start", "velocity", "acceleration")


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
        where = check_name(self, "force")
        check_vectors(self, where, "point", "direction")
        check_type(self.frame, ("ground", "body"), where, "frame")


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
        where = check_name(self, "torque")
        check_vectors(self, where, "direction")
        check_type(self.frame, ("ground", "body"), where, "frame")


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
        check_vectors(self, check_name(self, "force"), "first_point", "second_point", quoted=True)


@dataclass(frozen=True)
class Sensor:
    """An output: a quantity of a body, a joint, an element or the whole; ``docs/mechanism.md`` has a table of them."""

    name: str  # of the output
    quantity: Quantity
    of: str = ""  # name of the body, joint, spring, line force, loop, wheel or skate; empty for the whole
    point: Vector = ZERO  # in the body's frame
    axis: Vector = (1.0, 0.0, 0.0)
    pointer: Vector = (1.0, 0.0, 0.0)
    coordinate: int = 0  # from 0
    factor: float = 1.0  # what the quantity is multiplied with

    def __post_init__(self) -> None:
        where = check_name(self, "sensor")
        check_type(self.quantity, QUANTITIES, where, "quantity")
        check_vectors(self, where, "point", "axis", "pointer")
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


ActuatorDynamics = Literal["none", "integrator", "filter"]
ACTUATOR_DYNAMICS = ActuatorDynamics.__args__  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Tendon:
    """A length over joints, L = sum factor q, or along points, that pulls with stiffness (L - rest) + damping L'."""

    name: str
    joints: Sequence[str] = ()  # joints with one freedom each, for a tendon over joints
    factors: Sequence[float] = ()  # one for each joint, in m/rad or without unit
    # for a tendon along points: the bodies that it is attached to, in order; the ground may be one
    bodies: Sequence[str] = ()
    points: Sequence[Vector] = ()  # 3 floats each, where, in the frames of the bodies
    # how much each stretch between neighbouring points counts: 1 when left out, 0 where the tendon does not run, 1/2
    # behind a loose pulley
    weights: Sequence[float] = ()
    stiffness: float = 0.0  # in N/m
    damping: float = 0.0  # in N s/m
    rest: Any = 0.0  # length without force, in m; or the range in which the spring is slack

    def __post_init__(self) -> None:
        where = check_name(self, "tendon")
        set_ = object.__setattr__
        set_(self, "joints", tuple(self.joints))
        set_(self, "bodies", tuple(self.bodies))
        set_(self, "points", tuple(vector(p, f"A point of {where}") for p in self.points))
        if bool(self.joints) == bool(self.bodies):
            raise ModelError(f"{_start(where)} runs over 'joints' or along points of 'bodies': give one of the two.")
        factors = numbers(self.factors, len(self.joints), f"'factors' of {where}")
        stretches = max(len(self.bodies) - 1, 0)
        if self.bodies and (not stretches or len(self.points) != len(self.bodies)):
            raise ModelError(f"{_start(where)} needs a point on each of its bodies, and two of them at least.")
        weights = numbers(self.weights or (1.0,) * stretches, stretches, f"'weights' of {where}")
        set_(self, "factors", factors)
        set_(self, "weights", weights)
        rest = (self.rest, self.rest) if np.ndim(self.rest) == 0 else self.rest
        set_(self, "rest", numbers(rest, 2, f"'rest' of {where}"))
        if self.rest[0] > self.rest[1]:
            raise ModelError(f"The range 'rest' of {where} ends before it begins.")
        for what in ("stiffness", "damping"):
            numbers((getattr(self, what),), 1, f"'{what}' of {where}")


@dataclass(frozen=True)
class Actuator:
    """An input that drives a joint, a tendon or a body, with a law of its own: a motor, a servo, a filter before it.

    With the length L and the rate L' of what it drives (balls and wrenches have no length), times its gear, its
    force is (gain_0 + gain_1 L + gain_2 L') w + bias_0 + bias_1 L + bias_2 L', where w is its control, or its
    activation a: ``integrator`` a' = control, ``filter`` a' = (control - a) / time_constant. A position servo has
    gain (kp, 0, 0) and bias (0, -kp, -kv).
    """

    name: str  # of the input
    # joint, tendon, body: one of them: what it drives
    joint: str = ""
    tendon: str = ""
    body: str = ""
    # of a tendon one number; of a joint one for each of its speeds, one being enough for the first; of a body six,
    # force and torque in the frame ``placement``
    gear: Any = 1.0
    placement: Placement = ORIGIN  # on a body: where the wrench acts, and in which axes
    gain: Any = (1.0, 0.0, 0.0)  # 3 floats
    bias: Any = (0.0, 0.0, 0.0)  # 3 floats
    dynamics: ActuatorDynamics = "none"
    time_constant: float = 0.0  # of a filter, in s
    # control_limits, force_limits: 2 floats, the control and the force go no further; at a limit linear models are
    # those of its inner side
    control_limits: Any = ()
    force_limits: Any = ()
    # start, activation: initial values of the control and of the activation
    start: float = 0.0
    activation: float = 0.0
    nominal: float | None = None  # typical size of the control

    def __post_init__(self) -> None:
        where = check_name(self, "actuator")
        if sum(bool(part) for part in (self.joint, self.tendon, self.body)) != 1:
            raise ModelError(f"{_start(where)} drives a 'joint', a 'tendon' or a 'body': give one of the three.")
        check_type(self.dynamics, ACTUATOR_DYNAMICS, where, "dynamics")
        if self.dynamics == "filter" and not (np.isfinite(self.time_constant) and self.time_constant > 0):
            raise ModelError(f"The time constant of {where} must be positive, as that of every filter.")
        gear = (self.gear,) if np.ndim(self.gear) == 0 else self.gear
        object.__setattr__(self, "gear", numbers(gear, None, f"'gear' of {where}"))
        if self.body and len(self.gear) != 6:
            raise ModelError(f"{_start(where)} drives a body and needs six numbers in 'gear': a force and a torque.")
        if self.tendon and len(self.gear) != 1:
            raise ModelError(f"{_start(where)} drives a tendon and needs one number in 'gear'.")
        for what in ("gain", "bias"):
            object.__setattr__(self, what, numbers(getattr(self, what), 3, f"'{what}' of {where}"))
        if self.body and (self.gain[1] or self.bias[1]):
            raise ModelError(f"{_start(where)} drives a body, which has no length: gain and bias cannot depend on it.")
        for what in ("control_limits", "force_limits"):
            limits = getattr(self, what)
            if len(limits):
                limits = numbers(limits, 2, f"'{what}' of {where}", finite=False)
                if not limits[0] <= limits[1]:
                    raise ModelError(f"'{what}' of {where} end before they begin.")
            object.__setattr__(self, what, tuple(limits))
        for what in ("start", "activation"):
            numbers((getattr(self, what),), 1, f"'{what}' of {where}")


def numbers(given: Any, count: int | None, what: str, *, finite: bool = True) -> tuple[float, ...]:
    """Return numbers as a tuple."""
    try:
        values = np.array(given, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        values = np.full(1, np.nan)
    right = np.isfinite(values) if finite else ~np.isnan(values)
    if (count is not None and len(values) != count) or not right.all() or not len(values) + (count == 0):
        raise ModelError(f"{_start(what)} must be {count or 'finite'} numbers, not {given!r}.")
    return tuple(values.tolist())


def _start(where: str) -> str:
    return where[0].upper() + where[1:]
