"""What an SSD file says, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fmilin.connected.units import AbsoluteUnit, Affine

__all__ = ["Binding", "Component", "Connector", "Mapped", "Parameter", "Structure", "System", "Wire"]

Value = float | int | bool | str


@dataclass(frozen=True, slots=True)
class Connector:
    """A place that connections join; ``type`` is empty where the file leaves it open.

    ``items`` are the numbers of an enumeration by name, where the file defines them.
    """

    name: str
    kind: str
    type: str
    unit: str
    line: int
    items: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wire:
    """A connection between two ends: (element, connector), the element "" for the system itself.

    ``table`` maps values that are no real numbers, as texts; it is empty where they stay.
    """

    start: tuple[str, str]
    end: tuple[str, str]
    change: Affine
    table: Mapping[str, str]
    convert_units: bool
    line: int


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value of a parameter set."""

    name: str
    value: Value
    unit: str


@dataclass(frozen=True, slots=True)
class Mapped:
    """An entry of a parameter mapping."""

    source: str
    target: str
    change: Affine
    table: Mapping[str, str]
    convert_units: bool


@dataclass(frozen=True, slots=True)
class Binding:
    """Values for a component, or for all that a system contains; ``mapping`` is None where names stay."""

    parameters: tuple[Parameter, ...]
    mapping: tuple[Mapped, ...] | None
    units: Mapping[str, AbsoluteUnit]
    where: str


@dataclass(frozen=True)
class Component:
    """An FMU, or a system in a file of its own."""

    name: str
    type: str
    source: str
    implementation: str
    connectors: Mapping[str, Connector]
    bindings: tuple[Binding, ...]
    line: int


@dataclass(frozen=True)
class System:
    """Elements and what joins them."""

    name: str
    where: str  # the file that it stands in, for messages
    connectors: Mapping[str, Connector]
    bindings: tuple[Binding, ...] = ()
    components: Mapping[str, Component] = field(default_factory=dict)
    systems: Mapping[str, System] = field(default_factory=dict)
    # elements that stand for a signal dictionary, and its name
    references: Mapping[str, str] = field(default_factory=dict)
    dictionaries: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # units by entry, by dictionary
    wires: tuple[Wire, ...] = ()
    order: tuple[str, ...] = ()  # the elements as the file lists them


@dataclass(frozen=True)
class Structure:
    """A whole file: the system, and the units that it defines."""

    name: str
    version: str
    system: System
    units: Mapping[str, AbsoluteUnit]
    folder: str = ""  # of the SSD file inside the archive: sources are resolved against it
