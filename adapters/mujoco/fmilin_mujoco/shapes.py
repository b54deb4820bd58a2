"""The lowest point and the centre of geoms: support functions of MuJoCo's shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np

from fmilin.signals import FloatArray

__all__ = ["points_of"]

GEOM = mujoco.mjtGeom
LEVEL = 1e-6
"""An edge or face that is level up to this (as a sine) is lowest as a whole, and its middle is taken."""


def points_of(model: Any, data: Any, geoms: Sequence[int], up: FloatArray) -> dict[str, FloatArray]:
    """Return the lowest point against ``up`` (3,) among geoms, and the centre of the geom that has it, in the world.

    Planes, height fields and geoms of other kinds have no such point; where there are only these, nothing is returned.
    """
    points: dict[str, FloatArray] = {}
    for i in geoms:
        R, center = np.array(data.geom_xmat[i]).reshape(3, 3), np.array(data.geom_xpos[i])
        farthest = _support(model, i, -up @ R)
        if farthest is None:
            continue
        lowest = center + R @ farthest
        if not points or up @ lowest < up @ points["lowest"]:
            points = {"center": center, "lowest": lowest}
    return points


def _support(model: Any, geom: int, d: FloatArray) -> FloatArray | None:
    """Return the point of a geom that is farthest along the unit vector d (3,), both in its frame."""
    kind, size = int(model.geom_type[geom]), np.array(model.geom_size[geom])
    sides = np.where(np.abs(d) > LEVEL, np.sign(d), 0.0)
    if kind == GEOM.mjGEOM_SPHERE:
        return np.asarray(size[0] * d)
    if kind == GEOM.mjGEOM_CAPSULE:
        return np.asarray(size[0] * d + (0, 0, size[1] * sides[2]))
    if kind == GEOM.mjGEOM_ELLIPSOID:
        return np.asarray(size**2 * d / np.linalg.norm(size * d))
    if kind == GEOM.mjGEOM_CYLINDER:
        across = float(np.hypot(d[0], d[1]))
        rim = size[0] * d[:2] / across if across > LEVEL else np.zeros(2)
        return np.array([*rim, size[1] * sides[2]])
    if kind == GEOM.mjGEOM_BOX:
        return np.asarray(size * sides)
    if kind == GEOM.mjGEOM_MESH:
        mesh = model.geom_dataid[geom]
        first = model.mesh_vertadr[mesh]
        vertices = np.array(model.mesh_vert[first : first + model.mesh_vertnum[mesh]], dtype=np.float64)
        heights = vertices @ d
        return np.asarray(vertices[heights >= heights.max() - LEVEL * np.ptp(heights)].mean(axis=0))
    return None
