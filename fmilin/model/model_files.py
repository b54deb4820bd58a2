"""Constraints and operating points as files: TOML, next to an FMU or inside it, and ``.toml`` or ``.json``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, get_args

import numpy as np

from fmilin.constraints.declared import Constraint, Level
from fmilin.constraints.expressions import Expression, ExpressionError, parse
from fmilin.errors import ConstraintError, ModelError, UsageError
from fmilin.model.interface import Model, ModelInfo, OperatingPoint
from fmilin.support.dataclass import dataclass
from fmilin.support.files import DocumentError, read_file, read_json, read_toml


@dataclass(frozen=True, slots=True)
class ConstraintsFile:
    """The contents of a constraints file."""

    constraints: tuple[Constraint, ...]
    independent: tuple[str, ...] = ()  # coordinates that its author recommends to keep


def read_constraints(source: Path | str | bytes, source_name: str = "") -> ConstraintsFile:
    r"""Read a constraints file, given by its path or as its content with a ``source_name`` for messages."""
    name = source_name or (str(source) if not isinstance(source, bytes) else "constraints")
    entries, independent = _validate_entries(_table(source, name), name)
    constraints = tuple(_constraint(entry, f"{name}, entry {i}") for i, entry in enumerate(entries, 1))
    return ConstraintsFile(constraints, tuple(independent))


def _table(source: Path | str | bytes, name: str) -> dict[str, Any]:
    try:
        content = source if isinstance(source, bytes) else read_file(source)
        return read_toml(content)
    except OSError as error:
        raise ConstraintError(
            f"The constraints file '{name}' cannot be read: {error.strerror or error}. Check the path and its "
            "permissions."
        ) from None
    except DocumentError as error:
        raise ConstraintError(f"The constraints file '{name}' is not TOML: {error}. Correct it at this line.") from None


_ENTRY = ("expression", "variable", "rate", "name", "level")


def _validate_entries(table: dict[str, Any], name: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the entries, and the recommended coordinates, after making sure that nothing else stands there."""
    entries, coordinates = table.get("constraint", []), table.get("coordinates", {})
    problems = [f"{key}: Extra inputs are not permitted" for key in table if key not in ("constraint", "coordinates")]
    if not isinstance(entries, list):
        problems.append("constraint: Input should be a valid list")
    else:
        problems += [text for i, entry in enumerate(entries, 1) for text in _problems(entry, f"constraint {i}")]
    problems += _problems_of_coordinates(coordinates)
    if problems:
        raise ConstraintError(
            f"The constraints file '{name}' is wrong: {'; '.join(problems)}. Known are [[constraint]] with expression "
            "or variable, level, name and rate, and [coordinates] with independent."
        )
    return entries, coordinates.get("independent", [])


def _problems(entry: object, where: str) -> Iterator[str]:
    """Say what is wrong with an entry, one sentence each."""
    if not isinstance(entry, dict):
        yield f"{where}: Input should be a table"
        return
    for key, value in entry.items():
        if key not in _ENTRY:
            yield f"{where} {key}: Extra inputs are not permitted"
        elif key == "level" and value not in get_args(Level):
            yield f"{where} level: Input should be {' or '.join(map(repr, get_args(Level)))}"
        elif not isinstance(value, str):
            yield f"{where} {key}: Input should be a valid string"
    if ("expression" in entry) == ("variable" in entry):
        yield f"{where}: it needs either 'expression' or 'variable'"
    if "rate" in entry and entry.get("level") == "velocity":
        yield f"{where}: only a constraint of level \"position\" has a 'rate'"


def _problems_of_coordinates(table: object) -> Iterator[str]:
    if not isinstance(table, dict):
        yield "coordinates: Input should be a table"
        return
    for key, value in table.items():
        if key != "independent":
            yield f"coordinates {key}: Extra inputs are not permitted"
        elif not isinstance(value, list):
            yield "coordinates independent: Input should be a valid list"
        elif not all(isinstance(item, str) for item in value):
            yield "coordinates independent: Input should be a valid list of strings"


def _constraint(entry: dict[str, Any], where: str) -> Constraint:
    try:
        expression = parse(entry["expression"]) if "expression" in entry else Expression.variable(entry["variable"])
        rate = parse(entry["rate"]) if "rate" in entry else None
    except ExpressionError as error:
        raise ConstraintError(f"In {where}: {error}") from None
    return Constraint(expression, entry.get("name", ""), entry.get("level", "position"), rate)


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
    # for the reader: numbers, or groups of them by name, that a search reports in addition
    of_search: Mapping[str, int | bool | str | Mapping[str, float] | None] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        model: Model,
        point: OperatingPoint,
        rates: np.ndarray | None = None,
        distance: Mapping[str, float] | None = None,
        of_search: Mapping[str, int | bool | str | Mapping[str, float] | None] | None = None,
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
    """Reject a name that says no format of points."""
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
        content = read_file(path)
        document: dict[str, Any] = read_json(content) if suffix == ".json" else read_toml(content)
    except OSError as error:
        raise ModelError(
            f"Cannot read the point '{path}': {error.strerror or error}. Check the path and its permissions."
        ) from None
    except DocumentError as error:
        raise ModelError(
            f"'{path}' is not a {suffix[1:].upper()} file: {error}. Save the operating point again."
        ) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelError(
            f"'{path}' is not an operating point that fmilin reads: it lacks the line format = \"{FORMAT}\"."
        )
    try:
        info = document.get("model", {})
        groups = {g: {str(n): _read_finite_number(v) for n, v in document.get(g, {}).items()} for g in _GROUPS}
        name, guid = str(info.get("name", "")), str(info.get("guid", ""))
        return SavedPoint(_read_finite_number(document["time"]), model=ModelInfo(name, guid), **groups)  # type: ignore[arg-type]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelError(
            f"The operating point in '{path}' is damaged: {error}. Save it again with fmilin trim -o."
        ) from None


def _suffix(path: str | Path, action: str) -> str:
    suffix = Path(path).suffix.lower()
    if suffix not in _SUFFIXES:
        raise UsageError(f"Cannot {action} '{path}' as an operating point: its name must end with .toml or .json.")
    return suffix


def _read_finite_number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise TypeError(f"{value!r} should be a finite number")
    return float(value)


def _toml_value(value: str | float) -> str:
    return toml_string(value) if isinstance(value, str) else repr(float(value))


def toml_string(text: str) -> str:
    """Return a TOML basic string: JSON's, but DEL is escaped too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
