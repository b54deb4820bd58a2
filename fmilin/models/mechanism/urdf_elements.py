"""The elements of a URDF file: links and joints with their numbers, each with its line."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fmilin.errors import ModelError, UnknownNameError, nearest_names
from fmilin.models.mechanism.part import ORIGIN, Placement, Vector, unit, vector
from fmilin.models.mechanism.source_lines import LARGEST_NUMBER, read_repaired_root

JOINT_TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")

# All elements of the format. Elements without a part in the dynamics are skipped; others that are not listed are
# ignored with a warning.
_SKIPPED = frozenset({"visual", "collision", "material", "gazebo", "transmission", "sensor", "contact", "self_collision_checking"})  # noqa: E501  # fmt: skip
_CHILDREN = {
    "robot": {"link", "joint"},
    "link": {"inertial"},
    "inertial": {"origin", "mass", "inertia"},
    "joint": {"origin", "parent", "child", "axis", "limit", "dynamics", "calibration", "safety_controller", "mimic"},
}
_ATTRIBUTES = {
    "robot": {"name", "version"},
    "link": {"name", "type"},
    "inertial": set[str](),
    "origin": {"xyz", "rpy"},
    "mass": {"value"},
    "inertia": {"ixx", "ixy", "ixz", "iyy", "iyz", "izz"},
    "joint": {"name", "type"},
    "parent": {"link"},
    "child": {"link"},
    "axis": {"xyz"},
    "limit": {"lower", "upper", "effort", "velocity"},
    "dynamics": {"damping", "friction"},
    "calibration": {"rising", "falling", "reference_position"},
    "safety_controller": {"soft_lower_limit", "soft_upper_limit", "k_position", "k_velocity"},
    "mimic": {"joint", "multiplier", "offset"},
}


@dataclass(frozen=True, slots=True)
class Inertial:
    """Mass in kg, the frame of the centre of mass, and ixx, iyy, izz, ixy, ixz, iyz about it in kg m2."""

    mass: float
    origin: Placement
    inertia: tuple[float, float, float, float, float, float]


WORLD = "world"  # the name of the ground in SDFormat and Drake


@dataclass(frozen=True, slots=True)
class UrdfLink:
    """A link; without ``inertial`` it has no mass."""

    name: str
    line: int
    inertial: Inertial | None


@dataclass(frozen=True, slots=True)
class Mimic:
    """The position of a joint is multiplier q + offset, q that of another joint; without unit or m/rad, rad or m."""

    joint: str
    multiplier: float
    offset: float


@dataclass(frozen=True, slots=True)
class UrdfJoint:
    """A joint between two links; ``damping`` in N s/m or N m s/rad, ``friction`` in N or N m."""

    name: str
    type: str
    line: int
    parent: str
    child: str
    origin: Placement
    axis: Vector
    damping: float
    friction: float
    mimic: Mimic | None = None


@dataclass(frozen=True, slots=True)
class UrdfTree:
    """The whole file."""

    name: str
    links: tuple[UrdfLink, ...]
    joints: tuple[UrdfJoint, ...]
    unknown: tuple[str, ...] = ()  # what URDF does not know, with the first line of each
    mended: tuple[str, ...] = ()  # what is not as the format wants it

    def with_world(self) -> UrdfTree:
        """Return the tree with the link ``world`` where joints name it as a parent and the file does not declare it.

        Drake reads such files: there the world is a link of every model.
        """
        if any(link.name == WORLD for link in self.links):
            return self
        lines = [joint.line for joint in self.joints if joint.parent == WORLD]
        if not lines:
            return self
        return replace(self, links=(UrdfLink(WORLD, lines[0], None), *self.links))

    def with_fixed(self, names: Collection[str]) -> UrdfTree:
        """Return the tree with some joints fixed where they are at zero, and those that they mimic or that do so."""
        joints = {joint.name for joint in self.joints}
        for name in names:
            if name not in joints:
                raise UnknownNameError.among(name, joints, "a joint of the URDF file that could be fixed")
        fixed, before = set(names), set[str]()
        while fixed != before:
            before = set(fixed)
            for joint in self.joints:
                if joint.mimic and {joint.name, joint.mimic.joint} & fixed:
                    fixed |= {joint.name, joint.mimic.joint}
        return replace(self, joints=tuple(_fix_joint(j) if j.name in fixed else j for j in self.joints))


def _fix_joint(joint: UrdfJoint) -> UrdfJoint:
    """Return a joint that no longer moves, its offset included when it mimics another one."""
    q = 0.0 if joint.mimic is None else joint.mimic.offset
    if joint.type == "prismatic":
        moved = Placement(vector(q * np.array(unit(joint.axis, "An axis")), "An offset"))
    else:
        moved = Placement.from_axis(axis=joint.axis, angle=q) if q else ORIGIN
    return replace(joint, type="fixed", origin=joint.origin.then(moved), mimic=None)


def read_urdf(path: Path) -> UrdfTree:
    """Read a URDF file."""
    root, mended = _root(path)
    where = str(path)
    unknown: dict[str, str] = {}
    _check(root, where, unknown)
    return UrdfTree(
        name=root.get("name") or path.stem,
        links=tuple(_link(e, where) for e in root.iterfind("link")),
        joints=tuple(_joint(e, where) for e in root.iterfind("joint")),
        unknown=tuple(unknown.values()),
        mended=mended,
    )


def _root(path: Path) -> tuple[Any, tuple[str, ...]]:
    root, mended = read_repaired_root(path)
    if root.tag != "robot":
        raise ModelError(
            f"'{path}', line {root.sourceline}: the root element of a URDF file is <robot>, not <{root.tag}>."
            + (" Expand the xacro macros first." if "xacro" in str(root.tag) else "")
        )
    return root, mended


def _check(element: Any, where: str, unknown: dict[str, str]) -> None:
    """Collect what URDF does not know, all the way down, and reject what is to be expanded first."""
    if not isinstance(element.tag, str):
        raise _wrong(where, element, "entity references are not supported: write their text instead")
    attributes = _ATTRIBUTES.get(element.tag)
    if attributes is None:
        return
    for name in element.attrib:
        if name not in attributes and not name.startswith("{"):  # other namespaces have no meaning here
            near = nearest_names(name, attributes, 1)
            _note(unknown, f"the attribute '{name}' of <{element.tag}>", element, near)
    for child in element:
        if isinstance(child.tag, str) and (child.tag in _SKIPPED or child.tag.startswith("{")):
            if "xacro" in child.tag:
                raise _wrong(where, child, "this is a xacro macro: expand the file with xacro first")
            continue
        tags = _CHILDREN.get(element.tag, set[str]())
        if isinstance(child.tag, str) and child.tag not in tags:
            _note(unknown, f"the element <{child.tag}> of <{element.tag}>", child, nearest_names(child.tag, tags, 1))
            continue
        _check(child, where, unknown)


def _note(unknown: dict[str, str], what: str, element: Any, near: tuple[str, ...]) -> None:
    hint = f"; did you mean '{near[0]}'?" if near else ""
    unknown.setdefault(what, f"{what} (line {element.sourceline}{hint})")


def _quote_name(element: Any) -> str:
    name = element.get("name")
    return f" '{name}'" if name else ""


def _wrong(where: str, element: Any, what: str) -> ModelError:
    owner = next((e for e in _outward(element) if e.tag in ("link", "joint")), None)
    of = "" if owner is None or owner is element else f", in <{owner.tag}>{_quote_name(owner)}"
    text = f"'{where}', line {element.sourceline}{of}: {what}"
    return ModelError(text if text.endswith("?") else text + ".")


def _outward(element: Any) -> Iterator[Any]:
    while element is not None:
        yield element
        element = element.getparent()


def _link(element: Any, where: str) -> UrdfLink:
    inertial = _only(element, "inertial", where)
    return UrdfLink(
        name=_text(element, "name", where),
        line=element.sourceline,
        inertial=None if inertial is None else _inertial(inertial, where),
    )


def _inertial(element: Any, where: str) -> Inertial:
    mass, inertia = _only(element, "mass", where), _only(element, "inertia", where)
    if mass is None or inertia is None:
        missing = "mass" if mass is None else "inertia"
        raise _wrong(where, element, f"<inertial> needs <mass> and <inertia>; <{missing}> is missing")
    entries = [_read_number_attribute(inertia, key, where) for key in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")]
    return Inertial(_read_number_attribute(mass, "value", where), _origin(element, where), tuple(entries))  # type: ignore[arg-type]


def _joint(element: Any, where: str) -> UrdfJoint:
    kind = _text(element, "type", where)
    if kind not in JOINT_TYPES:
        raise _wrong(where, element, f"the joint{_quote_name(element)} is of the unknown type '{kind}'; known are "
                     + ", ".join(JOINT_TYPES))  # fmt: skip
    ends = {tag: _only(element, tag, where) for tag in ("parent", "child")}
    for tag, end in ends.items():
        if end is None:
            raise _wrong(where, element, f"the joint{_quote_name(element)} has no <{tag} link='...'/>")
    axis, dynamics = _only(element, "axis", where), _only(element, "dynamics", where)
    return UrdfJoint(
        name=_text(element, "name", where),
        type=kind,
        line=element.sourceline,
        parent=_text(ends["parent"], "link", where),
        child=_text(ends["child"], "link", where),
        origin=_origin(element, where),
        axis=(1.0, 0.0, 0.0) if axis is None else _triple(axis, "xyz", where, (1.0, 0.0, 0.0)),
        damping=0.0 if dynamics is None else _read_number_attribute(dynamics, "damping", where, 0.0),
        friction=0.0 if dynamics is None else _read_number_attribute(dynamics, "friction", where, 0.0),
        mimic=_mimic(element, where),
    )


def _mimic(element: Any, where: str) -> Mimic | None:
    mimic = _only(element, "mimic", where)
    if mimic is None:
        return None
    return Mimic(
        _text(mimic, "joint", where),
        _read_number_attribute(mimic, "multiplier", where, 1.0),
        _read_number_attribute(mimic, "offset", where, 0.0),
    )


def _only(element: Any, tag: str, where: str) -> Any:
    children = element.findall(tag)
    if len(children) > 1:
        raise _wrong(where, children[1], f"<{element.tag}>{_quote_name(element)} has <{tag}> twice")
    return children[0] if children else None


def _origin(element: Any, where: str) -> Placement:
    """Return the placement of a frame: position in m, and fixed-axis roll, pitch and yaw in rad."""
    origin, zero = _only(element, "origin", where), (0.0, 0.0, 0.0)
    if origin is None:
        return ORIGIN
    return Placement.from_rpy(_triple(origin, "xyz", where, zero), _triple(origin, "rpy", where, zero))


def _text(element: Any, key: str, where: str) -> str:
    text: str = element.get(key) or ""
    if not text.strip():
        raise _wrong(where, element, f"<{element.tag}> needs the attribute '{key}'")
    return text


def _read_number_attribute(element: Any, key: str, where: str, default: float | None = None) -> float:
    if default is not None and element.get(key) is None:
        return default
    return _float(element, key, _text(element, key, where), where)


def _triple(element: Any, key: str, where: str, default: Vector) -> Vector:
    text = element.get(key)
    if text is None:
        return default
    numbers = [_float(element, key, part, where) for part in text.split()]
    if len(numbers) != 3:
        raise _wrong(where, element, f"'{key}' of <{element.tag}> holds three numbers, not '{text}'")
    return (numbers[0], numbers[1], numbers[2])


def _float(element: Any, key: str, text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not abs(value) <= LARGEST_NUMBER:
        what = "too large" if abs(value) < math.inf else "not a number"
        raise _wrong(where, element, f"'{key}' of <{element.tag}> is {what}: '{text}'")
    return value
