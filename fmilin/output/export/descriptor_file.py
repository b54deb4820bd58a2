"""A descriptor system as a file of its own: .mat for MATLAB and Octave, .npz for NumPy.

In the .mat file the matrices stand under their own names, so that::

    S = load('plant.mat'); sys = dss(S.A, S.B, S.C, S.D, S.E)
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from fmilin.ground.errors import ModelError, UsageError
from fmilin.ground.files import write_atomically
from fmilin.linear_model.descriptor import Descriptor
from fmilin.output.export.archives import DAMAGED, arrays_of
from fmilin.output.export.descriptor_part import ARRAYS, NAMES, from_part, to_part
from fmilin.output.export.mat5 import read, write

__all__ = ["load", "of_mat", "save", "to_mat"]


def save(descriptor: Descriptor, path: str | Path) -> None:
    """Write ``descriptor``, completely or not at all; the suffix picks the format."""
    part = to_part(descriptor)
    if _suffix(path, "write") == ".mat":
        write_atomically(path, write(to_mat(part)))
        return
    buffer = io.BytesIO()
    names = {name: np.array(part[name], dtype=np.str_) for name in NAMES}
    arrays: dict[str, Any] = {name: part[name] for name in (*ARRAYS, "order", "difference")} | names
    np.savez(buffer, **arrays)
    write_atomically(path, buffer.getvalue())


def load(path: str | Path) -> Descriptor:
    """Read what :func:`save` wrote."""
    suffix = _suffix(path, "read")
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ModelError(f"Cannot read the descriptor system '{path}': {error.strerror}.") from None
    try:
        if suffix == ".mat":
            return of_mat(read(content))
        part: dict[str, Any] = dict(arrays_of(content))
        return from_part(part | {name: part[name].tolist() for name in NAMES})
    except (*DAMAGED, KeyError, IndexError) as error:
        raise ModelError(f"'{path}' is no descriptor system that fmilin wrote: {error!r}.") from None


def to_mat(part: dict[str, Any]) -> dict[str, Any]:
    """Return the part as variables of a MAT-file: f0 is a column."""
    return part | {"f0": part["f0"].reshape(-1, 1), "order": float(part["order"])}


def of_mat(variables: dict[str, Any]) -> Descriptor:
    """Return the descriptor system that stands in the variables of a MAT-file."""
    part = {name: variables[name] for name in ARRAYS}
    part |= {name: list(variables[name]) for name in NAMES}
    numbers = {name: float(np.asarray(variables[name]).reshape(-1)[0]) for name in ("order", "difference")}
    return from_part(part | numbers | {"f0": np.asarray(part["f0"]).reshape(-1)})


def _suffix(path: str | Path, action: str) -> str:
    suffix = Path(path).suffix.lower()
    if suffix not in (".mat", ".npz"):
        raise UsageError(
            f"Cannot {action} '{path}' as a descriptor system: .mat and .npz are the formats that hold one."
        )
    return suffix
