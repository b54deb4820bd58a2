"""Bodies that no two points show, as boxes of the same mass and inertia; wheels as circles with a spoke; springs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fmilin.models.mechanism import Wheel
from fmilin.models.mechanism.parts import Body

Floats = NDArray[np.float64]
BOX_PATH = (0, 1, 3, 2, 0, 4, 5, 1, 5, 7, 3, 7, 6, 2, 6, 4)  # over all twelve edges; bits of a corner are its signs
CIRCLE_POINT_COUNT = 49
MAX_SPRING_LENGTH = 1.5  # of the extent of all else: longer springs are drawn as their beginning
MIN_BOX_SIZE = 1e-9  # m: a smaller box is a point


def create_box(body: Body) -> Floats | None:
    """Return a path (16, 3) over the edges of the box with the body's mass and inertia, in its frame; None for a point.

    A uniform box with edges a, b, c has the moments m (b^2 + c^2)/12 and so on.
    """
    if not body.mass:
        return None
    moments, axes = np.linalg.eigh(body.J)
    edges = np.sqrt(np.maximum(6 * (moments.sum() - 2 * moments) / body.mass, 0.0))
    if edges.max() < MIN_BOX_SIZE:
        return None
    signs = np.array([[k >> bit & 1 for bit in range(3)] for k in BOX_PATH]) - 0.5
    return np.asarray(np.array(body.center) + (signs * edges) @ axes.T)


def create_wheel(wheel: Wheel) -> Floats:
    """Return a path along the rim of a wheel and to its centre, in the frame of its body; of a ball two circles."""
    axis = np.array(wheel.axis) / np.linalg.norm(wheel.axis)
    side = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
    side = side / np.linalg.norm(side)
    other = np.cross(axis, side)
    radius = wheel.radius + wheel.tube
    angle = np.linspace(0, 2 * np.pi, CIRCLE_POINT_COUNT)[:, None]
    center = np.array(wheel.center)
    rim = center + radius * (np.cos(angle) * side + np.sin(angle) * other)
    if wheel.radius > 0:
        return np.concatenate((rim, center[None]))
    return np.concatenate((rim, center + radius * (np.cos(angle) * side + np.sin(angle) * axis)))


def cut_spring(spring: Floats, other_points: Floats) -> Floats:
    """Return a spring (2, 3), of a long one the beginning: its far end would crush the picture of all the rest."""
    size = float(np.ptp(other_points, axis=0).max()) if len(other_points) else 0.0
    length = float(np.linalg.norm(spring[1] - spring[0]))
    if not 0 < MAX_SPRING_LENGTH * size < length:
        return spring
    near_end, far_end = sorted(spring, key=lambda end: float(np.linalg.norm(end - other_points.mean(axis=0))))
    return np.stack([near_end, near_end + MAX_SPRING_LENGTH * size / length * (far_end - near_end)])


def create_zigzag(points: Floats, side: Floats, size: float) -> Floats:
    """Return the corners of a spring between two points."""
    t = np.array([0.0, 0.18, *np.linspace(0.22, 0.78, 13), 0.82, 1.0])
    swing = np.array([0.0, 0.0, *(0.018 * size * (-1.0) ** np.arange(13)), 0.0, 0.0])
    return np.asarray(points[0] + t[:, None] * (points[1] - points[0]) + swing[:, None] * side)
