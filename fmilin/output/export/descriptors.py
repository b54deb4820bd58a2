"""A descriptor system as plain data, for every format that carries one, and as a file of its own: .mat or .npz."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fmilin.ground.errors import UsageError
from fmilin.linear_model.descriptor import Descriptor
from fmilin.output.export.archives import archive_of, arrays_of, finite_array, reading
from fmilin.output.export.mat5 import read, write

ARRAYS = ("E", "A", "B", "C", "D", "f0")
NAMES = ("states", "inputs", "outputs")
WRITTEN = "descriptor system that fmilin wrote"


def to_part(descriptor: Descriptor) -> dict[str, Any]:
    """Return the matrices as arrays, the names as lists, ``order`` and ``difference``."""
    part: dict[str, Any] = {name: getattr(descriptor, name) for name in ARRAYS}
    for name, array in part.items():
        if not np.isfinite(array).all():
            raise UsageError(
                f"The matrix {name} of the descriptor system contains NaN or infinite entries, which no file should "
                "carry. Linearize again at a point where the model is defined."
            )
    part |= {name: list(getattr(descriptor, name)) for name in NAMES}
    return part | {"order": int(descriptor.order), "difference": float(descriptor.difference)}


def from_part(part: Mapping[str, Any]) -> Descriptor:
    """Return the descriptor system that :func:`to_part` described; a difference of None was NaN."""
    names: dict[str, Any] = {group: tuple(require_text(n) for n in part[group]) for group in NAMES}
    k, nu, ny = map(len, names.values())
    arrays: dict[str, Any] = {}
    for name, shape in zip(ARRAYS, ((k, k), (k, k), (k, nu), (ny, k), (ny, nu), (k,)), strict=True):
        array = finite_array(part[name], f"{name} of the descriptor system")
        if array.shape != shape and (array.size != np.prod(shape) or (array.size and 1 not in array.shape)):
            raise ValueError(f"{name} of the descriptor system has the shape {array.shape}, but the names say {shape}")
        arrays[name] = array.reshape(shape)
    difference = float("nan") if part["difference"] is None else float(part["difference"])
    return Descriptor(**arrays, **names, order=int(part["order"]), difference=difference)


def require_text(value: object) -> str:
    """Return a name or unit, which must be a text."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} stands where a name or unit should be")
    return value


def dumps_mat(descriptor: Descriptor) -> bytes:
    """Return the content of a .mat file."""
    return write(to_mat(to_part(descriptor)))


def loads_mat(content: bytes, origin: str) -> Descriptor:
    """Read what :func:`dumps_mat` wrote."""
    with reading(origin, WRITTEN):
        return of_mat(read(content))


def dumps_npz(descriptor: Descriptor) -> bytes:
    """Return the content of a .npz file."""
    part = to_part(descriptor)
    return archive_of(part | {name: np.array(part[name], dtype=np.str_) for name in NAMES})


def loads_npz(content: bytes, origin: str) -> Descriptor:
    """Read what :func:`dumps_npz` wrote."""
    with reading(origin, WRITTEN):
        part: dict[str, Any] = dict(arrays_of(content))
        return from_part(part | {name: part[name].tolist() for name in NAMES})


def to_mat(part: dict[str, Any]) -> dict[str, Any]:
    """Return the part as variables of a MAT-file: f0 is a column."""
    return part | {"f0": part["f0"].reshape(-1, 1), "order": float(part["order"])}


def of_mat(variables: dict[str, Any]) -> Descriptor:
    """Return the descriptor system that stands in the variables of a MAT-file."""
    part = {name: variables[name] for name in ARRAYS}
    part |= {name: list(variables[name]) for name in NAMES}
    numbers = {name: float(np.asarray(variables[name]).reshape(-1)[0]) for name in ("order", "difference")}
    return from_part(part | numbers | {"f0": np.asarray(part["f0"]).reshape(-1)})
