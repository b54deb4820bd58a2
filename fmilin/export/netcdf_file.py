"""Records as netCDF 4 files (HDF5), which xarray reads with labelled axes, and as data sets of xarray.

Arrays are variables with named dimensions, complex ones with a last dimension of real and imaginary part. The facts are
JSON text in the variable ``fmilin``: an attribute of HDF5 holds 64 kB, a variable any length.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import UsageError
from fmilin.export.record import Labelled, Record, Stored, facts_text
from fmilin.support.files import replaced_when_complete

if TYPE_CHECKING:
    import xarray

TEXT = "fmilin"
LARGEST_RUN = 2**20  # numbers that are written at once


def require_installed() -> None:
    """Raise UsageError if a package that netCDF files need is missing."""
    for package in ("h5netcdf", "h5py"):
        if find_spec(package) is None:
            raise UsageError(
                f"A .nc file needs the package {package}, which is not installed: pip install 'fmilin[families]', or "
                "write .npz, .mat or .json."
            )


def to_dataset(record: Record) -> xarray.Dataset:
    """Return the arrays as a data set with labelled axes; the facts are an attribute."""
    if find_spec("xarray") is None:
        raise UsageError("A data set needs the package xarray, which is not installed: pip install 'fmilin[families]'.")
    import xarray as xr

    variables = {name: (array.axes, array.values) for name, array in variables_of(record).items()}
    coordinates = record.added_for(".nc")
    data = {name: variable for name, variable in variables.items() if name not in coordinates}
    attributes = {"format": record.format, TEXT: facts_text(record.facts)}
    return xr.Dataset(data, coords={name: variables[name] for name in coordinates}, attrs=attributes)


def variables_of(record: Record) -> dict[str, Labelled]:
    """Return the arrays of a record as netCDF files have them."""
    return {**record.arrays, **record.added_for(".nc")}


def encode(record: Record) -> bytes:
    """Return the content of a file, of a result that the memory holds twice."""
    buffer = io.BytesIO()
    _write(buffer, record)
    return buffer.getvalue()


def write(record: Record, path: Path) -> None:
    """Write a file: an old one is replaced when the new one is complete."""
    with replaced_when_complete(path) as temporary:
        try:
            _write(temporary, record)
        except (OSError, RuntimeError) as error:  # h5py raises RuntimeError when the disk is full
            why = _short(error)
            raise UsageError(f"Cannot write '{path}': {why}. Choose another place, or free this one.") from None


def _write(file_or_path: IO[bytes] | Path, record: Record) -> None:
    require_installed()
    import h5netcdf

    arrays = variables_of(record)
    text = np.frombuffer(facts_text(record.facts).encode("ascii"), dtype=np.uint8)
    arrays[TEXT] = Labelled(text, ("character",))
    with h5netcdf.File(file_or_path, "w") as file:
        file.attrs["format"] = record.format
        for array in arrays.values():
            _define_dimensions(file, array)
        variables = {name: _define_variable(file, name, array) for name, array in arrays.items()}
        over_points = {name: array for name, array in arrays.items() if array.pages and array.values.size}
        for name, array in arrays.items():
            if name not in over_points and array.values.size:
                variables[name][...] = _stored(array.values)
        if not over_points:
            return
        # All arrays of some points, then of the next: a family that is larger than the memory lies in rows of a file.
        points = next(array.values.shape[: array.pages] for array in over_points.values())
        width = sum(array.values.size for array in over_points.values()) // int(np.prod(points))
        for run in _runs(points, width):
            for name, array in over_points.items():
                variables[name][run] = _stored(array.values[run])
            if record.release is not None:
                record.release()


def _define_dimensions(file: Any, array: Labelled) -> None:
    sizes = dict(zip(array.axes, array.values.shape, strict=True))
    if np.iscomplexobj(array.values):
        sizes["part"] = 2
    for name, size in sizes.items():
        if name not in file.dimensions:
            file.dimensions[name] = size or None  # a dimension of length 0 is an unlimited one without entries


def _define_variable(file: Any, name: str, array: Labelled) -> Any:
    values, axes = array.values, array.axes
    if values.dtype.kind == "U":
        import h5py

        return file.create_variable(name, axes, h5py.string_dtype())
    if np.iscomplexobj(values):
        return file.create_variable(name, (*axes, "part"), "f8")
    kinds = {"b": "i1", "i": "i4", "u": "u1"}
    return file.create_variable(name, axes, kinds.get(values.dtype.kind, "f8"))


def _stored(values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype.kind == "U":
        return values.astype(object)
    return np.stack((values.real, values.imag), axis=-1) if np.iscomplexobj(values) else np.asarray(values)


def _runs(shape: tuple[int, ...], width: int) -> Iterator[tuple[int | slice, ...]]:
    """Yield indices of blocks of a grid, each of about :data:`LARGEST_RUN` numbers, where a point has ``width``."""
    axis = next((k for k in range(len(shape)) if int(np.prod(shape[k + 1 :])) * width <= LARGEST_RUN), len(shape) - 1)
    step = max(1, LARGEST_RUN // max(1, int(np.prod(shape[axis + 1 :])) * width))
    for head in np.ndindex(*shape[:axis]):
        for begin in range(0, shape[axis], step):
            yield (*head, slice(begin, begin + step))


def decode(file_or_path: IO[bytes] | Path) -> Stored:
    """Return what :func:`encode` wrote, or ``to_netcdf`` of a data set."""
    require_installed()
    import h5netcdf

    with h5netcdf.File(file_or_path, "r") as file:
        variables: Mapping[str, Any] = file.variables
        text = bytes(variables[TEXT][...]) if TEXT in variables else file.attrs[TEXT]
        arrays = {name: variable[...] for name, variable in variables.items() if variable.dtype.kind in "fiub"}
    return Stored(arrays, json.loads(text))


def _short(error: BaseException) -> str:
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return " ".join(str(error).split())[:200]
