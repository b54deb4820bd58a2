"""The joints as products of elementary motions: Spencer (thesis), A.2.3 and A.2.7."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fmilin.native.mechanism.parts import Joint
from fmilin.native.mechanism.placement import skew

__all__ = ["Ball", "Screw", "Step", "steps_of"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Screw:
    """Turns about ``w`` (unit or zero) while it moves along ``v``: e^(S q) with S = (w, v), v parallel to w."""

    w: tuple[float, float, float]
    v: tuple[float, float, float]

    @property
    def screws(self) -> Floats:
        """S, shape (1, 6)."""
        return np.array([[*self.w, *self.v]])

    @property
    def turn(self) -> Floats:
        """E_1, E_2, E_3 with e^(S q) = 1 + E_1 sin q + E_2 (1 - cos q) + E_3 q (A.1.3), shape (3, 4, 4)."""
        E = np.zeros((3, 4, 4))
        E[0, :3, :3] = skew(self.w)
        E[1, :3, :3] = skew(self.w) @ skew(self.w)
        E[2, :3, 3] = self.v
        return E


@dataclass(frozen=True)
class Ball:
    """Turns by a unit quaternion; the three freedoms are the angular velocity in axes of what turns."""

    @property
    def screws(self) -> Floats:
        """S, shape (3, 6)."""
        return np.eye(3, 6)


Step = Screw | Ball | None


def steps_of(joint: Joint) -> list[Screw | Ball]:
    """Return the elementary motions of a joint, from the parent outwards."""
    zero = (0.0, 0.0, 0.0)
    a, b = joint.axis, joint.second_axis or zero
    c = np.cross(a, b)
    along = (joint.pitch * a[0], joint.pitch * a[1], joint.pitch * a[2])
    x, y, z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
    steps: dict[str, list[Screw | Ball]] = {
        "revolute": [Screw(a, zero)],
        "prismatic": [Screw(zero, a)],
        "helical": [Screw(a, along)],
        "cylindrical": [Screw(a, zero), Screw(zero, a)],
        "universal": [Screw(a, zero), Screw(b, zero)],
        "spherical": [Ball()],
        "planar": [Screw(zero, b), Screw(zero, (float(c[0]), float(c[1]), float(c[2]))), Screw(a, zero)],
        "fixed": [],
        "free": [Screw(zero, x), Screw(zero, y), Screw(zero, z), Ball()],
    }
    return steps[joint.type]
