"""The part of modelDescription.xml that is particular to FMI 3.0: value references, arrays, alias elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fmilin.fmi.read.description import FLOATS, INTEGERS, PARAMETERS, Dimension, Unknown, Variable
from fmilin.fmi.read.elements import (
    Notes,
    Structure,
    TypeDefaults,
    declared_type,
    default_initial,
    integer,
    nominal,
    references,
    shortened,
    value_reference,
)

if TYPE_CHECKING:
    from fmilin.fmi.read.large import Scanned

__all__ = ["read_structure"]

_TYPES = FLOATS | INTEGERS | {"Boolean", "String", "Binary", "Clock"}


def read_structure(root: Any, notes: Notes, scanned: Scanned | None = None) -> Structure:
    """Read variables, derivatives, states and outputs.

    ``scanned``: the variables, when they are not in the tree because there are too many.
    """
    types = {t.get("name") or "": dict(t.attrib) for t in root.findall("TypeDefinitions/*")}
    found = _gathered(root, types, notes) if scanned is None else _scanned(scanned, types, notes)
    derivatives = _unknowns(root, "ContinuousStateDerivative", found.rates, notes)
    orphans = [u.variable.name for u in derivatives if u.variable.derivative_of is None] if notes.steps else []
    if orphans:
        notes.add(f"{shortened(orphans)}: listed as the derivative of no state, and left out.")
        derivatives = tuple(u for u in derivatives if u.variable.derivative_of is not None)
    states = tuple(_state_of(unknown.variable, found.by_reference, notes) for unknown in derivatives)
    _check_dimensions(found.arrays, found.by_reference, notes)
    if found.clocks:
        notes.add(f"The model has {found.clocks} clock(s): what they trigger is held, as between two ticks.")
    outputs = _unknowns(root, "Output", found.by_reference, notes)
    return Structure(found.variables, derivatives, states, outputs, len(root.findall("ModelStructure/EventIndicator")))


class _Variables(NamedTuple):
    variables: Sequence[Variable]
    by_reference: Mapping[int, Variable]
    rates: Mapping[int, Variable]
    """A value reference should be unique. Where der(x) shares that of the state v, each is found in its own role."""
    arrays: Sequence[Variable]
    clocks: int


def _gathered(root: Any, types: TypeDefaults, notes: Notes) -> _Variables:
    read = (_variable(e, types, notes) for e in root.findall("ModelVariables/*") if e.tag in _TYPES)
    variables = tuple(v for v in read if v is not None)
    by_reference: dict[int, Variable] = {}
    for v in variables:
        by_reference.setdefault(v.reference, v)
    return _Variables(
        variables,
        by_reference,
        rates=by_reference | {v.reference: v for v in variables if v.derivative_of is not None},
        arrays=[v for v in variables if v.dimensions],
        clocks=sum(v.type == "Clock" for v in variables),
    )


def _scanned(scanned: Scanned, types: TypeDefaults, notes: Notes) -> _Variables:
    scanned.read_with(lambda element: _variable(element, types, notes))
    return _Variables(
        scanned,
        scanned.by_reference,
        scanned.rates,
        arrays=list(scanned.with_dimensions()),
        clocks=scanned.number_of("Clock"),
    )


def _state_of(derivative: Variable, by_reference: Mapping[int, Variable], notes: Notes) -> Variable:
    if derivative.derivative_of is None:
        notes.refuse(derivative.line, f"'{derivative.name}' is listed as the derivative of no state")
    state = by_reference.get(derivative.derivative_of)
    if state is None or not state.is_float:
        notes.refuse(
            derivative.line,
            f"'{derivative.name}' is the derivative of value reference {derivative.derivative_of}, which is no float",
        )
    return state


def _variable(element: Any, types: TypeDefaults, notes: Notes) -> Variable | None:
    name = element.get("name") or ""
    reference = value_reference(element, name, notes)
    causality = element.get("causality") or "local"
    if not name or reference is None:
        if causality in ("input", "output"):
            notes.refuse(element.sourceline, f"the {causality} '{name}' has no name or no value reference")
        notes.add_name(name, "{names}: left out, since the description gives no name or value reference.")
        return None
    declared = declared_type(element, types, name, notes)
    is_float = element.tag in FLOATS
    variability = element.get("variability") or _default_variability(causality, is_float=is_float)
    return Variable(
        name=name,
        reference=reference,
        type=element.tag,
        causality=causality,
        variability=variability,
        initial=element.get("initial") or default_initial(variability, causality),
        unit=(element.get("unit") or declared.get("unit") or "") if is_float else "",
        nominal=nominal(element, declared, name, notes) if is_float else None,
        start=_start(element),
        description=element.get("description") or "",
        derivative_of=integer(element.get("derivative")) if is_float else None,
        dimensions=tuple(
            Dimension(integer(d.get("start")), integer(d.get("valueReference"))) for d in element.findall("Dimension")
        ),
        aliases=tuple(alias.get("name") for alias in element.findall("Alias") if alias.get("name")),
        line=element.sourceline,
        interval=_seconds(element, "interval") if element.tag == "Clock" else None,
        shift=(_seconds(element, "shift") or 0.0) if element.tag == "Clock" else 0.0,
    )


def _seconds(clock: Any, which: str) -> float | None:
    """Return interval or shift of a clock in seconds (FMI 3.0.1 section 2.4.7.5), or None where it is not constant."""
    counter, resolution = integer(clock.get(f"{which}Counter")), integer(clock.get("resolution"))
    if counter and resolution:
        return counter / resolution
    try:
        return float(clock.get(f"{which}Decimal") or "0") or None
    except ValueError:
        return None


def _start(element: Any) -> str:
    child = element.find("Start")  # strings and binaries
    return (element.get("start") if child is None else child.get("value")) or ""


def _default_variability(causality: str, *, is_float: bool) -> str:
    if causality in PARAMETERS:
        return "fixed"
    return "continuous" if is_float else "discrete"


def _unknowns(root: Any, kind: str, by_reference: Mapping[int, Variable], notes: Notes) -> tuple[Unknown, ...]:
    found = []
    for element in root.findall(f"ModelStructure/{kind}"):
        variable = by_reference.get(integer(element.get("valueReference")) or 0)
        if variable is None or variable.reference != integer(element.get("valueReference")):
            reference = element.get("valueReference")
            notes.refuse(element.sourceline, f"{kind} has the value reference {reference}, which does not exist")
        found.append(Unknown(variable, _dependencies(element, by_reference, notes)))
    return tuple(found)


def _dependencies(element: Any, by_reference: Mapping[int, Variable], notes: Notes) -> tuple[Variable, ...] | None:
    try:
        listed = references(element.get("dependencies"))
        return None if listed is None else tuple(by_reference[r] for r in listed)
    except (ValueError, KeyError):
        notes.add(f"The dependencies in line {element.sourceline} of modelDescription.xml name no variable: ignored.")
        return None


def _check_dimensions(variables: Sequence[Variable], by_reference: Mapping[int, Variable], notes: Notes) -> None:
    for v in variables:
        for d in v.dimensions:
            holder = None if d.reference is None else by_reference.get(d.reference)
            if d.size is None and (holder is None or integer(holder.start) is None):
                notes.refuse(v.line, f"a dimension of '{v.name}' is neither a number nor a parameter that has one")
