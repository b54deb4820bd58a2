"""Scalars of a flattened model that stand in its equations as symbols."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fmilin_modelica.variables import Variable

__all__ = ["Entry", "ParameterEntry"]


@dataclass(frozen=True)
class Entry:
    """A scalar variable of the model."""

    name: str
    symbol: Any
    variable: Variable
    start: float
    fixed: bool
    rank: int | None  # of its start value, see fmilin_modelica.declarations; None where none is written
    nominal: float | None
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class ParameterEntry:
    """A scalar parameter that stands in the equations as a symbol."""

    name: str
    symbol: Any
    variable: Variable
    value: float
