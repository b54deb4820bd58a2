"""The variables of an FMU that is made from a system of equations: names, references, and what is computed for them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from fmilin.constraints.declared import Constraint
from fmilin.constraints.expressions import Expression
from fmilin.errors import ConstraintError, ModelError, UnknownNameError
from fmilin.signals import Signal, Signals, rate_unit

if TYPE_CHECKING:
    from fmilin.codegen.implicit import ImplicitSystem


SX = Any  # casadi.SX: casadi ships no types
ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # what no XML document can contain

Causality = Literal["independent", "parameter", "input", "output", "local"]


@dataclass(frozen=True, slots=True)
class FmuVariable:
    """One entry of ``ModelVariables``."""

    name: str
    reference: int  # the value reference, which is also the position in ``ModelVariables``, counted from 0
    causality: Causality
    unit: str = ""  # empty where there is none, as the description
    description: str = ""
    nominal: float | None = None
    start: float | None = None
    derivative_of: int | None = None  # the value reference of the state of which this is the derivative
    is_state: bool = False
    is_discrete: bool = False  # whether it changes at samples only

    @property
    def variability(self) -> str:
        """In the words of the standard."""
        if self.causality == "parameter":
            return "fixed"
        return "discrete" if self.is_discrete else "continuous"

    @property
    def common_attributes(self) -> dict[str, str]:
        """Name, reference, description, causality, variability and initial, as both versions have them."""
        initial = {"initial": "exact"} if self.is_state or self.causality == "parameter" else {}
        identity = {"name": self.name, "valueReference": str(self.reference)} | format_description(self.description)
        return identity | {"causality": self.causality, "variability": self.variability} | initial

    @property
    def real_attributes(self) -> dict[str, str]:
        """Unit, nominal value and start value."""
        numbers = {"nominal": self.nominal, "start": self.start}
        written = {name: repr(float(value)) for name, value in numbers.items() if value is not None}
        return ({"unit": self.unit} if self.unit else {}) | written


def format_description(description: str) -> dict[str, str]:
    """Return the attribute ``description``, if any."""
    return {"description": ILLEGAL.sub("", description)} if description else {}


@dataclass(frozen=True, slots=True)
class DeclaredConstraint:
    """A constraint with a residual that is a variable of the FMU."""

    variable: str
    level: str
    name: str
    rate: str | None
    inputs: tuple[str, ...] = ()  #: that prescribe it: the residual depends on them
    rate_inputs: tuple[str, ...] = ()  #: the same of the rate


@dataclass(frozen=True)
class FmuInterface:
    """All variables, and the expressions behind those that are neither states, derivatives, inputs nor parameters."""

    variables: tuple[FmuVariable, ...]  # in the C runtime's order: time, x, x', u, outputs, locals, parameters
    outputs: tuple[int, ...]  # references of the outputs, in their order
    output_expressions: tuple[SX, ...]  # of the computed ones
    local_expressions: tuple[SX, ...]
    constraints: tuple[DeclaredConstraint, ...]
    knowns: tuple[int, ...]  # the references of states, inputs, time and parameters


@dataclass(frozen=True, slots=True)
class _Computed:
    """A variable with an expression of its own."""

    signal: Signal
    expression: SX


def arrange_variables(system: ImplicitSystem, constraints: Sequence[Constraint]) -> FmuInterface:
    """Decide the variables: further names are local, residuals and their rates outputs, ``residual[1]``."""
    computed_outputs, passed_on = _sort_outputs(system)
    residuals, declared = _residuals(
        system, constraints, taken={*_names(system), *(o.signal.name for o in computed_outputs)}
    )
    outputs = [*computed_outputs, *residuals]
    taken = {*_names(system), *(o.signal.name for o in outputs)}
    local = [_Computed(Signal(name), e) for name, e in system.further.items() if name not in taken]
    variables = _variables(system, outputs, local, passed_on)
    check(variables, system.name)
    reference = {v.name: v.reference for v in variables}
    order = [*system.output_signals.names, *(o.signal.name for o in residuals)]
    knowns = [*system.state_signals.names, *system.input_signals.names, "time", *system.parameter_signals.names]
    return FmuInterface(
        variables=variables,
        outputs=tuple(reference[name] for name in order),
        output_expressions=tuple(o.expression for o in outputs),
        local_expressions=tuple(o.expression for o in local),
        constraints=declared,
        knowns=tuple(reference[name] for name in knowns),
    )


def _names(system: ImplicitSystem) -> list[str]:
    states = system.state_signals.names
    rates = [f"der({name})" for name in states]
    return ["time", *states, *rates, *system.input_signals.names, *system.parameter_signals.names]


def _sort_outputs(system: ImplicitSystem) -> tuple[list[_Computed], set[str]]:
    """Return the outputs with variables of their own, and the names of those that are that state or derivative."""
    from casadi import is_equal

    same = _of_states(system)
    computed_outputs: list[_Computed] = []
    passed_on: set[str] = set()
    for signal, expression in zip(system.output_signals, system.outputs.elements(), strict=True):
        if signal.name in same and is_equal(same[signal.name], expression):
            passed_on.add(signal.name)
        else:
            computed_outputs.append(_Computed(signal, expression))
    return computed_outputs, passed_on


def _residuals(
    system: ImplicitSystem, constraints: Sequence[Constraint], taken: set[str]
) -> tuple[list[_Computed], tuple[DeclaredConstraint, ...]]:
    computed: list[_Computed] = []
    rates: list[_Computed] = []
    declared: list[DeclaredConstraint] = []
    for number, constraint in enumerate(constraints, 1):
        name = free_name(f"residual[{number}]", taken)
        computed.append(_residual(system, name, constraint.label, constraint.expression))
        rate = None
        if constraint.rate is not None:
            rate = free_name(f"residual_rate[{number}]", taken)
            rates.append(_residual(system, rate, f"rate of {constraint.label}", constraint.rate))
        named, named_in_rate = find_prescribing_inputs(constraint, system.input_signals)
        declared.append(DeclaredConstraint(name, constraint.level, constraint.name, rate, named, named_in_rate))
    return computed + rates, tuple(declared)


def find_prescribing_inputs(constraint: Constraint, inputs: Signals) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the inputs that a constraint and its rate name, which the residual alone would not show."""
    named = tuple(name for name in constraint.expression.names if inputs.has(name))
    if constraint.rate is None:
        return named, ()
    return named, tuple(name for name in constraint.rate.names if inputs.has(name))


def _residual(system: ImplicitSystem, name: str, label: str, expression: Expression) -> _Computed:
    from fmilin.constraints.in_graph import InGraph

    text = f"zero on the manifold: {label}"
    value = expression.built(InGraph(), _meanings(system, expression.names, label))
    return _Computed(Signal(name, description=text), value)


def _meanings(system: ImplicitSystem, names: Sequence[str], label: str) -> dict[str, SX]:
    """Return what the names in a constraint stand for; the same precedence as in :class:`Constraints`."""
    meanings: dict[str, SX] = {"time": system.time, **system.further, **_of_states(system)}
    meanings |= dict(zip(system.output_signals.names, system.outputs.elements(), strict=True))
    meanings |= dict(zip(system.parameter_signals.names, system.parameters.elements(), strict=True))
    meanings |= {symbol.name(): symbol for symbol in system.parameters.elements()}
    meanings |= dict(zip(system.input_signals.names, system.inputs.elements(), strict=True))
    meanings |= dict(zip(system.state_signals.names, system.states.elements(), strict=True))
    for name in names:
        if name not in meanings:
            error = UnknownNameError.among(name, meanings, f"a variable of '{system.name}'")
            raise ConstraintError(f"In the constraint '{label}': {error}")
    return {name: meanings[name] for name in names}


def _of_states(system: ImplicitSystem) -> dict[str, SX]:
    """Return states and their derivatives by name."""
    names = system.state_signals.names
    rates = {f"der({name})": f for name, f in zip(names, system.derivatives.elements(), strict=True)}
    return rates | dict(zip(names, system.states.elements(), strict=True))


def free_name(name: str, taken: set[str]) -> str:
    """Return ``name``, or one like it where it is taken."""
    while name in taken:
        name = f"fmilin_{name}"
    return name


def name_in_group(name: str, group: str, taken: set[str]) -> str:
    """Take ``name``, or one like it where it is not legal or ``taken``: ``output.NAME``; return what was taken."""
    name = legal_name(name)
    while name in taken:
        name = f"{group}.{name}"
    taken.add(name)
    return name


def _variables(
    system: ImplicitSystem, outputs: Sequence[_Computed], local: Sequence[_Computed], passed_on: set[str]
) -> tuple[FmuVariable, ...]:
    n = len(system.state_signals)
    variables = [FmuVariable("time", 0, "independent", unit="s", description="Time")]

    def add(signal: Signal, causality: Causality, start: float | None = None, **particular: Any) -> None:
        causality = "output" if signal.name in passed_on and causality == "local" else causality
        variables.append(build_variable(signal, len(variables), causality, start=start, **particular))

    for signal in system.state_signals:
        add(signal, "local", signal.start, is_state=True)
    for signal in system.state_signals:
        add(Signal(f"der({signal.name})", rate_unit(signal.unit)), "local", derivative_of=len(variables) - n)
    for signal in system.input_signals:
        add(signal, "input", signal.start)
    for output in outputs:
        add(output.signal, "output")
    for item in local:
        add(item.signal, "local")
    for signal, value in zip(system.parameter_signals, system.parameter_values, strict=True):
        add(signal, "parameter", float(value))
    return tuple(variables)


def build_variable(signal: Signal, reference: int, causality: Causality, **particular: Any) -> FmuVariable:
    """Return the variable of an FMU that a signal becomes; ``particular``: further fields of :class:`FmuVariable`."""
    unit, nominal = signal.unit, usable_nominal(signal)
    return FmuVariable(signal.name, reference, causality, unit, signal.description, nominal, **particular)


def usable_nominal(signal: Signal) -> float | None:
    """Return the nominal value, or None where it is missing, not positive or not finite."""
    usable = signal.nominal is not None and 0 < signal.nominal < math.inf
    return signal.nominal if usable else None


def legal_name(name: str) -> str:
    r"""Return ``name`` as an FMU can have it."""
    return ILLEGAL.sub("_", re.sub(r"[\r\n\t]", "_", name)) or "unnamed"


def check(variables: Sequence[FmuVariable], model: str) -> None:
    """Make sure that an FMU can have these variables."""
    problems = [f"'{a}' stands for several variables" for a, n in Counter(v.name for v in variables).items() if n > 1]
    problems += [f"{v.name!r} is not a name: it is empty or has a line break, a tab or another control character"
                 for v in variables if v.name != legal_name(v.name)]  # fmt: skip
    problems += [f"the start value of '{v.name}' is {v.start}" for v in variables
                 if v.start is not None and not math.isfinite(v.start)]  # fmt: skip
    if problems:
        raise ModelError(
            f"No FMU can be made from '{model}': {'; '.join(problems)}. In an FMU every variable has a name of its own "
            f"(an output may share the name of a state or of der(state) only if it is that), and starts at a finite "
            f"value."
        )
