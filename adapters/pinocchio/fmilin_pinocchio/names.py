"""Names of the coordinates and velocities of Pinocchio's joints, and how positions follow from velocities.

Unit quaternions and the (cos, sin) of unbounded joints are states with a constraint each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fmilin.errors import ModelError
from fmilin.signals import FloatArray, Signal, Signals

__all__ = ["Joint", "joints_of", "signals_of"]

_POSITIONS = {
    "simple": [("q", "rad")],
    "slide": [("q", "m")],
    "unbounded": [("cos", "1"), ("sin", "1")],
    "ball": [(p, "1") for p in ("qx", "qy", "qz", "qw")],
    "planar": [("x", "m"), ("y", "m"), ("cos", "1"), ("sin", "1")],
    "free": [(p, "m") for p in "xyz"] + [(p, "1") for p in ("qx", "qy", "qz", "qw")],
}
_VELOCITIES = {
    "simple": [("v", "rad/s")],
    "slide": [("v", "m/s")],
    "unbounded": [("v", "rad/s")],
    "ball": [(p, "rad/s") for p in ("wx", "wy", "wz")],
    "planar": [("vx", "m/s"), ("vy", "m/s"), ("w", "rad/s")],
    "free": [(p, "m/s") for p in ("vx", "vy", "vz")] + [(p, "rad/s") for p in ("wx", "wy", "wz")],
}


@dataclass(frozen=True)
class Joint:
    """A joint with its places among positions and velocities."""

    name: str
    kind: str
    q: int
    v: int

    @property
    def sizes(self) -> tuple[int, int]:
        """How many positions and velocities it has."""
        return len(_POSITIONS[self.kind]), len(_VELOCITIES[self.kind])

    @property
    def unit(self) -> list[str]:
        """Names of the positions with squares that add up to one."""
        return [self.position(p) for p, unit in _POSITIONS[self.kind] if unit == "1"]

    def position(self, part: str) -> str:
        """Return the name of a position."""
        return f"{self.name}.{part}"

    def map(self, q: FloatArray) -> FloatArray:
        """Return E with q' = E(q) v for the joint's own q and v; velocities are those in the joint's moving frame."""
        if self.kind in ("simple", "slide"):
            return np.eye(1)
        if self.kind == "unbounded":
            return np.array([[-q[1]], [q[0]]])
        if self.kind == "ball":
            return _quaternion_map(q)
        E = np.zeros(self.sizes)
        if self.kind == "planar":
            c, s = q[2:]
            E[:2, :2], E[2:, 2] = [[c, -s], [s, c]], [-s, c]
        else:
            E[:3, :3], E[3:, 3:] = _rotation(q[3:]), _quaternion_map(q[3:])
        return E

    def map_slope(self, q: FloatArray, dq: FloatArray, v: FloatArray) -> FloatArray:
        """Return (dE along dq) v, for directions that keep unit lengths."""
        if self.kind in ("simple", "slide"):
            return np.zeros(1)
        if self.kind != "free":
            return self.map(dq) @ v  # E is linear in q
        turn = 4.0 * _quaternion_map(q[3:]).T @ dq[3:]  # E'E = I/4
        return np.concatenate((_rotation(q[3:]) @ np.cross(turn, v[:3]), _quaternion_map(dq[3:]) @ v[3:]))


def joints_of(robot: Any) -> Iterator[Joint]:
    """Yield the joints of a model.

    Raises
    ------
    ModelError
        When one is of a kind without names here.
    """
    for j in range(1, robot.njoints):
        size, kind = (robot.nqs[j], robot.nvs[j]), robot.joints[j].shortname()
        shape = {(1, 1): "slide" if "JointModelP" in kind else "simple", (2, 1): "unbounded", (7, 6): "free"}.get(size)
        if size == (4, 3):
            shape = "planar" if "Planar" in kind else "ball"
        if shape is None:
            raise ModelError(f"The joint '{robot.names[j]}' has the kind {kind}, which this adapter does not support.")
        yield Joint(robot.names[j], shape, robot.idx_qs[j], robot.idx_vs[j])


def signals_of(joints: list[Joint], q: FloatArray) -> Signals:
    """Return the states, positions first, starting at rest at q."""
    positions = [(joint.position(p), unit) for joint in joints for p, unit in _POSITIONS[joint.kind]]
    velocities = [(joint.position(p), unit) for joint in joints for p, unit in _VELOCITIES[joint.kind]]
    starts = [*q.tolist(), *([0.0] * len(velocities))]
    return Signals(Signal(n, unit, start=x) for (n, unit), x in zip([*positions, *velocities], starts, strict=True))


def _quaternion_map(q: FloatArray) -> FloatArray:
    """Return E with q' = E w = q (w, 0)/2, q = (x, y, z, w)."""
    x, y, z, w = q
    return 0.5 * np.array([[w, -z, y], [z, w, -x], [-y, x, w], [-x, -y, -z]])


def _rotation(q: FloatArray) -> FloatArray:
    x, y, z, w = q / np.linalg.norm(q)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
