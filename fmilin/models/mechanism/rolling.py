"""Bodies of a robot that roll on the ground, named by the user: each becomes a wheel of the mechanism.

The ground is the plane through the origin across gravity. Radius and center of a wheel are those of the one cylinder or
ball for contacts of the body in its file, and its axle is that of its revolute joint, else of the cylinder.
Without such a shape the user gives the radius, and the centre is the origin of the body's joint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree

from fmilin.errors import UnknownNameError, UsageError
from fmilin.models.mechanism.mechanism_description import MechanismDescription
from fmilin.models.mechanism.mechanism_elements import Wheel
from fmilin.models.mechanism.part import ORIGIN, Placement, Vector, vector
from fmilin.models.mechanism.parts import Joint


@dataclass(frozen=True)
class RollingShape:
    """The shape of a body that touches the ground, in the body's frame."""

    center: Vector
    axis: Vector | None  # of a cylinder; None for a ball
    radius: float  # in m


FindShape = Callable[[str], RollingShape | None]


def add_wheels(
    description: MechanismDescription, requests: Sequence[str], find_shape: FindShape
) -> MechanismDescription:
    """Return a mechanism in which bodies roll on the ground without slip.

    Parameters
    ----------
    description : MechanismDescription
    requests : sequence of str
        ``BODY`` or ``BODY:RADIUS``, with the radius in m.
    find_shape : callable
        Returns the shape of a body by its name; None without one.

    Raises
    ------
    UnknownNameError
        When there is no such body.
    UsageError
        When the radius or the axle of a wheel is unknown.
    """
    wheels = [_make_wheel(description, request, find_shape) for request in requests]
    return replace(description, wheels=[*description.wheels, *wheels])


def _make_wheel(description: MechanismDescription, request: str, find_shape: FindShape) -> Wheel:
    names = [body.name for body in description.bodies]
    name, radius = request, None
    if request not in names:  # names of SDFormat may contain colons
        name, _, text = request.rpartition(":")
        if name not in names:
            raise UnknownNameError.among(request, names, f"a body of '{description.name}' that can roll")
        radius = _read_radius(request, text)
    joint = next((j for j in description.joints if j.child == name), None)
    shape = find_shape(name)
    if radius is None and shape is None:
        raise UsageError(
            f"The file of '{description.name}' has no cylinder or ball for contacts of '{name}', so its radius as a "
            f"wheel is unknown. Give it in m: '{name}:0.1'."
        )
    is_ball = radius is None and shape is not None and shape.axis is None
    size = radius if radius is not None else shape.radius if shape is not None else 0.0
    normal = _find_normal(description)
    center = ORIGIN.position if joint is None else joint.child_placement.position
    center = center if shape is None else shape.center
    wheel_name = f"{name}.wheel"
    if is_ball:
        return Wheel(wheel_name, name, center=center, tube=size, normal=normal)
    axis = _find_axle(joint) or (None if shape is None else shape.axis)
    if axis is None:
        raise UsageError(
            f"The axle of '{name}' is unknown: it is not on a revolute joint, and its file has no cylinder for its "
            "contacts. Write a [[wheel]] in a mechanism file that names the robot."
        )
    return Wheel(wheel_name, name, center=center, axis=axis, radius=size, normal=normal)


def _read_radius(request: str, text: str) -> float:
    try:
        radius = float(text)
    except ValueError:
        radius = 0.0
    if not (np.isfinite(radius) and radius > 0):
        raise UsageError(f"'{request}' must be BODY or BODY:RADIUS, with a positive radius in m.")
    return radius


def _find_axle(joint: Joint | None) -> Vector | None:
    """Return the axle of a body in its own frame, where a joint turns it about one axis."""
    if joint is None or joint.type != "revolute":
        return None
    return _as_vector(np.array(joint.child_placement.rotation) @ np.array(joint.axis))


def _find_normal(description: MechanismDescription) -> Vector:
    gravity = np.array(description.gravity)
    length = float(np.linalg.norm(gravity))
    return _as_vector(-gravity / length) if length else (0.0, 0.0, 1.0)


def _as_vector(values: Any) -> Vector:
    return vector([float(value) + 0.0 for value in values], "A direction")


def read_rolling_shape(path: Path, name: str) -> RollingShape | None:
    """Return the cylinder or ball of the collisions of a link in a URDF or SDFormat file.

    None where the file has no such link of its own, or no or several such shapes, or one in another frame than the
    link's.
    """
    root = etree.parse(path, etree.XMLParser(resolve_entities=False, no_network=True)).getroot()
    last = name.rpartition("::")[2]
    links = [link for link in root.iter("link") if link.get("name") == last]
    shapes = [shape for link in links for collision in link.findall("collision") for shape in _read_shapes(collision)]
    return shapes[0] if len(links) == 1 and len(shapes) == 1 else None


def _read_shapes(collision: Any) -> list[RollingShape]:
    geometry = collision.find("geometry")
    placement = _read_placement(collision)
    if geometry is None or placement is None:
        return []
    shapes = []
    for shape in geometry:
        if shape.tag not in ("cylinder", "sphere"):
            continue
        radius = shape.get("radius") or shape.findtext("radius")
        axis = _as_vector(np.array(placement.rotation)[:, 2]) if shape.tag == "cylinder" else None
        shapes.append(RollingShape(placement.position, axis, float(radius)))
    return shapes


def _read_placement(collision: Any) -> Placement | None:
    """Return where a collision is in its link; None where the file refers to another frame."""
    origin, pose = collision.find("origin"), collision.find("pose")
    if origin is not None:
        xyz, rpy = ([float(t) for t in (origin.get(key) or "0 0 0").split()] for key in ("xyz", "rpy"))
        return Placement.from_rpy(xyz, rpy)
    if pose is None or not (pose.text or "").split():
        return ORIGIN
    numbers = [float(t) for t in pose.text.split()]
    is_plain = not any(pose.get(key) for key in ("relative_to", "degrees", "rotation_format"))
    return Placement.from_rpy(numbers[:3], numbers[3:]) if is_plain and len(numbers) == 6 else None
