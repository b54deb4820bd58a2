r"""A family of linear models as arrays: netCDF 4 (HDF5), NumPy without pickles, and .mat and .m for MATLAB and Octave.

In .nc, which xarray reads with labelled axes, every axis of the grid is a dimension with its values (dimension scales
of HDF5), as are rows and columns of matrices; it is written in runs of points, so that a family larger than the memory
goes into a file. In .npz arrays have the shape (\\*shape, ...), and axes are ``axis_0``, ... in the order of ``axes``.
In both the rest is one JSON text under ``fmilin``.

In the .mat file the grid stands behind the matrix, as in MATLAB's arrays of models: (P, P, shape...); ``offsets`` are
columns, as the LPV System block wants them. Failed points are NaN.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from fmilin.errors import ModelError, UsageError
from fmilin.export import m_file
from fmilin.export.archives import archive_of, arrays_of, reading
from fmilin.export.document import MATRICES
from fmilin.export.family_json import FORMAT, from_texts, require_format, texts_of
from fmilin.export.m_file import gathered
from fmilin.export.mat5 import READABLE, read, write
from fmilin.families.family import LinearFamily
from fmilin.families.rows import Layout
from fmilin.formats import Writing
from fmilin.signals import FloatArray
from fmilin.support.files import replaced_when_complete

if TYPE_CHECKING:
    import xarray


def dumps_npz(family: LinearFamily) -> bytes:
    """Return the file's content."""
    arrays: dict[str, Any] = {name: family.array(name) for name in family.layout.shapes}
    arrays |= {f"axis_{i}": values for i, values in enumerate(family.axes.values())}
    arrays["axes"] = np.array(list(family.axes), dtype=np.str_)
    arrays["ok"], arrays["chosen"] = family.ok, family.chosen
    arrays["eigenvalues"] = family.eigenvalues
    arrays["states"] = np.array(family.states.names, dtype=np.str_)
    arrays["fmilin"] = np.array(json.dumps(texts_of(family)))
    return archive_of(arrays)


def loads_npz(content: bytes, origin: str) -> LinearFamily:
    """Read what :func:`dumps_npz` wrote."""
    with reading(origin, ".npz file of a family that fmilin wrote"):
        arrays = arrays_of(content)
        texts: dict[str, Any] = json.loads(str(arrays["fmilin"]))
        require_format(texts, origin)
        ok, chosen = arrays["ok"], arrays["chosen"]
    return from_texts(texts, lambda layout: rows_of(arrays, layout, ok.size), ok, chosen, origin)


def rows_of(arrays: Mapping[str, Any], layout: Layout, count: int) -> FloatArray:
    """Return the rows of a family from arrays with the grid in front."""
    rows = np.empty((count, layout.width))
    if lost := [name for name in layout.slices if np.iscomplexobj(arrays[name])]:
        raise ValueError(f"{lost[0]} is complex, and a linear model is real: its imaginary part would be lost")
    for name, columns in layout.slices.items():
        rows[:, columns] = np.asarray(arrays[name], dtype=np.float64).reshape(count, -1)
    return rows


_AXES: dict[str, tuple[str, ...]] = {
    # A dimension stands once: of A, whose rows and columns are the states, the second is ``state_``.
    **{name: (rows[:-1], columns[:-1] + "_" * (rows == columns)) for name, (rows, columns) in MATRICES.items()},
    "f0": ("state",),
    "y0": ("state",),
    "x0": ("full_state",),
    "u0": ("input",),
    "out0": ("output",),
    "time": (),
    "parameters": ("parameter",),
    "accuracy": ("estimate",),
    "visits": ("visit",),
}
_OTHERS = frozenset({"mode", "part", "character", "ok", "chosen", "reason", "eigenvalues", "fmilin"})
_ESTIMATES = ("A", "B", "C", "D", "T", "f0", "constraint_residual", "conditioning")
_VISITS = ("evaluations", "products")


def require_installed() -> None:
    """Refuse when what netCDF files need is missing."""
    for package in ("h5netcdf", "h5py"):
        if find_spec(package) is None:
            raise UsageError(
                f"A .nc file needs the package {package}, which is not installed: pip install 'fmilin[families]', or "
                "write .npz, .mat or .json."
            )


def to_xarray(family: LinearFamily) -> xarray.Dataset:
    """Return everything as a data set with labelled axes."""
    if find_spec("xarray") is None:
        raise UsageError("A data set needs the package xarray, which is not installed: pip install 'fmilin[families]'.")
    import xarray as xr

    names = _variables(family)
    grid = _grid(family)
    data: dict[str, Any] = {n: ((*grid, *_tail(n)), family.array(n)) for n in names}
    data["ok"] = (grid, family.ok)
    data["reason"] = (grid, family.reasons.astype(np.str_))
    data["chosen"] = (grid, family.chosen.reshape(family.shape))
    data["eigenvalues"] = ((*grid, "mode"), family.eigenvalues)
    attributes = {"format": "fmilin-family/1", "fmilin": json.dumps(texts_of(family))}
    return xr.Dataset(data, coords={**_labels(family), **_coordinates(family)}, attrs=attributes)


def dumps_nc(family: LinearFamily) -> bytes:
    """Return the file's content, of a family that the memory holds twice."""
    require_installed()
    import h5netcdf

    buffer = io.BytesIO()
    with h5netcdf.File(buffer, "w") as file:
        _fill(file, family)
    return buffer.getvalue()


def write_nc(family: LinearFamily, path: Path) -> None:
    """Write the file: an old one is replaced when the new one is complete."""
    require_installed()
    import h5netcdf

    with replaced_when_complete(path) as temporary:
        try:
            with h5netcdf.File(temporary, "w") as file:
                _fill(file, family)
        except (OSError, RuntimeError) as error:  # h5py says RuntimeError when the disk is full
            why = _short(error)
            raise UsageError(f"Cannot write '{path}': {why}. Choose another place, or free this one.") from None


def _fill(file: Any, family: LinearFamily) -> None:
    layout, shape, grid = family.layout, family.shape, _grid(family)
    for name, size in zip(grid, shape, strict=True):
        file.dimensions[name] = size
    sizes = {d: n for name in layout.shapes for d, n in zip(_tail(name), layout.shapes[name], strict=True)}
    for name, size in sizes.items():
        file.dimensions[name] = size or None  # a dimension of length 0 is an unlimited one without entries
    file.dimensions["mode"] = layout.template.order or None
    file.dimensions["part"] = 2
    for name, (dimension, values) in (_labels(family) | _coordinates(family)).items():
        _text_or_numbers(file, name, (dimension,), np.asarray(values))
    variables = {n: file.create_variable(n, (*grid, *_tail(n)), "f8") for n in _variables(family)}
    for block in layout.blocks(family.rows):
        rows = family.rows[block]
        for name, variable in variables.items():
            if layout.slices[name].stop > layout.slices[name].start:
                _put(variable, block, shape, np.asarray(layout.part(rows, name)))
    file.create_variable("ok", grid, "i1")[...] = family.ok.astype(np.int8)
    file.create_variable("chosen", grid, "i4")[...] = family.chosen.reshape(shape).astype(np.int32)
    if layout.template.order:
        w = family.eigenvalues
        parts = file.create_variable("eigenvalues", (*grid, "mode", "part"), "f8")
        parts[...] = np.stack((w.real, w.imag), axis=-1)
    file.attrs["format"] = "fmilin-family/1"
    text = np.frombuffer(json.dumps(texts_of(family)).encode("ascii"), dtype=np.uint8)
    file.dimensions["character"] = len(text)  # an attribute holds 64 kB, a variable any length
    file.create_variable("fmilin", ("character",), "u1")[...] = text


def _put(variable: Any, block: slice, shape: tuple[int, ...], values: np.ndarray) -> None:
    """Write a run of points, which are numbered in the order of the grid."""
    length = shape[-1]
    at = block.start
    while at < block.stop:
        columns = np.unravel_index(at, shape)
        if length and columns[-1] == 0 and block.stop - at >= length and len(shape) > 1:
            lines = min((block.stop - at) // length, shape[-2] - int(columns[-2]))
            head = (*(int(i) for i in columns[:-2]), slice(int(columns[-2]), int(columns[-2]) + lines))
            part = values[at - block.start : at - block.start + lines * length]
            variable[head] = part.reshape(lines, length, *values.shape[1:])
            at += lines * length
        else:
            count = min(block.stop - at, length - int(columns[-1]))
            head = (*(int(i) for i in columns[:-1]), slice(int(columns[-1]), int(columns[-1]) + count))
            variable[head] = values[at - block.start : at - block.start + count]
            at += count


def read_nc(file_or_path: Path | IO[bytes], origin: str) -> LinearFamily:
    """Read what :func:`write_nc` or ``to_xarray().to_netcdf`` wrote."""
    require_installed()
    import h5netcdf

    try:
        with h5netcdf.File(file_or_path, "r") as file:
            held = file.variables
            texts = json.loads(bytes(held["fmilin"][...]) if "fmilin" in held else file.attrs["fmilin"])
            require_format(texts, origin)
            ok, chosen = np.asarray(held["ok"][...]).reshape(tuple(texts["shape"])), np.asarray(held["chosen"][...])
            arrays = {name: held[name][...] for name in held if name in _AXES or name[:6] == "error_"}
    except (OSError, KeyError, ValueError, TypeError, RuntimeError) as error:
        raise ModelError(f"'{origin}' is no netCDF file of a family that fmilin reads: {_short(error)}.") from None
    return from_texts(texts, lambda layout: rows_of(arrays, layout, ok.size), ok, chosen, origin)


def _variables(family: LinearFamily) -> list[str]:
    """Return the quantities that are variables: all, but for the time where that is the one axis."""
    return [n for n in family.layout.shapes if (n,) != family.grid.dimensions]


def _grid(family: LinearFamily) -> tuple[str, ...]:
    return tuple(_safe(family, name) for name in family.grid.dimensions)


def _safe(family: LinearFamily, name: str) -> str:
    """Return a name that a group of HDF5 can have; it must be none of ours."""
    own = {d for dimensions in _AXES.values() for d in dimensions} | set(_variables(family)) | _OTHERS
    plain = name.replace("/", "_")
    return f"axis_{plain}" if plain in own else plain


def _tail(name: str) -> tuple[str, ...]:
    return _AXES[name.removeprefix("error_")]


def _labels(family: LinearFamily) -> dict[str, tuple[str, Any]]:
    template = family.template
    labels = {
        "state": family.states.names,
        "state_": family.states.names,
        "full_state": template.full_states.names,
        "input": template.inputs.names,
        "output": template.outputs.names,
        "parameter": template.parameters,
        "estimate": _ESTIMATES,
        "visit": _VISITS,
    }
    return {name: (name, np.array(values, dtype=np.str_)) for name, values in labels.items() if values}


def _coordinates(family: LinearFamily) -> dict[str, tuple[str, Any]]:
    safe = {name: _safe(family, name) for name in family.axes}
    one = _grid(family)[0] if family.grid.zipped else ""
    return {safe[name]: (one or safe[name], values) for name, values in family.axes.items()}


def _text_or_numbers(file: Any, name: str, dimensions: tuple[str, ...], values: np.ndarray) -> None:
    if values.dtype.kind == "U":
        import h5py

        file.create_variable(name, dimensions, h5py.string_dtype())[...] = values.astype(object)
    else:
        file.create_variable(name, dimensions, "f8")[...] = values


def _short(error: BaseException) -> str:
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return " ".join(str(error).split())[:200]


def dumps_mat(family: LinearFamily) -> bytes:
    """Return the file's content."""
    top: dict[str, Any] = {name: _behind(family.array(name), 2) for name in MATRICES}
    dx = family.f0 + (family.y0 if family.sample_time > 0 else 0.0)
    offsets = {"x": family.y0, "u": family.u0, "y": family.array("out0"), "dx": dx}
    top["offsets"] = {name: _columns(values) for name, values in offsets.items()}
    top["f0"] = _columns(family.f0)
    top["eigenvalues"] = _behind(family.eigenvalues, 1)
    ok = family.ok.astype(np.float64)
    top["ok"] = ok.reshape(-1, 1) if ok.ndim == 1 else ok
    top["grid"] = {"names": list(family.axes), "values": [v.reshape(-1, 1) for v in family.axes.values()]}
    top |= {group: list(getattr(family, group).names) for group in ("states", "full_states", "inputs", "outputs")}
    top["Ts"] = float(family.sample_time)
    rest = {name: np.asarray(family.layout.part(family.rows, name)) for name in family.layout.shapes if name not in top}
    rows = {name: values.reshape(len(values), -1).T for name, values in rest.items()}
    texts = json.dumps(texts_of(family))
    top["fmilin"] = {"format": FORMAT, "texts": texts, "rows": rows, "chosen": family.chosen + 0.0}
    return write(top)


def loads_mat(content: bytes, origin: str) -> LinearFamily:
    """Read what :func:`dumps_mat` wrote, also after MATLAB or Octave saved it again."""
    with reading(origin, READABLE):
        top = read(content)
    with reading(origin, "family of fmilin"):
        texts = json.loads(top["fmilin"]["texts"])
        require_format(texts, origin)
        ok = np.ravel(top["ok"], order="F")
        ok = ok.reshape(tuple(texts["shape"]), order="F") > 0
        chosen = np.ravel(top["fmilin"]["chosen"])
    return from_texts(texts, lambda layout: _rows_of_mat(top, layout, ok.shape), ok, chosen, origin)


def _rows_of_mat(top: dict[str, Any], layout: Layout, shape: tuple[int, ...]) -> FloatArray:
    count = int(np.prod(shape))
    rows = np.empty((count, layout.width))
    for name, columns in layout.slices.items():
        if name in MATRICES or name == "f0":
            flat = np.ravel(top[name], order="F").reshape(layout.shapes[name] + shape, order="F")
            front = np.moveaxis(flat, range(len(layout.shapes[name])), range(-len(layout.shapes[name]), 0))
            rows[:, columns] = front.reshape(count, -1)
        else:
            rows[:, columns] = np.ravel(top["fmilin"]["rows"][name], order="F").reshape(count, -1)
    return rows


def _behind(array: np.ndarray, last: int) -> np.ndarray:
    r"""Move the grid behind the last axes: (\\*shape, a, b) -> (a, b, \\*shape)."""
    moved = np.moveaxis(array, range(-last, 0), range(last))
    return moved.reshape(-1, 1) if moved.ndim == 1 else moved


def _columns(array: np.ndarray) -> np.ndarray:
    return _behind(array[..., None], 2)


def dumps_m(family: LinearFamily, writing: Writing) -> bytes:
    """Return the content of a function file; points without a linear model are left out."""
    good = list(family.good())
    if not good:
        raise UsageError("No point of the family has a linear model: there is nothing to write into a .m file.")
    values = {axis: [family.grid.values(k)[axis] for k, _ in good] for axis in family.axes}
    models = [linear for _, linear in good]
    return m_file.dumps_array(gathered(models, values if len(good) > 1 else None), writing)
