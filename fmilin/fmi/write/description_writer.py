"""``modelDescription.xml``: what FMI 2.0 and FMI 3.0 have in common."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import ClassVar
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from fmilin.fmi.write.variables import ILLEGAL, FmuVariable, format_description
from fmilin.version import __version__

BASE_UNITS = ("kg", "m", "s", "A", "K", "mol", "cd", "rad")  # in the order of the standard's schema


@dataclass(frozen=True, slots=True)
class BaseUnit:
    """``factor`` times a product of powers of the base units."""

    exponents: tuple[int, ...]  # in the order of :data:`BASE_UNITS`
    factor: float = 1.0

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes of the element ``BaseUnit``, in FMI and SSP."""
        powers = {b: str(e) for b, e in zip(BASE_UNITS, self.exponents, strict=True) if e}
        return powers | ({"factor": repr(self.factor)} if self.factor != 1.0 else {})

    def times(self, other: BaseUnit, power: int) -> BaseUnit:
        """Return ``self * other**power``."""
        exponents = tuple(a + power * b for a, b in zip(self.exponents, other.exponents, strict=True))
        return BaseUnit(exponents, self.factor * other.factor**power)


def _unit(factor: float = 1.0, **exponents: int) -> BaseUnit:
    return BaseUnit(tuple(exponents.get(name, 0) for name in BASE_UNITS), factor)


_SYMBOLS = {
    "1": _unit(), "m": _unit(m=1), "s": _unit(s=1), "A": _unit(A=1), "K": _unit(K=1), "mol": _unit(mol=1),
    "cd": _unit(cd=1), "rad": _unit(rad=1), "g": _unit(1e-3, kg=1), "t": _unit(1e3, kg=1), "Hz": _unit(s=-1),
    "N": _unit(kg=1, m=1, s=-2), "Pa": _unit(kg=1, m=-1, s=-2), "J": _unit(kg=1, m=2, s=-2),
    "W": _unit(kg=1, m=2, s=-3), "C": _unit(A=1, s=1), "V": _unit(kg=1, m=2, s=-3, A=-1),
    "F": _unit(kg=-1, m=-2, s=4, A=2), "Ohm": _unit(kg=1, m=2, s=-3, A=-2), "Wb": _unit(kg=1, m=2, s=-2, A=-1),
    "T": _unit(kg=1, s=-2, A=-1), "H": _unit(kg=1, m=2, s=-2, A=-2), "L": _unit(1e-3, m=3), "l": _unit(1e-3, m=3),
    "min": _unit(60.0, s=1), "h": _unit(3600.0, s=1), "d": _unit(86400.0, s=1), "bar": _unit(1e5, kg=1, m=-1, s=-2),
    "deg": _unit(math.pi / 180, rad=1), "rev": _unit(2 * math.pi, rad=1), "rpm": _unit(2 * math.pi / 60, rad=1, s=-1),
    "%": _unit(0.01),
}  # fmt: skip

_PREFIXES = {"da": 1e1, "h": 1e2, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "d": 1e-1, "c": 1e-2, "m": 1e-3,
             "u": 1e-6, "µ": 1e-6, "n": 1e-9, "p": 1e-12}  # fmt: skip

_WITH_PREFIX = {"m", "s", "g", "A", "K", "mol", "N", "Pa", "J", "W", "C", "V", "F", "Ohm", "Wb", "T", "H", "Hz", "L",
                "l", "bar", "rad"}  # fmt: skip

_POWER = r"(?:\^?(?P<power>[+-]?\d+))?"
_TOKEN = re.compile(rf"\s*(?:(?P<operator>[./*·])|(?P<open>\()|(?:(?P<close>\))|(?P<symbol>[A-Za-zµ%]+|1)){_POWER})\s*")


def base_unit(unit: str) -> BaseUnit | None:
    """Return a unit in base units, or None where it is not understood.

    Products are written ``N.m``, ``N*m`` or ``N m``, quotients ``m/s2``, ``m/s^2`` or ``J/(kg.K)``.
    """
    tokens = list(_TOKEN.finditer(unit.strip()))
    return None if not tokens or "".join(token[0] for token in tokens) != unit.strip() else _product(tokens)


def _product(tokens: Sequence[re.Match[str]]) -> BaseUnit | None:
    """Multiply from left to right; None where operators or brackets are misplaced."""
    total, sign, after_operator = _unit(), 1, True
    outer: list[tuple[BaseUnit, int]] = []
    for token in tokens:
        if token["operator"]:
            if after_operator:
                return None
            sign, after_operator = (-1 if token["operator"] == "/" else 1), True
            continue
        if token["open"]:
            outer.append((total, sign))
            total, sign, after_operator = _unit(), 1, True
            continue
        power = int(token["power"] or 1)
        if token["close"]:
            if after_operator or not outer:
                return None
            inner = total
            total, sign = outer.pop()
        else:
            unit = _symbol(token["symbol"])
            if unit is None:
                return None
            inner = unit
        total, sign, after_operator = total.times(inner, sign * power), 1, False
    return None if after_operator or outer else total


def _symbol(text: str) -> BaseUnit | None:
    if text in _SYMBOLS:
        return _SYMBOLS[text]
    for prefix, factor in _PREFIXES.items():
        rest = text.removeprefix(prefix)
        if rest != text and rest in _WITH_PREFIX:
            return _unit(factor).times(_SYMBOLS[rest], 1)
    return None


_BNAME = r"[A-Za-z_][A-Za-z0-9_]*(?:\[[0-9]+(?:,[0-9]+)*\])?"
_STRUCTURED = re.compile(rf"(?:{_BNAME}(?:\.{_BNAME})*|der\({_BNAME}(?:\.{_BNAME})*\))")
DURATION, STEPS = 10.0, 1000  # of the default experiment: seconds, and steps of a sampled model
TOLERANCE = 1e-8  # the same as the integrator's in the C code
MAX_LISTED_DEPENDENCIES = 256  # where a list of dependencies that names everything is left out

LOG_CATEGORIES = {
    "logStatusError": "A function was called at the wrong time or with wrong arguments",
    "logStatusDiscard": "The equations have no solution at this point",
}


@dataclass(frozen=True)
class FmuDescription:
    """Everything that a model description says, in the words of neither version."""

    name: str  # of the model; the identifier is one of C
    identifier: str
    description: str
    variables: tuple[FmuVariable, ...]
    outputs: tuple[int, ...]  # references of the outputs, in their order
    depends: Mapping[int, Sequence[int]]  # what rates and computed outputs depend on, by references
    start_time: float
    directional_derivatives: bool
    sample_time: float = 0.0  # in seconds; 0 for a continuous model. Sampled models are for co-simulation only
    output_slopes: bool = True  # whether co-simulation tells the time derivatives of outputs

    @property
    def is_sampled(self) -> bool:
        """Whether it is a sampled model."""
        return self.sample_time > 0

    @property
    def derivatives(self) -> list[FmuVariable]:
        """The derivatives of the states."""
        return [v for v in self.variables if v.derivative_of is not None]

    def step_size(self, attribute: str) -> dict[str, str]:
        """Return the attribute that tells the sample time; none of a continuous model."""
        return {attribute: repr(self.sample_time)} if self.is_sampled else {}

    @cached_property
    def _n_known(self) -> int:
        """How many states and inputs there are."""
        return sum(v.is_state or v.causality == "input" for v in self.variables)

    def dependencies(self, reference: int, *, initial: bool) -> Sequence[int] | None:
        """Return the variables on which an unknown one depends, known ``initial``ly or later; None: on all of many."""
        variables = self.variables
        references = (reference,) if variables[reference].is_state else self.depends[reference]
        if MAX_LISTED_DEPENDENCIES < len(references) == self._n_known and not self.is_sampled:
            return None
        if initial:
            return references
        moving = (r for r in references if not (self.is_sampled and variables[r].is_state))
        return [r for r in moving if variables[r].causality != "parameter"]

    def initial_unknowns(self) -> list[int]:
        """Return the references of what is calculated during initialization, in their order."""
        computed = {v.reference for v in self.derivatives}
        computed |= {r for r in self.outputs if not self.variables[r].is_state}
        return sorted(computed)


class Standard(ABC):
    """One version of the standard."""

    version: ClassVar[str]
    source: ClassVar[str]  # the C file to compile
    runtime: ClassVar[tuple[str, ...]]  # that file and those that only it includes
    headers: ClassVar[tuple[str, ...]]
    binary_folder: ClassVar[attrgetter[str]]  # from a machine to the folder under ``binaries/`` for it
    entries: ClassVar[tuple[tuple[str, str], ...]]  # of outputs, rates, initial unknowns: list, if any, and entries
    attribute: ClassVar[str]
    first: ClassVar[int]  # what an entry refers to a variable by, and what that is for the first variable

    @abstractmethod
    def root(self, model: FmuDescription, token: str) -> Element:
        """Return the root element with its attributes, and the elements of the interface types in it."""

    @abstractmethod
    def variable(self, parent: Element, v: FmuVariable) -> Element:
        """Add one variable; return the element that holds its value."""

    def build_description(self, model: FmuDescription) -> dict[str, bytes]:
        """Return the file in ``sources/`` that says how they are compiled, where the version has one."""
        return {}

    def source_files(self, model: FmuDescription, sources: Mapping[str, bytes]) -> dict[str, bytes]:
        """Return all files of the folder ``sources/``."""
        all_sources = {name: sources[name] for name in sorted(sources)} | self.build_description(model)
        return {f"sources/{name}": content for name, content in all_sources.items()}

    def _add_structure(self, parent: Element, model: FmuDescription) -> None:
        """Add the entries of ``ModelStructure``; the standard wants no empty lists."""
        lists = (model.outputs, [v.reference for v in model.derivatives], model.initial_unknowns())
        for (name, entry), references, initial in zip(self.entries, lists, (False, False, True), strict=True):
            holder = SubElement(parent, name) if name and references else parent
            for reference in references:
                element = SubElement(holder, entry, {self.attribute: str(self.first + reference)})
                dependencies = model.dependencies(reference, initial=initial)
                if dependencies is not None:
                    element.set("dependencies", " ".join(str(self.first + r) for r in dependencies))

    def model_description(self, model: FmuDescription, token: str) -> bytes:
        """Return ``modelDescription.xml``."""
        root = self.root(model, token)
        _add_units(root, sorted({v.unit for v in model.variables if v.unit}))
        categories = SubElement(root, "LogCategories")
        for name, meaning in LOG_CATEGORIES.items():
            SubElement(categories, "Category", name=name, description=meaning)
        stop_time = model.start_time + (model.sample_time * STEPS if model.sample_time else DURATION)
        times = {"startTime": repr(model.start_time), "stopTime": repr(stop_time), "tolerance": repr(TOLERANCE)}
        SubElement(root, "DefaultExperiment", times | model.step_size("stepSize"))
        parent = SubElement(root, "ModelVariables")
        for v in model.variables:
            element = self.variable(parent, v)
            if v.derivative_of is not None:
                element.set("derivative", str(self.first + v.derivative_of))
        self._add_structure(SubElement(root, "ModelStructure"), model)
        return to_bytes(root)


def root_attributes(model: FmuDescription) -> dict[str, str]:
    """Return the attributes of the root element that both versions have."""
    structured = all(_STRUCTURED.fullmatch(v.name) for v in model.variables)  # by that grammar of the standard
    return {
        "modelName": ILLEGAL.sub("", model.name),
        **format_description(model.description),
        "generationTool": f"fmilin {__version__}",
        "variableNamingConvention": "structured" if structured else "flat",
    }


def to_bytes(root: Element) -> bytes:
    """Return an XML document."""
    indent(root)
    document: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _add_units(root: Element, units: Sequence[str]) -> None:
    parent = SubElement(root, "UnitDefinitions")
    for name in units:
        element = SubElement(parent, "Unit", name=name)
        if (unit := base_unit(name)) is not None:
            SubElement(element, "BaseUnit", unit.attributes)
