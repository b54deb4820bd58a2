"""Constant coefficients of the equations: those that are rounding are taken as zero, and tiny ones are named.

Index and order are decided by which coefficients are zero. One that is a sum of terms which cancel, as (a + b - c) with
0.1, 0.2 and 0.3, is 5.6e-17 or 0 by rounding alone; it is zero here in both cases.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from fmilin.codegen.graph_rounding import compute_bounds, find_rounding, lift_constants
from fmilin.models.dae.dae_graph import DaeGraph
from fmilin.signals import FloatArray, Signal, Signals
from fmilin.tolerances import EPS

SX = Any  # casadi.SX: casadi ships no types

MAX_BOUNDED_COEFFICIENTS = 20_000  # coefficients of which bounds are computed one by one
MAX_NODES_ONE_BY_ONE = 32  # nodes of which the symbols are listed node by node


def lift_graph(graph: DaeGraph) -> tuple[DaeGraph, SX, FloatArray]:
    """Return the graph with its constants as further parameters, these constants, and their values."""
    symbols = ca.vertcat(graph.time, graph.x, graph.dx, graph.z, graph.u, graph.p)
    residuals, constants, values = lift_constants(ca.densify(graph.residuals), symbols)
    further = (Signal(name.str(), start=value) for name, value in zip(constants.elements(), values, strict=True))
    lifted = replace(
        graph,
        residuals=residuals,
        p=ca.vertcat(graph.p, constants),
        parameters=Signals([*graph.parameters, *further]),
        outputs={},
        output_signals=Signals(),
    )
    return lifted, constants, values


@dataclass(frozen=True)
class Coefficient:
    """A coefficient that contains parameters at most."""

    value: float
    terms: float  # the sum of the moduli of its terms, about
    is_zero: bool  # whether it is rounding of its terms, or exactly zero


@dataclass(frozen=True)
class Dropped:
    """A coefficient that was taken as zero although it is not."""

    equation: str
    variable: str
    coefficient: Coefficient

    def __str__(self) -> str:
        size = f"{self.coefficient.value:.2g}, and its terms are of size {self.coefficient.terms:.2g}"
        return (
            f"The coefficient of '{self.variable}' in '{self.equation}' is {size}: it is a rounding error, and counts "
            "as zero."
        )


@dataclass(frozen=True)
class Suspect:
    """A coefficient that seems to be what is left where larger numbers cancel, but is a number as it stands."""

    row: int
    column: int  # of (unknowns, states)
    equation: str
    variable: str
    value: float

    def __str__(self) -> str:
        return f"the coefficient {self.value:.3g} of '{self.variable}' in '{self.equation}'"


def drop_suspects(graph: DaeGraph, suspects: Sequence[Suspect]) -> DaeGraph:
    """Return the graph with zeros in place of these coefficients."""
    variables: SX = ca.vertcat(graph.unknowns, graph.x)
    rows = graph.residuals.elements()
    for s in suspects:
        rows[s.row] = ca.substitute(rows[s.row], variables[s.column], 0)
    return replace(graph, residuals=ca.densify(ca.vertcat(*rows)))


def _sizes(signals: Signals) -> list[float]:
    return [s.nominal or max(abs(s.start), 1.0) for s in signals]


class Coefficients:
    """Judges coefficients at the values of the parameters, and keeps what depends on these."""

    def __init__(self, graph: DaeGraph, parameter_count: int) -> None:
        self._graph, self._moving = graph, ca.vertcat(graph.time, graph.x, graph.unknowns, graph.u)
        self._parameter_values = graph.values
        self._parameter_positions = {symbol.__hash__(): i for i, symbol in enumerate(graph.p.elements())}
        self._parameter_count = parameter_count
        self._changeable_parameters: SX = graph.p[
            :parameter_count
        ]  # parameters that a user can change; constants of the equations follow them
        self._watched: dict[int, SX] = {}
        self.dropped: list[Dropped] = []

    def judge(self, elements: Sequence[SX]) -> list[Coefficient | None]:
        """Return the coefficients among some nodes; None for those that change along the motion."""
        judged: list[Coefficient | None] = [None] * len(elements)
        symbolic: list[int] = []
        for i, element in enumerate(elements):
            if element.is_constant():
                value = float(element)
                judged[i] = Coefficient(value, abs(value), value == 0.0)
            else:
                symbolic.append(i)
        parameters = self._find_parameters([elements[i] for i in symbolic])
        constant = [(i, positions) for i, positions in zip(symbolic, parameters, strict=True) if positions is not None]
        if constant:
            column = ca.vertcat(*(elements[i] for i, _ in constant))
            values, bounds, zero = self._evaluate(
                column, sorted(set().union(*(positions for _, positions in constant)))
            )
            for k, (i, positions) in enumerate(constant):
                judged[i] = Coefficient(float(values[k]), float(bounds[k]), bool(zero[k]))
                # Coefficients of constants alone stay what they are.
                if any(position < self._parameter_count for position in positions):
                    self._watched[elements[i].__hash__()] = elements[i]
        return judged

    def _find_parameters(self, elements: Sequence[SX]) -> list[set[int] | None]:
        """Return the positions of the parameters in each of the nodes; None for nodes that change along the motion.

        CasADi's sparsity patterns take time for each parameter and variable of the model: for a few nodes, in which a
        few symbols stand, a list of these takes a tenth of it.
        """
        if len(elements) <= MAX_NODES_ONE_BY_ONE:
            sets = [{self._parameter_positions.get(s.__hash__(), -1) for s in ca.symvar(node)} for node in elements]
            return [None if -1 in positions else positions for positions in sets]
        column = ca.vertcat(*elements)
        moving = set(ca.jacobian_sparsity(column, self._moving).get_triplet()[0])
        parameters: list[set[int]] = [set() for _ in elements]
        for row, position in zip(*ca.jacobian_sparsity(column, self._graph.p).get_triplet(), strict=True):
            parameters[row].add(position)
        return [None if row in moving else positions for row, positions in enumerate(parameters)]

    def drop(self, column: SX, variables: SX, names: Sequence[str], equations: Sequence[str]) -> SX:
        """Return a column without the terms in which a variable has a constant coefficient that is zero."""
        return self.drop_and_differentiate(column, variables, names, equations)[0]

    def drop_and_differentiate(
        self, column: SX, variables: SX, names: Sequence[str], equations: Sequence[str]
    ) -> tuple[SX, list[tuple[int, int, Coefficient | None]]]:
        """Return a column without terms in which a constant coefficient is zero, and the derivatives that remain.

        These are (row, position of the variable, coefficient); None for those that change along the motion.
        """
        derivatives = self._differentiate(column, variables)
        zeros: dict[int, list[int]] = {}
        for i, j, c in derivatives:
            if c is not None and c.is_zero:
                zeros.setdefault(i, []).append(j)
                if c.value != 0.0:
                    self.dropped.append(Dropped(equations[i], names[j], c))
        if not zeros:
            return column, derivatives
        elements = column.elements()
        for i, without_slope in zeros.items():
            deciding = find_jumping(elements[i], variables)
            absent = [j for j in without_slope if j not in deciding]
            if absent:
                elements[i] = ca.substitute(elements[i], variables[absent], ca.SX.zeros(len(absent)))
        column = ca.densify(ca.vertcat(ca.SX(0, 1), *elements))
        return column, self._differentiate(column, variables)

    def _differentiate(self, column: SX, variables: SX) -> list[tuple[int, int, Coefficient | None]]:
        J = ca.jacobian(column, variables)  # not sparsified: a condition depends on what is in it, too
        rows, columns = J.sparsity().get_triplet()
        return list(zip(rows, columns, self.judge(J.nonzeros()), strict=True))

    def find_suspects(self, column: SX) -> list[Suspect]:
        """Return coefficients of unknowns and states that look like what is left where larger numbers cancel."""
        graph = self._graph
        variables = ca.vertcat(graph.unknowns, graph.x, graph.u)
        names = (*graph.unknown_names, *graph.states.names, *graph.inputs.names)
        sizes = np.array(2 * _sizes(graph.states), dtype=np.float64)
        sizes = np.concatenate((sizes[: len(graph.states)], _sizes(graph.algebraic), sizes[len(graph.states) :]))
        sizes = np.concatenate((sizes, _sizes(graph.inputs)))
        J = ca.jacobian(column, variables)
        rows, columns = J.sparsity().get_triplet()
        nodes = J.nonzeros()
        judged = self.judge(nodes)
        largest: dict[int, float] = {}  # of an equation, as written
        sized: dict[int, float] = {}  # times the sizes of the variables
        for i, j, c in zip(rows, columns, judged, strict=True):
            if c is not None and not c.is_zero:
                largest[i] = max(largest.get(i, 0.0), abs(c.value))
                sized[i] = max(sized.get(i, 0.0), abs(c.value) * float(sizes[j]))
        suspects = []
        for k, (i, j, c) in enumerate(zip(rows, columns, judged, strict=True)):
            # Inputs show how large the terms of an equation are; their own coefficients do not decide index and order.
            if c is None or c.is_zero or j >= len(names) - len(graph.inputs):
                continue
            # Small in its unit only: with the nominal size of the variable the term matters.
            if not abs(c.value) * sizes[j] <= CANCELLATION_ROUNDING_FACTOR * EPS * sized[i]:
                continue
            is_written = not (
                self._changeable_parameters.numel() and ca.depends_on(nodes[k], self._changeable_parameters)
            )
            if is_left_by_cancellation(c.value, largest[i], is_written=is_written):
                suspects.append(Suspect(i, j, graph.equation_names[i], names[j], c.value))
        return suspects

    def watch_derivatives(self, column: SX, variables: SX) -> None:
        """Watch derivatives that change along the motion, at a point like no other: parameters may make them vanish."""
        if not self._changeable_parameters.numel():
            return
        nodes = ca.densify(ca.vertcat(ca.SX(0, 1), *ca.jacobian(column, variables).nonzeros()))
        if not nodes.numel():
            return
        moving = set(ca.jacobian_sparsity(nodes, self._moving).get_triplet()[0])
        changeable = set(ca.jacobian_sparsity(nodes, self._changeable_parameters).get_triplet()[0])
        chosen = ca.vertcat(ca.SX(0, 1), *(nodes[i] for i in sorted(moving & changeable)))
        values = np.random.default_rng(18).uniform(0.3, 1.7, self._moving.numel())
        placed = ca.substitute([chosen], [self._moving], [ca.SX(ca.DM(values))])[0]
        self._watched |= {node.__hash__(): node for node in placed.elements()}

    def watch(self) -> Watched:
        """Return what the structure depends on, to be examined when parameters change."""
        nodes = list(self._watched.values())
        function = ca.Function("watched", [self._graph.p], [ca.vertcat(ca.SX(0, 1), *nodes)])
        return Watched(function, self._graph.values[self._changeable_parameters.numel() :])

    def _evaluate(self, column: SX, positions: Sequence[int]) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
        """Return values of a column with the parameters at these positions, bounds of rounding, and which are zero."""
        chosen = list(positions)
        function = ca.Function("coefficients", [self._graph.p[chosen]], [ca.densify(column)])
        return _estimate_rounding(function, self._parameter_values[chosen])


def _estimate_rounding(function: Any, values: FloatArray) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    if function.nnz_out(0) > MAX_BOUNDED_COEFFICIENTS:
        numbers: FloatArray = function(values).full().ravel()
        return numbers, np.abs(numbers), numbers == 0.0
    numbers, bounds = compute_bounds(function, values)
    return numbers, bounds, find_rounding(numbers, bounds)


@dataclass(frozen=True)
class Watched:
    """Coefficients that depend on parameters."""

    function: Any  # casadi.Function of parameters and constants
    constants: FloatArray

    def zeros(self, parameters: FloatArray) -> bytes:
        """Return which of the coefficients are zero for some values of the parameters, to be compared."""
        return _estimate_rounding(self.function, np.concatenate((parameters, self.constants)))[2].tobytes()


_JUMPS = {
    *(ca.OP_SIGN, ca.OP_FLOOR, ca.OP_CEIL, ca.OP_FMOD, ca.OP_COPYSIGN),
    *(ca.OP_LT, ca.OP_LE, ca.OP_EQ, ca.OP_NE, ca.OP_NOT, ca.OP_AND, ca.OP_OR),
}


def find_jumping(expression: SX, variables: SX) -> set[int]:
    """Return the positions of the variables on which a jump depends: their slope of zero does not mean absence.

    In ``if h > 1 then q else 0`` the slope by h is 0, and yet h decides which branch counts.
    """
    symbols = ca.symvar(expression)
    function = ca.Function("jumps", [ca.vertcat(ca.SX(0, 1), *symbols)], [expression])
    sources: dict[int, frozenset[int]] = {}  # the symbols that each register depends on
    deciding: set[int] = set()
    for k in range(function.n_instructions()):
        operation = function.instruction_id(k)
        read, written = function.instruction_input(k), function.instruction_output(k)
        # An output writes to a position of the result, and not to a register.
        if operation == ca.OP_OUTPUT:
            continue
        if operation == ca.OP_INPUT:
            sources[written[0]] = frozenset([read[1]])
            continue
        parts = [] if operation == ca.OP_CONST else [sources.get(register, frozenset()) for register in read]
        if operation in _JUMPS:
            deciding.update(*parts)
        elif operation == ca.OP_IF_ELSE_ZERO:
            deciding |= parts[0]
        sources[written[0]] = frozenset().union(*parts)
    named = {symbols[k].__hash__() for k in deciding}
    return {j for j, variable in enumerate(variables.elements()) if variable.__hash__() in named}


FEW_BITS = 12  # of the mantissa of a number that is left where larger ones cancel: it is a small multiple of their ulp
CANCELLATION_ROUNDING_FACTOR = 64.0  # eps, relative to the largest coefficient: what cancellation leaves
WRITTEN_ROUNDING_FACTOR = (
    2.0  # eps: a number below it that is written in an equation counts as left, whatever its mantissa is
)


def is_left_by_cancellation(value: float, largest: float, *, is_written: bool) -> bool:
    """Whether a coefficient seems to be the rounding of cancelled numbers as large as ``largest``.

    Mixing equations in floating-point numbers leaves entries such as 2^-54, which are small multiples of a unit in the
    last place; a capacitance of 1e-18 F is not such a number.
    """
    if value == 0.0 or not abs(value) <= CANCELLATION_ROUNDING_FACTOR * EPS * largest:
        return False
    if is_written and abs(value) <= WRITTEN_ROUNDING_FACTOR * EPS * largest:
        return True
    mantissa: float = math.frexp(value)[0]
    return bool((mantissa * 2.0**FEW_BITS).is_integer())


def settle(expressions: Mapping[str, SX], constants: SX, values: FloatArray) -> dict[str, SX]:
    """Return columns with numbers in place of the constants."""
    if not constants.numel():
        return dict(expressions)
    columns = ca.substitute(list(expressions.values()), [constants], [ca.SX(ca.DM(values))])
    return dict(zip(expressions, columns, strict=True))
