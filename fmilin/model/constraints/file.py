"""Constraints as a TOML file, next to an FMU or inside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from fmilin.ground.documents import DocumentError, read_toml
from fmilin.ground.errors import ConstraintError
from fmilin.model.constraints.declared import Constraint, Level
from fmilin.model.constraints.expressions import Expression, ExpressionError, parse


@dataclass(frozen=True, slots=True)
class ConstraintsFile:
    """What a constraints file says."""

    constraints: tuple[Constraint, ...]
    independent: tuple[str, ...] = ()  # coordinates that its author recommends to keep


def read_constraints(source: Path | str | bytes, source_name: str = "") -> ConstraintsFile:
    r"""Read a constraints file, given by its path or as its content with a ``source_name`` for messages.

    >>> text = b'[[constraint]]\nexpression = "x^2 + y^2 - L^2"\nname = "rod"'
    >>> [c.label for c in read_constraints(text, "rod.toml").constraints]
    ['rod']
    """
    name = source_name or (str(source) if not isinstance(source, bytes) else "constraints")
    entries, independent = _validated(_table(source, name), name)
    constraints = tuple(_constraint(entry, f"{name}, entry {i}") for i, entry in enumerate(entries, 1))
    return ConstraintsFile(constraints, tuple(independent))


def _table(source: Path | str | bytes, name: str) -> dict[str, Any]:
    try:
        content = source if isinstance(source, bytes) else Path(source).read_bytes()
        return read_toml(content)
    except OSError as error:
        raise ConstraintError(f"The constraints file '{name}' cannot be read: {error.strerror or error}.") from None
    except DocumentError as error:
        raise ConstraintError(f"The constraints file '{name}' is no TOML: {error}.") from None


_ENTRY = ("expression", "variable", "rate", "name", "level")


def _validated(table: dict[str, Any], name: str) -> tuple[list[dict[str, Any]], list[str]]:
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
        yield f"{where}: a 'rate' belongs to a constraint of level \"position\" only"


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
