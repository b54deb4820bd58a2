"""The semi-explicit form of a DAE, what equations give explicitly in place, and total derivatives along its motion.

An equation with one unknown left gives it (forward), an unknown that one equation alone contains is computed after all
others (backward), and of two unknowns in one equation one follows the other (an alias). Only unknowns with constant
coefficients are taken: none of this fills in or amplifies errors, as a general elimination could. The remaining
equations are solved as a sparse system.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

import casadi as ca
import numpy as np

from fmilin.errors import NumericalError
from fmilin.models.dae.coefficients import Coefficient, Coefficients, Dropped, Suspect, Watched
from fmilin.models.dae.dae_graph import DaeGraph
from fmilin.signals import FloatArray, Signal, Signals, rate_unit

SX = Any

MIN_DIVISOR_RATIO = 1e-9  # of the largest coefficient of an equation: a smaller one is not divided by


@dataclass(frozen=True)
class SemiExplicit:
    """x' = f(t, x, w, u, p), 0 = R(t, x, w, u, p), with w the derivatives and algebraic variables that are left."""

    graph: DaeGraph
    w: SX  # (nw, 1), some of the graph's symbols for x' and z
    names: tuple[str, ...]  # of w
    guess: FloatArray  # (nw,), start values
    sizes: FloatArray  # (nw,), nominal values, 1 where there are none
    f: SX  # shape (N, 1)
    z: SX  # (nz, 1), all algebraic variables
    R: SX  # shape (nw, 1)
    equations: tuple[str, ...]  # names of R
    divisors: frozenset[int]  # parameters that were divided by
    dropped: tuple[Dropped, ...] = ()  # coefficients that are rounding
    watched: Watched | None = None  # coefficients that decide about the structure by being zero
    suspects: tuple[Suspect, ...] = ()  # coefficients that may be rounding, by what their numbers are


def semi_explicit(graph: DaeGraph, *, as_written: bool = False, parameter_count: int | None = None) -> SemiExplicit:
    """Return the equations with everything explicit in place, or nothing.

    Of the parameters the first ``parameter_count`` can be changed later, all of them by default.
    """
    coefficients = Coefficients(graph, len(graph.parameters) if parameter_count is None else parameter_count)
    coefficients.watch_derivatives(graph.residuals, ca.vertcat(graph.unknowns, graph.x))
    suspects = coefficients.find_suspects(graph.residuals)
    peeling = _Peeling(graph, coefficients)
    if not as_written:
        peeling.run()
    v, n = graph.unknowns, len(graph.states)
    order = peeling.order_definitions()
    implicit_rows = [i for i in range(len(peeling.F)) if i not in peeling.used]
    results = [_column(peeling.F[i] for i in implicit_rows), v]
    if order:
        results = ca.substitute_inplace([v[j] for j in order], [peeling.solutions[j] for j in order], results)[1]
    implicit_unknowns = [j for j in range(v.numel()) if j not in peeling.definitions]
    equations = tuple(graph.equation_names[i] for i in implicit_rows)
    variables = ca.vertcat(graph.x, _column(v[j] for j in implicit_unknowns))
    names = (*graph.states.names, *(graph.unknown_names[j] for j in implicit_unknowns))
    R = coefficients.drop(results[0], variables, names, equations)
    f = coefficients.drop(results[1][:n, 0], variables, names, graph.unknown_names[:n])
    signals = [*(None,) * n, *graph.algebraic]
    nominals = [s.nominal if s is not None and s.nominal else None for s in signals]
    guess = np.concatenate((np.zeros(n), graph.algebraic.starts))
    sizes = np.array([size or max(abs(g), 1.0) for size, g in zip(nominals, guess.tolist(), strict=True)])
    return SemiExplicit(
        graph=graph,
        w=_column(v[j] for j in implicit_unknowns),
        names=tuple(graph.unknown_names[j] for j in implicit_unknowns),
        guess=guess[implicit_unknowns],
        sizes=sizes[implicit_unknowns],
        f=f,
        z=results[1][n:, 0],
        R=R,
        equations=equations,
        divisors=frozenset(peeling.divisors),
        dropped=tuple(coefficients.dropped),
        watched=coefficients.watch(),
        suspects=tuple(suspects),
    )


def _column(nodes: Iterable[SX]) -> SX:
    return ca.densify(ca.vertcat(ca.SX(0, 1), *nodes))


class _Peeling:
    """Equations F_i with the unknowns in them that are not yet defined, each with its coefficient where constant."""

    def __init__(self, graph: DaeGraph, coefficients: Coefficients) -> None:
        self._v, self._p = graph.unknowns.elements(), graph.p
        self._variables: SX = ca.vertcat(graph.unknowns, graph.x)
        self._names = (*graph.unknown_names, *graph.states.names)
        self._graph, self._coefficients = graph, coefficients
        self._positions = {x.__hash__(): len(self._v) + i for i, x in enumerate(graph.x.elements())}
        residuals, derivatives = coefficients.drop_and_differentiate(
            graph.residuals, self._variables, self._names, graph.equation_names
        )
        self.F: list[SX] = residuals.elements()
        self.definitions: dict[int, int] = {}  # unknown to the equation that gives it
        self.used: set[int] = set()
        self.divisors: set[int] = set()
        self.solutions: dict[int, SX] = {}  # unknown to its value, over other unknowns
        self._open: list[dict[int, float | None]] = [{} for _ in self.F]
        for i, j, c in derivatives:
            if j < len(self._v):
                self._open[i][j] = _divisor(c)
        self._all = [set(row) for row in self._open]  # those that are defined, too
        self._where: list[set[int]] = [set() for _ in self._v]
        for i, row in enumerate(self._open):
            for j in row:
                self._where[j].add(i)

    def run(self) -> None:
        """Define unknowns until no equation gives one any more."""
        todo = deque(sorted(range(len(self.F)), key=lambda i: len(self._open[i])))
        waiting = set(todo)
        while todo:
            waiting.discard(i := todo.popleft())
            if i in self.used:
                continue
            changed = self._define(i)
            for k in sorted(changed - waiting - self.used):
                todo.append(k)
                waiting.add(k)

    def order_definitions(self) -> list[int]:
        """Return the defined unknowns, each after those in its definition; raise NumericalError for a cycle."""
        definitions = self.definitions
        sorter = TopologicalSorter(
            {j: [k for k in sorted(self._all[i]) if k in definitions and k != j] for j, i in definitions.items()}
        )
        try:
            return list(sorter.static_order())
        except CycleError as error:
            names = ", ".join(self._v[j].name() for j in error.args[1])
            raise NumericalError(f"The definitions of {names} depend on each other: solve for one of them.") from None

    def _define(self, i: int) -> set[int]:
        """Let an equation give one of its unknowns if it can; return the equations that this changes."""
        row = self._open[i]
        largest = max((abs(c) for c in row.values() if c is not None), default=0.0)
        candidates = [j for j, c in row.items() if c is not None and abs(c) > MIN_DIVISOR_RATIO * largest]
        alone = [j for j in candidates if self._where[j] == {i}]
        if alone:
            return self._assign(i, alone[0])
        if len(row) == 1 and candidates:
            return self._assign(i, candidates[0])
        if len(row) == 2 and candidates:
            return self._alias(i, min(candidates, key=lambda j: (len(self._where[j]), j)))
        return set()

    def _assign(self, i: int, j: int) -> set[int]:
        """Let equation i give the unknown j; return the equations that contain what is in it."""
        self._solve(i, j)
        self.used.add(i)
        changed = set()
        for k in self._open[i]:
            self._where[k].discard(i)
            changed |= self._where[k]
        for k in self._where[j]:
            del self._open[k][j]
        self._where[j] = set()
        return changed

    def _solve(self, i: int, j: int) -> None:
        """Solve equation i for the unknown j; it does not change after that."""
        if j in self.solutions:  # as an alias, before it was put in its place
            return
        self.definitions[j] = i
        slope = ca.jacobian(self.F[i], self._v[j])
        self.solutions[j] = ca.substitute(self.F[i], self._v[j], 0) / -slope
        # A number has no parameters: the search through all of them, for each solution, is left out.
        if not slope.is_constant():
            self.divisors |= set(ca.jacobian_sparsity(slope, self._p).get_triplet()[1])

    def _alias(self, i: int, j: int) -> set[int]:
        """Let equation i give j, and put it in place in all other equations."""
        other_equations = set(self._where[j]) - {i}
        self._solve(i, j)
        states = [k for s in ca.symvar(self.F[i]) if (k := self._positions.get(s.__hash__())) is not None]
        for k in other_equations:
            columns = sorted((set(self._open[k]) | set(self._open[i])) - {j})
            equation = ca.substitute(self.F[k], self._v[j], self.solutions[j])
            self.F[k], entries = self._without_zeros(equation, [*columns, *states], self._graph.equation_names[k])
            row = {column: c for column, c in entries.items() if column < len(self._v)}
            # An unknown that cancelled is not part of the equation: it could seem to depend on what this one defines.
            cancelled = set(columns) - row.keys()
            self._all[k] = (self._all[k] | self._all[i]) - {j} - cancelled
            for c in self._open[k]:
                self._where[c].discard(k)
            self._open[k] = row
            for c in row:
                self._where[c].add(k)
        return self._assign(i, j) | other_equations

    def _without_zeros(self, equation: SX, positions: Sequence[int], name: str) -> tuple[SX, dict[int, float | None]]:
        """Return an equation without variables that cancelled when an alias came in, and coefficients of the others."""
        names = [self._names[position] for position in positions]
        changed, derivatives = self._coefficients.drop_and_differentiate(
            equation, self._variables[list(positions)], names, [name]
        )
        return changed, {positions[j]: _divisor(c) for _, j, c in derivatives}


def _divisor(coefficient: Coefficient | None) -> float | None:
    """Return the value of a coefficient that contains parameters at most; None for others, and for zeros."""
    if coefficient is None or coefficient.is_zero or not np.isfinite(coefficient.value):
        return None
    return coefficient.value


@dataclass(frozen=True)
class DifferentiatedRow:
    """A residual, differentiated ``order`` times; i is negative for an unknown that is held at its start value."""

    name: str
    i: int
    order: int
    value: SX  # over (t, x, u, p) and the unknowns
    is_true: bool = True  # whether the derivatives of unknowns in it are those of the motion


class JetDerivatives:
    """Derivatives of expressions over (t, x, w, u, p), then over derivatives of w and of u, made when first met."""

    def __init__(self, form: SemiExplicit) -> None:
        graph = form.graph
        self._rates: dict[int, SX] = {graph.time.__hash__(): ca.SX(1)}
        self._rates |= {x.__hash__(): f for x, f in zip(graph.x.elements(), form.f.elements(), strict=True)}
        self._jets: dict[tuple[int, int], SX] = {(j, 0): w for j, w in enumerate(form.w.elements())}
        self._positions: dict[int, tuple[int, int]] = {w.__hash__(): key for key, w in self._jets.items()}
        self._names, self._signals = list(form.names), list(graph.inputs)
        self._guesses, self._sizes = form.guess.tolist(), form.sizes.tolist()
        self._inputs: list[SX] = graph.u.elements()
        self._input_positions = {u.__hash__(): i for i, u in enumerate(self._inputs)}

    def jet(self, j: int, order: int) -> SX:
        """Return the symbol of the derivative of w_j of this order."""
        if (j, order) not in self._jets:
            symbol = ca.SX.sym(self.name(j, order))
            self._jets[j, order], self._positions[symbol.__hash__()] = symbol, (j, order)
        return self._jets[j, order]

    def substitute_derivative(self, j: int, order: int) -> tuple[int, int]:
        """Return a new unknown that stands for a derivative in some equations."""
        self._names.append(self.name(j, order))
        self._guesses.append(0.0)
        self._sizes.append(self._sizes[j])
        return len(self._names) - 1, 0

    def guess(self, j: int, order: int) -> float:
        """Return a first value."""
        return 0.0 if order else float(self._guesses[j])

    def size(self, j: int) -> float:
        """Return a typical size."""
        return float(self._sizes[j])

    def name(self, j: int, order: int) -> str:
        """Return how it is called."""
        return derivative_name(self._names[j], order)

    def along(self, column: SX) -> SX:
        """Return the derivative of a column."""
        column = ca.cse(column)
        moving = [(s, rate) for s in ca.symvar(column) if (rate := self._rate(s)) is not None]
        if not moving:
            return ca.SX.zeros(column.numel())
        symbols, rates = (ca.vertcat(*part) for part in zip(*moving, strict=True))
        return ca.jtimes(column, symbols, rates)

    def list_jets(self, column: SX) -> list[tuple[int, int]]:
        """Return the unknowns (j, order) in a column."""
        return sorted(self._positions[s.__hash__()] for s in ca.symvar(column) if s.__hash__() in self._positions)

    def inputs(self) -> tuple[SX, Signals]:
        """Return the inputs, followed by undeclared derivatives that were needed."""
        return ca.vertcat(ca.SX(0, 1), *self._inputs), Signals(self._signals)

    def drop(self, idle: Sequence[int]) -> None:
        """Forget some of the inputs that were made."""
        self._inputs = [u for i, u in enumerate(self._inputs) if i not in idle]
        self._signals = [s for i, s in enumerate(self._signals) if i not in idle]

    def _rate(self, symbol: SX) -> SX | None:
        key = symbol.__hash__()
        if key in self._positions:
            j, order = self._positions[key]
            return self.jet(j, order + 1)
        if key in self._input_positions:
            return self._inputs[self._input_rate(self._input_positions[key])]
        return self._rates.get(key)

    def _input_rate(self, i: int) -> int:
        """Return which input is the derivative of another."""
        name = derivative_name(self._signals[i].name, 1)
        for k, signal in enumerate(self._signals):
            if signal.name == name:
                return k
        symbol = ca.SX.sym(name)
        self._signals.append(Signal(name, rate_unit(self._signals[i].unit)))
        self._inputs.append(symbol)
        self._input_positions[symbol.__hash__()] = len(self._inputs) - 1
        return len(self._inputs) - 1


def derivative_name(name: str, order: int) -> str:
    """Return ``der(der(x))`` and the like."""
    return "der(" * order + name + ")" * order


def stack_column(nodes: Sequence[SX]) -> SX:
    """Return a dense column."""
    return ca.densify(ca.vertcat(ca.SX(0, 1), *nodes))
