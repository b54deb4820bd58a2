"""Values of the elements of SDFormat files: numbers, poses, pitches and what an axis mimics."""

from __future__ import annotations

from math import isnan, pi
from pathlib import Path
from typing import Any

import numpy as np

from fmilin.models.mechanism.part import ORIGIN, Placement, Vector
from fmilin.models.mechanism.sdf_elements import SdfLine, SdfMimic, SdfPose
from fmilin.models.mechanism.source_lines import LARGEST_NUMBER

ORIGIN_POSE = SdfPose()


def find_line(element: Any, path: Path) -> SdfLine:
    """Return the line of a file in which an element begins."""
    return SdfLine(path, element.sourceline)


def read_name(element: Any, path: Path) -> str:
    """Return the attribute ``name``, which must not be empty."""
    name = str(element.get("name") or "").strip()
    if not name:
        raise find_line(element, path).wrong(f"<{element.tag}> needs the attribute 'name'")
    return name


def find_only(element: Any, tag: str, path: Path) -> Any:
    """Return the child with a tag, or None, or no element."""
    children = [] if element is None else [child for child in element if get_tag(child) == tag]
    if len(children) > 1:
        raise find_line(children[1], path).wrong(f"<{element.tag}> has <{tag}> twice")
    return children[0] if children else None


def get_tag(element: Any) -> str:
    """Return the name of an element with its prefix, as in "drake:mimic", declared or not; empty for an entity."""
    tag = element.tag
    if not isinstance(tag, str) or not tag.startswith("{"):
        return tag if isinstance(tag, str) else ""
    name = tag[tag.index("}") + 1 :]
    return f"{element.prefix}:{name}" if element.prefix else name


def _numbers(element: Any, path: Path, *, finite: bool = True) -> list[float]:
    values = []
    for part in (element.text or "").split():
        try:
            value = float(part)
        except ValueError:
            raise find_line(element, path).wrong(f"<{element.tag}> is not a number: '{part}'") from None
        if isnan(value) or (finite and not abs(value) <= LARGEST_NUMBER):
            raise find_line(element, path).wrong(
                f"<{element.tag}> is not a finite number that is small enough: '{part}'"
            )
        values.append(value)
    return values


def read_number(element: Any, path: Path, *, finite: bool = True) -> float:
    """Return the number that an element holds."""
    values = _numbers(element, path, finite=finite)
    if len(values) != 1:
        raise find_line(element, path).wrong(f"<{element.tag}> holds one number, not '{(element.text or '').strip()}'")
    return values[0]


def read_child_number(element: Any, tag: str, path: Path, default: float, *, finite: bool = True) -> float:
    """Return the number that a child holds, or the default without that child."""
    child = find_only(element, tag, path)
    return default if child is None else read_number(child, path, finite=finite)


def read_vector(element: Any, path: Path) -> Vector:
    """Return the three numbers that an element holds."""
    values = _numbers(element, path)
    if len(values) != 3:
        raise find_line(element, path).wrong(
            f"<{element.tag}> holds three numbers, not '{(element.text or '').strip()}'"
        )
    return values[0], values[1], values[2]


def read_truth(element: Any, path: Path) -> bool:
    """Return whether an element holds true or 1."""
    text = (element.text or "").strip().lower()
    if text not in ("true", "1", "false", "0"):
        raise find_line(element, path).wrong(f"<{element.tag}> is true or false, not '{text}'")
    return text in ("true", "1")


def read_pose(element: Any, path: Path) -> SdfPose:
    """Return the <pose> of an element: x y z, and roll pitch yaw about fixed axes or a quaternion (x, y, z, w)."""
    pose = find_only(element, "pose", path)
    if pose is None:
        return ORIGIN_POSE
    relative_to = (pose.get("relative_to") or pose.get("frame") or "").strip()  # 'frame' up to version 1.6
    values = _numbers(pose, path)
    line = find_line(pose, path)
    if pose.get("rotation_format", "euler_rpy") == "quat_xyzw":
        if len(values) != 7 or not any(values[3:]):
            raise line.wrong("<pose rotation_format='quat_xyzw'> holds seven numbers: x y z, and a quaternion x y z w")
        x, y, z, w = values[3:]
        return SdfPose(Placement.from_quaternion(values[:3], (w, x, y, z)), relative_to)
    if not values:
        return SdfPose(ORIGIN, relative_to)
    if len(values) != 6:
        raise line.wrong(f"<pose> holds six numbers, x y z roll pitch yaw, not {len(values)}")
    angles = np.array(values[3:])
    if pose.get("degrees", "false").strip().lower() in ("true", "1"):
        angles = np.deg2rad(angles)
    return SdfPose(Placement.from_rpy(values[:3], angles), relative_to)


def read_pitch(joint: Any, path: Path) -> float:
    """Return the pitch of a screw in m/rad, right-handed.

    ``screw_thread_pitch`` is in m per revolution. The older ``thread_pitch`` is in rad/m and positive for left-handed
    threads, as Gazebo classic has it.
    """
    pitch, older = find_only(joint, "screw_thread_pitch", path), find_only(joint, "thread_pitch", path)
    if pitch is not None or older is None:
        return (1.0 if pitch is None else read_number(pitch, path)) / (2 * pi)
    value = read_number(older, path)
    if not value:
        raise find_line(older, path).wrong("<thread_pitch> is in rad/m and must not be zero")
    return -1 / value


def read_mimic(element: Any, path: Path) -> SdfMimic:
    """Return what the axis around a <mimic> follows, its reference as a part of the offset."""
    multiplier = read_child_number(element, "multiplier", path, 1.0)
    reference, offset = (read_child_number(element, tag, path, 0.0) for tag in ("reference", "offset"))
    joint = str(element.get("joint") or "").strip()
    if not joint:
        raise find_line(element, path).wrong("<mimic> needs the attribute 'joint'")
    second = element.get("axis", "axis") == "axis2"
    return SdfMimic(joint, multiplier, offset - multiplier * reference, second)
