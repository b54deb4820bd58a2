"""Elements that Drake adds to SDFormat: planar joints, mimic, and points that are held together or have a spring."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fmilin.models.mechanism.part import Vector
from fmilin.models.mechanism.sdf_elements import SdfAxis, SdfJoint, SdfMimic, SdfPointPair, SdfPose
from fmilin.models.mechanism.sdf_values import find_line, find_only, get_tag, read_name, read_number, read_vector

POINT_PAIRS = ("drake:ball_constraint", "drake:linear_spring_damper")


def read_drake_mimic(element: Any, path: Path) -> SdfMimic:
    """Return the same of the older element of Drake, with attributes as in URDF."""
    joint = str(element.get("joint") or "").strip()
    if not joint:
        raise find_line(element, path).wrong("<drake:mimic> needs the attribute 'joint'")
    try:
        multiplier, offset = float(element.get("multiplier", 1.0)), float(element.get("offset", 0.0))
    except ValueError:
        raise find_line(element, path).wrong("'multiplier' and 'offset' of <drake:mimic> are numbers") from None
    return SdfMimic(joint, multiplier, offset)


def read_planar_joint(element: Any, path: Path) -> SdfJoint:
    """Return a joint along x and y of its parent frame and about z, with three dampers."""
    line, name = find_line(element, path), read_name(element, path)
    if element.get("type") != "planar":
        raise line.wrong(f"the joint '{name}' is of the type '{element.get('type')}', which only Drake reads")
    if find_only(element, "pose", path) is not None:
        raise line.wrong(f"the joint '{name}' of Drake has no <pose>: its frames are those of its ends")
    ends = [_read_text(element, f"drake:{end}", path) for end in ("parent", "child")]
    damping = _read_vector(element, "drake:damping", path)
    axes = tuple(SdfAxis((0.0, 0.0, 1.0), damping=value) for value in damping)
    return SdfJoint(name, "planar", line, ends[0], ends[1], SdfPose(), axes, 0.0, 1.0, "", 0.0)


def read_point_pair(element: Any, path: Path, number: int) -> SdfPointPair:
    """Return two points that are held together, or a spring between them, named after the element."""
    tag = get_tag(element)
    first, second = (_read_text(element, f"{tag}_body_{end}", path) for end in "AB")
    points = _read_vector(element, f"{tag}_p_AP", path), _read_vector(element, f"{tag}_p_BQ", path)
    spring = None
    if tag == "drake:linear_spring_damper":
        length, stiffness, damping = (
            read_number(_need(element, f"{tag}_{key}", path), path) for key in ("free_length", "stiffness", "damping")
        )
        spring = (length, stiffness, damping)
    name = tag.removeprefix("drake:") + (f"_{number + 1}" if number else "")
    return SdfPointPair(name, find_line(element, path), (first, second), points, spring)


def _need(element: Any, tag: str, path: Path) -> Any:
    child = find_only(element, tag, path)
    if child is None:
        raise find_line(element, path).wrong(f"<{get_tag(element)}> has no <{tag}>")
    return child


def _read_text(element: Any, tag: str, path: Path) -> str:
    return (_need(element, tag, path).text or "").strip()


def _read_vector(element: Any, tag: str, path: Path) -> Vector:
    return read_vector(_need(element, tag, path), path)
