"""From what the author gave and the equations in solved form to one symbolic system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fmilin.model.constraints.declared import Constraint
from fmilin.model.symbolic_system import Laws, SymbolicSystem
from fmilin.native.declaration import Declaration, Expr, Labels, Name, Symbol

__all__ = ["Equations", "Given", "assembled"]


@dataclass(frozen=True)
class Given:
    """What every form of the equations takes from its author beside the equations, as it was given."""

    inputs: Sequence[Name]
    parameters: Mapping[Name, float]
    outputs: Mapping[str, Expr]
    start: Mapping[Name, float]
    labels: Labels

    def declare(self, declaration: Declaration) -> None:
        """Make the symbols of inputs and parameters."""
        declaration.declare(self.inputs, "an input")
        declaration.constants |= set(declaration.declare(self.parameters, "a parameter"))


@dataclass(frozen=True)
class Equations:
    """Equations in the form that everything reduces to: W w = r, x' = f(t, x, u, p, w); see ``SymbolicSystem``."""

    states: tuple[Symbol, ...]
    derivatives: Sequence[Any]
    unknowns: Sequence[Symbol] = ()
    W: Mapping[tuple[int, int], Any] = field(default_factory=dict)
    r: Sequence[Any] = ()
    intermediate: Sequence[tuple[Symbol, Any]] = ()
    extra_names: Mapping[str, Any] = field(default_factory=dict)
    laws: Laws | None = None

    def named(self) -> dict[str, Any]:
        """Return what follows from the states by its name: ``der(x)`` of each state, and the further names."""
        rates = {f"der({x})": f for x, f in zip(self.states, self.derivatives, strict=True)}
        return rates | dict(self.extra_names)


def assembled(
    declaration: Declaration, equations: Equations, constraints: Sequence[Constraint], given: Given
) -> SymbolicSystem:
    """Return the checked system."""
    labels, states = given.labels, equations.states
    inputs = tuple(declaration.symbols[str(n)] for n in given.inputs)
    parameters = tuple(declaration.symbols[str(n)] for n in given.parameters)
    outputs = {
        name: declaration.expression(c, f"the output '{name}'", derived=True) for name, c in given.outputs.items()
    }
    starts = declaration.numbers(given.start, (*states, *inputs), "start value")
    values = declaration.numbers(given.parameters, parameters, "value")
    declaration.check_labels(labels, outputs)
    declaration.check_outputs(outputs)
    known = {str(s) for s in states}
    independent = tuple(map(str, labels.independent))
    declaration.problems += [f"the independent coordinate '{n}' is no state" for n in independent if n not in known]
    declaration.raise_problems()
    return SymbolicSystem(
        name=declaration.model,
        time=declaration.time,
        states=states,
        inputs=inputs,
        parameters={s: values[str(s)] for s in parameters},
        derivatives=tuple(equations.derivatives),
        outputs=tuple(outputs.values()),
        state_signals=declaration.signals(map(str, states), starts, labels),
        input_signals=declaration.signals(map(str, inputs), starts, labels),
        output_signals=declaration.signals(outputs, {}, labels),
        parameter_signals=declaration.signals(map(str, parameters), values, labels),
        unknowns=tuple(equations.unknowns),
        matrix={place: entry for place, entry in equations.W.items() if entry != 0},
        right_hand_side=tuple(equations.r),
        laws=equations.laws,
        constraints=tuple(constraints),
        description=labels.description,
        intermediate=tuple(equations.intermediate),
        extra_names=dict(equations.extra_names),
        independent=independent,
    )
