"""Variables and ``ModelStructure``: of FMI 2.0, which refers to variables by index, and of FMI 3.0, by reference.

FMI 1.0 does not say which variables are states: they stand under names that no variable has until its code was asked.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from fmilin.errors import quote_first
from fmilin.fmi.read import elements
from fmilin.fmi.read.description import (
    FLOATS,
    PARAMETERS,
    TYPES,
    Dimension,
    ModelDescription,
    Unknown,
    Variable,
    Variables,
)
from fmilin.fmi.read.elements import ModelStructure, Notes, Types, integer

if TYPE_CHECKING:
    from fmilin.fmi.read.large import Scanned


Find = Callable[[int], Variable | None]

HELD_CLOCKS = "clock(s): the variables that they trigger are held, as between two ticks."


class _References(NamedTuple):
    """How the entries of ``ModelStructure`` refer to variables."""

    attribute: str
    entry: str  # how a message calls what an entry refers to
    state: str  # and what a derivative says to be the derivative of
    find: Find
    find_rate: Find  # where der(x) shares the reference of the state v, each is found in its own role


def read_structure2(root: Any, notes: Notes, scanned: Scanned | None = None) -> ModelStructure:
    """Read variables, derivatives, states and outputs of FMI 2.0; ``scanned``: variables too many for the tree."""
    types = elements.declared_types(root, "SimpleType")
    variables: Variables
    if scanned is None:
        listed = [_variable2(element, types, notes) for element in root.findall("ModelVariables/ScalarVariable")]
        variables = Variables(v for v in listed if v is not None)
    else:
        variables = scanned
        scanned.set_reader(lambda element: _variable2(element, types, notes))

    def find(index: int) -> Variable | None:
        """Return variable number ``index``, counted from 1."""
        if scanned is not None:
            return scanned.at(index - 1)
        return listed[index - 1] if 0 < index <= len(listed) else None

    refer = _References("index", "lists variable no. {}", "no. {}, which is not a Real", find, find)
    derivatives, states = _rates(root, "Derivatives/Unknown", refer, notes)
    outputs = _unknowns(root, "Outputs/Unknown", refer, find, notes)
    return ModelStructure(variables, derivatives, states, outputs, elements.declared_indicators(root, notes))


def read_structure3(root: Any, notes: Notes, scanned: Scanned | None = None) -> ModelStructure:
    """Read variables, derivatives, states and outputs of FMI 3.0; ``scanned`` as in FMI 2.0."""
    types = {t.get("name") or "": dict(t.attrib) for t in root.findall("TypeDefinitions/*")}
    variables: Variables
    by_reference: Mapping[int, Variable]
    rates: Mapping[int, Variable]
    arrays: Iterable[Variable]
    if scanned is None:
        read = (_variable3(e, types, notes) for e in root.findall("ModelVariables/*") if e.tag in TYPES)
        variables = Variables(v for v in read if v is not None)
        by_reference = {v.reference: v for v in reversed(variables)}
        rates = by_reference | {v.reference: v for v in variables if v.derivative_of is not None}
        arrays, clocks = (v for v in variables if v.dimensions), sum(v.type == "Clock" for v in variables)
    else:
        scanned.set_reader(lambda element: _variable3(element, types, notes))
        variables, by_reference, rates = scanned, scanned.by_reference, scanned.rates
        arrays, clocks = scanned.with_dimensions(), scanned.count_elements("Clock")
    words = "valueReference", "has the value reference {}", "value reference {}, which is not a float"
    refer = _References(*words, by_reference.get, rates.get)
    derivatives, states = _rates(root, "ContinuousStateDerivative", refer, notes)
    for v in arrays:
        for d in v.dimensions:
            holder = None if d.reference is None else by_reference.get(d.reference)
            if d.size is None and (holder is None or integer(holder.start) is None):
                notes.refuse(v.line, f"a dimension of '{v.name}' is neither a number nor a parameter that has one")
    if clocks:
        notes.add(f"The model has {clocks} {HELD_CLOCKS}")
    outputs = _unknowns(root, "Output", refer, refer.find, notes)
    return ModelStructure(variables, derivatives, states, outputs, len(root.findall("ModelStructure/EventIndicator")))


def _rates(root: Any, path: str, refer: _References, notes: Notes) -> tuple[tuple[Unknown, ...], tuple[Variable, ...]]:
    """Return the derivatives, and the state of each."""
    derivatives = _unknowns(root, path, refer, refer.find_rate, notes)
    orphans = [u.variable.name for u in derivatives if u.variable.derivative_of is None] if notes.steps else []
    if orphans:
        notes.add(f"{quote_first(orphans)}: listed as the derivative of no state, and left out.")
        derivatives = tuple(u for u in derivatives if u.variable.derivative_of is not None)
    return derivatives, tuple(_find_state(unknown.variable, refer, notes) for unknown in derivatives)


def _find_state(derivative: Variable, refer: _References, notes: Notes) -> Variable:
    if derivative.derivative_of is None:
        notes.refuse(derivative.line, f"'{derivative.name}' is listed as the derivative of no state")
    state = refer.find(derivative.derivative_of)
    if state is None or not state.is_float:
        named = refer.state.format(derivative.derivative_of)
        notes.refuse(derivative.line, f"'{derivative.name}' is the derivative of {named}")
    return state


def _unknowns(root: Any, path: str, refer: _References, find: Find, notes: Notes) -> tuple[Unknown, ...]:
    unknowns = []
    for element in root.findall(f"ModelStructure/{path}"):
        number = integer(element.get(refer.attribute))
        variable = None if number is None else find(number)
        if variable is None:
            entry = refer.entry.format(element.get(refer.attribute))
            notes.refuse(element.sourceline, f"{path.removesuffix('/Unknown')} {entry}, which does not exist")
        unknowns.append(Unknown(variable, _dependencies(element, refer.find, notes)))
    return tuple(unknowns)


def _dependencies(element: Any, find: Find, notes: Notes) -> tuple[Variable, ...] | None:
    text = element.get("dependencies")
    if text is None:
        return None
    numbers = [integer(item) for item in text.split()]
    variables = [None if number is None else find(number) for number in numbers]
    if None in variables:
        notes.add(f"The dependencies in line {element.sourceline} of modelDescription.xml name no variable: ignored.")
        return None
    return tuple(v for v in variables if v is not None)


def _variable2(element: Any, types: Types, notes: Notes) -> Variable | None:
    """Return the variable, or None where the element is too broken to tell: its index still counts."""
    value: Any = next((child for child in element if child.tag in elements.SCALAR_TYPES), None)
    is_real = value is not None and value.tag == "Real"
    causality = element.get("causality") or "local"
    variability = element.get("variability") or ("continuous" if is_real else "discrete")
    return elements.read_variable(
        element, value, types, notes, causality, variability,
        derivative_of=integer(value.get("derivative")) if is_real else None,
    )  # fmt: skip


def _variable3(element: Any, types: Types, notes: Notes) -> Variable | None:
    causality, is_clock = element.get("causality") or "local", element.tag == "Clock"
    usual = "fixed" if causality in PARAMETERS else "continuous" if element.tag in FLOATS else "discrete"
    variability = element.get("variability") or usual
    return elements.read_variable(
        element, element, types, notes, causality, variability,
        derivative_of=integer(element.get("derivative")) if element.tag in FLOATS else None,
        dimensions=tuple(
            Dimension(integer(d.get("start")), integer(d.get("valueReference"))) for d in element.findall("Dimension")
        ),
        aliases=tuple(alias.get("name") for alias in element.findall("Alias") if alias.get("name")),
        interval=_seconds(element, "interval") if is_clock else None,
        shift=(_seconds(element, "shift") or 0.0) if is_clock else 0.0,
        previous=integer(element.get("previous")),
    )  # fmt: skip


def _seconds(clock: Any, which: str) -> float | None:
    """Return interval or shift of a clock in seconds (FMI 3.0.1 section 2.4.7.5), or None where it is not constant."""
    counter, resolution = integer(clock.get(f"{which}Counter")), integer(clock.get("resolution"))
    if counter and resolution:
        return counter / resolution
    try:
        return float(clock.get(f"{which}Decimal") or "0") or None
    except ValueError:
        return None


_CO_SIMULATION = ("CoSimulation_StandAlone", "CoSimulation_Tool")
_MAX_STATES = 10_000_000
UNNAMED = "FMI 1.0 descriptions do not list the states: their names are known after the model is loaded."


def interfaces1(root: Any) -> dict[str, dict[str, str]]:
    """Return the interface and its attributes: an FMU of FMI 1.0 has exactly one."""
    identifier = {"modelIdentifier": root.get("modelIdentifier") or ""}
    for kind in _CO_SIMULATION:
        element = root.find(f"Implementation/{kind}")
        if element is not None:
            capabilities = element.find("Capabilities")
            tool = {"needsExecutionTool": "true"} if kind == "CoSimulation_Tool" else {}
            return {"CoSimulation": identifier | tool | ({} if capabilities is None else dict(capabilities.attrib))}
    return {"ModelExchange": identifier}


def read_structure1(root: Any, notes: Notes, scanned: Scanned | None = None) -> ModelStructure:
    """Read variables and outputs; of the states only their number is there."""
    del scanned  # descriptions of FMI 1.0 are read as a whole
    types = elements.declared_types(root, "Type")
    variables = _variables1(root, types, notes)
    # Those of a co-simulation FMU stay hidden: no function leads to them.
    number = (integer(root.get("numberOfContinuousStates")) or 0) if "ModelExchange" in interfaces1(root) else 0
    if not 0 <= number <= _MAX_STATES:
        notes.refuse(root.sourceline, f"numberOfContinuousStates is {number}")
    states = tuple(_unnamed(i) for i in range(number))
    if states:
        notes.add(UNNAMED)
    outputs = tuple(Unknown(v) for v in variables if v.causality == "output")
    count = elements.declared_indicators(root, notes)
    return ModelStructure(variables, tuple(Unknown(_rate(s, i)) for i, s in enumerate(states)), states, outputs, count)


def with_states(description: ModelDescription, references: Sequence[int]) -> ModelDescription:
    """Return the description with the states that the code reports; one without a variable stays unnamed."""
    by_reference: dict[int, Variable] = {}
    for v in description.variables:
        if v.is_float:
            by_reference.setdefault(v.reference, v)
    states = tuple(by_reference.get(r) or _unnamed(i, description.by_name) for i, r in enumerate(references))
    rates = tuple(_declared_rate(description, s) or _rate(s, i) for i, s in enumerate(states))
    notes = tuple(note for note in description.notes if note != UNNAMED)
    unnamed = (s for s in states if s.reference < 0)
    variables = Variables((*description.variables, *unnamed), description.variables.negatives.values())
    derivatives = tuple(Unknown(r) for r in rates)
    return replace(description, variables=variables, states=states, derivatives=derivatives, notes=notes)


def _unnamed(index: int, taken: Container[str] = ()) -> Variable:
    # Value references are not negative: these belong to no variable.
    name = f"x[{index + 1}]"
    name = f"state[{index + 1}]" if name in taken else name
    return Variable(name=name, reference=-2 * (index + 1), type="Real", initial="calculated")


def _rate(state: Variable, index: int) -> Variable:
    return Variable(name=f"der({state.name})", reference=-2 * (index + 1) - 1, type="Real", initial="calculated")


def _declared_rate(description: ModelDescription, state: Variable) -> Variable | None:
    """Return the variable ``der(x)``, which tools with structured names write down."""
    head, dot, last = state.name.rpartition(".")
    candidates = (description.by_name.get(name) for name in (f"der({state.name})", f"{head}{dot}der({last})"))
    return next((v for v in candidates if v is not None and v.is_float and v.variability == "continuous"), None)


def _variables1(root: Any, types: Types, notes: Notes) -> Variables:
    """Return the variables of FMI 1.0, those apart that are the negative of another one."""
    positives: list[Variable] = []
    negatives: list[Variable] = []
    for element in root.findall("ModelVariables/ScalarVariable"):
        variable = _variable(element, types, notes)
        if variable is not None:
            is_negative = element.get("alias") == "negatedAlias"
            (negatives if is_negative else positives).append(variable)
    described = {v.reference for v in positives if v.is_float}
    for v in negatives:
        if not v.is_float or v.reference not in described:
            notes.add_name(v.name, "{names}: left out, since each is the negative of something without a variable.")
    return Variables(positives, (v for v in negatives if v.is_float and v.reference in described))


def _variable(element: Any, types: Types, notes: Notes) -> Variable | None:
    value: Any = next((child for child in element if child.tag in elements.SCALAR_TYPES), None)
    start, is_real = ("", False) if value is None else (value.get("start"), value.tag == "Real")
    variability = element.get("variability") or ("continuous" if is_real else "discrete")
    causality, fixed = ("parameter", "fixed") if variability == "parameter" else ("local", variability)
    if element.get("causality") in ("input", "output"):
        causality = element.get("causality")
    initial = ("approx" if value.get("fixed") == "false" else "exact") if start else "calculated"
    return elements.read_variable(element, value, types, notes, causality, fixed, initial=initial)
