"""Angles of a mechanism file in degrees: everything inside counts in rad."""

from __future__ import annotations

from math import pi
from typing import Any

from fmilin.native.mechanism.parts import COORDINATES, SPEEDS

__all__ = ["in_radians", "offset_in_radians", "setting_in_radians"]

LENGTHS = {"x", "y", "z", "stroke"}
"""Coordinates that are no angles, but in prismatic joints."""
PLACEMENTS = ("placement", "child_placement", "first_placement", "second_placement")
DEGREE = pi / 180


def in_radians(kind: str, entry: dict[str, Any]) -> dict[str, Any]:
    """Return a table of a file in degrees in rad.

    Positions, velocities and rests of joints, turns of loops, and the angles of frames change; what is measured per
    angle (stiffness, damping, pitch, ratio) counts in rad always.
    """
    changed = setting_in_radians(entry["type"], entry) if kind == "joint" else dict(entry)
    if kind == "loop" and "turn" in entry:
        changed["turn"] = entry["turn"] * DEGREE
    for key in PLACEMENTS:
        if key in entry:
            frame = dict(entry[key])
            for angle in ("rpy", "angle"):
                if frame.get(angle) is not None:
                    frame[angle] = _scaled(frame[angle], [True] * 3)
            changed[key] = frame
    return changed


def setting_in_radians(joint_type: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return values of a joint, ``position``, ``velocity`` and ``rest`` among them, in rad."""
    changed = dict(values)
    for key, names in (("position", COORDINATES), ("velocity", SPEEDS), ("rest", SPEEDS)):
        if values.get(key) is not None:
            changed[key] = _scaled(values[key], [_is_angle(joint_type, c) for c in names[joint_type]])
    return changed


def offset_in_radians(joint_type: str, offset: float) -> float:
    """Return the offset of a coupling that is followed by a joint of this type."""
    return offset if joint_type == "prismatic" else offset * DEGREE


def _is_angle(joint_type: str, coordinate: str) -> bool:
    if joint_type == "prismatic" or coordinate in LENGTHS or coordinate in ("vx", "vy", "vz"):
        return False
    if joint_type == "cylindrical" and coordinate == "v":
        return False
    return not (coordinate[0] == "e" and coordinate[1:].isdigit())  # parts of a quaternion


def _scaled(value: Any, is_angle: list[bool]) -> Any:
    """Return a number, or one for each coordinate, in rad; what does not fit stays, to be refused by the part."""
    if not isinstance(value, list):
        return value * DEGREE if is_angle and is_angle[0] and len(is_angle) in (1, 3) else value
    if len(value) != len(is_angle):
        return value
    return [v * DEGREE if turns else v for v, turns in zip(value, is_angle, strict=True)]
