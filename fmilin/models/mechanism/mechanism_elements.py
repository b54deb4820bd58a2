"""Elements that act on a mechanism or measure it: wheels, springs, tendons, inputs, sensors. All units are SI."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np

from fmilin.errors import ModelError
from fmilin.models.mechanism.part import (
    ORIGIN,
    Limits,
    Part,
    PerCoordinate,
    Placement,
    SixAxes,
    Three,
    Vector,
    limits,
    numbers,
    symmetric,
    vector,
)

Quantity = Literal[
    "position",
    "velocity",
    "acceleration",
    "accelerometer",
    "specific_force",
    "velocimeter",
    "direction",
    "angular_velocity",
    "angular_acceleration",
    "gyroscope",
    "orientation",
    "joint_position",
    "joint_velocity",
    "joint_acceleration",
    "joint_force",
    "joint_drive",
    "distance",
    "distance_rate",
    "actuator_force",
    "reaction",
    "contact",
    "kinetic_energy",
    "potential_energy",
    "energy",
]
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

NOMINAL = "Typical size, positive: the unit of searches and errors."
DELAY = "Dead time before it acts, in s."


@dataclass(frozen=True)
class Coupling(Part, kind="coupling"):
    """Holds q = offset + ratio q_leader of two joints: a gear, a belt or a mimic finger; with ``powers`` a cam.

    With further ``leaders`` it holds q = offset + ratio q_leader + sum ratios_k q_k: a planetary gear by Willis'
    equation, (w_sun - w_carrier) z_sun = -(w_ring - w_carrier) z_ring, or a differential.

    >>> sun, ring = 20, 60  # numbers of teeth; the carrier follows both
    >>> Coupling("planets", "carrier", "sun", sun / (sun + ring), leaders=["ring"], ratios=[ring / (sun + ring)]).ratios
    (0.75,)
    """

    joint: Annotated[str, "The joint that follows."]
    leader: Annotated[str, "The joint that it follows; without one it is fixed at the offset."] = ""
    ratio: Annotated[float, "Without unit, or in m/rad or rad/m."] = 1.0
    offset: Annotated[float, "In rad or m."] = 0.0
    powers: Annotated[Sequence[float], "Factors of q_leader^2, q_leader^3, ..., for cams."] = ()
    leaders: Annotated[Sequence[str], "Further joints that it follows: planetary gears, differentials."] = ()
    ratios: Annotated[Sequence[float], "One for each of them: q = offset + ratio q_leader + sum ratios q."] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.joint in self.followed:
            raise ModelError(
                f"The coupling '{self.name}' couples the joint '{self.joint}' with itself. Choose another joint as "
                "leader."
            )
        if len(set(self.followed)) < len(self.followed):
            raise ModelError(f"The coupling '{self.name}' follows a joint twice: add its ratios up.")
        if self.leaders and not self.leader:
            raise ModelError(f"The coupling '{self.name}' has further 'leaders' but no first 'leader'.")
        self._set("ratios", numbers(self.ratios, len(self.leaders), f"'ratios' of {self.where}"))
        self._set("powers", numbers(self.powers, len(self.powers), f"'powers' of {self.where}"))
        if self.powers and not self.leader:
            raise ModelError(f"The coupling '{self.name}' has 'powers' but no leader to which they apply.")

    @property
    def followed(self) -> tuple[str, ...]:
        """All joints that it follows."""
        return (*([self.leader] if self.leader else ()), *self.leaders)


@dataclass(frozen=True)
class Wheel(Part, kind="wheel"):
    """A disk, torus or ball that touches a plane (one constraint on positions) and does not slip (two nonholonomic)."""

    body: Annotated[str, "The body that rolls."]
    center: Annotated[Vector, "Centre of the wheel, in the body's frame, in m."] = ZERO
    axis: Annotated[Vector, "The axle, in the body's frame."] = (0.0, 1.0, 0.0)
    radius: Annotated[float, "From the axle to the middle of the tyre, in m; 0 for a ball."] = 0.0
    tube: Annotated[float, "Radius of the tyre's section or of the ball, in m; 0 for a thin disk."] = 0.0
    point: Annotated[Vector, "A point of the plane, in the ground's frame, in m."] = ZERO
    normal: Annotated[Vector, "Normal of the plane, towards the wheel."] = (0.0, 0.0, 1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.radius >= 0 and self.tube >= 0 and self.radius + self.tube > 0):
            raise ModelError(f"The radii of {self.where} must not be negative, and one must be positive.")


@dataclass(frozen=True)
class Skate(Part, kind="skate"):
    """A point that cannot move along a direction fixed in its body (a knife edge): one nonholonomic constraint."""

    body: Annotated[str, "The body."]
    point: Annotated[Vector, "In the body's frame, in m."] = ZERO
    direction: Annotated[Vector, "In the body's frame."] = (0.0, 1.0, 0.0)
    frame: Annotated[str, "Another body; both are in its frame, for example in one at a contact."] = ""


@dataclass(frozen=True)
class Marker(Part, kind="marker"):
    """A point of a body with a name: `NAME.x` and the like are outputs; the option `hold` holds it as a foot."""

    body: Annotated[str, "The body."]
    point: Annotated[Vector, "In the body's frame, in m."] = ZERO
    friction: Annotated[float | None, "Coefficient of sliding friction of a foot there."] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.friction is not None and self.friction < 0:
            raise ModelError(f"The friction of {self.where} must not be negative, and is {self.friction}.")


@dataclass(frozen=True)
class PointSpring(Part, kind="spring"):
    """A spring and damper between points of two bodies, a distance L apart: stiffness (L - length) + damping L'."""

    first: Annotated[str, "A body, or the ground."]
    second: Annotated[str, "A body, or the ground."]
    first_point: Annotated[Vector, "In the frame of this body, in m."] = ZERO
    second_point: Annotated[Vector, "In the frame of this body, in m."] = ZERO
    stiffness: Annotated[float, "In N/m."] = 0.0
    length: Annotated[float, "Without force, in m."] = 0.0
    damping: Annotated[float, "In N s/m."] = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.length < 0:
            raise ModelError(f"The free length of {self.where} must not be negative. Give 0 or more.")


@dataclass(frozen=True)
class Bushing(Part, kind="bushing"):
    """A spring and a damper in all six directions between frames on two bodies, without force where both coincide.

    >>> mount = Bushing("mount", "ground", "engine", stiffness=(2e5, 2e5, 4e5, 900, 900, 500), damping=np.eye(6))
    >>> np.array(mount.stiffness).shape
    (6, 6)
    """

    first: Annotated[str, "A body, or the ground."]
    second: Annotated[str, "A body, or the ground."]
    first_placement: Annotated[Placement, "The bushing's frame on this body."] = ORIGIN
    second_placement: Annotated[Placement, "The bushing's frame on this body."] = ORIGIN
    # force then torque by deflection then rotation, in N/m, N/rad, N m/rad, ...
    stiffness: Annotated[
        SixAxes,
        "Along and about x, y, z of the first frame, in N/m and N m/rad: 6 numbers, or 6 rows of 6 (symmetric). "
        "Rotations count as sin(angle) times their axis.",
    ] = (0.0,) * 6
    damping: Annotated[SixAxes, "The same in N s/m and N m s/rad."] = (0.0,) * 6

    def __post_init__(self) -> None:
        super().__post_init__()
        for what in ("stiffness", "damping"):
            matrix = symmetric(getattr(self, what), 6, f"The {what} of {self.where}")
            self._set(what, tuple(tuple(row) for row in matrix.tolist()))


@dataclass(frozen=True)
class JointForce(Part, kind="joint force"):
    """An input: a force or torque on one coordinate of a joint."""

    joint: Annotated[str, "The joint."]
    coordinate: Annotated[int, "Which speed of the joint it drives, from 0."] = 0
    start: Annotated[float, "Initial value, in N or N m."] = 0.0
    nominal: Annotated[float | None, NOMINAL] = None
    delay: Annotated[float, DELAY] = 0.0


@dataclass(frozen=True)
class Motion(Part, kind="motion"):
    """An input: the position of a joint with one degree of freedom, without states; its rates: `NAME.v`, `NAME.a`."""

    joint: Annotated[str, "The joint."]
    start: Annotated[float, "Initial value, in m or rad."] = 0.0
    velocity: Annotated[float, "Initial value of `NAME.v`, in m/s or rad/s."] = 0.0
    acceleration: Annotated[float, "Initial value of `NAME.a`, in m/s2 or rad/s2."] = 0.0
    nominal: Annotated[float | None, NOMINAL] = None


@dataclass(frozen=True)
class Force(Part, kind="force"):
    """An input: a force at a point of a body."""

    body: Annotated[str, "The body."]
    point: Annotated[Vector, "In the body's frame, in m."] = ZERO
    direction: Annotated[Vector, "Of any length but zero."] = (1.0, 0.0, 0.0)
    frame: Annotated[Literal["ground", "body"], "Where the direction is fixed."] = "ground"
    start: Annotated[float, "Initial value, in N."] = 0.0
    nominal: Annotated[float | None, NOMINAL] = None
    delay: Annotated[float, DELAY] = 0.0


@dataclass(frozen=True)
class Torque(Part, kind="torque"):
    """An input: a torque on a body."""

    body: Annotated[str, "The body."]
    direction: Annotated[Vector, "Of any length but zero."] = (0.0, 0.0, 1.0)
    frame: Annotated[Literal["ground", "body"], "Where the direction is fixed."] = "ground"
    start: Annotated[float, "Initial value, in N m."] = 0.0
    nominal: Annotated[float | None, NOMINAL] = None
    delay: Annotated[float, DELAY] = 0.0


@dataclass(frozen=True)
class LineForce(Part, kind="line force"):
    """An input: a force along the line between points of two bodies, positive when it pushes them apart (cylinder)."""

    first: Annotated[str, "A body, or the ground."]
    second: Annotated[str, "A body, or the ground."]
    first_point: Annotated[Vector, "In the frame of this body, in m."] = ZERO
    second_point: Annotated[Vector, "In the frame of this body, in m."] = ZERO
    start: Annotated[float, "Initial value, in N."] = 0.0
    nominal: Annotated[float | None, NOMINAL] = None
    delay: Annotated[float, DELAY] = 0.0


@dataclass(frozen=True)
class Sensor(Part, kind="sensor"):
    """An output: a quantity of a body, a joint, an element or the whole."""

    name: Annotated[str, "Name of the output."]
    quantity: Annotated[Quantity, "The measured quantity."]
    of: Annotated[
        str, "The body, joint, spring, tendon, line force, actuator, loop, wheel or skate; empty for the whole."
    ] = ""
    point: Annotated[Vector, "In the body's frame, in m."] = ZERO
    axis: Annotated[Vector, "In the ground (accelerometer, velocimeter, gyroscope: in the body)."] = (1.0, 0.0, 0.0)
    pointer: Annotated[Vector, "`direction` only: the vector of the body to be measured."] = (1.0, 0.0, 0.0)
    coordinate: Annotated[int, "Of a joint (which speed), a reaction (which constraint) or a quaternion, from 0."] = 0
    factor: Annotated[float, "Factor of the quantity."] = 1.0
    limits: Annotated[Limits, "The range of the sensor: its output is limited to it."] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("limits", limits(self.limits, f"'limits' of {self.where}"))
        if not isinstance(self.coordinate, int) or self.coordinate < 0:
            raise ModelError(f"The coordinate of {self.where} must be 0, 1, .., not {self.coordinate!r}.")
        if self.quantity == "orientation" and self.coordinate > 3:
            raise ModelError(f"The coordinate of {self.where} must be 0, 1, 2 or 3: a quaternion has four.")

    @classmethod
    def three(cls, name: str, quantity: Quantity, of: str, point: Vector = ZERO) -> tuple[Sensor, Sensor, Sensor]:
        """Return sensors ``name.x``, ``name.y``, ``name.z`` along the three axes."""
        x, y, z = (
            replace(cls(f"{name}.{c}", quantity, of, point), axis=axis)
            for c, axis in zip("xyz", ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)), strict=True)
        )
        return x, y, z


@dataclass(frozen=True)
class Tendon(Part, kind="tendon"):
    """A length over joints, L = sum factor q, or along points, that pulls with stiffness (L - rest) + damping L'."""

    joints: Annotated[Sequence[str], "Over joints: the joints on its path, each with one degree of freedom."] = ()
    factors: Annotated[Sequence[float], "Over joints: L = sum factor q, in m/rad or without unit."] = ()
    bodies: Annotated[Sequence[str], "Along points: the bodies that it is attached to, in order."] = ()
    points: Annotated[Sequence[Vector], "Along points: where, in the frames of the bodies, in m."] = ()
    weights: Annotated[
        Sequence[float],
        "Along points: weight of each segment; 1 when left out, 0 where it does not run, 1/2 behind a loose pulley.",
    ] = ()
    stiffness: Annotated[float, "In N/m."] = 0.0
    damping: Annotated[float, "In N s/m."] = 0.0
    rest: Annotated[PerCoordinate, "Length without force, in m; or two lengths between which it is slack."] = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("points", tuple(vector(p, f"A point of {self.where}") for p in self.points))
        if bool(self.joints) == bool(self.bodies):
            raise ModelError(
                f"The tendon '{self.name}' runs over 'joints' or along points of 'bodies': give one of the two."
            )
        self._set("factors", numbers(self.factors, len(self.joints), f"'factors' of {self.where}"))
        stretches = max(len(self.bodies) - 1, 0)
        if self.bodies and (not stretches or len(self.points) != len(self.bodies)):
            raise ModelError(f"The tendon '{self.name}' needs a point on each of its bodies, and two of them at least.")
        weights = self.weights or (1.0,) * stretches
        self._set("weights", numbers(weights, stretches, f"'weights' of {self.where}"))
        rest = (self.rest, self.rest) if np.ndim(self.rest) == 0 else self.rest
        self._set("rest", numbers(rest, 2, f"'rest' of {self.where}"))
        if self.rest[0] > self.rest[1]:
            raise ModelError(f"The range 'rest' of {self.where} ends before it begins: exchange the two.")


@dataclass(frozen=True)
class Actuator(Part, kind="actuator"):
    """An input that drives a joint, a tendon or a body, with a law of its own: a motor, a servo, a filter before it.

    With the length L and the rate L' of what it drives (balls and wrenches have no length), times its gear, its
    force is (gain_0 + gain_1 L + gain_2 L') w + bias_0 + bias_1 L + bias_2 L', where w is its control, or its
    activation a: ``integrator`` a' = control, ``filter`` a' = (control - a) / time_constant. A position servo has
    gain (kp, 0, 0) and bias (0, -kp, -kv). At a limit linear models are those of its inner side.
    """

    joint: Annotated[str, "The driven element: a joint, a tendon or a body."] = ""
    tendon: Annotated[str, "The driven element: a joint, a tendon or a body."] = ""
    body: Annotated[str, "The driven element: a joint, a tendon or a body."] = ""
    gear: Annotated[
        PerCoordinate,
        "Of a tendon one number; of a joint one for each of its speeds, one being enough for the first; of a body six, "
        "for force and torque.",
    ] = 1.0
    placement: Annotated[Placement, "On a body: where the wrench acts, and in which axes."] = ORIGIN
    gain: Annotated[Three, "Force by control, by L control and by L' control."] = (1.0, 0.0, 0.0)
    bias: Annotated[Three, "Force by itself, by L and by L'."] = (0.0, 0.0, 0.0)
    dynamics: Annotated[Literal["none", "integrator", "filter"], "Before the force; its state is `NAME.act`."] = "none"
    time_constant: Annotated[float, "Of a filter, in s."] = 0.0
    control_limits: Annotated[Limits, "Range of the control."] = ()
    force_limits: Annotated[Limits, "Range of the force."] = ()
    start: Annotated[float, "Initial value of the control."] = 0.0
    activation: Annotated[float, "Initial value of its state."] = 0.0
    nominal: Annotated[float | None, NOMINAL] = None
    delay: Annotated[float, DELAY] = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        this = f"The actuator '{self.name}'"
        if sum(bool(part) for part in (self.joint, self.tendon, self.body)) != 1:
            raise ModelError(f"{this} drives a 'joint', a 'tendon' or a 'body': give one of the three.")
        if self.dynamics == "filter" and not self.time_constant > 0:
            raise ModelError(f"The time constant of {self.where} must be positive, because it belongs to a filter.")
        self._set("gear", numbers(self.gear, None, f"'gear' of {self.where}"))
        if self.body and len(self.gear) != 6:
            raise ModelError(f"{this} drives a body and needs six numbers in 'gear': a force and a torque.")
        if self.tendon and len(self.gear) != 1:
            raise ModelError(f"{this} drives a tendon and needs one number in 'gear'.")
        for what in ("gain", "bias"):
            self._set(what, numbers(getattr(self, what), 3, f"'{what}' of {self.where}"))
        if self.body and (self.gain[1] or self.bias[1]):
            raise ModelError(f"{this} drives a body, which has no length: gain and bias cannot depend on it.")
        for what in ("control_limits", "force_limits"):
            self._set(what, limits(getattr(self, what), f"'{what}' of {self.where}"))
