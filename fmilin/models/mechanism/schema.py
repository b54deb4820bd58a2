"""The schema of a mechanism file: its tables as pydantic models, generated from the classes of the parts.

``python docs/mechanism_file.py`` writes ``docs/mechanism.schema.json`` and the tables in ``docs/mechanism.md`` from
them. This module imports pydantic: import it where it is used.
"""

from collections.abc import Sequence
from dataclasses import MISSING
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, create_model

from fmilin.models.mechanism.mechanism_description import INPUTS, PARTS
from fmilin.models.mechanism.part import ORIGIN, Key, Part, Placement, Shape, Vector, list_keys
from fmilin.models.mechanism.parts import Body, Joint

Number = Annotated[float, Field(allow_inf_nan=False)]
Triple = Annotated[list[Number], Field(min_length=3, max_length=3)]
Four = Annotated[list[Number], Field(min_length=4, max_length=4)]
Rows = Annotated[list[Triple], Field(min_length=3, max_length=3)]


def _numbers(counts: Sequence[int] | None, message: str) -> BeforeValidator:
    """Return what lets numbers pass, in rows or not, where there are so many of them."""

    def check_value(value: Any) -> Any:
        rows = value if isinstance(value, list) else [value]
        flat = [v for row in rows for v in (row if counts and isinstance(row, list) else [row])]
        wrong = any(isinstance(v, bool) or not isinstance(v, int | float) for v in flat)
        if wrong or (counts and len(flat) not in counts):
            raise ValueError(message)
        return value

    return BeforeValidator(check_value)


def _list(items: dict[str, Any], count: int) -> dict[str, Any]:
    """Return the JSON schema of a list of ``count`` numbers, or of rows."""
    return {"type": "array", "items": items or {"type": "number"}, "minItems": count, "maxItems": count}


_EITHER = {"anyOf": [{"type": "number"}, {"type": "array", "items": {"type": "number"}, "minItems": 1}]}
SHAPES: dict[Shape, Any] = {
    Shape.PER_COORDINATE: Annotated[
        Any, _numbers(None, "must be a number, or a list of numbers, one for each coordinate"), WithJsonSchema(_EITHER)
    ],
    Shape.THREE: Triple,
    Shape.LIMITS: Annotated[list[float], Field(max_length=2)],
    Shape.INERTIA: Annotated[
        Any,
        _numbers((3, 6, 9), "must be 3 or 6 numbers, or 3 rows of 3"),
        WithJsonSchema({"anyOf": [_list({}, 3), _list({}, 6), _list(_list({}, 3), 3)]}),
    ],
    Shape.SIX_AXES: Annotated[
        Any,
        _numbers((6, 36), "must be 6 numbers, or 6 rows of 6"),
        WithJsonSchema({"anyOf": [_list({}, 6), _list(_list({}, 6), 6)]}),
    ],
}


class Table(BaseModel):
    """A table that knows all its keys."""

    model_config = ConfigDict(extra="forbid", strict=True)


class PlacementTable(Table):
    """A frame in another one, rotated by at most one of rpy, angle (with axis), quaternion and rotation."""

    position: Triple = Field([0.0, 0.0, 0.0], description="Origin of the frame, in m.")
    rpy: Triple | None = Field(None, description="Roll, pitch and yaw about the fixed axes x, y, z, in rad.")
    angle: Number | None = Field(None, description="Rotation about `axis`, in rad.")
    axis: Triple | None = Field(None, description="Axis of `angle`; z when left out.")
    quaternion: Four | None = Field(None, description="e0, e1, e2, e3, with the real part e0, of any length but zero.")
    rotation: Rows | None = Field(None, description="The columns are the axes of the frame.")


TYPES: dict[Any, Any] = {
    float: Number,
    Vector: Triple,
    Placement: PlacementTable,
    Sequence[float]: list[Number],
    Sequence[str]: list[str],
    Sequence[Vector]: list[Triple],
    tuple[str, ...]: list[str],
    int: Annotated[int, Field(ge=0)],
}


def _entry(key: Key) -> tuple[Any, Any]:
    """Return the type of a key of a table, and its default with its description."""
    of = SHAPES[key.shape] if key.shape is not None else TYPES.get(key.type, key.type)
    default = list(key.default) if isinstance(key.default, tuple) else key.default
    if default is MISSING:
        return of, Field(description=key.text)
    if key.default is ORIGIN:
        default = PlacementTable()  # type: ignore[call-arg]
    return of, Field(default, description=key.text)  # a default is not checked: None needs no type


def _table(name: str, about: str | None, keys: dict[str, tuple[Any, Any]]) -> type[Table]:
    text = (about or "").split("\n\n")[0].replace("``", "`")
    return create_model(f"{name.title().replace(' ', '')}Table", __base__=Table, __doc__=text, **keys)  # type: ignore[call-overload, no-any-return]


def _of(part: type[Part], **further: tuple[Any, Any]) -> type[Table]:
    return _table(part.kind, part.__doc__, {key.name: _entry(key) for key in list_keys(part)} | further)  # type: ignore[arg-type]


MASSLESS = "Whether it is a frame without mass, which carries a body."
BodyTable = _of(
    Body,
    mass=(Number, Field(None, description="In kg, positive; needed unless the body is massless.")),
    massless=(bool, Field(False, description=MASSLESS)),  # noqa: FBT003
)
SETTABLE = ("position", "velocity", "stiffness", "rest", "damping", "armature", "drive_limits", "names")
JointSettingTable = _table(
    "joint setting",
    "Further values for a joint that a URDF or SDFormat file describes.",
    {"joint": (str, Field(description="Name of the joint."))}
    | {
        key.name: (_entry(key)[0], Field(None, description="As for a joint, instead of the robot file's."))
        for key in list_keys(Joint)
        if key.name in SETTABLE
    },
)


INPUT_TABLES: dict[str, type[Table]] = {
    kind: _of(part, kind=(Literal[kind], Field(description="Which input it is."))) for kind, part in INPUTS.items()
}


class FileTable(Table):
    """A mechanism. All units are SI; angles are in rad unless `angle_unit` says otherwise."""

    name: str = Field("", description="Name of the model; by default that of the file.")
    gravity: Triple = Field([0.0, 0.0, -9.81], description="In the ground's frame, in m/s2.")
    ground: str = Field("ground", description="Name of the fixed body.")
    angle_unit: Literal["rad", "deg"] = Field(
        "rad",
        description="Unit of positions, velocities (per second) and rest positions of joints, turns, offsets of "
        "couplings, and the angles of frames in this file. Quantities per angle (stiffness, damping, pitch, ratio) "
        "and the model itself always use rad.",
    )
    independent: list[str] = Field(
        [], description="States to keep in linear models. Positions among them are kept when the loops are closed."
    )
    urdf: str | None = Field(None, description="A URDF file with bodies and joints, relative to this file.")
    sdf: str | None = Field(None, description="An SDFormat file in its place.")
    mjcf: str | None = Field(None, description="An MJCF file in its place, read by fmilin-mujoco.")
    floating_base: bool = Field(False, description="Whether the root link of the URDF file moves freely.")  # noqa: FBT003


TABLES: dict[str, Any] = {part.kind: _of(part) for part in PARTS.values()}
TABLES |= {"body": BodyTable, "joint_setting": JointSettingTable}
ARRAYS: dict[str, tuple[Any, Any]] = {
    kind: (list[table], Field([], description=table.__doc__))  # type: ignore[valid-type]
    for kind, table in TABLES.items()
}
ARRAYS["input"] = (
    list[Annotated[reduce(or_, INPUT_TABLES.values()), Field(discriminator="kind")]],  # type: ignore[misc]
    Field([], description="The inputs, in order: forces, torques, actuators and motions, as their `kind` says."),
)
MechanismFile = create_model("MechanismFile", __base__=FileTable, __doc__=FileTable.__doc__, **ARRAYS)  # type: ignore[call-overload]
