"""The common base of a mechanism's parts: a name, frames, and fields that are checked according to their types.

A field is written ``key: Annotated[type, "what it means"]``. The type says how it is checked here, and what a file may
hold in its place (:mod:`fmilin.models.mechanism.schema`); the text is what the documentation says of the key.
Placements are the constant transformations M of Spencer (thesis), section A.2.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import Enum, auto
from functools import cache
from math import isfinite
from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import ModelError
from fmilin.tolerances import SYMMETRY_TOLERANCE

Vector = tuple[float, float, float]
Numbers = Sequence[float] | NDArray[Any]

ORTHONORMALITY_TOLERANCE = 1e-9  # A matrix that misses R' R = 1 by more is not a rotation


@dataclass(frozen=True)
class Placement:
    """A frame: its origin and its axes, seen from another frame."""

    position: Vector = (0.0, 0.0, 0.0)  # the origin, in m
    # 3 x 3 numbers, its columns are the axes of the frame; :meth:`from_rpy`, :meth:`from_axis` and
    # :meth:`from_quaternion` build it
    rotation: Sequence[Sequence[float]] | NDArray[np.float64] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))

    def __post_init__(self) -> None:
        object.__setattr__(self, "position", vector(self.position, "The position of a frame"))
        R = np.asarray(self.rotation, dtype=np.float64)
        if R.shape != (3, 3) or not np.isfinite(R).all():
            raise ModelError(f"The rotation of a frame must be 3 x 3 finite numbers, not {self.rotation!r}.")
        if np.abs(R.T @ R - np.eye(3)).max() > ORTHONORMALITY_TOLERANCE or np.linalg.det(R) < 0:
            raise ModelError(
                f"{R.tolist()} is not a rotation: its columns must be three perpendicular unit vectors, right-handed. "
                "Build it with Placement.from_rpy, from_axis or from_quaternion."
            )
        object.__setattr__(self, "rotation", tuple(tuple(float(a) for a in row) for row in R))

    @classmethod
    def from_rpy(cls, position: Numbers = (0.0, 0.0, 0.0), rpy: Numbers = (0.0, 0.0, 0.0)) -> Placement:
        """Return a frame turned by roll about x, then pitch about the fixed y, then yaw about the fixed z, in rad."""
        roll, pitch, yaw = vector(rpy, "rpy")
        R = (
            rotation_about_axis((0, 0, 1), yaw)
            @ rotation_about_axis((0, 1, 0), pitch)
            @ rotation_about_axis((1, 0, 0), roll)
        )
        return cls(vector(position, "The position of a frame"), _rows(R))

    @classmethod
    def from_axis(
        cls, position: Numbers = (0.0, 0.0, 0.0), axis: Numbers = (0.0, 0.0, 1.0), angle: float = 0.0
    ) -> Placement:
        """Return a frame turned by ``angle`` rad about ``axis``."""
        return cls(vector(position, "The position of a frame"), _rows(rotation_about_axis(axis, angle)))

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

    @property
    def quaternion(self) -> tuple[float, float, float, float]:
        """The rotation as a unit quaternion (e0, e1, e2, e3), its largest element positive."""
        R = self.R
        # Four times the products of the elements: the row of the largest has no cancellation.
        products = np.empty((4, 4))
        products[0, 0] = 1 + np.trace(R)
        products[1:, 1:] = R + R.T + (1 - np.trace(R)) * np.eye(3)
        products[0, 1:] = products[1:, 0] = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
        row = products[int(np.argmax(np.diag(products)))]
        e0, e1, e2, e3 = (row / np.linalg.norm(row)).tolist()
        return e0, e1, e2, e3

    def invert(self) -> Placement:
        """Return where the frame that this one stands in stands in this one."""
        return Placement(vector(-self.R.T @ self.p, "The position of a frame"), _rows(self.R.T))


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
        raise ModelError(f"{what} must not be zero: give another vector.")
    a = a / np.linalg.norm(a)
    return float(a[0]), float(a[1]), float(a[2])


def perpendicular(a: Vector) -> Vector:
    """Return a unit vector across a: x for z, so that x, y, angle of planar joints read as expected."""
    across = np.eye(3)[int(np.argmin(np.abs(np.round(a, 9))))]
    return unit(across - np.dot(across, a) * np.array(a), "an axis")


def skew(w: Numbers) -> NDArray[np.float64]:
    """Return the matrix [w] of A.1.2 with [w] x = w x x."""
    return np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])


def rotation_about_axis(axis: Numbers, angle: float) -> NDArray[np.float64]:
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


DIRECTIONS = ("axis", "second_axis", "normal", "direction", "pointer")  # vectors that are made of unit length


class Shape(Enum):
    """The forms of numbers that a field accepts."""

    PER_COORDINATE = auto()  # a number, or one for each coordinate
    THREE = auto()
    LIMITS = auto()  # two numbers, infinite ones too, or none
    INERTIA = auto()
    SIX_AXES = auto()


PerCoordinate = Annotated[Any, Shape.PER_COORDINATE]
Three = Annotated[Any, Shape.THREE]
Limits = Annotated[Any, Shape.LIMITS]
Inertia = Annotated[Any, Shape.INERTIA]
SixAxes = Annotated[Any, Shape.SIX_AXES]


class Key(NamedTuple):
    """A field of a part."""

    name: str
    type: Any  # without None
    is_optional: bool  # whether it may be None
    shape: Shape | None
    text: str
    default: Any  # dataclasses.MISSING where it is needed


@dataclass(frozen=True)
class Part:
    """A named part, which checks itself; what concerns several parts is checked by their description."""

    kind: ClassVar[str]  # what messages call it

    name: Annotated[str, "Its name."]

    def __init_subclass__(cls, *, kind: str) -> None:
        cls.kind = kind

    def __post_init__(self) -> None:
        """Check every field by its type; a part that has more to check goes on from here."""
        if not isinstance(self.name, str) or not self.name or "`" in self.name or self.name != self.name.strip():
            raise ModelError(f"{self.name!r} is not a name for a {self.kind}: use letters, digits and underscores.")
        for key in list_keys(type(self)):  # type: ignore[arg-type]  # a class can be hashed
            value = getattr(self, key.name)
            checked = None if value is None and key.is_optional else self._check_value(key, value)
            if checked is not value:
                self._set(key.name, checked)
        nominal = getattr(self, "nominal", None)
        if nominal is not None and not nominal > 0:
            raise ModelError(f"The nominal value of {self.where} must be positive, and is {nominal}.")
        delay = getattr(self, "delay", 0.0)
        if delay < 0:
            raise ModelError(f"The delay of {self.where} is {delay} s: it must not be negative.")

    @property
    def where(self) -> str:
        """The name of this part in messages."""
        return f"the {self.kind} '{self.name}'"

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _check_value(self, key: Key, value: Any) -> Any:
        if key.type in (str, bool, int, Any) or (key.type is float and type(value) is float and isfinite(value)):
            return value
        what = f"The {key.name.replace('_', ' ')} of {self.where}"
        if key.type == Vector:
            return (unit if key.name in DIRECTIONS else vector)(value, what)
        if key.type is float and not (np.ndim(value) == 0 and np.isfinite(floats(value))):
            raise ModelError(f"{what} must be a finite number, not {value!r}.")
        if get_origin(key.type) is Literal and value not in get_args(key.type):
            kind, types = self.kind if key.name == "type" else key.name, ", ".join(get_args(key.type))
            raise ModelError(f"'{value}' of {self.where} is not a type of {kind}. Known: {types}.")
        return tuple(value) if get_origin(key.type) in (Sequence, tuple) else value


@cache
def list_keys(part: Any) -> tuple[Key, ...]:
    """Return the fields of a kind of part, a class."""
    hints, keys = get_type_hints(part, include_extras=True), []
    for field in fields(part):
        of, (*shapes, text) = hints[field.name].__origin__, hints[field.name].__metadata__
        is_optional = isinstance(of, UnionType)
        of = get_args(of)[0] if is_optional else of
        keys.append(Key(field.name, of, is_optional, shapes[0] if shapes else None, text, field.default))
    return tuple(keys)


def numbers(value: Any, count: int | None, what: str, *, finite: bool = True) -> tuple[float, ...]:
    """Return ``count`` numbers, or any number of them but none, as a tuple."""
    values = floats(value).reshape(-1)
    right = np.isfinite(values) if finite else ~np.isnan(values)
    if (count is not None and len(values) != count) or not right.all() or not len(values) + (count == 0):
        how_many = f"{count} finite" if count and finite else count or "finite"
        raise ModelError(
            f"{what[0].upper()}{what[1:]} must be {how_many} numbers, not {value!r}. Give a list of finite numbers."
        )
    return tuple(values.tolist())


def limits(value: Any, what: str) -> tuple[float, ...]:
    """Return two numbers, the lower one first, or none."""
    if not len(value):
        return ()
    low, high = numbers(value, 2, what, finite=False)
    if not low <= high:
        raise ModelError(f"{what} must be two numbers, the lower one first, not {value!r}.")
    return low, high


def symmetric(value: Any, size: int, what: str) -> NDArray[np.float64]:
    """Return a symmetric matrix, given whole or by its diagonal; of size 3 also as (xx, yy, zz, xy, xz, yz)."""
    matrix = floats(value)
    if matrix.shape == (size,):
        matrix = np.diag(matrix)
    elif matrix.shape == (6,) and size == 3:
        matrix = matrix[[[0, 3, 4], [3, 1, 5], [4, 5, 2]]]
    if matrix.shape != (size, size) or not np.isfinite(matrix).all():
        forms = f"{size}{', 6' * (size == 3)} or {size} x {size}"
        raise ModelError(f"{what} must be {forms} finite numbers, not {value!r}. Give a list of such numbers.")
    if np.abs(matrix - matrix.T).max() > SYMMETRY_TOLERANCE * np.abs(matrix).max():
        raise ModelError(f"{what} is not symmetric: exchanged entries must be equal.")
    return np.asarray((matrix + matrix.T) / 2)
