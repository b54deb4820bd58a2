"""Operating points as files, ``.toml`` or ``.json``: what ``fmilin trim -o`` writes and ``--point`` reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fmilin.ground.documents import DocumentError, read_json, read_toml
from fmilin.ground.errors import ModelError, UsageError
from fmilin.model.interface import Model, ModelInfo, OperatingPoint

FORMAT = "fmilin-point/1"
_SUFFIXES = (".toml", ".json")
_GROUPS = ("states", "inputs", "parameters", "rates", "distance")


@dataclass(frozen=True)
class SavedPoint:
    """A point by name, as it stands in a file."""

    time: float  # in seconds
    # states, inputs, parameters: all states and inputs; only those parameters that were changed
    states: Mapping[str, float]
    inputs: Mapping[str, float]
    parameters: Mapping[str, float] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)  # derivatives of the states, for the reader; may be empty
    model: ModelInfo = field(default_factory=lambda: ModelInfo(""))
    distance: Mapping[str, float] = field(default_factory=dict)  # for the reader: how far the solution may be
    # for the reader: numbers, or groups of them by name, that a search has to say beside
    of_search: Mapping[str, int | Mapping[str, float]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        model: Model,
        point: OperatingPoint,
        rates: np.ndarray | None = None,
        distance: Mapping[str, float] | None = None,
        of_search: Mapping[str, int | Mapping[str, float]] | None = None,
    ) -> SavedPoint:
        """Return ``point`` of ``model`` by name."""
        states, inputs = model.states.names, model.inputs.names
        return cls(
            point.time,
            dict(zip(states, point.states.tolist(), strict=True)),
            dict(zip(inputs, point.inputs.tolist(), strict=True)),
            dict(point.parameters),
            {} if rates is None else dict(zip(states, rates.tolist(), strict=True)),
            model.info,
            dict(distance or {}),
            dict(of_search or {}),
        )

    def on(self, model: Model) -> OperatingPoint:
        """Return the point of ``model``; what the file does not name keeps its start value."""
        x, u = model.start.states.copy(), model.start.inputs.copy()
        for name, value in self.states.items():
            x[model.states.index_of(name, "a state of the model, as the saved point says")] = value
        for name, value in self.inputs.items():
            u[model.inputs.index_of(name, "an input of the model, as the saved point says")] = value
        return OperatingPoint(self.time, x, u, {**model.start.parameters, **self.parameters})


def check_point_file(path: str | Path) -> None:
    """Refuse a name that says no format of points."""
    _suffix(path, "write")


def dump_point(point: SavedPoint, path: str | Path) -> bytes:
    """Return the contents of a file for ``point``; the suffix of ``path`` picks the format."""
    document: dict[str, Any] = {
        "format": FORMAT,
        "time": float(point.time),
        **{name: value for name, value in point.of_search.items() if isinstance(value, int)},
        "model": {"name": point.model.name, "guid": point.model.guid},
        "states": dict(point.states),
        "inputs": dict(point.inputs),
        "parameters": dict(point.parameters),
        "rates": dict(point.rates),
        "distance": dict(point.distance),
        **{name: dict(group) for name, group in point.of_search.items() if isinstance(group, Mapping)},
    }
    if _suffix(path, "write") == ".json":
        return (json.dumps(document, indent=2, allow_nan=False) + "\n").encode()
    # Plain keys, then a table for each group; keys are quoted, as names of variables may hold anything.
    lines = [f"{key} = {_toml_value(value)}" for key, value in document.items() if not isinstance(value, Mapping)]
    for group, values in document.items():
        if isinstance(values, Mapping):
            lines += ["", f"[{group}]", *(f"{toml_string(k)} = {_toml_value(v)}" for k, v in values.items())]
    return ("\n".join(lines) + "\n").encode()


def load_point(path: str | Path) -> SavedPoint:
    """Read a point."""
    suffix = _suffix(path, "read")
    try:
        content = Path(path).read_bytes()
        document: dict[str, Any] = read_json(content) if suffix == ".json" else read_toml(content)
    except OSError as error:
        raise ModelError(f"Cannot read the point '{path}': {error.strerror or error}.") from None
    except DocumentError as error:
        raise ModelError(f"'{path}' is no {suffix[1:].upper()} file: {error}.") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelError(f"'{path}' is no operating point that fmilin reads: it lacks the line format = \"{FORMAT}\".")
    try:
        info = document.get("model", {})
        groups = {g: {str(n): _number(v) for n, v in document.get(g, {}).items()} for g in _GROUPS}
        name, guid = str(info.get("name", "")), str(info.get("guid", ""))
        return SavedPoint(_number(document["time"]), model=ModelInfo(name, guid), **groups)  # type: ignore[arg-type]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelError(f"The operating point in '{path}' is damaged: {error}. Save it again.") from None


def _suffix(path: str | Path, action: str) -> str:
    suffix = Path(path).suffix.lower()
    if suffix not in _SUFFIXES:
        raise UsageError(f"Cannot {action} '{path}' as an operating point: its name must end with .toml or .json.")
    return suffix


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise TypeError(f"{value!r} stands where a finite number should be")
    return float(value)


def _toml_value(value: str | float) -> str:
    return toml_string(value) if isinstance(value, str) else repr(float(value))


def toml_string(text: str) -> str:
    """Return a TOML basic string: JSON's, but DEL is escaped too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
