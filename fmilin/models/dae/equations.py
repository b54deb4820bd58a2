"""DAEs as a graph, F(t, x', x, z, u, p) = 0, given as one or written as texts or in sympy, with ``der(x)``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

import casadi as ca
import numpy as np
import sympy

from fmilin.constraints.declared import Constraint
from fmilin.constraints.expressions import Expression
from fmilin.constraints.in_graph import InGraph
from fmilin.errors import ConstraintError, UnknownNameError, UsageError, quote_first
from fmilin.model.ranges import TableRange
from fmilin.models.declaration import TIME, Declaration, Labels
from fmilin.signals import FloatArray, Signals

SX = Any  # casadi.SX: casadi ships no types


@dataclass(frozen=True)
class DaeGraph:
    """F(t, x', x, z, u, p) = 0 in nodes of a CasADi graph, N + nz equations of any index.

    Every vector is a column of distinct ``casadi.SX`` symbols, in the order of its signals, whose names are distinct
    among all of them; signals carry units, nominal values, start values and descriptions.
    """

    name: str  #: of the model
    residuals: SX  #: F, N + nz of them, zero on every motion
    x: SX = field(default_factory=lambda: ca.SX(0, 1))  #: N states
    dx: SX = field(default_factory=lambda: ca.SX(0, 1))  #: their derivatives
    z: SX = field(default_factory=lambda: ca.SX(0, 1))  #: nz algebraic variables; no derivative of theirs is in F
    u: SX = field(default_factory=lambda: ca.SX(0, 1))  #: nu inputs
    p: SX = field(default_factory=lambda: ca.SX(0, 1))  #: parameters that may change later; others may be numbers in F
    states: Signals = field(default_factory=Signals)  #: of x; start values are projected when a point is wanted
    algebraic: Signals = field(default_factory=Signals)  #: of z; Newton's iteration begins at their start values
    inputs: Signals = field(default_factory=Signals)  #: of u
    parameters: Signals = field(default_factory=Signals)  #: of p; start values are their values
    time: SX = field(default_factory=lambda: ca.SX.sym("time"))  #: the symbol of time, where F contains it
    outputs: Mapping[str, SX] = field(default_factory=dict)  #: over all of these symbols
    #: of the outputs, where they have units or descriptions; states, algebraic variables, inputs and ``der(x)`` may be
    #: outputs without being listed here
    output_signals: Signals = field(default_factory=Signals)
    equations: Sequence[str] = ()  #: a name for each residual, for messages (``"crane.mo:12: m*der(v) = f"``)
    fixed: Sequence[str] = ()  #: states whose start values are to stay when the others are made consistent
    preferred: Sequence[str] = ()  #: states wished as independent coordinates, the most wanted first, where regular
    notes: Sequence[str] = ()  #: what a user should know, as remarks of every linear model
    description: str = ""  #: of the model
    ranges: Sequence[tuple[TableRange, SX]] = ()  #: of inputs of tables, and expressions of these over all symbols

    def __post_init__(self) -> None:
        pairs = [("states", self.x), ("states", self.dx), ("algebraic", self.z), ("inputs", self.u)]
        wrong = [
            f"{len(getattr(self, what))} {what} for {symbols.numel()} symbols"
            for what, symbols in [*pairs, ("parameters", self.p)]
            if len(getattr(self, what)) != symbols.numel()
        ]
        if wrong:
            raise UsageError(f"The graph of '{self.name}' does not fit: {'; '.join(wrong)}.")
        free = ca.symvar(self.residuals)
        own = {s.__hash__() for a in (self.time, self.x, self.dx, self.z, self.u, self.p) for s in a.elements()}
        foreign = [str(s) for s in free if s.__hash__() not in own]
        if foreign:
            raise UsageError(f"The residuals of '{self.name}' contain {quote_first(foreign)}, which has no value.")
        require_balance(self)

    @cached_property
    def unknowns(self) -> SX:
        """(x', z), the first N + nz."""
        return ca.vertcat(self.dx, self.z)

    @cached_property
    def unknown_names(self) -> tuple[str, ...]:
        """Of x' and z."""
        return (*(f"der({name})" for name in self.states.names), *self.algebraic.names)

    @cached_property
    def equation_names(self) -> tuple[str, ...]:
        """One for each residual."""
        given, count = tuple(self.equations), self.residuals.numel()
        return (*given, *(f"equation {i + 1}" for i in range(len(given), count)))

    @property
    def values(self) -> FloatArray:
        """Of the parameters, shape (np,)."""
        return self.parameters.starts


def require_balance(graph: DaeGraph) -> None:
    """Refuse more or fewer equations than unknowns, with what is never used."""
    count, wanted = graph.residuals.numel(), graph.unknowns.numel()
    if count == wanted:
        return
    used = ca.jacobian_sparsity(graph.residuals, ca.vertcat(graph.unknowns, graph.x))
    columns = set(np.unique(used.get_triplet()[1]).tolist()) if count else set()
    n = len(graph.states)
    unused = [name for j, name in enumerate(graph.algebraic.names) if n + j not in columns]
    unused += [name for j, name in enumerate(graph.states.names) if not {j, wanted + j} & columns]
    which = f" No equation contains {quote_first(unused)}." if unused else ""
    raise UsageError(
        f"The model '{graph.name}' is not balanced: {count} equations for {n} states and {wanted - n} algebraic "
        f"variables.{which} {'Add the missing equations' if count < wanted else 'Leave out equations'}, or declare "
        "what is given from outside as an input."
    )


Written = Any  # text, sympy.Expr, sympy.Eq or a number


def graph_of(
    name: str,
    equations: Sequence[Written],
    *,
    states: Sequence[Any] | None,
    algebraic: Sequence[Any] | None,
    inputs: Sequence[Any] | None,
    parameters: Mapping[Any, float],
    outputs: Mapping[str, Written],
    start: Mapping[Any, float],
    labels: Labels,
) -> DaeGraph:
    """Return the graph of a model's equations; names that are not given are found in them."""
    declaration = Declaration(name)
    residuals = [_read(declaration, e, f"the equation '{e}'") for e in equations]
    seen = {n: _read(declaration, e, f"the output '{n}'") for n, e in outputs.items()}
    appearing = list(dict.fromkeys(n for e in residuals for n in e.names))
    parts = _sorted_names(appearing, _texts(states), _texts(algebraic), _texts(inputs), list(map(str, parameters)))
    for what, names in zip(("a state", "an algebraic variable", "an input", "a parameter"), parts, strict=True):
        declaration.declare(names, what)
    if len(set(chain.from_iterable(parts))) < sum(map(len, parts)):
        declaration.raise_problems()  # what follows needs one symbol for each name
    signals = _signals(declaration, parts, seen, parameters, start, labels)
    x, z, u, p = (_symbols(names) for names in parts)
    dx = _symbols([f"der({n})" for n in parts[0]])
    time = ca.SX.sym(TIME)
    every = {n: s for names, column in zip(parts, (x, z, u, p), strict=True)
             for n, s in zip(names, column.elements(), strict=True)}  # fmt: skip
    every |= {f"der({n})": s for n, s in zip(parts[0], dx.elements(), strict=True)} | {TIME: time}
    labelled = [(f"the equation '{_label(given)}'", e) for given, e in zip(equations, residuals, strict=True)]
    for where, e in [*labelled, *((f"the output '{n}'", e) for n, e in seen.items())]:
        _require_names(declaration, where, e, every)
    declaration.raise_problems()
    arithmetic = InGraph()
    return DaeGraph(
        name=name,
        residuals=ca.densify(ca.vertcat(ca.SX(0, 1), *(e.built(arithmetic, every) for e in residuals))),
        x=x, dx=dx, z=z, u=u, p=p, time=time,
        states=signals[0], algebraic=signals[1], inputs=signals[2], parameters=signals[3],
        outputs={n: ca.SX(e.built(arithmetic, every)) for n, e in seen.items()},
        output_signals=signals[4],
        equations=tuple(map(_label, equations)),
        preferred=tuple(map(str, labels.independent)),
        description=labels.description,
    )  # fmt: skip


def _texts(names: Sequence[Any] | None) -> list[str] | None:
    if names is None:
        return None
    if other := [n for n in names if not isinstance(n, str | sympy.Symbol)]:
        raise UsageError(f"A name of a variable is a text or a symbol, not of the type '{type(other[0]).__name__}'.")
    return [str(n) for n in names]


def _label(equation: Written) -> str:
    return f"{equation.lhs} = {equation.rhs}" if isinstance(equation, sympy.Eq) else str(equation)


def _read(declaration: Declaration, source: Written, where: str) -> Expression:
    """Return an equation as an expression that is zero."""
    try:
        if isinstance(source, str):
            return Constraint.from_text(source).expression
        if isinstance(source, sympy.Eq):
            source = source.lhs - source.rhs
        expression = sympy.sympify(source, strict=True)
        return Expression.from_sympy(expression, {s: str(s) for s in expression.free_symbols})
    except (ConstraintError, sympy.SympifyError) as error:
        declaration.problems.append(f"{where} cannot be read: {error}")
        return Expression.variable(TIME)


def _sorted_names(
    appearing: Sequence[str],
    states: list[str] | None,
    algebraic: list[str] | None,
    inputs: list[str] | None,
    parameters: list[str],
) -> tuple[list[str], list[str], list[str], list[str]]:
    """Return states, algebraic variables, inputs and parameters: those that were given, and what is left."""
    if states is None:
        states = list(dict.fromkeys(n[4:-1] for n in appearing if _is_derivative(n) and n not in (inputs or ())))
    named = {TIME, *states, *parameters, *(algebraic or ()), *(inputs or ())}
    left = [n for n in appearing if n not in named and not _is_derivative(n)]
    if algebraic is None:
        algebraic, left = left, []
    return states, algebraic, left if inputs is None else inputs, parameters


def _is_derivative(name: str) -> bool:
    return name.startswith("der(") and name.endswith(")")


def _symbols(names: Iterable[str]) -> SX:
    return ca.vertcat(ca.SX(0, 1), *(ca.SX.sym(n) for n in names))


def _signals(
    declaration: Declaration,
    parts: Sequence[Sequence[str]],
    outputs: Mapping[str, Expression],
    parameters: Mapping[Any, float],
    start: Mapping[Any, float],
    labels: Labels,
) -> list[Signals]:
    symbols = [declaration.symbols[n] for names in parts[:3] for n in names]
    starts = declaration.numbers(start, symbols, "start value")
    values = declaration.numbers(parameters, [declaration.symbols[n] for n in parts[3]], "value")
    declaration.check_labels(labels, outputs)
    unknown = [str(n) for n in labels.independent if str(n) not in parts[0]]
    declaration.problems += [f"the independent coordinate '{n}' is no state" for n in unknown]
    if declaration.problems:
        declaration.raise_problems()
    every = [declaration.signals(names, starts, labels) for names in parts[:3]]
    return [*every, declaration.signals(parts[3], values, labels), declaration.signals(outputs, {}, labels)]


def _require_names(declaration: Declaration, where: str, e: Expression, every: Mapping[str, Any]) -> None:
    for name in e.names:
        if name in every:
            continue
        if _is_derivative(name):
            declaration.problems.append(
                f"{where} contains {name}, and '{name[4:-1]}' is no state: list it among the states, or declare the "
                f"input '{name}'"
            )
        else:
            error = UnknownNameError.among(name, list(every), "a variable of the model")
            declaration.problems.append(f"in {where}: {error}")
