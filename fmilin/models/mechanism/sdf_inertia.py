"""Mass and inertia of a link from the shapes and densities of its collisions: ``<inertial auto="true">``.

SDFormat 1.11: each <collision> adds the inertia of its shape, with its own <density>, else that of <inertial>, else
1000 kg/m3. A <mass> of <inertial> scales the densities (SDFormat 1.12); a <pose> and an <inertia> there are ignored.
"""

from __future__ import annotations

from math import pi
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fmilin.models.mechanism.part import Placement
from fmilin.models.mechanism.sdf_values import (
    find_line,
    find_only,
    get_tag,
    read_child_number,
    read_number,
    read_pose,
    read_vector,
)
from fmilin.models.mechanism.urdf_elements import Inertial
from fmilin.signals import FloatArray

DENSITY_DEFAULT = 1000.0
"""In kg/m3: the default of the format."""
SHAPES = "box, capsule, cone, cylinder, ellipsoid and sphere"


class Solid(NamedTuple):
    """A body of density 1 in the frame of its shape."""

    volume: float
    center: FloatArray  # (3,)
    moments: FloatArray  # (3,), about the axes through the center, which are principal


def read_automatic_inertial(link: Any, inertial: Any, path: Path) -> Inertial:
    """Return mass, center and inertia of a link from its collisions.

    Raises
    ------
    ModelError
        When there is no collision, or a shape such as a mesh has no closed form.
    """
    line = find_line(inertial, path)
    default = read_child_number(inertial, "density", path, DENSITY_DEFAULT)
    mass, first, second = 0.0, np.zeros(3), np.zeros((3, 3))
    for collision in link:
        if get_tag(collision) != "collision":
            continue
        pose = read_pose(collision, path)
        if pose.relative_to:
            raise find_line(collision, path).wrong("a collision that counts for the inertia stands in its link's frame")
        density = read_child_number(collision, "density", path, default)
        solid = read_solid(collision, path)
        R, origin = np.array(pose.placement.rotation), np.array(pose.placement.position)
        part, center = density * solid.volume, origin + R @ solid.center
        mass += part
        first += part * center
        second += density * R @ np.diag(solid.moments) @ R.T
        second += part * (center @ center * np.eye(3) - np.outer(center, center))
    if not mass > 0:
        raise line.wrong("<inertial auto='true'> needs a <collision> with a volume and a density")
    center = first / mass
    inertia = second - mass * (center @ center * np.eye(3) - np.outer(center, center))
    stated = find_only(inertial, "mass", path)
    scale = 1.0 if stated is None else read_number(stated, path) / mass
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = (scale * inertia).tolist()
    return Inertial(scale * mass, Placement(tuple(center.tolist())), (xx, yy, zz, xy, xz, yz))


def read_solid(collision: Any, path: Path) -> Solid:
    """Return the solid of a collision's shape."""
    line = find_line(collision, path)
    geometry = find_only(collision, "geometry", path)
    shapes = [] if geometry is None else [child for child in geometry if get_tag(child)]
    if len(shapes) != 1:
        raise line.wrong("this <collision> has no <geometry> with one shape, which the inertia needs")
    shape, kind = shapes[0], get_tag(shapes[0])
    center = np.zeros(3)
    if kind == "box":
        a, b, c = (1.0, 1.0, 1.0) if find_only(shape, "size", path) is None else read_vector(shape.find("size"), path)
        volume = a * b * c
        moments = volume / 12 * np.array([b * b + c * c, a * a + c * c, a * a + b * b])
    elif kind == "ellipsoid":
        radii = find_only(shape, "radii", path)
        a, b, c = (1.0, 1.0, 1.0) if radii is None else read_vector(radii, path)
        volume = 4 / 3 * pi * a * b * c
        moments = volume / 5 * np.array([b * b + c * c, a * a + c * c, a * a + b * b])
    elif kind == "sphere":
        r = read_child_number(shape, "radius", path, 1.0)
        volume = 4 / 3 * pi * r**3
        moments = 0.4 * volume * r * r * np.ones(3)
    elif kind in ("cylinder", "capsule", "cone"):
        default = 0.5 if kind == "capsule" else 1.0
        r, h = read_child_number(shape, "radius", path, default), read_child_number(shape, "length", path, 1.0)
        volume, moments, center = _measure_round_solid(kind, r, h)
    else:
        raise line.wrong(f"the inertia of the shape <{kind}> has no closed form here: use {SHAPES}, or write it out")
    return Solid(volume, center, moments)


def _measure_round_solid(kind: str, r: float, h: float) -> tuple[float, FloatArray, FloatArray]:
    """Return volume, moments and center of a solid around the z axis with radius r and length h."""
    cylinder = pi * r * r * h
    if kind == "cylinder":
        across, along = cylinder * (3 * r * r + h * h) / 12, cylinder * r * r / 2
        return cylinder, np.array([across, across, along]), np.zeros(3)
    if kind == "cone":  # its base is at -h/2
        volume = cylinder / 3
        across, along = volume * 3 / 80 * (4 * r * r + h * h), volume * 0.3 * r * r
        return volume, np.array([across, across, along]), np.array([0.0, 0.0, -h / 4])
    caps = 4 / 3 * pi * r**3
    across = cylinder * (3 * r * r + h * h) / 12 + caps * (2 * r * r / 5 + h * h / 4 + 3 * h * r / 8)
    along = cylinder * r * r / 2 + caps * 2 * r * r / 5
    return cylinder + caps, np.array([across, across, along]), np.zeros(3)
