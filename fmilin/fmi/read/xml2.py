"""The part of modelDescription.xml that is particular to FMI 2.0: variables are referred to by index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fmilin.fmi.read.description import LargeSequence, Unknown, Variable
from fmilin.fmi.read.elements import (
    Notes,
    Structure,
    TypeDefaults,
    declared_type,
    default_initial,
    integer,
    nominal,
    number_of_event_indicators,
    references,
    shortened,
    value_reference,
)

if TYPE_CHECKING:
    from fmilin.fmi.read.large import Scanned

__all__ = ["read_structure"]

_TYPES = ("Real", "Integer", "Boolean", "String", "Enumeration")


def read_structure(root: Any, notes: Notes, scanned: Scanned | None = None) -> Structure:
    """Read variables, derivatives, states and outputs.

    ``scanned``: the variables, when they are not in the tree because there are too many.
    """
    types = {t.get("name") or "": dict(t[0].attrib) for t in root.findall("TypeDefinitions/SimpleType") if len(t)}
    variables: Scanned | list[Variable | None]
    if scanned is None:
        variables = [_variable(element, types, notes) for element in root.findall("ModelVariables/ScalarVariable")]
    else:
        variables = scanned
        scanned.read_with(lambda element: _variable(element, types, notes))
    derivatives = _unknowns(root, "Derivatives", variables, notes)
    states = []
    orphans = [u.variable.name for u in derivatives if u.variable.derivative_of is None] if notes.steps else []
    if orphans:
        notes.add(f"{shortened(orphans)}: listed as the derivative of no state, and left out.")
        derivatives = tuple(u for u in derivatives if u.variable.derivative_of is not None)
    for unknown in derivatives:
        index = unknown.variable.derivative_of
        if index is None:
            notes.refuse(unknown.variable.line, f"'{unknown.variable.name}' is listed as the derivative of no state")
        state = _at(variables, index)
        if state is None or not state.is_float:
            notes.refuse(
                unknown.variable.line, f"'{unknown.variable.name}' is the derivative of no. {index}, which is no Real"
            )
        states.append(state)
    outputs = _unknowns(root, "Outputs", variables, notes)
    indicators = number_of_event_indicators(root, notes)
    everything = scanned if scanned is not None else tuple(v for v in variables if v is not None)
    return Structure(everything, derivatives, tuple(states), outputs, indicators)


def _variable(element: Any, types: TypeDefaults, notes: Notes) -> Variable | None:
    """Return the variable, or None where the element is too broken to tell: its index still counts."""
    name = element.get("name") or ""
    value = next((child for child in element if child.tag in _TYPES), None)
    reference = value_reference(element, name, notes)
    causality = element.get("causality") or "local"
    if not name or value is None or reference is None:
        if causality in ("input", "output"):
            notes.refuse(element.sourceline, f"the {causality} '{name}' has no name, no type or no value reference")
        notes.add_name(name, "{names}: left out, since the description gives no name, type or value reference.")
        return None
    declared = declared_type(value, types, name, notes)
    is_real = value.tag == "Real"
    variability = element.get("variability") or ("continuous" if is_real else "discrete")
    return Variable(
        name=name,
        reference=reference,
        type=value.tag,
        causality=causality,
        variability=variability,
        initial=element.get("initial") or default_initial(variability, causality),
        unit=(value.get("unit") or declared.get("unit") or "") if is_real else "",
        nominal=nominal(value, declared, name, notes) if is_real else None,
        start=value.get("start") or "",
        description=element.get("description") or "",
        derivative_of=integer(value.get("derivative")) if is_real else None,
        line=element.sourceline,
    )


def _unknowns(
    root: Any, kind: str, variables: Scanned | Sequence[Variable | None], notes: Notes
) -> tuple[Unknown, ...]:
    found = []
    for element in root.findall(f"ModelStructure/{kind}/Unknown"):
        variable = _at(variables, integer(element.get("index")))
        if variable is None:
            notes.refuse(element.sourceline, f"{kind} lists variable no. {element.get('index')}, which does not exist")
        found.append(Unknown(variable, _dependencies(element, variables, notes)))
    return tuple(found)


def _dependencies(
    element: Any, variables: Scanned | Sequence[Variable | None], notes: Notes
) -> tuple[Variable, ...] | None:
    try:
        indices = references(element.get("dependencies"))
    except ValueError:
        indices = (0,)
    if indices is None:
        return None
    found = [_at(variables, index) for index in indices]
    if None in found:
        notes.add(f"The dependencies in line {element.sourceline} of modelDescription.xml name no variable: ignored.")
        return None
    return tuple(v for v in found if v is not None)


def _at(variables: Scanned | Sequence[Variable | None], index: int | None) -> Variable | None:
    """Return variable number ``index``, counted from 1."""
    if index is None:
        return None
    if isinstance(variables, LargeSequence):
        return variables.at(index - 1)
    return variables[index - 1] if 0 < index <= len(variables) else None
