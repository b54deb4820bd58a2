"""A family of linear models as names with arrays, numbers and texts: the format ``fmilin-family/1``.

Data common to the points are stored once, with the names of a linear model; numbers that differ are arrays with the
axes of the grid in front; ``choices`` are the coordinates and methods that ``chosen`` selects for the points.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmilin.diagnostics import Remark
from fmilin.export.checksum import list_remarks
from fmilin.export.linear_record import ARRAYS, MATRICES, read_derivatives, write_derivative
from fmilin.export.mat_file import move_pages_last
from fmilin.export.netcdf_file import to_dataset
from fmilin.export.record import (
    Labelled,
    Record,
    Stored,
    describe_restore_errors,
    read_remarks,
    read_signals,
    require_format,
    write_details,
    write_remarks,
)
from fmilin.families.family import LinearFamily, PointCoordinates
from fmilin.families.grid import Grid
from fmilin.families.rows import Layout, Template
from fmilin.linear_model.arrays import LinearArrays
from fmilin.model.interface import ModelInfo
from fmilin.signals import FloatArray
from fmilin.version import __version__

if TYPE_CHECKING:
    import xarray

FORMAT = "fmilin-family/1"
GROUPS = ("full_states", "inputs", "outputs")
AXES: dict[str, tuple[str, ...]] = {
    # A dimension stands once: the rows and columns of A are the states, and the second is ``state_``.
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
"""The axes of each quantity behind the grid."""

LABELS = {
    "estimate": ("A", "B", "C", "D", "T", "f0", "constraint_residual", "conditioning"),
    "visit": ("evaluations", "products"),
}
OTHER_NAMES = frozenset(
    {"mode", "part", "character", "ok", "chosen", "reason", "eigenvalues", "fmilin", "zero", "zeros"}
)
PER_POINT = ("remarks", "reasons", "distinct_remarks", "ok", "chosen", "eigenvalues", "zeros", "zero_errors")
MAX_ZERO_WORK = 10_000  # points times the order of the linear models, up to which files have the zeros


def to_arrays(family: LinearFamily) -> Record:
    """Return everything in a family, and its eigenvalues."""
    grid = _dimensions(family)
    pages = len(grid)
    arrays = {
        name: Labelled(family.array(name), grid + AXES[name.removeprefix("error_")], pages)
        for name in family.layout.shapes
    }
    arrays["ok"] = Labelled(family.ok, grid, pages)
    arrays["chosen"] = Labelled(family.chosen, ("point",))
    arrays["eigenvalues"] = Labelled(family.eigenvalues, (*grid, "mode"), pages)
    if _has_zeros(family):
        arrays["zeros"] = Labelled(family.zeros, (*grid, "zero"), pages)
        arrays["zero_errors"] = Labelled(family.zero_errors, (*grid, "zero"), pages)
    return Record(
        FORMAT,
        arrays,
        _facts(family),
        top_level=(*MATRICES, "f0", "ok"),
        is_packed=True,
        additions={
            ".npz": partial(_list_numbered_axes, family),
            ".mat": partial(_list_matlab_names, family),
            ".nc": partial(_list_coordinates, family),
        },
        points=map(partial(_point, family), range(len(family))),
        per_point=PER_POINT,
        release=family.models.release,
    )


def _has_zeros(family: LinearFamily) -> bool:
    """Whether there are zeros, and files of the family have them: they are computed point by point."""
    has_channels = bool(len(family.inputs) and len(family.outputs) and family.template.order)
    if not has_channels or len(family) * family.template.order > MAX_ZERO_WORK:
        return False
    finite = all(np.isfinite(family.array(name)[family.ok]).all() for name in "ABCD")
    return finite and family.zero_tracks.zeros.shape[1] > 0


def _facts(family: LinearFamily) -> dict[str, Any]:
    template = family.template
    groups = {group: getattr(template, group) for group in GROUPS}
    signals = (*family.states, *(signal for group in groups.values() for signal in group))
    distinct = list(dict.fromkeys(remark for remarks in family.remarks.values() for remark in remarks))
    number = {remark: i for i, remark in enumerate(distinct)}
    facts = {
        "format": FORMAT,
        "fmilin_version": __version__,
        "axes": {name: values.tolist() for name, values in family.axes.items()},
        "zipped": family.grid.zipped,
        "shape": list(family.shape),
        "dimensions": list(family.grid.dimensions),
        "states": list(family.states.names),
        **{group: list(each.names) for group, each in groups.items()},
        "parameters": list(template.parameters),
        "units": {**family.parameter_units, **{signal.name: signal.unit for signal in signals}},
        "sample_time": template.sample_time,
        "order": template.order,
        "model": asdict(template.model),
        "signals": {group: write_details(each) for group, each in groups.items()},
        "choices": [
            {"states": list(c.states.names), "signals": write_details(c.states), "method": list(c.method)}
            for c in family.choices
        ],
        "distinct_remarks": write_remarks(distinct),
        "remarks": {str(k): [number[r] for r in remarks] for k, remarks in family.remarks.items()},
        "reasons": {str(k): str(family.reasons.flat[k]) for k in np.flatnonzero(~family.ok.ravel()).tolist()},
    }
    if family.point_derivatives:
        facts["derivatives"] = {
            str(number): {name: write_derivative(derivative) for name, derivative in derivatives.items()}
            for number, derivatives in family.point_derivatives.items()
        }
    return facts


def _point(family: LinearFamily, number: int) -> dict[str, Any]:
    """Return what is known of one point in addition to the numbers in its row."""
    point = {
        "index": list(family.grid.index(number)),
        "values": family.grid.values(number),
        "ok": bool(family.ok.flat[number]),
        "reason": str(family.reasons.flat[number]),
    }
    if not point["ok"]:
        return point
    if _has_zeros(family):
        tracks = family.zero_tracks
        point = {**point, "zeros": tracks.zeros[number], "zero_errors": tracks.errors[number]}
    return {
        **point,
        "eigenvalues": family.eigenvalues.reshape(-1, family.template.order)[number],
        "states": list(family.choices[family.chosen[number]].states.names),
        "choice": int(family.chosen[number]),
        "equilibrium": family.linear_model(number).is_equilibrium,  # None: not tested
        "warnings": write_remarks(family.remarks.get(number, ())),
    }


def _list_numbered_axes(family: LinearFamily) -> dict[str, Any]:
    names = np.array(list(family.axes), dtype=np.str_)
    return {"axes": names, **{f"axis_{i}": values for i, values in enumerate(family.axes.values())}}


def _list_matlab_names(family: LinearFamily) -> dict[str, Any]:
    """Return what the LPV System block and scripts of MATLAB expect, with the grid behind; vectors are columns."""

    def column(values: FloatArray) -> FloatArray:
        return np.asarray(move_pages_last(Labelled(values, (), len(family.shape))))

    dx = family.f0 + (family.y0 if family.sample_time > 0 else 0.0)
    offsets = {"x": family.y0, "u": family.u0, "y": family.array("out0"), "dx": dx}
    spectra = np.moveaxis(family.eigenvalues, -1, 0)
    return {
        "offsets": {name: column(values) for name, values in offsets.items()},
        "eigenvalues": spectra.reshape(-1, 1) if spectra.ndim == 1 else spectra,
        "grid": {"names": list(family.axes), "values": [v.reshape(-1, 1) for v in family.axes.values()]},
        **{group: list(getattr(family, group).names) for group in ("states", *GROUPS)},
        "Ts": float(family.sample_time),
    }


def _dimensions(family: LinearFamily) -> tuple[str, ...]:
    return tuple(_choose_name(family, name) for name in family.grid.dimensions)


def _choose_name(family: LinearFamily, name: str) -> str:
    """Return a name that a group of HDF5 can have, and that is none of the names of a family's arrays and axes."""
    arrays = {each for each in family.layout.shapes if (each,) != family.grid.dimensions}
    axes = {axis for each in AXES.values() for axis in each}
    plain = name.replace("/", "_")
    return f"axis_{plain}" if plain in arrays | axes | OTHER_NAMES else plain


def _list_coordinates(family: LinearFamily) -> dict[str, Labelled]:
    """Return the labels of the axes, and the values of what varies; along time its values replace the array."""
    template = family.template
    labels = {
        "state": family.states.names,
        "state_": family.states.names,
        "full_state": template.full_states.names,
        "input": template.inputs.names,
        "output": template.outputs.names,
        "parameter": template.parameters,
        **LABELS,
    }
    coordinates = {
        name: Labelled(np.array(values, dtype=np.str_), (name,)) for name, values in labels.items() if values
    }
    dimensions = _dimensions(family)
    coordinates["chosen"] = Labelled(family.chosen.reshape(family.shape), dimensions)
    only = dimensions[0] if family.grid.zipped else ""
    for name, values in family.axes.items():
        chosen = _choose_name(family, name)
        coordinates[chosen] = Labelled(values, (only or chosen,))
    return coordinates


def to_xarray(family: LinearFamily) -> xarray.Dataset:
    """Return everything as a data set with labelled axes."""
    data = to_dataset(to_arrays(family))
    return data.assign(reason=(_dimensions(family), family.reasons.astype(np.str_))).reset_coords("chosen")


def from_arrays(stored: Stored, origin: str) -> LinearFamily:
    """Return the family that :func:`to_arrays` described; ``origin`` names the file in messages."""
    require_format(stored, origin, FORMAT, "family of linear models")
    with describe_restore_errors(origin):
        return _family(stored)


def _family(stored: Stored) -> LinearFamily:
    facts = stored.facts
    full_states, inputs, outputs = (read_signals(facts[group], facts["signals"][group]) for group in GROUPS)
    template = Template(
        int(facts["order"]),
        full_states,
        inputs,
        outputs,
        tuple(map(str, facts["parameters"])),
        ModelInfo(**{f.name: str(facts["model"][f.name]) for f in fields(ModelInfo)}),
        float(facts["sample_time"]),
    )
    axes = {str(name): np.array(values, dtype=np.float64) for name, values in facts["axes"].items()}
    grid = Grid(axes, bool(facts["zipped"]))
    layout = Layout(template)
    models = LinearArrays.empty(grid.size)
    for name, shape in layout.shapes.items():
        array = stored.read_array(name, grid.shape + shape, pages=len(grid.shape))
        models.stored[name] = np.ascontiguousarray(array, dtype=np.float64).reshape(grid.size, *shape)
    outcomes = dict(_list_outcomes(stored, grid))
    ok = np.asarray(outcomes["ok"], dtype=bool).reshape(grid.shape)
    for name in ARRAYS:
        if not np.isfinite(models.stored[name][ok.ravel()]).all():
            raise ValueError(f"{name} has NaN or infinite entries at a point that is good")
    reasons = np.full(grid.size, "", dtype=object)
    for k, reason in outcomes["reasons"].items():
        reasons[int(k)] = str(reason)
    sizes = {"states": template.order, **{group: len(getattr(template, group)) for group in GROUPS}}
    return LinearFamily(
        grid,
        template,
        models,
        ok,
        reasons.reshape(grid.shape),
        tuple(PointCoordinates(read_signals(c["states"], c["signals"]), tuple(c["method"])) for c in facts["choices"]),
        np.asarray(outcomes["chosen"], dtype=np.intp).reshape(grid.size),
        _add_remarks(outcomes["remarks"], ok, list_remarks(stored.integrity)),
        point_derivatives={
            int(number): read_derivatives(parts, sizes) for number, parts in facts.get("derivatives", {}).items()
        },
        parameter_units={name: str(facts["units"][name]) for name in axes if facts.get("units", {}).get(name)},
    )


def _add_remarks(
    remarks: Mapping[int, tuple[Remark, ...]], ok: NDArray[np.bool_], added: tuple[Remark, ...]
) -> Mapping[int, tuple[Remark, ...]]:
    """Return the diagnostics of points with others at each point that has a linear model."""
    if not added:
        return remarks
    return {**remarks, **{k: (*remarks.get(k, ()), *added) for k in np.flatnonzero(ok).tolist()}}


def _list_outcomes(stored: Stored, grid: Grid) -> Iterator[tuple[str, Any]]:
    """Yield which points have a linear model, which choice is theirs, why others failed, and diagnostics."""
    facts = stored.facts
    if "points" in facts:
        points: list[Mapping[str, Any]] = facts["points"]
        yield "ok", [bool(point["ok"]) for point in points]
        yield "chosen", [int(point["choice"]) if point["ok"] else -1 for point in points]
        yield "reasons", {k: point["reason"] for k, point in enumerate(points) if not point["ok"]}
        remarks = {k: read_remarks(point["warnings"]) for k, point in enumerate(points) if point["ok"]}
        yield "remarks", {k: each for k, each in remarks.items() if each}
        return
    yield "ok", stored.read_array("ok", grid.shape, pages=len(grid.shape)) > 0
    yield "chosen", np.ravel(stored.arrays["chosen"])
    yield "reasons", facts["reasons"]
    distinct = read_remarks(facts["distinct_remarks"])
    yield "remarks", {int(k): tuple(distinct[i] for i in numbers) for k, numbers in facts["remarks"].items()}
