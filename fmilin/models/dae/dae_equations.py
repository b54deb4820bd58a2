"""DAEs written as texts or in sympy, with ``der(x)``, as a graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import casadi as ca
import sympy

from fmilin.constraints.declared import Constraint
from fmilin.constraints.expressions import Expression
from fmilin.constraints.in_graph import InGraph
from fmilin.errors import ConstraintError, UnknownNameError, UsageError
from fmilin.models.dae.dae_graph import DaeGraph
from fmilin.models.declaration import TIME, Declaration
from fmilin.models.labels import Labels
from fmilin.signals import Signals

SX = Any  # casadi.SX: casadi ships no types


Written = Any  # text, sympy.Expr, sympy.Eq or a number


def build_graph(
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
    output_expressions = {n: _read(declaration, e, f"the output '{n}'") for n, e in outputs.items()}
    appearing = list(dict.fromkeys(n for e in residuals for n in e.names))
    parts = _sort_names(appearing, _texts(states), _texts(algebraic), _texts(inputs), list(map(str, parameters)))
    for what, names in zip(("a state", "an algebraic variable", "an input", "a parameter"), parts, strict=True):
        declaration.declare(names, what)
    if len(set(chain.from_iterable(parts))) < sum(map(len, parts)):
        declaration.raise_problems()  # what follows needs one symbol for each name
    signals = _signals(declaration, parts, output_expressions, parameters, start, labels)
    x, z, u, p = (_symbols(names) for names in parts)
    dx = _symbols([f"der({n})" for n in parts[0]])
    time = ca.SX.sym(TIME)
    symbols = {n: s for names, column in zip(parts, (x, z, u, p), strict=True)
             for n, s in zip(names, column.elements(), strict=True)}  # fmt: skip
    symbols |= {f"der({n})": s for n, s in zip(parts[0], dx.elements(), strict=True)} | {TIME: time}
    labelled = [(f"the equation '{_label(equation)}'", e) for equation, e in zip(equations, residuals, strict=True)]
    for where, e in [*labelled, *((f"the output '{n}'", e) for n, e in output_expressions.items())]:
        _require_names(declaration, where, e, symbols)
    declaration.raise_problems()
    arithmetic = InGraph()
    return DaeGraph(
        name=name,
        residuals=ca.densify(ca.vertcat(ca.SX(0, 1), *(e.built(arithmetic, symbols) for e in residuals))),
        x=x, dx=dx, z=z, u=u, p=p, time=time,
        states=signals[0], algebraic=signals[1], inputs=signals[2], parameters=signals[3],
        outputs={n: ca.SX(e.built(arithmetic, symbols)) for n, e in output_expressions.items()},
        output_signals=signals[4],
        equations=tuple(map(_label, equations)),
        preferred=tuple(map(str, labels.independent)),
        description=labels.description,
    )  # fmt: skip


def _texts(names: Sequence[Any] | None) -> list[str] | None:
    if names is None:
        return None
    if other := [n for n in names if not isinstance(n, str | sympy.Symbol)]:
        raise UsageError(
            f"The name of a variable must be a text or a symbol, not of the type '{type(other[0]).__name__}'."
        )
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
        # All problems are raised together: a placeholder stands for this equation until then.
        declaration.problems.append(f"{where} cannot be read: {error}")
        return Expression.variable(TIME)


def _sort_names(
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
    unassigned = [n for n in appearing if n not in named and not _is_derivative(n)]
    if algebraic is None:
        algebraic, unassigned = unassigned, []
    return states, algebraic, unassigned if inputs is None else inputs, parameters


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
    declaration.problems += [f"the independent coordinate '{n}' is not a state" for n in unknown]
    declaration.raise_problems()
    signals = [declaration.signals(names, starts, labels) for names in parts[:3]]
    return [*signals, declaration.signals(parts[3], values, labels), declaration.signals(outputs, {}, labels)]


def _require_names(declaration: Declaration, where: str, e: Expression, known_symbols: Mapping[str, Any]) -> None:
    for name in e.names:
        if name in known_symbols:
            continue
        if _is_derivative(name):
            declaration.problems.append(
                f"{where} contains {name}, and '{name[4:-1]}' is not a state: list it among the states, or declare "
                f"the input '{name}'"
            )
        else:
            error = UnknownNameError.among(name, list(known_symbols), "a variable of the model")
            declaration.problems.append(f"in {where}: {error}")
