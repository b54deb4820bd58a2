"""Linear models of one plant at several points, on the grid of what varies between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fmilin.ground.errors import UnknownNameError, UsageError
from fmilin.ground.signals import FloatArray
from fmilin.linear_model.model import LinearModel

_SIGNALS = ("states", "inputs", "outputs")
_VARIES = 1e-9
"""Inputs and states that differ by more, relative to 1 or their size, vary; less is the same, found in other ways."""


@dataclass(frozen=True)
class ModelArray:
    """Linear models with the same states, inputs and outputs."""

    # in the order of a column-major array of ``shape``: the first variable of the grid runs fastest
    models: tuple[LinearModel, ...]
    grid: Mapping[str, FloatArray]  # each (number of models,), what varies, and its value at every model
    # one size per variable where every combination is there; otherwise the number of models alone
    shape: tuple[int, ...]


def gathered(models: Sequence[LinearModel], grid: Mapping[str, Sequence[float]] | None = None) -> ModelArray:
    """Return the models as one array, sorted along ``grid``: what varies, with its value at every model.

    By default the time if it differs (by more than rounding), else inputs and parameters, else independent states.
    """
    if not models:
        raise UsageError("An array of linear models needs at least one of them.")
    for model in models[1:]:
        _require_alike(models[0], model)
    if grid is None:
        values = what_varies(models)
    else:
        values = {name: np.array(list(v), dtype=np.float64) for name, v in grid.items()}
    if bad := [name for name, v in values.items() if v.shape != (len(models),) or not np.isfinite(v).all()]:
        raise UsageError(f"The grid needs one finite value of '{bad[0]}' for each of the {len(models)} models.")
    table = np.column_stack(list(values.values())) if values else np.zeros((len(models), 0))
    if len(np.unique(table, axis=0)) < len(models):
        raise UsageError(
            "Two of the linear models belong to the same point: nothing that varies tells them apart. Leave one out, "
            "or say what varies (grid={name: values})."
        )
    sizes = tuple(len(np.unique(v)) for v in values.values())
    order = np.lexsort(tuple(table.T)) if values else np.arange(1)  # the last key of lexsort is its first
    shape = sizes if values and int(np.prod(sizes)) == len(models) else (len(models),)
    return ModelArray(tuple(models[i] for i in order), {name: v[order] for name, v in values.items()}, shape)


def grid_of(models: Sequence[LinearModel], names: Sequence[str]) -> dict[str, list[float]]:
    """Return the values that time, inputs, changed parameters, states or outputs have at the points of the models."""
    tables = []
    for model in models:
        point = model.point
        tables.append({"time": point.time, **point.outputs, **point.states, **point.parameters, **point.inputs})
    for name in names:
        for number, table in enumerate(tables, start=1):
            if name not in table:
                which = f"a variable at the point of linear model {number} of {len(models)}"
                raise UnknownNameError.among(name, table, which)
    return {name: [table[name] for table in tables] for name in names}


def _require_alike(first: LinearModel, other: LinearModel) -> None:
    for group in _SIGNALS:
        a, b = getattr(first, group).names, getattr(other, group).names
        if a != b:
            raise UsageError(
                f"The linear models do not have the same {group}: {_listed(a)} and {_listed(b)}. Linearize all of "
                "them with the same --independent, --inputs and --outputs."
            )
    if first.sample_time != other.sample_time:
        raise UsageError(
            f"The linear models do not have the same sample time: {first.sample_time:g} s and {other.sample_time:g} s."
        )


def what_varies(models: Sequence[LinearModel]) -> dict[str, FloatArray]:
    """Return the time at every model where it differs, else inputs and parameters that do, else states."""
    points = [m.point for m in models]
    times = np.array([p.time for p in points])
    if np.ptp(times) > 0:
        return {"time": times}
    coordinates = [dict(zip(m.states.names, m.y0.tolist(), strict=True)) for m in models]
    for varying in (
        _varying([p.inputs for p in points], _VARIES) | _varying([p.parameters for p in points], 0.0),
        _varying(coordinates, _VARIES),
        _varying([p.states for p in points], _VARIES),
    ):
        if varying:
            return varying
    return {}


def _varying(tables: Sequence[Mapping[str, float]], rounding: float) -> dict[str, FloatArray]:
    """Return the values of what differs between the tables by more than rounding, relative to 1 or to its size."""
    values = {name: np.array([table.get(name, np.nan) for table in tables]) for name in tables[0]}
    return {name: v for name, v in values.items() if np.ptp(v) > rounding * max(1.0, float(np.abs(v).max()))}


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(name if len(name) <= 40 else f"{name[:39]}…" for name in names[:6])
    return (shown or "none") + (", ..." if len(names) > 6 else "")
