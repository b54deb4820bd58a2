"""Constraints as a TOML file, beside an FMU or inside it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fmilin.constraints.declared import Constraint, Level
from fmilin.constraints.expressions import Expression, ExpressionError, parse
from fmilin.errors import ConstraintError

if TYPE_CHECKING:
    from pydantic import ValidationError

__all__ = ["ConstraintsFile", "read_constraints"]


@dataclass(frozen=True, slots=True)
class ConstraintsFile:
    """What a constraints file says.

    Parameters
    ----------
    constraints : tuple of Constraint
    independent : tuple of str
        Coordinates that its author recommends to keep.
    """

    constraints: tuple[Constraint, ...]
    independent: tuple[str, ...] = ()


def read_constraints(source: Path | str | bytes, source_name: str = "") -> ConstraintsFile:
    r"""Read a constraints file.

    Parameters
    ----------
    source : path or bytes
        The file, or its content.
    source_name : str
        For messages; the path when empty.

    Raises
    ------
    ConstraintError
        When the file cannot be read, is no TOML, or an entry is wrong; the message names file and entry.

    Examples
    --------
    >>> text = b'[[constraint]]\nexpression = "x^2 + y^2 - L^2"\nname = "rod"'
    >>> [c.label for c in read_constraints(text, "rod.toml").constraints]
    ['rod']
    """
    name = source_name or (str(source) if not isinstance(source, bytes) else "constraints")
    content = _validated(_table(source, name), name)
    constraints = tuple(_constraint(entry, f"{name}, entry {i}") for i, entry in enumerate(content["constraint"], 1))
    return ConstraintsFile(constraints, tuple(content["coordinates"]["independent"]))


def _table(source: Path | str | bytes, name: str) -> dict[str, Any]:
    try:
        content = source if isinstance(source, bytes) else Path(source).read_bytes()
        return tomllib.loads(content.decode("utf-8"))
    except OSError as error:
        raise ConstraintError(f"The constraints file '{name}' cannot be read: {error.strerror or error}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConstraintError(f"The constraints file '{name}' is no TOML: {error}.") from None


def _validated(table: dict[str, Any], name: str) -> dict[str, Any]:
    from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

    class Entry(BaseModel):
        model_config = ConfigDict(extra="forbid", strict=True)
        expression: str | None = None
        variable: str | None = None
        rate: str | None = None
        name: str = ""
        level: Level = "position"

        @model_validator(mode="after")
        def one_of_two(self) -> Entry:
            if (self.expression is None) == (self.variable is None):
                raise ValueError("it needs either 'expression' or 'variable'")
            if self.rate is not None and self.level == "velocity":
                raise ValueError("a 'rate' belongs to a constraint of level \"position\" only")
            return self

    class Coordinates(BaseModel):
        model_config = ConfigDict(extra="forbid", strict=True)
        independent: list[str] = Field(default_factory=list)

    class File(BaseModel):
        model_config = ConfigDict(extra="forbid", strict=True)
        constraint: list[Entry] = Field(default_factory=list)
        coordinates: Coordinates = Field(default_factory=Coordinates)

    try:
        return File.model_validate(table).model_dump()
    except ValidationError as error:
        raise ConstraintError(f"The constraints file '{name}' is wrong: {_problems(error)}") from None


def _problems(error: ValidationError) -> str:
    """Return one sentence per problem: where, what."""
    texts = []
    for problem in error.errors():
        where = [str(part + 1) if isinstance(part, int) else part for part in problem["loc"]]
        what = problem["msg"].removeprefix("Value error, ")
        texts.append(f"{' '.join(where) or 'file'}: {what}")
    return (
        "; ".join(texts) + ". Known are [[constraint]] with expression or variable, level, name and rate, and "
        "[coordinates] with independent."
    )


def _constraint(entry: dict[str, Any], where: str) -> Constraint:
    try:
        variable = entry["variable"]
        expression = parse(entry["expression"]) if variable is None else Expression.variable(variable)
        rate = None if entry["rate"] is None else parse(entry["rate"])
    except ExpressionError as error:
        raise ConstraintError(f"In {where}: {error}") from None
    return Constraint(expression, entry["name"], entry["level"], rate)
