"""The model description of an FMU, in one form for FMI 2.0 and 3.0."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any, NamedTuple

from fmilin.errors import UsageError
from fmilin.support.dataclass import dataclass


def is_true(attributes: Mapping[str, str], name: str) -> bool:
    """Return whether an attribute of the XML says yes."""
    return (attributes.get(name) or "").strip() in ("true", "1")


FLOATS = frozenset({"Real", "Float64", "Float32"})
INTEGERS = frozenset({"Integer", "Enumeration", *(f"{u}Int{bits}" for u in ("", "U") for bits in (8, 16, 32, 64))})
TYPES = FLOATS | INTEGERS | {"Boolean", "String", "Binary", "Clock"}
_DIRECTIONAL_FLAGS = ("providesDirectionalDerivative", "providesDirectionalDerivatives")  # of FMI 2.0 and of FMI 3.0
PARAMETERS = frozenset({"parameter", "calculatedParameter", "structuralParameter"})


class Dimension(NamedTuple):
    """One dimension of an FMI 3 array: a number, or the structural parameter that holds it."""

    size: int | None = None
    reference: int | None = None


class Variable(NamedTuple):
    """One element of ``ModelVariables``."""

    name: str
    reference: int  # the value reference
    type: str  # as in the XML: ``"Real"``, ``"Float64"``, ``"Integer"``, ...
    causality: str = "local"  # this and the next two with the standard's defaults; empty where it has none
    variability: str = "continuous"
    initial: str = ""
    unit: str = ""
    nominal: float | None = None  # positive and finite, or None
    start: str = ""  # as written; empty if there is none
    description: str = ""
    derivative_of: int | None = None  # the state, by index in FMI 2.0, by value reference in FMI 3.0
    dimensions: tuple[Dimension, ...] = ()
    aliases: tuple[str, ...] = ()  # names from FMI 3 ``<Alias>`` elements
    line: int = 0  # in the XML
    interval: float | None = None  # of a clock with a constant period, in seconds
    shift: float = 0.0  # of such a clock: when it ticks first after the start, in seconds
    previous: int | None = None  # of a clocked state: the reference of the variable with its value before the tick

    @property
    def is_float(self) -> bool:
        """Whether it holds floating-point numbers."""
        return self.type in FLOATS

    @property
    def is_continuous(self) -> bool:
        """Whether it may change at any time."""
        return self.is_float and self.variability == "continuous"

    @property
    def is_parameter(self) -> bool:
        """Whether it is a number that stays the same between events because it is a parameter or constant."""
        constant = self.causality in PARAMETERS or self.variability in ("constant", "fixed", "tunable")
        return constant and (self.is_float or self.type in INTEGERS)

    @property
    def is_settable(self) -> bool:
        """Whether the standard lets an importer choose its start value."""
        if self.variability == "constant" or self.causality in ("independent", "calculatedParameter"):
            return False
        # A start value where `initial` was forgotten is a common flaw: an importer can only mean it to be used.
        return self.causality == "input" or self.initial in ("exact", "approx") or bool(self.start)


class Unknown(NamedTuple):
    """An entry of ``ModelStructure``."""

    variable: Variable
    dependencies: tuple[Variable, ...] | None = None  # a claim; None: none is made, it may depend on everything


class Variables(Sequence[Variable]):
    """The variables of a description in the order of the XML, aliases not repeated, and what is found among them."""

    is_large = False  # whether each is read when it is asked for, since reading all would take long

    def __init__(self, items: Iterable[Variable] = (), negatives: Iterable[Variable] = ()) -> None:
        self._items = tuple(items)
        self.negatives: Mapping[str, Variable] = {v.name: v for v in negatives}
        """Variables of FMI 1.0 that are the negative of another one with the same reference (negated aliases)."""

    def __getitem__(self, index: Any) -> Any:
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Variable]:
        return iter(self._items)

    def with_causality(self, *causalities: str) -> Iterator[Variable]:
        """Yield the variables of these causalities, in order; not meant for ``local``, which most of them are."""
        return (v for v in self if v.causality in causalities)

    def number_with_causality(self, causality: str) -> int:
        """Return how many variables have this causality."""
        return sum(v.causality == causality for v in self)

    def with_dimensions(self) -> Iterator[Variable]:
        """Yield the arrays."""
        return (v for v in self if v.dimensions)

    @property
    def by_name(self) -> Mapping[str, Variable]:
        """Every variable by its name or by the name of an alias element."""
        aliases = {alias: v for v in self for alias in v.aliases}
        return aliases | {v.name: v for v in self}

    @property
    def float_names(self) -> Mapping[int, tuple[str, ...]]:
        """All names of the floating-point quantity behind a value reference, the first variable's own name first."""
        names: dict[int, tuple[str, ...]] = {}
        for v in self:
            if v.is_float:
                names[v.reference] = (*names.get(v.reference, ()), v.name, *v.aliases)
        for name, v in self.negatives.items():
            names[v.reference] = (*names[v.reference], f"-{name}")
        return names


@dataclass(frozen=True)
class ModelDescription:
    """The model description of an FMU; reading it never loads the FMU's code."""

    source: str  # the file, for messages
    fmi_version: str
    model_name: str
    token: str
    tool: str
    interfaces: tuple[str, ...]  # ``"ModelExchange"``, ``"CoSimulation"``, ``"ScheduledExecution"``
    interface: str  # the one of ``interfaces`` that the next three members belong to; see :meth:`through`
    model_identifier: str  # the name of the library
    capabilities: Mapping[str, str]  # attributes of the interface's element
    directional_derivatives: bool  # whether the FMU advertises them
    start_time: float  # of the default experiment, in seconds; 0 if there is none
    variables: Variables
    derivatives: tuple[Unknown, ...]  # in the order of the states
    states: tuple[Variable, ...]  # the state of each derivative
    outputs: tuple[Unknown, ...]  # those of ``ModelStructure``
    event_indicators: int = 0  # how many are declared (FMI 3.0: variables, of which some may be arrays)
    log_categories: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # what was strange and could be tolerated
    attributes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # attributes of every interface's element
    experiment: Mapping[str, str] = field(default_factory=dict)  # attributes of the default experiment, as written
    with_samples: bool = False  # whether discrete-time numbers are inputs and outputs, too
    source_files: tuple[str, ...] = ()  # what is to be compiled, in the folder ``sources``, as FMI 2.0 says it
    is_sampled: bool = False  # whether ``states`` are discrete-time numbers, see :mod:`fmilin.fmi.read.discrete_states`

    @property
    def is_stepped(self) -> bool:
        """Whether the FMU is run from one communication point, or sample, to the next."""
        return self.interface == "CoSimulation" or self.is_sampled

    def through(self, interface: str) -> ModelDescription:
        """Return the same description, as seen through another of its ``interfaces``."""
        if interface == self.interface:
            return self
        if interface not in self.attributes:
            inside = " and ".join(self.interfaces)
            raise UsageError(f"'{self.source}' has no interface '{interface}'. Choose one of its interfaces: {inside}.")
        attributes = self.attributes[interface]
        return replace(
            self,
            interface=interface,
            model_identifier=attributes.get("modelIdentifier") or self.model_identifier,
            capabilities=attributes,
            directional_derivatives=any(is_true(attributes, flag) for flag in _DIRECTIONAL_FLAGS),
        )

    def scan_variables(self) -> Iterator[Variable]:
        """Yield all variables; of a large description inputs and outputs only, since reading all would take long."""
        variables = self.variables
        return variables.with_causality("input", "output") if variables.is_large else iter(variables)

    @cached_property
    def by_name(self) -> Mapping[str, Variable]:
        """Every variable by its name or by the name of an alias element."""
        return self.variables.by_name

    def has_parameter(self, name: str) -> bool:
        """Whether something that does not move, or an array of such that the name is an element of, is declared."""
        variable = self.by_name.get(name) or self.by_name.get(name.rpartition("[")[0])
        return variable is not None and not variable.is_continuous

    @cached_property
    def float_names(self) -> Mapping[int, tuple[str, ...]]:
        """All names of the floating-point quantity behind a value reference, the first variable's own name first."""
        return self.variables.float_names

    @cached_property
    def allowed_unknowns(self) -> frozenset[int]:
        """Value references that the standard allows as unknowns of a directional derivative."""
        return frozenset(u.variable.reference for u in (*self.derivatives, *self.outputs) if u.variable.is_float)
