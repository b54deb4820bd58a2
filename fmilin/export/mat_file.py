"""Records as MAT-files, so that MATLAB and Octave can look up each value.

The variables are those parts of a record that its ``top_level`` names; the rest is a struct ``fmilin``. Vectors are
columns, lists of texts are cell arrays, and None is NaN. Values by name are a struct with ``names`` and ``values``, for
few names are legal ones of fields. Axes that run over points are the last ones, as in MATLAB's arrays of models; arrays
in ``fmilin.rows`` have a column for each point. The checksum is ``fmilin.checksum``.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmilin.export import mat5
from fmilin.export.checksum import NAME, assess_checksum, compute_checksum
from fmilin.export.record import ByName, Labelled, Objects, Record, Stored, facts_text
from fmilin.export.sparse_entries import SparseEntries

OFFSETS = ("x0", "u0", "y0", "dx0")
"""Of a linear model at the top level, as MATLAB calls them: states, inputs, outputs and rates at the point."""

OTHER_WRITERS = re.compile(r"MATLAB 5\.0 MAT-file,? (Platform: |written by Octave )")
"""How the text in front of MAT-files begins that MATLAB, SciPy or Octave has written."""


def encode(record: Record) -> bytes:
    """Return the content of a file."""
    variables: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    rows: dict[str, Any] = {}
    additions = record.build_additions(".mat")
    for name, array in record.arrays.items():
        if name in additions and name in record.top_level:
            continue
        if name in record.top_level:
            variables[name] = move_pages_last(array)
        elif array.pages:
            points = array.values.shape[: array.pages]
            rows[name] = array.values.reshape(int(np.prod(points)), -1).T
        else:
            rest[name] = _value(array.values)
    for name, value in record.facts.items():
        if name in record.top_level:
            variables[name] = _value(value)
        elif not record.is_packed:
            rest[name] = _value(value)
    if record.is_packed:
        rest |= {"format": record.format, "texts": facts_text(record.facts)}
    if rows:
        rest["rows"] = rows
    variables |= {**additions, "fmilin": rest}
    rest[NAME] = compute_checksum(mat5.as_read(variables))
    return mat5.write(variables)


def move_pages_last(array: Labelled) -> NDArray[Any]:
    """Return an array as MATLAB has it: at least two axes, and those that run over points behind them."""
    values, axes = array.values, array.axes
    if axes and axes[-1] == "part":
        values, axes = values[..., 0] + 1j * values[..., 1], axes[:-1]
    tail = values.ndim - array.pages
    if tail == 1:
        values = values[..., None]
        tail = 2
    if not array.pages:
        return np.atleast_2d(values)
    moved = np.moveaxis(values, range(-tail, 0), range(tail)) if tail else values
    return moved.reshape(-1, 1) if moved.ndim == 1 else moved


def _value(value: Any) -> Any:
    """Return a fact as MATLAB can look it up."""
    if isinstance(value, ByName):
        if any(isinstance(item, dict) for item in value.values()):
            return facts_text(value)  # structs under names that are not names of fields
        items = list(value.values())
        are_texts = any(isinstance(item, str) for item in items)
        return {"names": list(value), "values": items if are_texts else np.array(items, dtype=float).reshape(-1, 1)}
    if isinstance(value, SparseEntries):
        return value
    if isinstance(value, dict):
        return {key: _value(item) for key, item in value.items()}
    if isinstance(value, Objects):
        return {f"{member}s": [item[member] for item in value] for member in value.members}
    if isinstance(value, list):
        return [_value(item) for item in value]
    if isinstance(value, np.ndarray):
        return value.reshape(-1, 1) if value.ndim == 1 else value
    return value if isinstance(value, str) else float("nan" if value is None else value)


def decode(content: bytes) -> Stored:
    """Return what :func:`encode` wrote, also after MATLAB or Octave saved it again."""
    variables = mat5.read(content)
    rest = variables.pop("fmilin", {})
    stated = rest.pop(NAME, None)
    is_rewritten = OTHER_WRITERS.match(mat5.header_text(content)) is not None
    checksum = compute_checksum({**variables, "fmilin": rest})
    integrity = assess_checksum(stated, checksum, is_rewritten=is_rewritten)
    if set(OFFSETS) <= variables.keys():  # for MATLAB; in ``fmilin`` y0 are states
        variables = {name: value for name, value in variables.items() if name not in OFFSETS}
    if "texts" not in rest:
        facts = {**rest, **variables}
        return Stored(facts, facts, integrity)
    rows = {name: np.transpose(columns) for name, columns in rest.get("rows", {}).items()}
    return Stored({**rest, **rows, **variables}, json.loads(rest["texts"]), integrity, frozenset(variables))
