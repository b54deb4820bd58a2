"""Scalars: FMI 3 arrays taken apart, and the place of every quantity among states, inputs and derivatives."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from fmilin.errors import ModelError, UnknownNameError, quote_first
from fmilin.fmi.read.description import ModelDescription, Variable
from fmilin.fmi.read.elements import integer
from fmilin.signals import Signal, Signals, rate_unit

_ELEMENT = re.compile(r"(?P<array>.+)\[\s*(?P<indices>\d+(?:\s*,\s*\d+)*)\s*\]")
_MAX_ARRAY_SIZE = 100_000
_MAX_SCALARS = 200_000
_RATE = re.compile(r"der\((?P<state>.+)\)")


class ScalarVariable(NamedTuple):
    """One number of a variable: the variable itself, or an element of an FMI 3 array."""

    variable: Variable
    offset: int
    name: str
    sign: float = 1.0  # -1.0 where the name means the negative of the variable (FMI 1.0)

    @property
    def key(self) -> tuple[int, int]:
        """Value reference and offset: the same for every alias."""
        return self.variable.reference, self.offset


class Role(NamedTuple):
    """Where a scalar stands: which vector, and where in it."""

    kind: Literal["state", "input", "derivative"]
    position: int


class ScalarLayout:
    """An FMU's scalar quantities for ``sizes`` of structural parameters, in the description's order, aliases once."""

    def __init__(self, description: ModelDescription, sizes: Mapping[int, int] | None = None) -> None:
        self.description = description
        self._sizes = _declared_sizes(description) | dict(sizes or {})
        if twice := [v.name for v, number in Counter(description.states).items() if number > 1]:
            raise ModelError(
                f"'{description.source}' lists {quote_first(twice)} among its states more than once. Export the FMU "
                "again."
            )
        self.states = tuple(self._all(description.states))
        self.derivatives = tuple(self._all(u.variable for u in description.derivatives))
        if len(self.states) != len(self.derivatives):
            raise ModelError(
                f"'{description.source}' has {len(self.states)} states but {len(self.derivatives)} derivatives of "
                f"states: the dimensions of its arrays do not agree."
            )
        self.inputs = self._interface("input")
        self.outputs = self._interface("output")
        self.notes = tuple(self._list_omitted("input") + self._list_omitted("output"))

    def is_signal(self, variable: Variable) -> bool:
        """Whether a variable may be an input or output: where the model is stepped, discrete-time numbers may, too."""
        stepped = self.description.is_stepped or self.description.with_samples
        return variable.is_continuous or (stepped and variable.is_float and variable.variability == "discrete")

    def shape(self, variable: Variable) -> tuple[int, ...]:
        """Return the dimensions; () for a scalar."""
        sizes = (d.size if d.reference is None else self._sizes[d.reference] for d in variable.dimensions)
        return tuple(size or 0 for size in sizes)

    def size(self, variable: Variable) -> int:
        """Return how many numbers the variable holds."""
        shape = self.shape(variable)
        if min(shape, default=0) < 0:
            raise ModelError(
                f"'{variable.name}' of '{self.description.source}' is an array of the negative size {min(shape)}. "
                "Choose other structural parameters, or let the exporting tool correct its model description."
            )
        size = math.prod(shape)
        if size > _MAX_ARRAY_SIZE:
            raise ModelError(
                f"'{variable.name}' of '{self.description.source}' is an array of {size} numbers; the limit is "
                f"{_MAX_ARRAY_SIZE}. Choose smaller values of its structural parameters."
            )
        return size

    def scalars(self, variable: Variable) -> Iterator[ScalarVariable]:
        """Yield the elements of an array, row by row, or the variable itself."""
        shape = self.shape(variable)
        if not shape:
            yield ScalarVariable(variable, 0, variable.name)
            return
        self.size(variable)  # rejects sizes that do not fit into memory
        for offset, index in enumerate(np.ndindex(*shape)):
            yield ScalarVariable(variable, offset, f"{variable.name}{_brackets(index)}")

    def find(self, name: str) -> ScalarVariable | None:
        """Return the scalar of that name or alias (``x``, ``q[2]``, ``der(x)``), or None."""
        variable = self.description.by_name.get(name)
        if variable is not None:
            return ScalarVariable(variable, 0, name) if not variable.dimensions else None
        return self._element(name) or self._rate(name)

    def find_negative(self, name: str) -> ScalarVariable | None:
        """Return the negative of a variable by its own name, or None; FMI 1.0 alone has such variables."""
        variable = self.description.variables.negatives.get(name)
        return None if variable is None else ScalarVariable(variable, 0, name, -1.0)

    @property
    def negative_outputs(self) -> list[ScalarVariable]:
        """Outputs that are the negative of another variable."""
        negatives = self.description.variables.negatives
        names = [name for name, v in negatives.items() if v.causality == "output" and self.is_signal(v)]
        return [ScalarVariable(negatives[name], 0, name, -1.0) for name in names]

    def without_negatives(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values with the name of a negative replaced: where b = -a, ``{"b": 3}`` is ``{"a": -3}``."""
        replaced = {}
        for name, value in values.items():
            negative = self.find_negative(name)
            if negative is None:
                replaced[name] = value
            else:
                replaced[self.names(negative)[0]] = -float(value)
        return replaced

    def role(self, scalar: ScalarVariable) -> Role | None:
        """Return where the scalar stands among states, inputs or derivatives, or None."""
        return self._roles.get(scalar.key) if scalar.variable.is_float else None

    def signal(
        self, scalar: ScalarVariable, *, name: str = "", start: float | None = None, aliases: bool = True
    ) -> Signal:
        """Return the scalar as a signal; ``name`` is what the user calls it, ``start`` what the FMU holds."""
        v = scalar.variable
        name = name or scalar.name
        return Signal(
            name=name,
            unit=v.unit or self._unit_as_rate(scalar),
            nominal=v.nominal,
            start=self.start(scalar) if start is None else start,
            description=v.description,
            aliases=self._aliases(scalar, name) if aliases else (),
        )

    def _aliases(self, scalar: ScalarVariable, name: str) -> tuple[str, ...]:
        """Return the other names of a scalar, those of its negative with a minus sign."""
        names = self.names(scalar)
        if scalar.sign < 0.0:
            names = tuple(n[1:] if n.startswith("-") else f"-{n}" for n in names)
        return tuple(alias for alias in names if alias != name)

    def names(self, scalar: ScalarVariable) -> tuple[str, ...]:
        """Return all names of the scalar."""
        v = scalar.variable
        names = self.description.float_names.get(v.reference, ()) if v.is_float else (v.name, *v.aliases)
        shape = self.shape(v)
        if not shape:
            return names
        return tuple(f"{n}{_brackets(np.unravel_index(scalar.offset, shape))}" for n in names)

    def start(self, scalar: ScalarVariable) -> float:
        """Return the start value of the description; 0 if there is none."""
        items = scalar.variable.start.split()
        if not items:
            return 0.0
        try:
            return float(items[scalar.offset] if len(items) > 1 else items[0])
        except (ValueError, IndexError):
            return 0.0

    def signals(self, scalars: Iterable[ScalarVariable]) -> Signals:
        """Return signals as the description has them, without loading the FMU's code, and without their aliases."""
        return Signals(self.signal(s, aliases=False) for s in scalars)

    def continuous_names(self) -> list[str]:
        """Return the names of everything that may be an output: for suggestions."""
        rates = [f"der({s.name})" for s in self.states]
        if self.description.variables.is_large:
            return [*self.description.by_name, *rates]
        plain = [s.name for v in self.description.variables if v.is_continuous for s in self.scalars(v)]
        return list(dict.fromkeys([*plain, *rates, *self.description.by_name]))

    def require(self, name: str, what: str) -> ScalarVariable:
        """Return the scalar called ``name``."""
        scalar = self.find(name)
        if scalar is None:
            raise UnknownNameError.among(name, self.continuous_names(), what)
        return scalar

    @cached_property
    def _roles(self) -> dict[tuple[int, int], Role]:
        # der(x) may share the value reference of the state v: then it is v.
        roles = {s.key: Role("derivative", i) for i, s in enumerate(self.derivatives)}
        roles |= {s.key: Role("input", i) for i, s in enumerate(self.inputs)}
        return roles | {s.key: Role("state", i) for i, s in enumerate(self.states)}

    def _all(self, variables: Iterable[Variable]) -> Iterator[ScalarVariable]:
        variables = list(variables)
        number = sum(self.size(v) for v in variables)
        if number > _MAX_SCALARS:
            raise ModelError(
                f"'{self.description.source}' has {number} states, inputs or outputs; the limit is {_MAX_SCALARS}. "
                "Choose smaller structural parameters."
            )
        for v in variables:
            yield from self.scalars(v)

    def _interface(self, causality: str) -> tuple[ScalarVariable, ...]:
        distinct: dict[int, Variable] = {}
        for v in self.description.variables.with_causality(causality):
            if self.is_signal(v):
                distinct.setdefault(v.reference, v)
        return tuple(self._all(distinct.values()))

    def _list_omitted(self, causality: str) -> list[str]:
        is_clocked = self.description.is_sampled  # clocks tick as they should then
        variables = (
            v
            for v in self.description.variables.with_causality(causality)
            if not self.is_signal(v) and not (is_clocked and v.type == "Clock")
        )
        kinds = [f"{v.name} ({v.variability} {v.type})" for v in variables]
        text = f"{causality.capitalize()}s that are not continuous numbers were left out: {quote_first(kinds)}."
        return [text] if kinds else []

    def _unit_as_rate(self, scalar: ScalarVariable) -> str:
        role = self.role(scalar)
        is_rate = role is not None and role.kind == "derivative"
        return rate_unit(self.states[role.position].variable.unit) if role and is_rate else ""

    def _element(self, name: str) -> ScalarVariable | None:
        match = _ELEMENT.fullmatch(name)
        variable = self.description.by_name.get(match["array"]) if match else None
        if match is None or variable is None:
            return None
        shape = self.shape(variable)
        index = tuple(int(i) - 1 for i in match["indices"].split(","))
        if len(index) != len(shape) or not all(0 <= i < n for i, n in zip(index, shape, strict=True)):
            return None
        return ScalarVariable(variable, int(np.ravel_multi_index(index, shape)), f"{match['array']}{_brackets(index)}")

    def _rate(self, name: str) -> ScalarVariable | None:
        match = _RATE.fullmatch(name)
        state = self.find(match["state"].strip()) if match else None
        role = self.role(state) if state else None
        return None if role is None or role.kind != "state" else self.derivatives[role.position]._replace(name=name)


def _declared_sizes(description: ModelDescription) -> dict[int, int]:
    """Return the structural parameters that hold dimensions, by value reference."""
    arrays = description.variables.with_dimensions()
    references = {d.reference for v in arrays for d in v.dimensions if d.reference is not None}
    if not references:
        return {}
    sizes: dict[int, int] = {}
    # Against the standard, another kind of variable may hold one; it is searched for only when needed.
    for candidates in (description.variables.with_causality("structuralParameter"), description.variables):
        if len(sizes) < len(references):
            for v in candidates:
                size = integer(v.start) if v.reference in references else None
                if size is not None:
                    sizes.setdefault(v.reference, size)
    return sizes


def _brackets(index: Iterable[int | np.intp]) -> str:
    """Return ``[2,3]`` for the index (1, 2): Modelica counts from 1."""
    return "[" + ",".join(str(int(i) + 1) for i in index) + "]"
