"""Values that a user gives: start values and parameters by name, and parameters that are inputs of a linear model."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from fmilin.errors import UnknownNameError, UsageError, quote_first
from fmilin.fmi.read.description import INTEGERS, ModelDescription, Variable
from fmilin.fmi.read.layout import ScalarLayout, ScalarVariable
from fmilin.signals import FloatArray

Value = float | int | bool | str | Sequence[float]
_TRUE, _FALSE = ("true", "1"), ("false", "0")


class Assignment(NamedTuple):
    """One variable and what it is set to before initialization."""

    variable: Variable
    values: tuple[Any, ...]  # one item, or all elements of an array

    @property
    def is_structural(self) -> bool:
        """Whether it decides about the size of arrays."""
        return self.variable.causality == "structuralParameter"


def structural_sizes(description: ModelDescription, parameters: Mapping[str, Value]) -> dict[int, int]:
    """Return the structural parameters among ``parameters``, by value reference."""
    named = ((description.by_name.get(name), name, value) for name, value in parameters.items())
    return {
        v.reference: _size(v, name, value)
        for v, name, value in named
        if v is not None and v.causality == "structuralParameter" and v.type in INTEGERS
    }


def resolve_settings(layout: ScalarLayout, parameters: Mapping[str, Value]) -> tuple[Assignment, ...]:
    """Check ``parameters`` (also start values of states, inputs; arrays or elements) against the model description."""
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
    return tuple(Assignment(variable, _completed(layout, variable, items)) for variable, items in chosen.values())


def _completed(layout: ScalarLayout, variable: Variable, items: list[Any]) -> tuple[Any, ...]:
    """Fill elements that were not given from the description's start values: an array is set as a whole."""
    if None not in items:
        return tuple(items)
    if len(variable.start.split()) not in (1, len(items)):
        raise UsageError(
            f"'{variable.name}' is an array of {len(items)} numbers, of which only some are given, and the description "
            f"has no start values for the others. Give them all: {variable.name} = {' '.join(['0'] * len(items))}."
        )
    return tuple(
        layout.start(ScalarVariable(variable, i, variable.name)) if x is None else x for i, x in enumerate(items)
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
        raise UsageError(f"'{name}' needs a value of type {variable.type}, not {value!r}.") from None
    raise UsageError(f"'{name}' is a {variable.type}, a type that fmilin cannot set.")


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


class Tuning:
    """The parameters as views of a running FMU have set them: ``changed`` are all ever changed, with present values."""

    def __init__(self) -> None:
        self.changed: Mapping[Variable, tuple[float, ...]] = {}
        self.live = True  # tunable ones may be moved while the FMU runs
        self._first: dict[Variable, tuple[float, ...]] = {}
        self._latest: tuple[Sequence[ScalarVariable], bytes] = ((), b"")

    def settings(self, base: Sequence[Assignment]) -> tuple[Assignment, ...]:
        """Return what a fresh instance is given: ``base``, but parameters as they stand."""
        unchanged = (s for s in base if s.variable not in self.changed)
        return (*unchanged, *(Assignment(v, values) for v, values in self.changed.items()))

    def change(
        self,
        present: Callable[[Variable, int], list[Any]],
        layout: ScalarLayout,
        parameters: Sequence[ScalarVariable],
        values: FloatArray,
    ) -> list[Assignment]:
        """Note that ``parameters`` are to have ``values``, all others their first ones; return what changes."""
        request = (parameters, values.tobytes())
        if request[0] is self._latest[0] and request[1] == self._latest[1]:
            return []
        for scalar in parameters:
            v = scalar.variable
            if v not in self._first:
                self._first[v] = tuple(present(v, layout.size(v)))
        numbers_by_variable = {v: list(numbers) for v, numbers in self._first.items()}
        for scalar, value in zip(parameters, values.tolist(), strict=True):
            numbers_by_variable[scalar.variable][scalar.offset] = value
        before, self.changed = self.changed, {v: tuple(numbers) for v, numbers in numbers_by_variable.items()}
        self._latest = request
        return [Assignment(v, x) for v, x in self.changed.items() if before.get(v, self._first[v]) != x]


def is_parameter(layout: ScalarLayout, scalar: ScalarVariable) -> bool:
    """Whether a scalar is a parameter or constant, and neither state, input nor derivative."""
    return layout.role(scalar) is None and scalar.variable.is_parameter


def require_tunable(description: ModelDescription, scalar: ScalarVariable, *, only_tunable: bool) -> None:
    """Reject a parameter that cannot be an input, with ``only_tunable`` also one that is fixed."""
    v = scalar.variable
    if not v.is_float or not v.is_settable or v.causality == "structuralParameter":
        what = "is calculated by the model" if v.is_float and not v.is_settable else "is not a continuous number"
        raise UsageError(f"The parameter '{scalar.name}' cannot be an input of a linear model: it {what}.")
    if only_tunable and (v.variability != "tunable" or v.dimensions):
        parameters = description.variables.with_causality("parameter")
        tunable = [p.name for p in parameters if p.variability == "tunable" and p.is_float and not p.dimensions]
        available = f"Tunable are: {quote_first(tunable)}." if tunable else "It has no tunable ones."
        raise UsageError(
            f"The parameter '{scalar.name}' cannot be an input: a co-simulation FMU accepts parameters between two "
            f"steps only if they are tunable and not arrays. {available} Through model exchange (interface='me') fixed "
            "ones can be inputs; or compare models at two of its values: fl.load(source, "
            f"parameters={{{scalar.name!r}: VALUE}})."
        )
