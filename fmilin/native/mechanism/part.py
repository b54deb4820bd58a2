"""What the parts of a mechanism have in common: a name, and fields that are checked as their types say.

A field is written ``key: Annotated[type, "what it means"]``. The type says how it is checked here, and what a file may
hold in its place (:mod:`fmilin.native.mechanism.schema`); the text is what the documentation says of the key.
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

from fmilin.ground.errors import ModelError
from fmilin.ground.tolerances import SYMMETRIC
from fmilin.native.mechanism.placement import Vector, floats, unit, vector

DIRECTIONS = ("axis", "second_axis", "normal", "direction", "pointer")  # vectors that are made of unit length


class Shape(Enum):
    """What a field that takes numbers in several forms may hold."""

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
            raise ModelError(f"{self.name!r} is no name for a {self.kind}: use letters, digits and underscores.")
        for key in keys_of(type(self)):  # type: ignore[arg-type]  # a class can be hashed
            value = getattr(self, key.name)
            checked = None if value is None and key.is_optional else self._checked(key, value)
            if checked is not value:
                self._set(key.name, checked)
        nominal = getattr(self, "nominal", None)
        if nominal is not None and not nominal > 0:
            raise ModelError(f"The nominal value of {self.where} must be positive, and is {nominal}.")

    @property
    def where(self) -> str:
        """What messages call this one."""
        return f"the {self.kind} '{self.name}'"

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _checked(self, key: Key, value: Any) -> Any:
        if key.type in (str, bool, int, Any) or (key.type is float and type(value) is float and isfinite(value)):
            return value
        what = f"The {key.name.replace('_', ' ')} of {self.where}"
        if key.type == Vector:
            return (unit if key.name in DIRECTIONS else vector)(value, what)
        if key.type is float and not (np.ndim(value) == 0 and np.isfinite(floats(value))):
            raise ModelError(f"{what} must be a finite number, not {value!r}.")
        if get_origin(key.type) is Literal and value not in get_args(key.type):
            kind, types = self.kind if key.name == "type" else key.name, ", ".join(get_args(key.type))
            raise ModelError(f"'{value}' of {self.where} is no type of {kind}. Known: {types}.")
        return tuple(value) if get_origin(key.type) in (Sequence, tuple) else value


@cache
def keys_of(part: Any) -> tuple[Key, ...]:
    """Return the fields of a kind of part, a class."""
    hints, keys = get_type_hints(part, include_extras=True), []
    for field in fields(part):
        of, (*shapes, text) = hints[field.name].__origin__, hints[field.name].__metadata__
        is_optional = isinstance(of, UnionType)
        of = get_args(of)[0] if is_optional else of
        keys.append(Key(field.name, of, is_optional, shapes[0] if shapes else None, text, field.default))
    return tuple(keys)


def numbers(given: Any, count: int | None, what: str, *, finite: bool = True) -> tuple[float, ...]:
    """Return ``count`` numbers, or any number of them but none, as a tuple."""
    values = floats(given).reshape(-1)
    right = np.isfinite(values) if finite else ~np.isnan(values)
    if (count is not None and len(values) != count) or not right.all() or not len(values) + (count == 0):
        how_many = f"{count} finite" if count and finite else count or "finite"
        raise ModelError(f"{what[0].upper()}{what[1:]} must be {how_many} numbers, not {given!r}.")
    return tuple(values.tolist())


def limits(given: Any, what: str) -> tuple[float, ...]:
    """Return two numbers, the lower one first, or none."""
    if not len(given):
        return ()
    low, high = numbers(given, 2, what, finite=False)
    if not low <= high:
        raise ModelError(f"{what} must be two numbers, the lower one first, not {given!r}.")
    return low, high


def symmetric(given: Any, size: int, what: str) -> NDArray[np.float64]:
    """Return a symmetric matrix, given whole or by its diagonal; of size 3 also as (xx, yy, zz, xy, xz, yz)."""
    matrix = floats(given)
    if matrix.shape == (size,):
        matrix = np.diag(matrix)
    elif matrix.shape == (6,) and size == 3:
        matrix = matrix[[[0, 3, 4], [3, 1, 5], [4, 5, 2]]]
    if matrix.shape != (size, size) or not np.isfinite(matrix).all():
        forms = f"{size}{', 6' * (size == 3)} or {size} x {size}"
        raise ModelError(f"{what} must be {forms} finite numbers, not {given!r}.")
    if np.abs(matrix - matrix.T).max() > SYMMETRIC * np.abs(matrix).max():
        raise ModelError(f"{what} is not symmetric.")
    return np.asarray((matrix + matrix.T) / 2)
