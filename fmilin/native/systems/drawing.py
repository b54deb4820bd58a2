"""What mechanisms are built with: links drawn in one posture, and the forces that hold a mechanism there."""

from __future__ import annotations

from dataclasses import dataclass
from math import atan2, cos, hypot, sin
from typing import Literal

import numpy as np

from fmilin.model.interface import Model
from fmilin.native.mechanism import Body, Joint, Loop, Placement

Pin = tuple[float, float]
Vector = tuple[float, float, float]


@dataclass(frozen=True)
class PlaneFrame:
    """The frame of a link in the drawing: the origin in m, and the angle of its x axis in rad."""

    origin: Pin
    angle: float = 0.0

    @classmethod
    def along(cls, first: Pin, second: Pin) -> PlaneFrame:
        """Return the frame at the first pin with its x axis towards the second."""
        return cls(first, atan2(second[1] - first[1], second[0] - first[0]))

    def local(self, point: Pin) -> Vector:
        """Return a point of the drawing, seen from this frame."""
        dx, dy = point[0] - self.origin[0], point[1] - self.origin[1]
        c, s = cos(self.angle), sin(self.angle)
        return (c * dx + s * dy, c * dy - s * dx, 0.0)


GROUND = PlaneFrame((0.0, 0.0))


def rod(name: str, mass: float, last: float, *, first: float = 0.0) -> Body:
    """Return a uniform thin rod along the x axis of its frame, from ``first`` to ``last``."""
    moment = mass * (last - first) ** 2 / 12
    return Body(name, mass, ((first + last) / 2, 0.0, 0.0), (0.0, moment, moment))


def pinned(
    name: str, parent: tuple[str, PlaneFrame], child: tuple[str, PlaneFrame], *, names: tuple[str, ...] = ()
) -> Joint:
    """Return the pin at the origin of a link on another: its coordinate is the angle between the x axes."""
    where = Placement(parent[1].local(child[1].origin))
    return Joint(name, "revolute", parent[0], child[0], where, position=child[1].angle - parent[1].angle, names=names)


def pinned_loop(
    name: str,
    at: Pin,
    first: tuple[str, PlaneFrame],
    second: tuple[str, PlaneFrame],
    kind: Literal["point_on_line", "revolute"] = "point_on_line",
) -> Loop:
    """Return the pin at a point of the drawing that closes a loop.

    As ``point_on_line`` across the plane it holds two directions, all that a plane mechanism needs; a ``revolute``
    one holds three more, which are held already.
    """
    return Loop(name, kind, first[0], second[0], Placement(first[1].local(at)), Placement(second[1].local(at)))


def distance(a: Pin, b: Pin) -> float:
    """Return the distance of two pins in m."""
    return hypot(b[0] - a[0], b[1] - a[1])


def holding_forces(model: Model) -> tuple[float, ...]:
    """Return inputs that hold a model with as many inputs as freedoms at rest at its start, where a = a_0 + B u."""
    n = len(model.inputs)
    speeds = [model.states.index_of(name) for name in model.independent[-n:]]
    x = model.start.states

    def accelerations(u: np.ndarray) -> np.ndarray:
        return model.evaluate(0.0, x, u).derivatives[speeds]

    at_zero = accelerations(np.zeros(n))
    size = 1e3  # any: affine
    B = np.stack([(accelerations(size * e) - at_zero) / size for e in np.eye(n)], axis=1)
    return tuple(float(u) for u in np.linalg.solve(B, -at_zero))
