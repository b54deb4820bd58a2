"""Start values and parameters that a user gives by name, checked and turned into what the FMU takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fmilin.fmi.read.description import INTEGERS, Description, Variable
from fmilin.fmi.read.layout import Layout, Scalar
from fmilin.ground.errors import UnknownNameError, UsageError

__all__ = ["Setting", "Value", "settings_of", "structural_sizes"]

Value = float | int | bool | str | Sequence[float]
_TRUE, _FALSE = ("true", "1"), ("false", "0")


class Setting(NamedTuple):
    """One variable and what it is set to before initialization."""

    variable: Variable
    values: tuple[Any, ...]
    """One item, or all elements of an array."""

    @property
    def is_structural(self) -> bool:
        """Whether it decides about the size of arrays."""
        return self.variable.causality == "structuralParameter"


def structural_sizes(description: Description, parameters: Mapping[str, Value]) -> dict[int, int]:
    """Return the structural parameters among ``parameters``, by value reference."""
    named = ((description.by_name.get(name), name, value) for name, value in parameters.items())
    return {
        v.reference: _size(v, name, value)
        for v, name, value in named
        if v is not None and v.causality == "structuralParameter" and v.type in INTEGERS
    }


def settings_of(layout: Layout, parameters: Mapping[str, Value]) -> tuple[Setting, ...]:
    """Check ``parameters`` against the model description.

    ``parameters``: by name: a parameter, the start value of a state, an input; an array as a whole or by element.
    """
    chosen: dict[str, tuple[Variable, list[Any]]] = {}
    for name, value in parameters.items():
        array = layout.description.by_name.get(name)
        scalar = None if array is not None and array.dimensions else layout.find(name)
        variable = array if scalar is None else scalar.variable
        if variable is None:
            raise UnknownNameError.among(name, layout.description.by_name, "a variable of the model")
        if not variable.is_settable:
            raise UsageError(
                f"'{name}' cannot be set: the model calculates it (causality {variable.causality}, variability "
                f"{variable.variability}, initial '{variable.initial}'). Set what it is calculated from."
            )
        _, items = chosen.setdefault(variable.name, (variable, [None] * layout.size(variable)))
        if scalar is None:
            items[:] = _elements(variable, name, value, len(items))
        else:
            items[scalar.offset] = _converted(variable, name, value)
    return tuple(Setting(variable, _completed(layout, variable, items)) for variable, items in chosen.values())


def _completed(layout: Layout, variable: Variable, items: list[Any]) -> tuple[Any, ...]:
    """Fill elements that were not given from the description's start values: an array is set as a whole."""
    if None not in items:
        return tuple(items)
    if len(variable.start.split()) not in (1, len(items)):
        raise UsageError(
            f"'{variable.name}' is an array of {len(items)} numbers, of which only some are given, and the description "
            f"has no start values for the others. Give them all: {variable.name} = {' '.join(['0'] * len(items))}."
        )
    return tuple(
        layout.start(Scalar(variable, i, variable.name)) if item is None else item for i, item in enumerate(items)
    )


def _elements(variable: Variable, name: str, value: Value, size: int) -> list[Any]:
    if isinstance(value, str):
        items: list[Any] = value.replace(",", " ").split()
    else:
        items = list(value) if isinstance(value, Sequence) else [value]
    if len(items) != size:
        raise UsageError(f"'{name}' is an array of {size} numbers, not {len(items)}. Give them all, or one by index.")
    return [_converted(variable, name, item) for item in items]


def _size(variable: Variable, name: str, value: Any) -> int:
    size: int = _converted(variable, name, value)
    if size < 0:
        raise UsageError(f"'{name}' is the size of arrays, which cannot be {size}.")
    return size


def _converted(variable: Variable, name: str, value: Any) -> Any:
    try:
        if variable.is_float:
            return float(value)
        if variable.type in INTEGERS:
            return _whole(value)
        if variable.type == "Boolean":
            return _truth(value)
        if variable.type == "String":
            return str(value)
    except (TypeError, ValueError):
        raise UsageError(f"'{name}' takes a value of type {variable.type}, not {value!r}.") from None
    raise UsageError(f"'{name}' is a {variable.type}, which fmilin cannot set.")


def _whole(value: Any) -> int:
    number = float(value)
    if not number.is_integer():
        raise ValueError(value)
    return int(number)


def _truth(value: Any) -> bool:
    text = str(value).strip().lower().removesuffix(".0")
    if text not in _TRUE + _FALSE:
        raise ValueError(value)
    return text in _TRUE
