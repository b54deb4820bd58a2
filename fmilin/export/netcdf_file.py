"""Records as netCDF 4 files (HDF5), which xarray reads with labelled axes, and as data sets of xarray.

Arrays are variables with named dimensions, complex ones with a last dimension of real and imaginary part. The facts are
JSON text in the variable ``fmilin``: an attribute of HDF5 holds 64 kB, a variable any length. The checksum is the
attribute ``checksum`` of the file. Behind the end of what HDF5 reads stands another one, of the bytes in front of it:
HDF5 2.0 does not return from reading some damaged files, so that it gets only those of which the bytes are intact.

Files are written by h5netcdf and read by h5py: of a damaged file h5netcdf leaves an object behind that cannot be
closed.
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
from fmilin.export.checksum import (
    NAME,
    ArrayDigest,
    Integrity,
    append_byte_checksum,
    assess_byte_checksum,
    assess_checksum,
    digest_value,
    join_checksum,
)
from fmilin.export.record import Labelled, Record, Stored, facts_text
from fmilin.support.files import open_file, replace_when_complete

if TYPE_CHECKING:
    import h5py
    import xarray

TEXT = "fmilin"
UNLABELLED = b"This is a netCDF dimension but not a netCDF variable"  # how a data set says what it is (netCDF 4)
OF_ANOTHER_DIMENSION = "_nc4_non_coord_"  # in front of a variable that has a dimension's name and other axes
MAX_BLOCK_SIZE = 2**20  # numbers that are written at once


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

    variables = {name: (array.axes, array.values) for name, array in collect_variables(record).items()}
    coordinates = record.build_additions(".nc")
    data = {name: variable for name, variable in variables.items() if name not in coordinates}
    attributes = {"format": record.format, TEXT: facts_text(record.facts)}
    return xr.Dataset(data, coords={name: variables[name] for name in coordinates}, attrs=attributes)


def collect_variables(record: Record) -> dict[str, Labelled]:
    """Return the arrays of a record as netCDF files have them."""
    return {**record.arrays, **record.build_additions(".nc")}


def encode(record: Record) -> bytes:
    """Return the content of a file, of a result that the memory holds twice."""
    buffer = io.BytesIO()
    _write(buffer, record)
    append_byte_checksum(buffer)
    return buffer.getvalue()


def write(record: Record, path: Path) -> None:
    """Write a file: an old one is replaced when the new one is complete."""
    with replace_when_complete(path) as temporary:
        try:
            _write(temporary, record)
            with temporary.open("r+b") as file:
                append_byte_checksum(file)
        except (OSError, RuntimeError) as error:  # h5py raises RuntimeError when the disk is full
            why = _short(error)
            raise UsageError(f"Cannot write '{path}': {why}. Choose another path, or free disk space there.") from None


def _write(file_or_path: IO[bytes] | Path, record: Record) -> None:
    require_installed()
    import h5netcdf

    arrays = collect_variables(record)
    text = facts_text(record.facts)
    digests = {TEXT: digest_value(text)}
    arrays[TEXT] = Labelled(np.frombuffer(text.encode("ascii"), dtype=np.uint8), ("character",))
    with h5netcdf.File(file_or_path, "w") as file:
        file.attrs["format"] = record.format
        for array in arrays.values():
            _define_dimensions(file, array)
        variables = {name: _define_variable(file, name, array) for name, array in arrays.items()}
        over_points = {name: array for name, array in arrays.items() if array.pages and array.values.size}
        for name, array in arrays.items():
            if name in over_points:
                continue
            stored = _convert_for_storage(array.values)
            if array.values.size:
                variables[name][...] = stored
            digests.setdefault(name, digest_value(stored if stored.dtype.kind != "O" else stored.astype(np.str_)))
        if over_points:
            digests |= _write_over_points(variables, over_points, record)
        file.attrs[NAME] = join_checksum(digests)


def _write_over_points(
    variables: Mapping[str, Any], arrays: Mapping[str, Labelled], record: Record
) -> Mapping[str, bytes]:
    """Write all arrays of some points, then of the next, and return the digests of the arrays.

    A family that is larger than the memory lies in rows of a file.
    """
    points = next(array.values.shape[: array.pages] for array in arrays.values())
    width = sum(array.values.size for array in arrays.values()) // int(np.prod(points))
    digests = {name: ArrayDigest(_find_shape(array)) for name, array in arrays.items()}
    for run in _runs(points, width):
        for name, array in arrays.items():
            stored = _convert_for_storage(array.values[run])
            variables[name][run] = stored
            digests[name].update(stored)
        if record.release is not None:
            record.release()
    return {name: digest.finish() for name, digest in digests.items()}


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


def _convert_for_storage(values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype.kind == "U":
        return values.astype(object)
    return np.stack((values.real, values.imag), axis=-1) if np.iscomplexobj(values) else np.asarray(values)


def _find_shape(array: Labelled) -> tuple[int, ...]:
    return (*array.values.shape, 2) if np.iscomplexobj(array.values) else array.values.shape


def _runs(shape: tuple[int, ...], width: int) -> Iterator[tuple[int | slice, ...]]:
    """Yield indices of blocks of a grid, each of about :data:`MAX_BLOCK_SIZE` numbers, where a point has ``width``."""
    axis = next(
        (k for k in range(len(shape)) if int(np.prod(shape[k + 1 :])) * width <= MAX_BLOCK_SIZE), len(shape) - 1
    )
    step = max(1, MAX_BLOCK_SIZE // max(1, int(np.prod(shape[axis + 1 :])) * width))
    for head in np.ndindex(*shape[:axis]):
        for begin in range(0, shape[axis], step):
            yield (*head, slice(begin, begin + step))


def decode(file_or_path: IO[bytes] | Path) -> Stored:
    """Return what :func:`encode` wrote, or ``to_netcdf`` of a data set."""
    require_installed()
    if isinstance(file_or_path, Path):
        with open_file(file_or_path) as file:
            return _decode(file)
    return _decode(file_or_path)


def _decode(content: IO[bytes]) -> Stored:
    import h5py

    of_bytes = assess_byte_checksum(content)
    if of_bytes is Integrity.DAMAGED:
        return Stored({}, {}, of_bytes)
    with h5py.File(content, "r") as file:
        variables = _list_variables(file)
        in_variable = variables.pop(TEXT, None)
        text = str(file.attrs[TEXT]) if in_variable is None else bytes(in_variable[...]).decode("ascii")
        arrays = {name: variable[...] for name, variable in variables.items() if variable.dtype.kind in "fiub"}
        integrity: Integrity = of_bytes
        if integrity is Integrity.NOT_STATED and (stated := file.attrs.get(NAME)) is not None:
            digests = {name: digest_value(array) for name, array in arrays.items()}
            labels = {name: variable.asstr()[...] for name, variable in variables.items() if name not in arrays}
            digests |= {name: digest_value(np.asarray(label, dtype=np.str_)) for name, label in labels.items()}
            checksum = join_checksum({**digests, TEXT: digest_value(text)})
            integrity = assess_checksum(stated, checksum, is_rewritten=_is_rewritten(file, variables))
    return Stored(arrays, json.loads(text), integrity)


def _list_variables(file: h5py.File) -> dict[str, h5py.Dataset]:
    """Return the variables of a netCDF file by name; dimensions without labels are data sets in HDF5, too."""
    import h5py

    variables = {}
    for name, item in file.items():
        if isinstance(item, h5py.Dataset) and not bytes(item.attrs.get("NAME", b"")).startswith(UNLABELLED):
            variables[name.removeprefix(OF_ANOTHER_DIMENSION)] = item
    return variables


def _is_rewritten(file: h5py.File, variables: Mapping[str, h5py.Dataset]) -> bool:
    """Whether another library, or xarray, has written a file."""
    properties = file.attrs.get("_NCProperties", b"")
    text = properties.decode("ascii", "replace") if isinstance(properties, bytes) else str(properties)
    return not text.startswith("version=2,h5netcdf=") or any(
        variable.dtype.kind == "f" and "_FillValue" in variable.attrs for variable in variables.values()
    )


def _short(error: BaseException) -> str:
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return " ".join(str(error).split())[:200]
