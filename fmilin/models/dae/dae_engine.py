"""Reduced DAEs as an engine: an implicit system with invariants, like every native form."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import casadi as ca
import numpy as np

from fmilin.codegen.implicit import Guess, ImplicitSystem, jacobian
from fmilin.codegen.library_errors import explain_library_errors
from fmilin.codegen.system_functions import has_kinks
from fmilin.constraints.declared import Constraint
from fmilin.constraints.expressions import Expression, add_driving_inputs
from fmilin.model.interface import ModelInfo
from fmilin.models.dae.coefficients import is_left_by_cancellation
from fmilin.models.dae.dae_graph import DaeGraph
from fmilin.models.dae.dae_rows import REGULAR_POINT_ERROR, convert_to_numbers, reciprocal_condition
from fmilin.models.dae.reduction import Reduced, reduce_graph
from fmilin.models.dae.semi_explicit import stack_column
from fmilin.models.native_engine import Quantity, list_available_quantities
from fmilin.models.symbolic import SymbolicEngine
from fmilin.signals import FloatArray, Signal, Signals, rate_unit
from fmilin.tolerances import MIN_RECIPROCAL_CONDITION_NUMBER

SX = Any


class DaeEngine(SymbolicEngine):
    """A :class:`DaeGraph`, reduced, with the values of its parameters."""

    independent_by_default = whole_slopes = True

    def __init__(self, graph: DaeGraph) -> None:
        with explain_library_errors(f"the equations of '{graph.name}'"):
            self.reduced = reduce_graph(graph)
            self.constraints = tuple(_constraints(self.reduced))
            self._base = _implicit(self.reduced)
        self.notes = (*graph.notes, *self.reduced.notes, *self.reduced.remarks)
        super().__init__(graph)
        self.independent = self._choose_preferred_states(graph) if graph.preferred and self.constraints else ()

    def _take(self, graph: DaeGraph) -> None:
        self.graph = graph
        self.info = ModelInfo(graph.name)
        inputs = graph.inputs.positions
        all_inputs = self.reduced.inputs
        self.states = graph.states
        self.inputs = Signals(graph.inputs[inputs[s.name]] if s.name in inputs else s for s in all_inputs)
        self.outputs = tuple(graph.outputs)
        self.parameter_signals, self.p = graph.parameters, graph.values
        self.parameters = dict(zip(graph.parameters.names, self.p.tolist(), strict=True))

    def set_newton_start(self, graph: DaeGraph, unknowns: FloatArray) -> None:
        """Begin Newton's iterations at the starts of a graph with unknowns (nw,) that solve the equations there.

        At the start values that a model writes there may be no solution: a tank of which the start gives the level is
        empty there, and its temperature undetermined.
        """
        guess = self._base.guess
        # Linear equations are solved without a guess.
        if guess is not None:
            sizes = np.maximum(self.reduced.sizes, np.abs(unknowns))
            point = 0.0, graph.states.starts, self.inputs.starts, graph.values
            self._base = replace(self._base, guess=Guess(unknowns, sizes, *point, equations=guess.equations))

    @property
    def base(self) -> ImplicitSystem:
        """The reduced equations without outputs."""
        return self._base

    def _choose_preferred_states(self, graph: DaeGraph) -> tuple[str, ...]:
        """Return as many states as are independent at the start, those that are preferred first."""
        numeric = self.numeric([self.available[quantity_name(k)] for k in range(len(self.reduced.invariants))])
        x, u = graph.states.starts, self.inputs.starts
        moved = np.diag(graph.states.scales(x)), np.zeros((len(u), len(x)))
        H = numeric.products((0.0, x, u, graph.values), *moved)[1]
        H, order = np.nan_to_num(H), [graph.states.index_of(name, "a state") for name in graph.preferred]
        free, rank = (
            np.ones(len(x), dtype=bool),
            np.linalg.matrix_rank(H, tol=REGULAR_POINT_ERROR * np.abs(H).max(initial=1.0)),
        )
        for i in dict.fromkeys((*order, *range(len(x)))):
            free[i] = False
            free[i] = np.linalg.matrix_rank(H[:, free], tol=REGULAR_POINT_ERROR * np.abs(H).max(initial=1.0)) < rank
        return tuple(np.array(graph.states.names)[~free].tolist())

    @cached_property
    def autonomous(self) -> bool:  # type: ignore[override]
        """Whether time stands nowhere in the equations."""
        return not ca.depends_on(self.graph.residuals, self.graph.time)

    @cached_property
    def is_linear(self) -> bool:
        """Whether the equations are linear with constant coefficients, in everything that moves."""
        graph = self.graph
        moving = ca.vertcat(graph.time, graph.x, graph.unknowns)
        slopes = ca.jacobian(graph.residuals, moving)
        return not ca.depends_on(ca.densify(ca.vertcat(ca.SX(0, 1), *slopes.nonzeros())), ca.vertcat(moving, graph.u))

    @cached_property
    def smooth(self) -> bool:  # type: ignore[override]
        """Whether no operation of the equations and outputs can have a kink."""
        parts = ca.vertcat(self.graph.residuals, *self.graph.outputs.values())
        return not has_kinks(ca.Function("smooth", ca.symvar(parts), [parts]))

    def with_parameters(self, values: Mapping[str, float]) -> Self:
        """Return the same engine with other values; reduced again where these change the structure of the equations."""
        graph = self.graph
        signals = Signals(replace(s, start=values.get(s.name, s.start)) for s in graph.parameters)
        changed = replace(graph, parameters=signals)
        return self.with_system(changed) if self.keeps_structure(changed) else type(self)(changed)

    def keeps_structure(self, changed: DaeGraph) -> bool:
        """Whether a graph with other values of parameters is reduced as this one is.

        It is not where a coefficient becomes zero or stops being zero, where the rank had to be decided by numbers that
        the parameters are among, and where the unknowns are no longer determined.
        """
        before, after = self.graph.values, changed.values
        different = np.flatnonzero(before != after)
        if not len(different):
            return True
        form = self.reduced.form
        # A coefficient q + 1/p becomes infinite, and not zero, where p does.
        if any((before[i] == 0) != (after[i] == 0) for i in form.divisors):
            return False
        if form.watched is not None and form.watched.zeros(before) != form.watched.zeros(after):
            return False
        largest = float(np.abs(after).max(initial=1.0))
        # A value that looks like rounding makes suspects of coefficients, and the reduction has to decide about these.
        if any(is_left_by_cancellation(after[i], largest, is_written=False) for i in different):
            return False
        if self.reduced.is_by_numbers:
            return False
        return self._is_regular(after) or not self._is_regular(before)

    def _is_regular(self, parameters: FloatArray) -> bool:
        """Whether the unknowns are determined at the start."""
        if not self.reduced.keys:
            return True
        point = 0.0, self.states.starts, self.inputs.starts, parameters, self.reduced.guess
        matrix = self._matrix(*point)
        return reciprocal_condition(convert_to_numbers(matrix)) > MIN_RECIPROCAL_CONDITION_NUMBER

    @cached_property
    def _matrix(self) -> Any:
        """(t, x, u, p, w) -> the matrix of what is solved."""
        base = self.base
        arguments = [base.time, base.states, base.inputs, base.parameters, base.unknowns]
        return ca.Function("matrix", arguments, [ca.sparsify(base.matrix)])

    @cached_property
    def available(self) -> Mapping[str, Quantity]:
        """The outputs, states, inputs, ``der(state)``, algebraic variables and the residuals that are constraints."""
        graph, form = self.graph, self.reduced.form
        signals = graph.output_signals.positions
        declared = [
            Quantity(graph.output_signals[signals[name]] if name in signals else Signal(name), value)
            for name, value in zip(graph.outputs, self.express(list(graph.outputs.values())), strict=True)
        ]
        further = [Quantity(s, value) for s, value in zip(graph.algebraic, form.z.elements(), strict=True)]
        further += [Quantity(Signal(quantity_name(k)), row.value) for k, row in enumerate(self.reduced.invariants)]
        further += self._rates_of_aliases()
        available = list_available_quantities(self.states, self.inputs, (), further)
        same = {node.__hash__(): available[name].source for column, names in
                ((graph.x, self.states.names), (self.reduced.u, self.inputs.names))
                for node, name in zip(column.elements(), names, strict=True)}  # fmt: skip
        for quantity in declared:
            source = same.get(quantity.source.__hash__(), quantity.source)
            available[quantity.signal.name] = Quantity(quantity.signal, source)
        return available

    def _rates_of_aliases(self) -> list[Quantity]:
        """Return ``der(NAME)`` for the other names of states, and for the names of their negatives."""
        rates = self.reduced.form.f.elements()
        quantities = []
        for i, state in enumerate(self.states):
            unit = rate_unit(state.unit)
            for alias in state.aliases:
                is_negative = alias.startswith("-")
                source: Any = -rates[i] if is_negative else ("rate", i)
                quantities.append(Quantity(Signal(f"der({alias.removeprefix('-')})", unit), source))
        return quantities

    def express(self, expressions: list[SX]) -> list[SX]:
        """Return expressions over the graph's symbols as expressions over (t, x, u, p) and the unknowns."""
        form = self.reduced.form
        column = ca.densify(ca.vertcat(ca.SX(0, 1), *expressions))
        placed = ca.substitute([column], [self.graph.dx, self.graph.z], [form.f, form.z])[0]
        return list(placed.elements())


def quantity_name(number: int) -> str:
    """Return the name under which the residual of an invariant can be observed."""
    return f"residual[{number + 1}]"


def _constraints(system: Reduced) -> list[Constraint]:
    """Return what the states obey: a residual and its derivative as one where both are kept."""
    constraints, taken = [], set()
    numbers = {(row.i, row.order): k for k, row in enumerate(system.invariants) if row.is_true}
    for k, row in enumerate(system.invariants):
        if k in taken:
            continue
        rate = numbers.get((row.i, row.order + 1)) if row.is_true else None
        taken |= {rate}
        constraints.append(
            Constraint(
                _name_residual(system, k),
                name=row.name,
                level="velocity" if rate is None else "position",
                rate=None if rate is None else _name_residual(system, rate),
            )
        )
    return constraints


def _name_residual(system: Reduced, number: int) -> Expression:
    """Return a residual by its name; inputs that move it are named, too, as they prescribe a motion."""
    driving = [u for u, is_driving in zip(system.inputs.names, system.driving[number], strict=True) if is_driving]
    return add_driving_inputs(driving, Expression.variable(quantity_name(number)))


def _implicit(system: Reduced) -> ImplicitSystem:
    """Return the implicit system, without outputs."""
    graph, w = system.form.graph, system.unknowns
    residuals = stack_column([row.value for row in system.solved])
    W = jacobian(residuals, w)
    linear = not w.numel() or not ca.depends_on(ca.vertcat(ca.SX(0, 1), *W.nonzeros()), w)
    guess = None
    # Linear equations need their residual at w = 0, others a guess for Newton's method.
    if linear:
        r = -ca.substitute(residuals, w, ca.SX.zeros(w.numel())) if w.numel() else ca.SX(0, 1)
    else:
        r = -residuals
        states, values = system.find_start()
        point = 0.0, states, system.inputs.starts, graph.values
        guess = Guess(
            values, np.maximum(system.sizes, np.abs(values)), *point, equations=tuple(row.name for row in system.solved)
        )
    return ImplicitSystem(
        name=graph.name,
        description=graph.description,
        time=graph.time,
        states=graph.x,
        inputs=system.u,
        parameters=graph.p,
        unknowns=w,
        unknown_names=system.names,
        matrix=W,
        right_hand_side=ca.densify(r),
        derivatives=system.form.f,
        outputs=ca.SX(0, 1),
        further=dict(zip(graph.algebraic.names, system.form.z.elements(), strict=True)),
        state_signals=graph.states,
        input_signals=system.inputs,
        output_signals=Signals(),
        parameter_signals=graph.parameters,
        parameter_values=graph.values,
        guess=guess,
    )
