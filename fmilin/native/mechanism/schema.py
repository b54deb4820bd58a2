"""What a mechanism file may contain: the tables of the TOML file as pydantic models.

``python docs/mechanism_file.py`` writes ``docs/mechanism.schema.json`` and the tables in ``docs/mechanism.md`` from
them. This module imports pydantic: import it where it is used.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from fmilin.native.mechanism.elements import ActuatorDynamics
from fmilin.native.mechanism.parts import JointType, LoopType, Quantity

Number = Annotated[float, Field(allow_inf_nan=False)]
Triple = Annotated[list[Number], Field(min_length=3, max_length=3)]
Limits = Annotated[list[float], Field(max_length=2)]
Four = Annotated[list[Number], Field(min_length=4, max_length=4)]
Rows = Annotated[list[Triple], Field(min_length=3, max_length=3)]


def _number_or_list(value: Any) -> Any:
    given = value if isinstance(value, list) else [value]
    if any(isinstance(v, bool) or not isinstance(v, int | float) for v in given):
        raise ValueError("must be a number, or a list of numbers, one for each coordinate")
    return value


def _inertia(value: Any) -> Any:
    rows = value if isinstance(value, list) else [value]
    flat = [v for row in rows for v in (row if isinstance(row, list) else [row])]
    if len(flat) not in (3, 6, 9) or any(isinstance(v, bool) or not isinstance(v, int | float) for v in flat):
        raise ValueError("must be 3 or 6 numbers, or 3 rows of 3")
    return value


def _six(value: Any) -> Any:
    rows = value if isinstance(value, list) and len(value) == 6 else [value]
    flat = [v for row in rows for v in (row if isinstance(row, list) else [row])]
    if len(flat) not in (6, 36) or any(isinstance(v, bool) or not isinstance(v, int | float) for v in flat):
        raise ValueError("must be 6 numbers, or 6 rows of 6")
    return value


_LIST: dict[str, Any] = {"type": "array", "items": {"type": "number"}}
Numbers = Annotated[
    Any, BeforeValidator(_number_or_list), WithJsonSchema({"anyOf": [{"type": "number"}, {**_LIST, "minItems": 1}]})
]
Inertia = Annotated[
    Any,
    BeforeValidator(_inertia),
    WithJsonSchema(
        {
            "anyOf": [
                {**_LIST, "minItems": 3, "maxItems": 3},
                {**_LIST, "minItems": 6, "maxItems": 6},
                {"type": "array", "items": {**_LIST, "minItems": 3, "maxItems": 3}, "minItems": 3, "maxItems": 3},
            ]
        }
    ),
]


Six = Annotated[
    Any,
    BeforeValidator(_six),
    WithJsonSchema(
        {
            "anyOf": [
                {**_LIST, "minItems": 6, "maxItems": 6},
                {"type": "array", "items": {**_LIST, "minItems": 6, "maxItems": 6}, "minItems": 6, "maxItems": 6},
            ]
        }
    ),
]


class Table(BaseModel):
    """A table that knows all its keys."""

    model_config = ConfigDict(extra="forbid", strict=True)


class PlacementTable(Table):
    """Where a frame stands in another. At most one way to turn it: rpy, angle (with axis), quaternion or rotation."""

    position: Triple = Field([0.0, 0.0, 0.0], description="Origin of the frame, in m.")
    rpy: Triple | None = Field(None, description="Roll, pitch and yaw about the fixed axes x, y, z, in rad.")
    angle: Number | None = Field(None, description="Turned by this angle about `axis`, in rad.")
    axis: Triple | None = Field(None, description="Axis of `angle`; z when left out.")
    quaternion: Four | None = Field(None, description="e0, e1, e2, e3, with e0 the real part; any length but zero.")
    rotation: Rows | None = Field(None, description="Three rows of three numbers; the columns are the frame's axes.")


class BodyTable(Table):
    """A rigid body."""

    name: str = Field(description="Name of the body.")
    mass: Number | None = Field(None, description="In kg, positive; needed unless the body is massless.")
    massless: bool = Field(False, description="true: a frame without mass, that carries something heavier.")  # noqa: FBT003
    center: Triple = Field([0.0, 0.0, 0.0], description="Centre of mass, in the body's frame, in m.")
    inertia: Inertia = Field(
        [0.0, 0.0, 0.0],
        description="About the centre of mass, in axes parallel to the body's frame, in kg m2: [xx, yy, zz], "
        "[xx, yy, zz, xy, xz, yz] (elements of the matrix) or the 3 x 3 matrix.",
    )
    any_inertia: bool = Field(False, description="true: take moments that no body can have.")  # noqa: FBT003
    gravity_compensation: Number = Field(0.0, description="What part of its weight something else carries.")


class JointTable(Table):
    """A joint from a body to its parent in the tree: every body has exactly one."""

    name: str = Field(description="Name of the joint; its states are `NAME.q`, `NAME.v` and the like.")
    type: JointType = Field(description="Which motion it allows.")
    parent: str = Field(description="The body it is attached to, or the ground.")
    child: str = Field(description="The body that it carries.")
    placement: PlacementTable = Field(PlacementTable(), description="The joint's frame, in the parent's frame.")  # type: ignore[call-arg]
    child_placement: PlacementTable = Field(PlacementTable(), description="The joint's frame, in the child's frame.")  # type: ignore[call-arg]
    axis: Triple = Field([0.0, 0.0, 1.0], description="In the joint's frame; any length but zero.")
    second_axis: Triple | None = Field(
        None, description="Of a universal or planar joint, perpendicular to the axis; found when left out."
    )
    pitch: Number = Field(0.0, description="Of a helical joint, in m/rad.")
    position: Numbers = Field(
        None, description="First guess of the coordinates, in m or rad: the loops are closed from there."
    )
    velocity: Numbers = Field(None, description="Start values of the speeds, in m/s or rad/s.")
    stiffness: Numbers = Field(0.0, description="Of a spring on each coordinate, in N/m or N m/rad.")
    rest: Numbers = Field(0.0, description="Where that spring has no force, in m or rad.")
    damping: Numbers = Field(0.0, description="On each coordinate, in N s/m or N m s/rad.")
    armature: Numbers = Field(0.0, description="Inertia of rotors on each coordinate, in kg m2 or kg.")
    drive_limits: Limits = Field(
        [], description="Where the force of all actuators together on each coordinate ends, in N or N m."
    )
    names: list[str] = Field([], description="Names of the states, positions first, instead of `NAME.q`, `NAME.v`.")
    stands: bool | None = Field(
        None, description="Whether a speed of zero is held as any other; of a single speed, where `velocity` is given."
    )


class JointSettingTable(Table):
    """Further values for a joint that a URDF file describes."""

    joint: str = Field(description="Name of the joint.")
    position: Numbers = Field(None, description="As for a joint.")
    velocity: Numbers = Field(None, description="As for a joint.")
    stiffness: Numbers = Field(None, description="As for a joint.")
    rest: Numbers = Field(None, description="As for a joint.")
    damping: Numbers = Field(None, description="As for a joint; instead of that of the URDF file.")
    armature: Numbers = Field(None, description="As for a joint.")
    drive_limits: Limits | None = Field(None, description="As for a joint.")
    names: list[str] | None = Field(None, description="As for a joint.")


class LoopTable(Table):
    """A joint that closes a loop, or another constraint between two bodies."""

    name: str = Field(description="Name of the loop.")
    type: LoopType = Field(description="Which relative motion it leaves free.")
    first: str = Field(description="A body, or the ground.")
    second: str = Field(description="Another one.")
    first_placement: PlacementTable = Field(PlacementTable(), description="The loop's frame on the first body.")  # type: ignore[call-arg]
    second_placement: PlacementTable = Field(PlacementTable(), description="The loop's frame on the second body.")  # type: ignore[call-arg]
    axis: Triple = Field([0.0, 0.0, 1.0], description="In the loop's frame on the first body.")
    second_axis: Triple | None = Field(None, description="Of a universal joint, fixed in the second body.")
    pitch: Number = Field(0.0, description="Of a helical joint, in m/rad.")
    length: Number = Field(0.0, description="Of a `rod`, in m.")
    turn: Number = Field(0.0, description="First guess of the angle of a helical loop, several turns included, in rad.")


class CouplingTable(Table):
    """Joints with one freedom that move together: q = offset + ratio q_leader, and more with further leaders."""

    name: str = Field(description="Name of the coupling.")
    joint: str = Field(description="The joint that follows.")
    leader: str = Field("", description="The joint that it follows; without one it is held at the offset.")
    ratio: Number = Field(1.0, description="Without unit, or in m/rad or rad/m.")
    offset: Number = Field(0.0, description="In rad or m.")
    powers: list[Number] = Field([], description="Factors of q_leader^2, q_leader^3, ..., for cams.")
    leaders: list[str] = Field([], description="Further joints that it follows: planetary gears, differentials.")
    ratios: list[Number] = Field([], description="One for each of them: q = offset + ratio q_leader + sum ratios q.")


class WheelTable(Table):
    """Rolling without slip on a plane of the ground."""

    name: str = Field(description="Name of the wheel.")
    body: str = Field(description="The body that rolls.")
    center: Triple = Field([0.0, 0.0, 0.0], description="Centre of the wheel, in the body's frame, in m.")
    axis: Triple = Field([0.0, 1.0, 0.0], description="The axle, in the body's frame.")
    radius: Number = Field(0.0, description="From the axle to the middle of the tyre, in m; 0 for a ball.")
    tube: Number = Field(0.0, description="Radius of the tyre's section or of the ball, in m; 0 for a thin disk.")
    point: Triple = Field([0.0, 0.0, 0.0], description="A point of the plane, in the ground's frame, in m.")
    normal: Triple = Field([0.0, 0.0, 1.0], description="Normal of the plane, towards the wheel.")


class SkateTable(Table):
    """A point of a body that cannot move along a direction of the body."""

    name: str = Field(description="Name of the skate.")
    body: str = Field(description="The body.")
    point: Triple = Field([0.0, 0.0, 0.0], description="In the body's frame, in m.")
    direction: Triple = Field([0.0, 1.0, 0.0], description="In the body's frame.")


class MarkerTable(Table):
    """A point of a body with a name: `NAME.x` and the like are outputs, and `--hold NAME` holds it as a foot."""

    name: str = Field(description="Name of the marker.")
    body: str = Field(description="The body.")
    point: Triple = Field([0.0, 0.0, 0.0], description="In the body's frame, in m.")
    friction: Number | None = Field(None, description="Coefficient of sliding friction of a foot there.")


class SpringTable(Table):
    """A spring and a damper along the line between points of two bodies."""

    name: str = Field(description="Name of the spring.")
    first: str = Field(description="A body, or the ground.")
    second: str = Field(description="Another one.")
    first_point: Triple = Field([0.0, 0.0, 0.0], description="In the frame of the first body, in m.")
    second_point: Triple = Field([0.0, 0.0, 0.0], description="In the frame of the second body, in m.")
    stiffness: Number = Field(0.0, description="In N/m.")
    length: Number = Field(0.0, description="Without force, in m.")
    damping: Number = Field(0.0, description="In N s/m.")


class BushingTable(Table):
    """A spring and a damper in all six directions between frames on two bodies, at rest where both coincide."""

    name: str = Field(description="Name of the bushing.")
    first: str = Field(description="A body, or the ground.")
    second: str = Field(description="Another one.")
    first_placement: PlacementTable = Field(PlacementTable(), description="The bushing's frame on the first body.")  # type: ignore[call-arg]
    second_placement: PlacementTable = Field(PlacementTable(), description="The bushing's frame on the second body.")  # type: ignore[call-arg]
    stiffness: Six = Field(
        [0.0] * 6,
        description="Along and about x, y, z of the first frame, in N/m and N m/rad: 6 numbers, or 6 rows of 6 "
        "(symmetric). Rotations count as sin(angle) times their axis.",
    )
    damping: Six = Field([0.0] * 6, description="The same in N s/m and N m s/rad.")


class TendonTable(Table):
    """A length that several joints or points share, with a spring and a damper along it."""

    name: str = Field(description="Name of the tendon.")
    joints: list[str] = Field([], description="Over joints: those with one freedom each that it runs over.")
    factors: list[Number] = Field([], description="Over joints: L = sum factor q.")
    bodies: list[str] = Field([], description="Along points: the bodies that it is attached to, in order.")
    points: list[Triple] = Field([], description="Along points: where, in the frames of the bodies, in m.")
    weights: list[Number] = Field(
        [], description="Along points: how much each stretch counts; 1 when left out, 0 where it does not run."
    )
    stiffness: Number = Field(0.0, description="In N/m.")
    damping: Number = Field(0.0, description="In N s/m.")
    rest: Numbers = Field(0.0, description="Length without force, in m; or two lengths between which it is slack.")


class InputTable(Table):
    """An input: a force, a torque or a motion. Which keys apply follows from its kind."""

    kind: Literal["joint_force", "force", "torque", "line_force", "actuator", "motion"] = Field(
        description="On a joint's coordinate, at a point of a body, on a body, between points of two bodies "
        "(positive when it pushes them apart), a motor or servo on a joint, tendon or body, or the position of a joint."
    )
    name: str = Field(description="Name of the input.")
    joint: str | None = Field(None, description="joint_force, actuator, motion: the joint.")
    coordinate: int = Field(0, ge=0, description="joint_force: which speed of the joint, from 0.")
    body: str | None = Field(None, description="force, torque, actuator: the body.")
    point: Triple = Field([0.0, 0.0, 0.0], description="force: in the body's frame, in m.")
    direction: Triple | None = Field(None, description="force (x when left out), torque (z when left out).")
    frame: Literal["ground", "body"] = Field("ground", description="force, torque: where the direction is fixed.")
    first: str | None = Field(None, description="line_force: a body, or the ground.")
    second: str | None = Field(None, description="line_force: another one.")
    first_point: Triple = Field([0.0, 0.0, 0.0], description="line_force: in the frame of the first body, in m.")
    second_point: Triple = Field([0.0, 0.0, 0.0], description="line_force: in the frame of the second body, in m.")
    tendon: str | None = Field(None, description="actuator: the tendon.")
    gear: Numbers = Field(1.0, description="actuator: of a tendon, of each speed of a joint, of force and torque.")
    placement: PlacementTable | None = Field(None, description="actuator: on a body, where the wrench acts.")
    gain: Triple = Field([1.0, 0.0, 0.0], description="actuator: force by control, by L control and by L' control.")
    bias: Triple = Field([0.0, 0.0, 0.0], description="actuator: force by itself, by L and by L'.")
    dynamics: ActuatorDynamics = Field("none", description="actuator: before the force; its state is `NAME.act`.")
    time_constant: Number = Field(0.0, description="actuator: of a filter, in s.")
    control_limits: Limits = Field([], description="actuator: the control goes no further.")
    force_limits: Limits = Field([], description="actuator: the force goes no further.")
    activation: Number = Field(0.0, description="actuator: initial value of its state.")
    start: Number = Field(0.0, description="Initial value, in N or N m; of a motion in m or rad.")
    velocity: Number = Field(0.0, description="motion: initial value of `NAME.v`, in m/s or rad/s.")
    acceleration: Number = Field(0.0, description="motion: initial value of `NAME.a`, in m/s2 or rad/s2.")
    nominal: Number | None = Field(None, description="Typical size, positive: what searches and errors measure it in.")


class SensorTable(Table):
    """An output."""

    name: str = Field(description="Name of the output.")
    quantity: Quantity = Field(description="What is measured.")
    of: str = Field(
        "",
        description="The body, joint, spring, tendon, line force, actuator, loop, wheel or skate; empty for the whole.",
    )
    point: Triple = Field([0.0, 0.0, 0.0], description="In the body's frame, in m.")
    axis: Triple = Field(
        [1.0, 0.0, 0.0], description="In the ground (accelerometer, velocimeter, gyroscope: in the body)."
    )
    pointer: Triple = Field([1.0, 0.0, 0.0], description="`direction` only: the vector of the body that is looked at.")
    coordinate: int = Field(
        0, ge=0, description="Of a joint (which speed), a reaction (which constraint) or a quaternion, from 0."
    )
    factor: Number = Field(1.0, description="What the quantity is multiplied with.")


class MechanismFile(Table):
    """A mechanism. All units are SI; angles are in rad unless `angle_unit` says otherwise."""

    name: str = Field("", description="Name of the model; that of the file when left out.")
    gravity: Triple = Field([0.0, 0.0, -9.81], description="In the ground's frame, in m/s2.")
    ground: str = Field("ground", description="Name of what does not move.")
    angle_unit: Literal["rad", "deg"] = Field(
        "rad",
        description="Of positions, velocities (per second) and rests of joints, turns, offsets of couplings, and the "
        "angles of frames in this file. What is measured per angle (stiffness, damping, pitch, ratio) counts in rad "
        "always, and so does the model.",
    )
    independent: list[str] = Field(
        [], description="States to keep in linear models. Positions among them are held when the loops are closed."
    )
    urdf: str | None = Field(None, description="A URDF file with bodies and joints, relative to this file.")
    floating_base: bool = Field(False, description="Whether the root link of the URDF file moves freely.")  # noqa: FBT003
    body: list[BodyTable] = Field([], description="The bodies.")
    joint: list[JointTable] = Field([], description="The joints of the tree, in any order.")
    joint_setting: list[JointSettingTable] = Field([], description="Values for joints of the URDF file.")
    loop: list[LoopTable] = Field([], description="What closes loops.")
    coupling: list[CouplingTable] = Field([], description="Gears, and joints that mimic others.")
    wheel: list[WheelTable] = Field([], description="Rolling contacts.")
    skate: list[SkateTable] = Field([], description="Knife edges.")
    spring: list[SpringTable] = Field([], description="Springs and dampers between points.")
    bushing: list[BushingTable] = Field([], description="Springs and dampers in six directions.")
    tendon: list[TendonTable] = Field([], description="Lengths over joints or along points.")
    input: list[InputTable] = Field([], description="The inputs, in order.")
    sensor: list[SensorTable] = Field([], description="The outputs, in order.")
    marker: list[MarkerTable] = Field([], description="Points with names: feet.")
