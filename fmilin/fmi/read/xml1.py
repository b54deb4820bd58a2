"""The part of modelDescription.xml that is particular to FMI 1.0, which does not say which variables are states.

The code knows the value references of the states; :func:`with_states` brings them in after it was asked. Until then
states stand under names that no variable has.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fmilin.fmi.read.description import Description, Unknown, Variable, Variables
from fmilin.fmi.read.elements import (
    SCALAR_TYPES,
    ModelStructure,
    Notes,
    TypeDefaults,
    declared_types,
    integer,
    number_of_event_indicators,
    read_variable,
)

if TYPE_CHECKING:
    from fmilin.fmi.read.large import Scanned


_CO_SIMULATION = ("CoSimulation_StandAlone", "CoSimulation_Tool")
_MOST_STATES = 10_000_000
UNNAMED = "FMI 1.0 does not say which variables are states: their names are known as soon as the model is loaded."


def interfaces(root: Any) -> dict[str, dict[str, str]]:
    """Return the interface and its attributes: an FMU of FMI 1.0 has exactly one."""
    identifier = {"modelIdentifier": root.get("modelIdentifier") or ""}
    for kind in _CO_SIMULATION:
        element = root.find(f"Implementation/{kind}")
        if element is not None:
            capabilities = element.find("Capabilities")
            tool = {"needsExecutionTool": "true"} if kind == "CoSimulation_Tool" else {}
            return {"CoSimulation": identifier | tool | ({} if capabilities is None else dict(capabilities.attrib))}
    return {"ModelExchange": identifier}


def read_structure(root: Any, notes: Notes, scanned: Scanned | None = None) -> ModelStructure:
    """Read variables and outputs; of the states only their number is there."""
    del scanned  # descriptions of FMI 1.0 are read as a whole
    types = declared_types(root, "Type")
    read = (_variable(element, types, notes) for element in root.findall("ModelVariables/ScalarVariable"))
    variables = Variables(v for v in read if v is not None)
    # Those of a co-simulation FMU stay hidden: no function leads to them.
    number = (integer(root.get("numberOfContinuousStates")) or 0) if "ModelExchange" in interfaces(root) else 0
    if not 0 <= number <= _MOST_STATES:
        notes.refuse(root.sourceline, f"numberOfContinuousStates is {number}")
    states = tuple(_unnamed(i) for i in range(number))
    if states:
        notes.add(UNNAMED)
    outputs = tuple(Unknown(v) for v in variables if v.causality == "output")
    indicators = number_of_event_indicators(root, notes)
    return ModelStructure(
        variables, tuple(Unknown(_rate(s, i)) for i, s in enumerate(states)), states, outputs, indicators
    )


def with_states(description: Description, references: Sequence[int]) -> Description:
    """Return the description with the states whose references the code tells; one without a variable stays unnamed."""
    by_reference: dict[int, Variable] = {}
    for v in description.variables:
        if v.is_float:
            by_reference.setdefault(v.reference, v)
    states = tuple(by_reference.get(r) or _unnamed(i, description.by_name) for i, r in enumerate(references))
    rates = tuple(_declared_rate(description, s) or _rate(s, i) for i, s in enumerate(states))
    notes = tuple(note for note in description.notes if note != UNNAMED)
    variables = Variables((*description.variables, *(s for s in states if s.reference < 0)))
    derivatives = tuple(Unknown(r) for r in rates)
    return replace(description, variables=variables, states=states, derivatives=derivatives, notes=notes)


def _unnamed(index: int, taken: Container[str] = ()) -> Variable:
    # Value references are not negative: these are nobody's.
    name = f"x[{index + 1}]"
    name = f"state[{index + 1}]" if name in taken else name
    return Variable(name=name, reference=-2 * (index + 1), type="Real", initial="calculated")


def _rate(state: Variable, index: int) -> Variable:
    return Variable(name=f"der({state.name})", reference=-2 * (index + 1) - 1, type="Real", initial="calculated")


def _declared_rate(description: Description, state: Variable) -> Variable | None:
    """Return the variable ``der(x)``, which tools with structured names write down."""
    head, dot, last = state.name.rpartition(".")
    candidates = (description.by_name.get(name) for name in (f"der({state.name})", f"{head}{dot}der({last})"))
    return next((v for v in candidates if v is not None and v.is_float and v.variability == "continuous"), None)


def _variable(element: Any, types: TypeDefaults, notes: Notes) -> Variable | None:
    if element.get("alias") == "negatedAlias":
        name = element.get("name") or ""
        notes.add_name(name, "{names}: left out, since each is the negative of another variable (a negated alias).")
        return None
    value: Any = next((child for child in element if child.tag in SCALAR_TYPES), None)
    start, is_real = ("", False) if value is None else (value.get("start"), value.tag == "Real")
    variability = element.get("variability") or ("continuous" if is_real else "discrete")
    causality = _causality(element.get("causality") or "internal", variability)
    fixed = "fixed" if variability == "parameter" else variability
    initial = ("approx" if value.get("fixed") == "false" else "exact") if start else "calculated"
    return read_variable(element, value, types, notes, causality, fixed, initial=initial)


def _causality(causality: str, variability: str) -> str:
    """Return the word of later versions."""
    if causality in ("input", "output"):
        return causality
    return "parameter" if variability == "parameter" else "local"
