"""Reading single XML elements of a model description: what the versions of FMI share."""

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn

from fmilin.errors import ModelError, quote_first
from fmilin.fmi.read.description import FLOATS, Unknown, Variable, Variables

SCALAR_TYPES = ("Real", "Integer", "Boolean", "String", "Enumeration")  # in a ScalarVariable of FMI 1.0 and 2.0
MAX_VALUE_REFERENCE = 2**32 - 1  # value references are unsigned numbers of 32 bits in all versions
MAX_EVENT_INDICATORS = 1_000_000  # no model has as many; each takes memory at every call

_OF_PARAMETERS = {"parameter": "exact", "structuralParameter": "exact", "calculatedParameter": "calculated",
                  "local": "calculated"}  # fmt: skip
_OF_SIGNALS = {"input": "exact", "output": "calculated", "local": "calculated"}
_INITIAL: Mapping[str, Mapping[str, str]] = {
    # By variability and causality; FMI 2.0.4 section 2.2.7, FMI 3.0.1 section 2.4.7.5: the default of `initial`.
    "constant": {"output": "exact", "local": "exact"},
    "fixed": _OF_PARAMETERS,
    "tunable": _OF_PARAMETERS,
    "discrete": _OF_SIGNALS,
    "continuous": _OF_SIGNALS,
}

Types = Mapping[str, Mapping[str, str]]  # attributes of the declared types, by type name


class ModelStructure(NamedTuple):
    """The variables, and which of them are states, derivatives and outputs."""

    variables: Variables
    derivatives: tuple[Unknown, ...]
    states: tuple[Variable, ...]
    outputs: tuple[Unknown, ...]
    event_indicators: int


class Notes:
    """Notes on tolerable defects of a description, fewer of them where it ``steps``; rejects the other defects."""

    def __init__(self, source: str, *, steps: bool = False) -> None:
        self.source, self.steps = source, steps
        self._texts: list[str] = []
        self._names: dict[str, list[str]] = {}

    def add(self, text: str) -> None:
        """Note a sentence."""
        self._texts.append(text)

    def add_name(self, name: str, text: str) -> None:
        """Note that the sentence ``text``, which begins with ``{names}``, also holds for ``name``."""
        self._names.setdefault(text, []).append(name)

    @property
    def collected(self) -> tuple[str, ...]:
        """All notes; a sentence that holds for several names appears once."""
        return (*self._texts, *(text.format(names=quote_first(names)) for text, names in self._names.items()))

    def refuse(
        self, line: int, why: str, meaning: str = "The states or derivatives of the model cannot be determined"
    ) -> NoReturn:
        """Raise the error for a flaw that makes states, derivatives, inputs or outputs uncertain."""
        where = f", line {line}" if line else ""  # of large descriptions the lines are not counted
        raise ModelError(
            f"modelDescription.xml in '{self.source}'{where}: {why}. {meaning}. Export the FMU again, or correct the "
            "file."
        )


def integer(text: str | None) -> int | None:
    """Return the integer, or None if ``text`` is not one."""
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def declared_indicators(root: Any, notes: Notes) -> int:
    """Return what the attribute numberOfEventIndicators says; 0 without it."""
    number = integer(root.get("numberOfEventIndicators")) or 0
    if not 0 <= number <= MAX_EVENT_INDICATORS:
        possible = f"The number must lie between 0 and {MAX_EVENT_INDICATORS}"
        notes.refuse(root.sourceline, f"numberOfEventIndicators is {_shorten_number(number)}", possible)
    return number


def _shorten_number(value: int) -> str:
    """Return a number as it is written, a long one shortened."""
    text = str(value)
    return text if len(text) <= 24 else f"{text[:20]}..."


def declared_types(root: Any, element: str) -> dict[str, dict[str, str]]:
    """Return the attributes of the types that a description of FMI 1.0 or 2.0 declares, by name."""
    return {t.get("name") or "": dict(t[0].attrib) for t in root.findall(f"TypeDefinitions/{element}") if len(t)}


def read_variable(
    element: Any, value: Any, types: Types, notes: Notes, causality: str, variability: str, **particular: Any
) -> Variable | None:
    """Return a variable, None where the element is too broken; ``value`` is the element with type and value, if any."""
    written = element.get("initial") or _INITIAL.get(variability, {}).get(causality, "")
    name = element.get("name") or ""
    reference = _value_reference(element, name, notes)
    if not name or value is None or reference is None:
        missing = "no name or no value reference" if value is element else "no name, no type or no value reference"
        if causality in ("input", "output"):
            notes.refuse(element.sourceline, f"the {causality} '{name}' has {missing}")
        notes.add_name(name, f"{{names}}: left out, since the description gives {missing.replace(' no ', ' ')}.")
        return None
    type_name = value.get("declaredType")
    if type_name is not None and type_name not in types:
        notes.add_name(name, "{names}: a declared type that is not defined was ignored.")
    declared = types.get(type_name or "", {})
    is_float = value.tag in FLOATS
    start = element.find("Start") if value is element else None  # of strings and binaries
    return Variable(
        name=name,
        reference=reference,
        type=value.tag,
        causality=causality,
        variability=variability,
        initial=particular.pop("initial", written),
        unit=(value.get("unit") or declared.get("unit") or "") if is_float else "",
        nominal=_nominal(value, declared, name, notes) if is_float else None,
        start=(value.get("start") if start is None else start.get("value")) or "",
        description=element.get("description") or "",
        line=element.sourceline,
        **particular,
    )


def _value_reference(element: Any, name: str, notes: Notes) -> int | None:
    """Return the value reference of a variable, None where it is missing or no integer."""
    reference = integer(element.get("valueReference"))
    if reference is not None and not 0 <= reference <= MAX_VALUE_REFERENCE:
        notes.refuse(
            element.sourceline,
            f"the value reference of '{name}' is {_shorten_number(reference)}, and must lie between 0 and "
            f"{MAX_VALUE_REFERENCE}",
            "Which variable is meant cannot be determined",
        )
    return reference


def _nominal(element: Any, declared: Mapping[str, str], name: str, notes: Notes) -> float | None:
    """Return the nominal value, or None when there is no usable one."""
    text = element.get("nominal") or declared.get("nominal")
    if text is None:
        return None
    with suppress(ValueError):
        if 0 < (value := float(text)) < math.inf:
            return value
    notes.add_name(name, "{names}: a nominal value that is not positive was treated as missing.")
    return None
