"""What was found in a sympy object and what its author adds to it, as one form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import sympy

from fmilin.native.declaration import Declaration, Given, Symbol, der
from fmilin.native.kane.conversion import SympyEquations, plain_name
from fmilin.native.kane.form import KaneForm, LinearRow, in_order_of


def kane_form(declaration: Declaration, equations: SympyEquations, given: Given) -> tuple[KaneForm, Given]:
    """Return the form, and what was given with plain names and symbols; problems are noted in ``declaration``."""
    given = _in_plain_names(equations, given)
    inputs = _inputs(declaration, equations, given)
    independent = given.labels.independent or tuple(equations.independent)
    given = replace(given, inputs=inputs, labels=replace(given.labels, independent=independent))
    q = declaration.declare(equations.q, "a coordinate")
    u = declaration.declare(equations.u, "a speed")
    given.declare(declaration)
    multipliers = declaration.declare(equations.multipliers, "a multiplier")
    q_dot, u_dot = tuple(map(der, q)), tuple(map(der, u))
    declaration.derived |= {str(w): w for w in (*q_dot, *u_dot)}
    names = {str(p) for p in (*given.parameters, *inputs)}
    unknown = [name for name in (*equations.translate.constants, *equations.translate.dynamic) if name not in names]
    for name in sorted(set(unknown)):
        declaration.problems.append(f"'{name}' appears in the equations and has no value: give it in parameters")
    declaration.problems += [*equations.translate.problems, *equations.problems]
    form = KaneForm(
        time=declaration.time,
        q=q,
        u=u,
        q_dot=q_dot,
        u_dot=u_dot,
        inputs=tuple(declaration.symbols[name] for name in inputs),
        parameters=tuple(declaration.symbols[str(p)] for p in given.parameters),
        multipliers=multipliers,
        configuration_names=tuple(f"f_c[{i + 1}]" for i in range(len(equations.f_c))),
        f_c=tuple(equations.f_c),
        velocity=tuple(equations.velocity),
        acceleration=tuple(equations.acceleration),
        kinematics=in_order_of(q_dot, equations.kinematics),
        dynamics=tuple(equations.dynamics),
    )
    _check_contents(declaration, form, equations)
    return form, given


def _in_plain_names(equations: SympyEquations, given: Given) -> Given:
    """Replace functions of time by their names, in keys and in outputs."""
    before = dict(equations.translate.dynamic), dict(equations.translate.constants)
    outputs = {n: equations.translate(c) if isinstance(c, sympy.Basic) else c for n, c in given.outputs.items()}
    # outputs alone make no inputs and need no values
    equations.translate.dynamic, equations.translate.constants = before
    labels = given.labels
    return Given(
        inputs=[plain_name(r) for r in given.inputs],
        parameters=_named(given.parameters),
        outputs=outputs,
        start=_named(given.start),
        labels=replace(
            labels,
            units=_named(labels.units),
            nominals=_named(labels.nominals),
            descriptions=_named(labels.descriptions),
            independent=tuple(plain_name(s) for s in labels.independent),
        ),
    )


def _inputs(declaration: Declaration, equations: SympyEquations, given: Given) -> list[str]:
    """Return the inputs: those that were named, else all specified functions, each before its derivatives."""
    constants = {str(p) for p in given.parameters}
    appearing = [name for name in equations.translate.dynamic if name not in constants]
    prescribing = [name for name in appearing if _in_constraints(equations, name)]
    for name in prescribing:
        chain = (str(der(name)), str(der(der(name))))
        appearing += [d for d in chain if d not in appearing]
    if given.inputs:
        chosen = [str(r) for r in given.inputs]
        missing = [name for name in appearing if name not in chosen]
        declaration.problems += [f"'{name}' appears in the equations and is not among the inputs" for name in missing]
        return chosen
    return sorted(appearing, key=lambda name: (name.count("der("), name))


def _in_constraints(equations: SympyEquations, name: str) -> bool:
    """Whether a function itself, not a derivative, enters a constraint."""
    symbol = sympy.Symbol(name, real=True)
    rows = [e for row in equations.velocity for e in (row.rest, *row.coefficients.values())]
    return not name.startswith("der(") and any(
        symbol in equations.translate.symbols_in(e) for e in (*equations.f_c, *rows)
    )


def _check_contents(declaration: Declaration, form: KaneForm, equations: SympyEquations) -> None:
    """Note every symbol that stands where the form has no place for it: a rate that was not substituted, say."""
    everywhere = {form.time, *form.inputs, *form.parameters}
    q, u, q_dot, u_dot = set(form.q), set(form.u), set(form.q_dot), set(form.u_dot)

    def check(name: str, expressions: Iterable[Any], allowed: set[Symbol]) -> None:
        inside = frozenset().union(*(equations.translate.symbols_in(e) for e in expressions))
        declared = {symbol for symbol in inside if str(symbol) in declaration.symbols or symbol in q_dot | u_dot}
        foreign = sorted(str(s) for s in declared - allowed - everywhere)
        if foreign:
            declaration.problems.append(f"{name} may not contain {', '.join(foreign)}")

    for name, e in zip(form.configuration_names, form.f_c, strict=True):
        check(name, [e], q)
    for rows, allowed in (
        (form.velocity, q | u),
        (form.kinematics, q | u | q_dot),
        (form.acceleration, q | u | q_dot | u_dot),
        (form.dynamics, q | u | q_dot | u_dot | set(form.multipliers)),
    ):
        for row in rows:
            check(row.name, _parts(row), allowed)


def _parts(row: LinearRow) -> list[Any]:
    return [row.rest, *row.coefficients.values()]


def _named(values: Mapping[Any, Any]) -> dict[str, Any]:
    return {plain_name(key): value for key, value in values.items()}
