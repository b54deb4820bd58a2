"""Where one frame stands in another: the constant transformations M of Spencer (thesis), section A.2.2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmilin.ground.errors import ModelError

Vector = tuple[float, float, float]
Numbers = Sequence[float] | NDArray[Any]

ORTHONORMAL = 1e-9  # A matrix that misses R' R = 1 by more is no rotation


@dataclass(frozen=True)
class Placement:
    """A frame: its origin and its axes, seen from another frame."""

    position: Vector = (0.0, 0.0, 0.0)  # the origin, in m
    # 3 x 3 numbers, its columns are the axes of the frame; :meth:`from_rpy`, :meth:`from_axis` and
    # :meth:`from_quaternion` build it
    rotation: Any = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))

    def __post_init__(self) -> None:
        object.__setattr__(self, "position", vector(self.position, "The position of a frame"))
        R = np.asarray(self.rotation, dtype=np.float64)
        if R.shape != (3, 3) or not np.isfinite(R).all():
            raise ModelError(f"The rotation of a frame must be 3 x 3 finite numbers, not {self.rotation!r}.")
        if np.abs(R.T @ R - np.eye(3)).max() > ORTHONORMAL or np.linalg.det(R) < 0:
            raise ModelError(
                f"{R.tolist()} is no rotation: its columns must be three perpendicular unit vectors, right-handed. "
                "Build it with Placement.from_rpy, from_axis or from_quaternion."
            )
        object.__setattr__(self, "rotation", tuple(tuple(float(a) for a in row) for row in R))

    @classmethod
    def from_rpy(cls, position: Numbers = (0.0, 0.0, 0.0), rpy: Numbers = (0.0, 0.0, 0.0)) -> Placement:
        """Return a frame turned by roll about x, then pitch about the fixed y, then yaw about the fixed z, in rad."""
        roll, pitch, yaw = vector(rpy, "rpy")
        R = turned_about((0, 0, 1), yaw) @ turned_about((0, 1, 0), pitch) @ turned_about((1, 0, 0), roll)
        return cls(vector(position, "The position of a frame"), _rows(R))

    @classmethod
    def from_axis(
        cls, position: Numbers = (0.0, 0.0, 0.0), axis: Numbers = (0.0, 0.0, 1.0), angle: float = 0.0
    ) -> Placement:
        """Return a frame turned by ``angle`` rad about ``axis``."""
        return cls(vector(position, "The position of a frame"), _rows(turned_about(axis, angle)))

    @classmethod
    def from_quaternion(cls, position: Numbers, quaternion: Numbers) -> Placement:
        """Return a frame turned by the quaternion (e0, e1, e2, e3), e0 the real part; it need not be of unit length."""
        e = np.asarray(quaternion, dtype=np.float64)
        if e.shape != (4,) or not np.isfinite(e).all() or not e.any():
            raise ModelError(f"A quaternion is four finite numbers that are not all zero, not {quaternion!r}.")
        e = e / np.linalg.norm(e)
        R = (2 * e[0] ** 2 - 1) * np.eye(3) + 2 * np.outer(e[1:], e[1:]) + 2 * e[0] * skew(e[1:])
        return cls(vector(position, "The position of a frame"), _rows(R))

    @property
    def p(self) -> NDArray[np.float64]:
        """The origin, shape (3,)."""
        return np.array(self.position)

    @property
    def R(self) -> NDArray[np.float64]:
        """The rotation, shape (3, 3)."""
        return np.array(self.rotation)

    @property
    def matrix(self) -> NDArray[np.float64]:
        """The homogeneous transformation, shape (4, 4) (A.1.1)."""
        return np.block([[self.R, self.p[:, None]], [np.zeros((1, 3)), np.ones((1, 1))]])

    def then(self, other: Placement) -> Placement:
        """Return where ``other``, a frame in this frame, stands in the frame that this one stands in."""
        return Placement(vector(self.p + self.R @ other.p, "The position of a frame"), _rows(self.R @ other.R))


def floats(values: Any) -> NDArray[np.float64]:
    """Return an array of floats; a single NaN where there are no numbers."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return np.array(np.nan)


def vector(values: Any, what: str) -> Vector:
    """Return three finite floats."""
    numbers = floats(values)
    if numbers.shape != (3,) or not np.isfinite(numbers).all():
        raise ModelError(f"{what} must be three finite numbers, not {values!r}.")
    return float(numbers[0]), float(numbers[1]), float(numbers[2])


def unit(values: Any, what: str) -> Vector:
    """Return a vector of length 1 in the given direction."""
    a = np.array(vector(values, what))
    if not a.any():
        raise ModelError(f"{what} must not be zero.")
    a = a / np.linalg.norm(a)
    return float(a[0]), float(a[1]), float(a[2])


def perpendicular(a: Vector) -> Vector:
    """Return a unit vector across a: x for z, so that x, y, angle of planar joints read as expected."""
    across = np.eye(3)[int(np.argmin(np.abs(np.round(a, 9))))]
    return unit(across - np.dot(across, a) * np.array(a), "an axis")


def skew(w: Numbers) -> NDArray[np.float64]:
    """Return the matrix [w] of A.1.2 with [w] x = w x x."""
    return np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])


def turned_about(axis: Numbers, angle: float) -> NDArray[np.float64]:
    """Return the rotation by ``angle`` rad about ``axis`` (A.1.3), shape (3, 3)."""
    a = np.array(vector(axis, "An axis"))
    if not a.any():
        raise ModelError("An axis of rotation must not be zero.")
    w = skew(a / np.linalg.norm(a))
    return np.asarray(np.eye(3) + np.sin(angle) * w + (1 - np.cos(angle)) * (w @ w))


def _rows(R: NDArray[np.float64]) -> tuple[Vector, Vector, Vector]:
    a, b, c = (vector(row, "A row of a rotation") for row in R)
    return a, b, c


ORIGIN = Placement()  # the frame itself
