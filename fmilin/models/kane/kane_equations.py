"""Kane's equations as an author writes them down, as in table 1 of Peterson et al., or adds them to a sympy object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import sympy

from fmilin.models.declaration import Declaration, ModelArguments, Symbol, der
from fmilin.models.kane.kane_form import KaneForm, LinearRow, linear_row, order_rows, plain_name
from fmilin.models.labels import Expr, Name
from fmilin.support.kinds import require_field_containers

if TYPE_CHECKING:
    from fmilin.models.kane.conversion import SympyEquations


@dataclass(frozen=True)
class KaneEquations:
    """The equations of a system with n coordinates q and o speeds u, all equal to zero.

    Expressions are sympy expressions, numbers, or text; names are symbols or text. Rates of coordinates and speeds
    are written ``der(q)`` and ``der(u)`` (:func:`fmilin.models.der` makes the symbol). Kinematic and dynamic
    equations are sums, f_0 + f_1 and f_2 + f_3 (+ f_4): which term stands in which is free where table 1 allows it.
    """

    q: Sequence[Name]  #: n coordinates
    u: Sequence[Name]  #: o speeds
    f_0: Sequence[Expr]  #: n of them, f_0(q, q', t), linear in q'
    f_1: Sequence[Expr]  #: n of them, f_1(q, u, t), linear in u
    f_2: Sequence[Expr]  #: o - m of them, k more with multipliers, f_2(q, u', t), linear in u'
    f_3: Sequence[Expr]  #: as many, f_3(q, q', u, r, t)
    f_c: Sequence[Expr] = ()  #: l configuration constraints f_c(q, t)
    #: m velocity constraints f_v(q, u, t), linear in u, with the time derivatives of f_c or equivalent ones in u
    f_v: Sequence[Expr] = ()
    #: m acceleration constraints f_a(q, q', u, u', t), linear in u'; the time derivatives of f_v when left out
    f_a: Sequence[Expr] | None = None
    f_4: Sequence[Expr] = ()  #: terms of the dynamic equations with multipliers, linear in them
    multipliers: Sequence[Name] = ()  #: k names or symbols
    names: Sequence[str] = ()  #: of the constraints f_c, then f_v, for messages; ``f_c[1]`` and so on when left out

    def __post_init__(self) -> None:
        require_field_containers(self, texts=False)  # the model names all texts in place of lists at once


class _EquationReader:
    """Reads one block of equations after the other and notes what does not fit."""

    def __init__(self, declaration: Declaration, allowed: set[Symbol]) -> None:
        self.declaration = declaration
        self.allowed = allowed
        """Parameters, inputs and time: what may stand everywhere."""

    def block(self, name: str, source: Sequence[Expr], count: int, may_contain: Iterable[Symbol]) -> list[Any]:
        """Return ``count`` expressions over ``may_contain``."""
        expressions = [
            self.declaration.expression(e, f"{name}[{i + 1}]", derived=True) for i, e in enumerate(list(source))
        ]
        if len(expressions) != count:
            self.declaration.problems.append(f"{name} has {len(expressions)} rows and should have {count}")
            expressions = (expressions + [sympy.S.Zero] * count)[:count]
        permitted = {*may_contain, *self.allowed}
        for i, e in enumerate(expressions):
            foreign = sorted(str(s) for s in e.free_symbols - permitted)
            if foreign:
                self.declaration.problems.append(f"{name}[{i + 1}] may not contain {', '.join(foreign)}")
        return expressions

    def rows(self, name: str, expressions: Sequence[Any], symbols: Sequence[Symbol]) -> tuple[LinearRow, ...]:
        """Return the rows, linear in ``symbols``."""
        rows = []
        for i, e in enumerate(expressions):
            row, nonlinear = linear_row(f"{name}[{i + 1}]", e, symbols)
            if nonlinear:
                listed = ", ".join(str(w) for w in nonlinear)
                self.declaration.problems.append(f"{name}[{i + 1}] is not linear in {listed}")
            rows.append(row)
        return tuple(rows)


def build_form(
    declaration: Declaration, equations: KaneEquations, inputs: Sequence[Name], parameters: Iterable[Name]
) -> KaneForm:
    """Return the checked form; problems are noted in ``declaration``, where names become known."""
    texts = [f.name for f in fields(equations) if isinstance(getattr(equations, f.name), str)]
    if texts:
        declaration.problems.append(f"{', '.join(texts)} should be given as lists, even with a single entry")
        declaration.raise_problems()
    q = declaration.declare(equations.q, "a coordinate")
    u = declaration.declare(equations.u, "a speed")
    r = declaration.declare(inputs, "an input")
    p = declaration.declare(parameters, "a parameter")
    multipliers = declaration.declare(equations.multipliers, "a multiplier")
    q_dot, u_dot = tuple(map(der, q)), tuple(map(der, u))
    declaration.derived |= {str(w): w for w in (*q_dot, *u_dot)}
    n, o, m, k = len(q), len(u), len(list(equations.f_v)), len(multipliers)
    t = declaration.time
    reader = _EquationReader(declaration, {t, *r, *p})
    dynamic = o - m + k
    f_0 = reader.block("f_0", equations.f_0, n, (*q, *q_dot))
    f_1 = reader.block("f_1", equations.f_1, n, (*q, *u))
    f_2 = reader.block("f_2", equations.f_2, dynamic, (*q, *u_dot))
    f_3 = reader.block("f_3", equations.f_3, dynamic, (*q, *q_dot, *u))
    f_4 = reader.block("f_4", equations.f_4, dynamic if list(equations.f_4) else 0, (*q, *multipliers)) or [0] * dynamic
    f_c = reader.block("f_c", equations.f_c, len(list(equations.f_c)), q)
    f_v = reader.block("f_v", equations.f_v, m, (*q, *u))
    reader.rows("f_1", f_1, u)
    kinematics = order_rows(q_dot, reader.rows("f_0", [a + b for a, b in zip(f_0, f_1, strict=True)], q_dot))
    velocity = reader.rows("f_v", f_v, u)
    f_2_to_4 = [a + b + c for a, b, c in zip(f_2, f_3, f_4, strict=True)]
    dynamics = reader.rows("f_2", f_2_to_4, (*u_dot, *multipliers))
    if equations.f_a is None:
        acceleration = derivative_of_velocity_constraints(velocity, t, dict(zip(q, q_dot, strict=True)), r)
    else:
        f_a = reader.block("f_a", equations.f_a, m, (*q, *q_dot, *u, *u_dot))
        acceleration = reader.rows("f_a", f_a, u_dot)
    names = [f"f_c[{i + 1}]" for i in range(len(f_c))] + [row.name for row in velocity]
    if equations.names and len(equations.names) != len(names):
        declaration.problems.append(f"there are {len(equations.names)} names for {len(names)} constraints")
    elif equations.names:
        names = [str(name) for name in equations.names]
    return KaneForm(
        time=t,
        q=q,
        u=u,
        q_dot=q_dot,
        u_dot=u_dot,
        inputs=r,
        parameters=p,
        multipliers=multipliers,
        configuration_names=tuple(names[: len(f_c)]),
        f_c=tuple(f_c),
        velocity=tuple(replace(row, name=name) for row, name in zip(velocity, names[len(f_c) :], strict=True)),
        acceleration=acceleration,
        kinematics=kinematics,
        dynamics=dynamics,
    )


def derivative_of_velocity_constraints(
    velocity: Sequence[LinearRow], time: Symbol, rates: dict[Symbol, Symbol], inputs: Sequence[Symbol]
) -> tuple[LinearRow, ...]:
    """Return f_a = d/dt f_v = f_v,u u' + f_v,q q' + f_v,t, with r' = ``der(r)`` where that is an input, else 0."""
    chain = {r: der(r) for r in inputs if der(r) in inputs}
    rows = []
    for i, row in enumerate(velocity):
        f_v = row.expression
        moving = [f_v.diff(s) * rate for s, rate in (rates | chain).items() if s in f_v.free_symbols]
        rows.append(
            LinearRow(
                f"f_a[{i + 1}]", {der(u): c for u, c in row.coefficients.items()}, sympy.Add(f_v.diff(time), *moving)
            )
        )
    return tuple(rows)


def kane_form(
    declaration: Declaration, equations: SympyEquations, arguments: ModelArguments
) -> tuple[KaneForm, ModelArguments]:
    """Return the form, and what was given with plain names and symbols; problems are noted in ``declaration``."""
    arguments = _in_plain_names(equations, arguments)
    inputs = _inputs(declaration, equations, arguments)
    independent = arguments.labels.independent or tuple(equations.independent)
    arguments = replace(arguments, inputs=inputs, labels=replace(arguments.labels, independent=independent))
    q = declaration.declare(equations.q, "a coordinate")
    u = declaration.declare(equations.u, "a speed")
    arguments.declare(declaration)
    multipliers = declaration.declare(equations.multipliers, "a multiplier")
    q_dot, u_dot = tuple(map(der, q)), tuple(map(der, u))
    declaration.derived |= {str(w): w for w in (*q_dot, *u_dot)}
    names = {str(p) for p in (*arguments.parameters, *inputs)}
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
        parameters=tuple(declaration.symbols[str(p)] for p in arguments.parameters),
        multipliers=multipliers,
        configuration_names=tuple(f"f_c[{i + 1}]" for i in range(len(equations.f_c))),
        f_c=tuple(equations.f_c),
        velocity=tuple(equations.velocity),
        acceleration=tuple(equations.acceleration),
        kinematics=order_rows(q_dot, equations.kinematics),
        dynamics=tuple(equations.dynamics),
    )
    _check_contents(declaration, form, equations)
    return form, arguments


def _in_plain_names(equations: SympyEquations, arguments: ModelArguments) -> ModelArguments:
    """Replace functions of time by their names, in keys and in outputs."""
    before = dict(equations.translate.dynamic), dict(equations.translate.constants)
    outputs = {n: equations.translate(c) if isinstance(c, sympy.Basic) else c for n, c in arguments.outputs.items()}
    # outputs alone make no inputs and need no values
    equations.translate.dynamic, equations.translate.constants = before
    labels = arguments.labels
    return ModelArguments(
        inputs=[plain_name(r) for r in arguments.inputs],
        parameters=_name_keys(arguments.parameters),
        outputs=outputs,
        start=_name_keys(arguments.start),
        labels=replace(
            labels,
            units=_name_keys(labels.units),
            nominals=_name_keys(labels.nominals),
            descriptions=_name_keys(labels.descriptions),
            independent=tuple(plain_name(s) for s in labels.independent),
        ),
    )


def _inputs(declaration: Declaration, equations: SympyEquations, arguments: ModelArguments) -> list[str]:
    """Return the inputs: those that were named, else all specified functions, each before its derivatives."""
    constants = {str(p) for p in arguments.parameters}
    appearing = [name for name in equations.translate.dynamic if name not in constants]
    prescribing = [name for name in appearing if _in_constraints(equations, name)]
    for name in prescribing:
        chain = (str(der(name)), str(der(der(name))))
        appearing += [d for d in chain if d not in appearing]
    if arguments.inputs:
        chosen = [str(r) for r in arguments.inputs]
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


def _name_keys(values: Mapping[Any, Any]) -> dict[str, Any]:
    return {plain_name(key): value for key, value in values.items()}
