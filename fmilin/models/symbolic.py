"""A symbolic system as a Model, with exact directional derivatives; Lagrange's equations taken apart, too."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fmilin.codegen.library_errors import LIBRARY_ERRORS, describe_library_error
from fmilin.constraints.expressions import Expression
from fmilin.errors import UnknownNameError
from fmilin.model.capabilities import HasFormulas
from fmilin.model.equation_forms import SecondOrderForm, SymbolicSystem
from fmilin.model.interface import ModelInfo
from fmilin.models.native_engine import AdjustableEngine, NativeEngine, Quantity, Values, list_available_quantities
from fmilin.models.native_model import NativeModel
from fmilin.numerics.null_space import NullSpaceFactors
from fmilin.signals import FloatArray, Signal, Signals

if TYPE_CHECKING:
    from fmilin.codegen.expression_graph import Graph
    from fmilin.codegen.implicit import ImplicitSystem
    from fmilin.codegen.system_functions import SystemFunctions

SX = Any  # casadi.SX: casadi ships no types


def is_lagrange(states: Sequence[str], unknowns: Sequence[str]) -> bool:
    """Whether the unknowns are the accelerations of half the states, followed by multipliers."""
    n = len(states) // 2
    names = [*(f"der({v})" for v in states[n:]), *(f"lambda[{k + 1}]" for k in range(len(unknowns) - n))]
    return 2 * n == len(states) and n > 0 and list(unknowns) == names


def second_order_form(
    numeric: SystemFunctions, point: tuple[float, FloatArray, FloatArray, FloatArray], outputs: int
) -> SecondOrderForm | None:
    """Return the form at ``point`` = (t, x, u, p), or None when the system is not made of Lagrange's equations."""
    if not is_lagrange(numeric.system.state_signals.names, numeric.system.unknown_names):
        return None
    t, x, u, p = point
    n = len(x) // 2
    W, r = numeric.equations(t, x, u, p)
    scales = np.array([s.nominal or 1.0 for s in numeric.system.state_signals[:n]])
    w = NullSpaceFactors(W[:n, :n], W[n:, :n], scales=scales).solve(r)
    e_s, c_s, c_w = numeric.partials(point, w)

    def bend(a: FloatArray) -> FloatArray:
        moving = np.concatenate((x[:n], a))
        at_rest = np.concatenate((x[:n], np.zeros(n)))
        # The lower right-hand side is -Gdot v: quadratic in v for constraints that do not move with time.
        return numeric.equations(t, at_rest, u, p)[1][n:] - numeric.equations(t, moving, u, p)[1][n:]

    return SecondOrderForm(
        positions=np.arange(n),
        velocities=np.arange(n, 2 * n),
        M=W[:n, :n],
        G=W[n:, :n],
        multipliers=w[n:],
        accelerations=w[:n],
        force_states=e_s[:n, : 2 * n],
        force_inputs=e_s[:n, 2 * n :],
        output_states=c_s[:outputs, : 2 * n],
        output_inputs=c_s[:outputs, 2 * n :],
        output_unknowns=c_w[:outputs],
        bend=bend,
        constraint_states=-e_s[n:, : 2 * n],
        constraint_inputs=-e_s[n:, 2 * n :],
    )


@dataclass(eq=False)
class SymbolicSelection:
    """Outputs, then observed quantities, of a numeric system that is made when needed."""

    make: Callable[[], SystemFunctions]
    outputs: int  # how many there are

    @cached_property
    def numeric(self) -> SystemFunctions:
        """The functions of the equations, for any values of the parameters."""
        return self.make()

    def split(self, rates: FloatArray, values: FloatArray) -> Values:
        """Return rates, outputs and observed quantities."""
        return rates, values[: self.outputs], values[self.outputs :]


class SymbolicEngine(NativeEngine[SymbolicSelection], AdjustableEngine):
    """W w = r, x' = f(t, x, u, p, w) as a graph, whatever form the equations were given in.

    The front ends are :class:`SystemEngine` for ODEs and Lagrange's equations, ``KaneEngine`` and ``DaeEngine``. They
    say what the equations and quantities are. ``p`` has the values of the parameters; copies with other values share
    what is made of the equations.
    """

    compilable = True
    evaluation_seconds = 3e-5
    parameter_signals: Signals
    p: FloatArray  # shape (np,)
    _variant: tuple[float, ...] = ()  # distinguishes graphs of copies with equations that differ by more than values

    def __init__(self, equations: Any) -> None:
        self._made: dict[tuple[object, ...], Any] = {}
        self._take(equations)

    @property
    @abstractmethod
    def base(self) -> ImplicitSystem:
        """The equations without outputs; ``further`` has named quantities."""

    @abstractmethod
    def _take(self, equations: Any) -> None:
        """Note the equations as they are given, with their values and start values."""

    def with_system(self, equations: Any) -> Self:
        """Return the same engine with other values, start values or right-hand side; what was made is shared."""
        other = copy(self)
        for cached in ("available", "point_codes"):
            other.__dict__.pop(cached, None)
        other._take(equations)
        return other

    def build_model(self, key: tuple[object, ...], make: Callable[[], Any]) -> Any:
        """Return what ``make`` returned when it was first called under a ``key``, whatever the values of parameters."""
        key = (*self._variant, *key)
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def expression(self, quantity: Quantity) -> SX:
        """Return a quantity as a node of the graph."""
        match quantity.source:
            case ("state", i):
                return self.base.states[i]
            case ("rate", i):
                return self.base.derivatives[i]
            case ("input", i):
                return self.base.inputs[i]
        return quantity.source

    def _column(self, quantities: Sequence[Quantity]) -> SX:
        import casadi as ca

        return ca.densify(ca.vertcat(ca.SX(0, 1), *(self.expression(quantity) for quantity in quantities)))

    def in_graph(self, outputs: Sequence[Quantity], observed: Sequence[Quantity]) -> ImplicitSystem:
        """Return the equations as a graph."""
        named = {quantity.signal.name: self.expression(quantity) for quantity in observed}
        return replace(
            self.base,
            outputs=self._column(outputs),
            output_signals=Signals(quantity.signal for quantity in outputs),
            state_signals=self.states,
            input_signals=self.inputs,
            parameter_signals=self.parameter_signals,
            parameter_values=self.p,
            further={**self.base.further, **named},
        )

    def functions(self, system: ImplicitSystem) -> SystemFunctions:
        """Return the functions of a system, sparse ones of a large one."""
        from fmilin.codegen.system_functions import SystemFunctions
        from fmilin.models.large_equations import SparseFunctions
        from fmilin.numerics.factors import MAX_DENSE_ROWS

        return (SparseFunctions if len(system.unknown_names) > MAX_DENSE_ROWS else SystemFunctions)(system)

    def numeric(self, quantities: Sequence[Quantity]) -> SystemFunctions:
        """Return the equations with these outputs as functions; they are made once, whatever the parameters."""
        names = tuple(quantity.signal.name for quantity in quantities)
        functions: SystemFunctions = self.build_model(
            ("functions", names), lambda: self.functions(replace(self.base, outputs=self._column(quantities)))
        )
        return functions

    def select(self, outputs: Sequence[Quantity], observed: Sequence[Quantity]) -> SymbolicSelection:
        """Return the functions of these quantities, which are made when needed."""
        return SymbolicSelection(partial(self.numeric, [*outputs, *observed]), len(outputs))

    def evaluate(self, selection: SymbolicSelection, t: float, x: FloatArray, u: FloatArray) -> Values:
        """Return rates, outputs and observed quantities; NumericalError where the equations are singular."""
        try:
            return selection.split(*selection.numeric.values(t, x, u, self.p))
        except LIBRARY_ERRORS as error:
            raise describe_library_error(error, f"the equations at time {t:g}") from error

    def differentiate(
        self, selection: SymbolicSelection, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray
    ) -> Values:
        """Return the exact derivatives of all three."""
        try:
            return selection.split(*selection.numeric.products((t, x, u, self.p), dx, du))
        except LIBRARY_ERRORS as error:
            raise describe_library_error(error, f"the derivatives of the equations at time {t:g}") from error

    def second_order_form(
        self, selection: SymbolicSelection, t: float, x: FloatArray, u: FloatArray
    ) -> SecondOrderForm | None:
        """Return Lagrange's equations in their parts, also at a singular configuration; None for other forms."""
        return second_order_form(selection.numeric, (t, x, u, self.p), selection.outputs)


class SystemEngine(SymbolicEngine):
    """A :class:`SymbolicSystem` as it was declared, as an engine."""

    as_written: object | None = None  # what the model was made of, where other parameters may make it another kind

    def _take(self, system: SymbolicSystem) -> None:
        self.system = system
        self.info = ModelInfo(system.name)
        self.states, self.inputs = system.state_signals, system.input_signals
        self.outputs, self.constraints = system.output_signals.names, system.constraints
        self.independent = system.independent
        self.parameters = {str(s): value for s, value in system.parameters.items()}
        self.parameter_signals = system.parameter_signals
        self.p = np.array(list(system.parameters.values()), dtype=np.float64)

    @property
    def _graph(self) -> tuple[Graph, ImplicitSystem]:
        """The graph of the equations, and the equations in it without outputs."""
        graph: tuple[Graph, ImplicitSystem] = self.build_model(("graph",), self._write_graph)
        return graph

    def _write_graph(self) -> tuple[Graph, ImplicitSystem]:
        return replace(self.system, outputs=(), output_signals=Signals()).graph()

    @property
    def base(self) -> ImplicitSystem:
        """The equations without outputs."""
        return self._graph[1]

    def expression(self, quantity: Quantity) -> SX:
        """Return a quantity as a node of the graph."""
        return self._graph[0].node(self.formula(quantity))

    def formula(self, quantity: Quantity) -> Any:
        """Return a quantity in the symbols of the equations."""
        match quantity.source:
            case ("state", i):
                return self.system.states[i]
            case ("rate", i):
                return self.system.derivatives[i]
            case ("input", i):
                return self.system.inputs[i]
        return quantity.source

    @property
    def autonomous(self) -> bool:  # type: ignore[override]
        """Whether time stands nowhere in the equations."""
        return bool(self.build_model(("autonomous",), self._look_for_time))

    def _look_for_time(self) -> bool:
        """Return whether time stands in no equation and in no constraint."""
        s = self.system
        parts = (*s.derivatives, *s.matrix.values(), *s.right_hand_side, *(e for _, e in s.intermediate))
        constraints = (name for c in s.constraints for name in c.expression.names)
        return "time" not in constraints and all(s.time not in e.free_symbols for e in parts)

    @cached_property
    def may_wrap(self) -> bool:  # type: ignore[override]
        """Whether a function that jumps by a turn stands in what may be an output."""
        import sympy

        system = self.system
        intermediate = (expression for _, expression in system.intermediate)
        expressions = (*system.outputs, *system.extra_names.values(), *intermediate)
        wrapping = sympy.atan2, sympy.floor, sympy.ceiling, sympy.Mod
        return any(sympy.sympify(expression).has(*wrapping) for expression in expressions)

    def with_parameters(self, values: Mapping[str, float]) -> Self:
        """Return the same engine with other values: they are arguments of the functions."""
        system = self.system
        parameters = {s: values.get(str(s), value) for s, value in system.parameters.items()}
        signals = Signals(replace(s, start=values.get(s.name, s.start)) for s in system.parameter_signals)
        return self.with_system(replace(system, parameters=parameters, parameter_signals=signals))

    @cached_property
    def available(self) -> Mapping[str, Quantity]:
        """The outputs, states, inputs, ``der(state)`` and the further names that the system offers."""
        system = self.system
        outputs = zip(system.output_signals, system.outputs, strict=True)
        declared = (Quantity(signal, expression) for signal, expression in outputs)
        further = (Quantity(Signal(name), expression) for name, expression in system.extra_names.items())
        sources: dict[Any, tuple[str, int]] = {s: ("input", i) for i, s in enumerate(system.inputs)}
        sources |= {s: ("state", i) for i, s in enumerate(system.states)}
        all_symbols = list_available_quantities(self.states, self.inputs, declared, further)
        same = {name: sources.get(self.formula(quantity)) for name, quantity in all_symbols.items()}
        return all_symbols | {
            name: Quantity(all_symbols[name].signal, source) for name, source in same.items() if source is not None
        }


class SymbolicModel(NativeModel, HasFormulas):
    """A Model made of a :class:`~fmilin.model.equation_forms.SymbolicSystem`; ``parameters`` are the values in use."""

    engine: SystemEngine

    def __init__(self, system: SymbolicSystem) -> None:
        super().__init__(SystemEngine(system))

    @property
    def system(self) -> SymbolicSystem:
        """As it was declared, with the parameter values in use."""
        return self.engine.system

    def formula(self, name: str) -> Expression | None:
        """Return the quantity ``name`` as an expression over states, inputs, parameters and time.

        or None: it is unknown, or needs accelerations or multipliers.
        """
        system, quantity = self.engine.system, self.engine.quantity(name)
        if quantity is None:
            return None
        all_symbols = (system.time, *system.states, *system.inputs, *system.parameters)
        expression = self.engine.formula(quantity)
        if expression.free_symbols - set(all_symbols):
            return None
        return Expression.from_sympy(expression, {s: str(s) for s in all_symbols})

    def with_start(self, values: Mapping[str, float]) -> Self:
        """Return the same model, starting elsewhere.

        Raises UnknownNameError when there is no such state or input.

        Parameters
        ----------
        values : mapping of str to float
            Start values of states and inputs by name; the others keep theirs.
        """
        engine = self.engine
        system = engine.system
        names = {*engine.states.names, *engine.inputs.names}
        for name in values:
            if name not in names:
                raise UnknownNameError.among(name, sorted(names), f"a state or an input of '{self.info.name}'")
        states, inputs = (
            Signals(replace(s, start=float(values.get(s.name, s.start))) for s in signals)
            for signals in (system.state_signals, system.input_signals)
        )
        return self._replace_choice(engine.with_system(replace(system, state_signals=states, input_signals=inputs)))
