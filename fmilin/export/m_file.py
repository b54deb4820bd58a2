"""Linear models of one plant, at one point or on a grid of several, as a function file of MATLAB and Octave.

Of several models of one plant an array with its sampling grid and offsets, in Octave a cell array. Every number is
written with the digits that read back as the same double.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fmilin.errors import UnknownNameError, UsageError, join_first
from fmilin.export.for_people import by_name
from fmilin.export.linear_record import POINT_PARTS, require_writable
from fmilin.formats import Writing
from fmilin.linear_model.model import DelayedLinearModel, LinearModel
from fmilin.signals import FloatArray, Signals
from fmilin.version import __version__

if TYPE_CHECKING:
    from fmilin.families.family import LinearFamily
    from fmilin.trimming.uncertainty import Uncertain

_SIGNALS = ("states", "inputs", "outputs")
_VARIATION_TOLERANCE = 1e-9
"""Inputs and states that differ by more, relative to 1 or their size, vary; less is the same, found in other ways."""


@dataclass(frozen=True)
class ModelArray:
    """Linear models with the same states, inputs and outputs."""

    # in the order of a column-major array of ``shape``: the first variable of the grid runs fastest
    models: tuple[LinearModel, ...]
    grid: Mapping[str, FloatArray]  # each (number of models,), what varies, and its value at every model
    # one size per variable where every combination is there; otherwise the number of models alone
    shape: tuple[int, ...]


def gather_models(models: Sequence[LinearModel], grid: Mapping[str, Sequence[float]] | None = None) -> ModelArray:
    """Return the models as one array, sorted along ``grid``: what varies, with its value at every model.

    By default the time if it differs (by more than rounding), else inputs and parameters, else independent states.
    """
    if not models:
        raise UsageError("An array of linear models needs at least one linear model.")
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
            "Two of the linear models belong to the same point: no varied quantity distinguishes them. Leave one out, "
            "or name the varied quantities (grid={name: values})."
        )
    sizes = tuple(len(np.unique(v)) for v in values.values())
    order = np.lexsort(tuple(table.T)) if values else np.arange(1)  # the last key of lexsort is its first
    shape = sizes if values and int(np.prod(sizes)) == len(models) else (len(models),)
    return ModelArray(tuple(models[i] for i in order), {name: v[order] for name, v in values.items()}, shape)


def build_grid(models: Sequence[LinearModel], names: Sequence[str]) -> dict[str, list[float]]:
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
                f"The linear models do not have the same {group}: {_list_names(a)} and {_list_names(b)}. Linearize all "
                "of them with the same independent=, inputs= and outputs=."
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
        _find_varying([p.inputs for p in points], _VARIATION_TOLERANCE)
        | _find_varying([p.parameters for p in points], 0.0),
        _find_varying(coordinates, _VARIATION_TOLERANCE),
        _find_varying([p.states for p in points], _VARIATION_TOLERANCE),
    ):
        if varying:
            return varying
    return {}


def _find_varying(tables: Sequence[Mapping[str, float]], rounding: float) -> dict[str, FloatArray]:
    """Return the values of what differs between the tables by more than rounding, relative to 1 or to its size."""
    values = {name: np.array([table.get(name, np.nan) for table in tables]) for name in tables[0]}
    return {name: v for name, v in values.items() if np.ptp(v) > rounding * max(1.0, float(np.abs(v).max()))}


def _list_names(names: Sequence[str]) -> str:
    return join_first((name if len(name) <= 40 else f"{name[:39]}…" for name in names), 6) or "none"


_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")
_KEYWORDS = re.compile(
    "break|case|catch|classdef|continue|do|else|elseif|end|for|function|global|if|otherwise|parfor|persistent|return|"
    "spmd|switch|try|until|unwind_protect|while"
)
_WIDTH = 110
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def dumps(linear: LinearModel, writing: Writing) -> bytes:
    """Return the file's content: a function called like the file."""
    return dumps_array(gather_models([linear]), writing)


def dumps_delayed(linear: DelayedLinearModel, writing: Writing) -> bytes:
    """Return a function file that closes the model between the delays with them; Octave has no such models."""
    delays = ", ".join(f"{format_number(seconds)}" for seconds in linear.delays.values())
    last = [
        f"sys = setDelayModel(sys, [{delays}]);  % its last inputs and outputs, in seconds",
        "sys.UserData = points;",
        f"offsets.u = offsets.u(1:{len(linear.inputs)});",
        f"offsets.y = offsets.y(1:{len(linear.outputs)});",
    ]
    return dumps_array(gather_models([linear.core]), writing, last)


def dumps_uncertain(u: Uncertain, writing: Writing) -> bytes:
    """Return a function file that closes M with a diagonal of real parameters (Robust Control Toolbox)."""
    blocks, lines = list[str](), list[str]()
    for (name, size), field in zip(u.blocks, _fields([n for n, _ in u.blocks]), strict=True):
        low, high = u.box[name]
        middle, half = format_number((low + high) / 2), format_number((high - low) / 2)
        lines.append(f"p.{field} = ureal('{field}', {middle}, 'Range', [{format_number(low)}, {format_number(high)}]);")
        blocks += [f"(p.{field} - {middle})/{half}*eye({size})"] * (size > 0)
    if blocks:
        lines += ["delta = blkdiag( ...", *(f"    {b}, ..." for b in blocks[:-1]), f"    {blocks[-1]});"]
        lines.append("sys = lft(delta, sys);")
    return dumps_array(gather_models([u.M]), writing, lines)


def dumps_array(models: ModelArray, writing: Writing, last: Sequence[str] = ()) -> bytes:
    """Return the content of a function file that builds one model, or an array of them; ``last`` are its last lines."""
    require_function_name(writing.name)
    for model in models.models:
        require_writable(model)
    return ("\n".join(_lines(models, writing.name, last)) + "\n").encode("utf-8")


def require_function_name(name: str) -> None:
    """Raise UsageError if a name is not one of a MATLAB function."""
    if not _NAME.fullmatch(name) or _KEYWORDS.fullmatch(name):
        raise UsageError(
            f"'{name[:70]}' is not a valid name of a MATLAB function: use at most 63 letters, digits and '_', "
            "a letter first, and not a keyword. Choose such a name for the .m file."
        )


def dumps_family(family: LinearFamily, writing: Writing) -> bytes:
    """Return the content of a function file; points without a linear model are left out."""
    good = list(family.good())
    if not good:
        raise UsageError("No point of the family has a linear model: there is nothing to write into a .m file.")
    values = {axis: [family.grid.values(k)[axis] for k, _ in good] for axis in family.axes}
    models = [linear for _, linear in good]
    return dumps_array(gather_models(models, values if len(good) > 1 else None), writing)


def _lines(models: ModelArray, name: str, last: Sequence[str]) -> Iterator[str]:
    first, several = models.models[0], len(models.models) > 1
    yield f"function [sys, offsets, points] = {name}()"
    yield from _help(models, name)
    yield ""
    offsets = {
        "x": [m.y0 for m in models.models],
        "u": [by_name(m.point.inputs, m.inputs.names) for m in models.models],
        "y": [by_name(m.point.outputs, m.outputs.names) for m in models.models],
        "dx": [m.f0 + (m.y0 if m.sample_time > 0 else 0.0) for m in models.models],
    }
    for letter in "ABCD":
        yield from _array(letter, [getattr(m, letter) for m in models.models], models.shape)
    for key, columns in offsets.items():
        yield from _array(f"offsets.{key}", [c.reshape(-1, 1) for c in columns], models.shape)
    yield f"Ts = {format_number(first.sample_time)};"
    for group in ("states", "inputs", "outputs"):
        signals = getattr(first, group)
        yield f"{group} = {format_cell(signals.names)};"
        yield f"{group[:-1]}_units = {format_cell(signals.units)};"
    yield f"points = repmat(struct(), {_size(models.shape)});"
    for k, model in enumerate(models.models, start=1):
        yield from _point(model, k)
    yield ""
    yield from _build(models, several=several)
    yield from last
    yield "end"
    yield _NAMED


def _help(models: ModelArray, name: str) -> Iterator[str]:
    first = models.models[0]
    count = len(models.models)
    what = "Linear model" if count == 1 else f"{count} linear models"
    yield f"%{name.upper()}  {what} of {format_comment(first.model.name)}, made by fmilin {__version__}."
    yield f"%   [sys, offsets, points] = {name}() returns"
    yield "%   sys      the state-space model (Control System Toolbox; control package of Octave), in deviations"
    yield "%   offsets  what the deviations are counted from: x, u, y, and dx, the rate at the point"
    yield "%            (of a sampled model the next x); shaped as the LPV System block wants them"
    yield "%   points   the whole operating point by name; T and T_u give the dependent states:"
    yield "%            full states - point = T (x - offsets.x) + T_u (u - offsets.u)"
    if first.discrete is not None:
        yield "%   points.discrete  the discrete model over a step of the solver inside: Ad, Bd, Cd, Dd, f0 and Ts"
    if models.grid:
        listed = ", ".join(f"{format_comment(n)} ({len(np.unique(v))} values)" for n, v in models.grid.items())
        yield f"%   The array runs over {listed}: sys.SamplingGrid. In Octave sys is a cell array."
    for remark in dict.fromkeys(str(w) for m in models.models for w in m.warnings):
        yield f"%   Warning: {format_comment(remark)}"


def _array(target: str, matrices: Sequence[FloatArray], shape: tuple[int, ...]) -> Iterator[str]:
    rows, columns = matrices[0].shape
    if len(matrices) == 1:
        yield from format_matrix(target, matrices[0])
        return
    yield f"{target} = zeros({rows}, {columns}, {len(matrices)});"
    if rows and columns:
        for k, matrix in enumerate(matrices, start=1):
            yield from format_matrix(f"{target}(:, :, {k})", matrix)
    yield f"{target} = reshape({target}, [{rows}, {columns}, {', '.join(map(str, shape))}]);"


def format_matrix(target: str, matrix: FloatArray) -> Iterator[str]:
    """Write one row per line; long rows go on behind '...'."""
    if not matrix.size:
        yield f"{target} = zeros({matrix.shape[0]}, {matrix.shape[1]});"
        return
    yield f"{target} = ["
    for row in matrix.tolist():
        line = "   "
        for value in row:
            text = format_number(value)
            if len(line) + len(text) > _WIDTH:
                yield f"{line} ..."
                line = "       "
            line += f" {text},"
        yield f"{line[:-1]}"
    yield "];"


def _point(model: LinearModel, k: int) -> Iterator[str]:
    point, at = model.point, f"points({k})"
    yield f"{at}.time = {format_number(point.time)};"
    groups = (model.full_states, model.inputs, model.outputs, Signals())
    for part, signals in zip(POINT_PARTS, groups, strict=True):
        yield f"{at}.{part} = {_by_name(getattr(point, part), signals)};"
    yield from format_matrix(f"{at}.T", model.T)
    yield from format_matrix(f"{at}.T_u", model.T_u)
    if model.discrete is not None:
        for letter in "ABCD":
            yield from format_matrix(f"{at}.discrete.{letter}d", getattr(model.discrete, letter))
        yield from format_matrix(f"{at}.discrete.f0", model.discrete.f0.reshape(-1, 1))
        yield f"{at}.discrete.Ts = {format_number(model.discrete.sample_time)};"


def _build(models: ModelArray, *, several: bool) -> Iterator[str]:
    text = _text(models.models[0].model.name)
    labels = "states, inputs, outputs"
    units = "state_units, input_units, output_units"
    if not several:
        yield f"sys = with_names(state_space(A, B, C, D, Ts), {text}, {labels}, {units});"
        yield "sys.UserData = points;"
        return
    shape = _size(models.shape)
    for field, values in zip(_fields(list(models.grid)), models.grid.values(), strict=True):
        yield from format_matrix(f"grid.{field}", values.reshape(1, -1))
        yield f"grid.{field} = reshape(grid.{field}, [{shape}]);"
    yield "if exist('OCTAVE_VERSION', 'builtin')"
    yield f"    sys = cell({shape});"
    yield "    for k = 1:numel(sys)"
    yield "        one = state_space(A(:, :, k), B(:, :, k), C(:, :, k), D(:, :, k), Ts);"
    yield f"        sys{{k}} = with_names(one, {text}, {labels}, {units});"
    yield "        sys{k}.UserData = points(k);"
    yield "    end"
    yield "else"
    yield f"    sys = with_names(state_space(A, B, C, D, Ts), {text}, {labels}, {units});"
    yield "    sys.UserData = points;"
    yield "    sys.SamplingGrid = grid;"
    yield "end"


_NAMED = """
function sys = state_space(A, B, C, D, Ts)
if Ts > 0
    sys = ss(A, B, C, D, Ts);
else
    sys = ss(A, B, C, D);
end
end

function sys = with_names(sys, name, states, inputs, outputs, state_units, input_units, output_units)
sys = set_if_any(sys, 'StateName', states);
sys = set_if_any(sys, 'InputName', inputs);
sys = set_if_any(sys, 'OutputName', outputs);
sys.Name = name;
if ~exist('OCTAVE_VERSION', 'builtin')
    sys = set_if_any(sys, 'StateUnit', state_units);
    sys = set_if_any(sys, 'InputUnit', input_units);
    sys = set_if_any(sys, 'OutputUnit', output_units);
end
end

function sys = set_if_any(sys, key, values)
if ~isempty(values)
    sys.(key) = values;
end
end"""


def _fields(names: Sequence[str]) -> list[str]:
    """Return a legal and different field name for every variable of the grid."""
    fields: list[str] = []
    for name in names:
        base = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_")[:50]
        base = base if re.match("[A-Za-z]", base) else f"p_{base}".rstrip("_")
        field, number = base, 1
        while field in fields or _KEYWORDS.fullmatch(field):
            number += 1
            field = f"{base}_{number}"
        fields.append(field)
    return fields


def _by_name(values: Mapping[str, float], signals: Signals) -> str:
    units = dict(zip(signals.names, signals.units, strict=True))
    numbers = "; ".join(format_number(float(v)) for v in values.values())
    column = f"[{numbers}]" if values else "zeros(0, 1)"
    names, texts = format_cell(list(values)), format_cell([units.get(n, "") for n in values])
    # A cell array in struct() would make an array of structs: hence the second pair of braces.
    return f"struct('names', {{{names}}}, 'values', {column}, 'units', {{{texts}}})"


def format_cell(texts: Sequence[str]) -> str:
    """Return a column of texts as a cell array."""
    return "{" + "; ".join(map(_text, texts)) + "}" if texts else "cell(0, 1)"


def _size(shape: tuple[int, ...]) -> str:
    return ", ".join(map(str, shape)) if len(shape) > 1 else f"{shape[0]}, 1"


def _text(text: str) -> str:
    """Return a char literal; control characters, which would break the line, by their numbers."""
    quoted = text.replace("'", "''")
    if not _CONTROL.search(text):
        return f"'{quoted}'"
    return "[" + _CONTROL.sub(lambda m: f"', char({ord(m.group())}), '", f"'{quoted}'") + "]"


def format_comment(text: str) -> str:
    """Return a text for one line of a comment."""
    return " ".join(_CONTROL.sub(" ", text).split())[:400]


def format_number(value: float) -> str:
    """Return the shortest text that reads back as the same double."""
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "Inf" if value > 0 else "-Inf"
    return repr(float(value))
