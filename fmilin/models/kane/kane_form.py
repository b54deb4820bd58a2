"""The general form of Peterson et al., table 1, in plain symbols, every row linear in what it is solved for.

    f_c(q, t) = 0,   f_v(q, u, t) = 0,   f_a(q, q', u, u', t) = 0      l configuration and m velocity constraints
    f_0(q, q', t) + f_1(q, u, t) = 0                                   n kinematic equations
    f_2(q, u', t) + f_3(q, q', u, r, t) = 0                            o - m dynamic equations

Two additions: the dynamic equations may contain multipliers or reactions, f_4(q, t) linear in lambda, with one
more equation for each (Lagrange's equations; Kane's with auxiliary speeds); and the inputs r may appear
everywhere, in the constraints, too, where they prescribe a motion and bring their derivatives along.
Solved, it is W w = r, x' = f(t, x, u, p, w). With w = (q', u', lambda), W is the matrix M~ of Peterson et al.; rates
q' that one kinematic equation gives explicitly are intermediate quantities instead, so that q' = u stays visible.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy
from sympy.core.function import AppliedUndef

from fmilin.constraints.declared import Constraint
from fmilin.models.declaration import (
    ExplicitEquations,
    Symbol,
    SymbolicConstraint,
    build_named_constraint,
    der,
    differentiate_in_time,
    vanishes,
)
from fmilin.models.labels import Expr


@dataclass(frozen=True)
class LinearRow:
    """One equation ``sum(coefficients[w] w) + rest = 0``, linear in the symbols w that it is solved for."""

    name: str  # for messages: ``f_a[2]``
    coefficients: Mapping[Symbol, Expr]  # without zeros
    rest: Expr  # free of w

    @property
    def expression(self) -> Expr:
        """The left-hand side."""
        return sympy.Add(*(c * w for w, c in self.coefficients.items()), self.rest)


@dataclass(frozen=True)
class KaneForm:
    """The equations of a system; see the module's text."""

    time: Symbol
    # q, u: n coordinates and o speeds
    q: tuple[Symbol, ...]
    u: tuple[Symbol, ...]
    # q_dot, u_dot: their rates, ``der(q)`` and ``der(u)``
    q_dot: tuple[Symbol, ...]
    u_dot: tuple[Symbol, ...]
    inputs: tuple[Symbol, ...]  # r; ``der(r)`` stands for the derivative of an input
    parameters: tuple[Symbol, ...]
    multipliers: tuple[Symbol, ...]  # lambda, maybe empty
    configuration_names: tuple[str, ...]  # one for each f_c: ``f_c[1]``, ... unless the author has a better one
    f_c: tuple[Expr, ...]  # l of them
    velocity: tuple[LinearRow, ...]  # f_v, m rows over u
    acceleration: tuple[LinearRow, ...]  # f_a, m rows over u'
    kinematics: tuple[LinearRow, ...]  # f_0 + f_1, n rows over q'
    dynamics: tuple[LinearRow, ...]  # f_2 + f_3 + f_4, o - m + k rows over u' and the k multipliers

    @property
    def states(self) -> tuple[Symbol, ...]:
        """(q, u), N = n + o of them."""
        return (*self.q, *self.u)

    @property
    def unknowns(self) -> tuple[Symbol, ...]:
        """(q', u', lambda)."""
        return (*self.q_dot, *self.u_dot, *self.multipliers)

    @property
    def order(self) -> int:
        """P = n - l + o - m, the number of independent states."""
        return len(self.q) - len(self.f_c) + len(self.u) - len(self.velocity)

    @property
    def expressions(self) -> list[Expr]:
        """Everything that the equations are made of."""
        rows = (*self.velocity, *self.acceleration, *self.kinematics, *self.dynamics)
        return [*self.f_c, *(e for row in rows for e in (row.rest, *row.coefficients.values()))]

    @property
    def f_v(self) -> tuple[Expr, ...]:
        """The velocity constraints as expressions."""
        return tuple(row.expression for row in self.velocity)


def order_rows(symbols: Sequence[Symbol], rows: Sequence[LinearRow]) -> tuple[LinearRow, ...]:
    """Return the rows, each that holds one of ``symbols`` alone in the place of that symbol if that is free."""
    if len(rows) != len(symbols):
        return tuple(rows)
    ordered: dict[int, LinearRow] = {}
    unmatched: list[LinearRow] = []
    for row in rows:
        index = symbols.index(next(iter(row.coefficients))) if len(row.coefficients) == 1 else -1
        if index >= 0 and index not in ordered:
            ordered[index] = row
        else:
            unmatched.append(row)
    remaining = iter(unmatched)
    return tuple(ordered[i] if i in ordered else next(remaining) for i in range(len(rows)))


class SymbolsIn:
    """The symbols in expressions; what large expressions share is remembered."""

    def __init__(self) -> None:
        self._symbols: dict[Expr, frozenset[Symbol]] = {}

    def __call__(self, expression: Expr) -> frozenset[Symbol]:
        """Return the symbols in ``expression``."""
        if expression.is_Symbol:
            return frozenset((expression,))
        symbols = self._symbols.get(expression)
        if symbols is None:
            symbols = self._symbols[expression] = frozenset().union(*map(self, expression.args))
        return symbols


def linear_row(
    name: str, expression: Expr, symbols: Sequence[Symbol], inside: SymbolsIn | None = None
) -> tuple[LinearRow, tuple[Symbol, ...]]:
    """Return an expression as coefficients of ``symbols`` and the rest, and the symbols in which it is not linear."""
    inside = inside or SymbolsIn()
    if not inside(expression).intersection(symbols):
        return LinearRow(name, {}, expression), ()
    terms = _LinearTerms(symbols, inside)
    row = terms.row(name, expression)
    if terms.nonlinear:  # maybe only in form: (w + 1)^2 - w^2
        terms = _LinearTerms(symbols, inside)
        row = terms.row(name, sympy.expand(expression))
    return row, tuple(w for w in symbols if w in terms.nonlinear)


class _LinearTerms:
    """Linear terms of expressions: a coefficient for each symbol, and the rest."""

    def __init__(self, symbols: Sequence[Symbol], inside: SymbolsIn) -> None:
        self._symbols, self._inside = tuple(symbols), inside
        self._symbol_set = frozenset(symbols)
        self._separations: dict[Expr, tuple[dict[Symbol, Expr], Expr]] = {}
        self.nonlinear: set[Symbol] = set()
        """Symbols that were met in something else than a sum or a product with what is free of them."""

    def row(self, name: str, expression: Expr) -> LinearRow:
        """Return the row ``expression = 0``."""
        coefficients, rest = self._of(expression)
        return LinearRow(name, {w: coefficients[w] for w in self._symbols if coefficients.get(w, 0) != 0}, rest)

    def _of(self, e: Expr) -> tuple[dict[Symbol, Expr], Expr]:
        separation = self._separations.get(e)
        if separation is None:
            separation = self._separations[e] = self._separate(e)
        return separation

    def _separate(self, e: Expr) -> tuple[dict[Symbol, Expr], Expr]:
        present = self._inside(e) & self._symbol_set
        if not present:
            return {}, e
        if e.is_Symbol:
            return {e: sympy.S.One}, sympy.S.Zero
        if e.is_Add:
            parts = [self._of(term) for term in e.args]
            coefficients = {w: sympy.Add(*(c[w] for c, _ in parts if w in c)) for w in present}
            return coefficients, sympy.Add(*(rest for _, rest in parts))
        moving = [factor for factor in e.args if self._inside(factor) & self._symbol_set]
        if e.is_Mul and len(moving) == 1:
            other_factors = sympy.Mul(*(factor for factor in e.args if factor is not moving[0]))
            coefficients, rest = self._of(moving[0])
            return {w: other_factors * c for w, c in coefficients.items()}, other_factors * rest
        self.nonlinear |= present
        return {}, sympy.S.Zero


@dataclass(frozen=True)
class _Kinematics:
    """q' as far as it is explicit, and the rows that remain."""

    explicit: Mapping[Symbol, Expr]
    remaining: tuple[LinearRow, ...]

    @property
    def implicit(self) -> tuple[Symbol, ...]:
        """The rates that the remaining rows are solved for."""
        return tuple(dict.fromkeys(w for row in self.remaining for w in row.coefficients))


def build_explicit_equations(form: KaneForm) -> ExplicitEquations:
    """Return the equations with q', u' and lambda as unknowns of a linear system."""
    kinematics = _explicit(form.kinematics, numbers_only=True)
    inside = SymbolsIn()
    rows = [*form.acceleration, *form.dynamics]
    separated = [linear_row(row.name, row.rest, kinematics.implicit, inside) for row in rows]
    if any(nonlinear for _, nonlinear in separated):
        kinematics = _Kinematics(_all_explicit(form), ())
    else:  # rates that the rows contain stand among their coefficients
        rows = [
            LinearRow(r.name, {**a.coefficients, **r.coefficients}, a.rest)
            for r, (a, _) in zip(rows, separated, strict=True)
        ]
    unknowns = [w for w in form.q_dot if w not in kinematics.explicit] + [*form.u_dot, *form.multipliers]
    all_rows = [*kinematics.remaining, *rows]
    columns = {w: j for j, w in enumerate(unknowns)}
    return ExplicitEquations(
        states=form.states,
        derivatives=[*(kinematics.explicit.get(w, w) for w in form.q_dot), *form.u_dot],
        unknowns=unknowns,
        W={(i, columns[w]): c for i, row in enumerate(all_rows) for w, c in row.coefficients.items() if w in columns},
        r=[-row.rest for row in all_rows],
        intermediate=[(w, kinematics.explicit[w]) for w in form.q_dot if w in kinematics.explicit],
        extra_names={str(symbol): symbol for symbol in form.multipliers},
    )


def list_constraints(form: KaneForm, equations: ExplicitEquations) -> list[Constraint]:
    """Return f_c, with its rate where that can be written down in the speeds, and f_v."""
    rates = dict(zip(form.states, equations.derivatives, strict=True))
    unknown = set(equations.unknowns)
    inputs = set(form.inputs)
    constraints = []
    for name, f_c in zip(form.configuration_names, form.f_c, strict=True):
        rate = differentiate_in_time(f_c, rates, form.time)
        hidden = rate.free_symbols & unknown or f_c.free_symbols & inputs or vanishes(rate)
        constraints.append(build_named_constraint(SymbolicConstraint(f_c, name), f_c, None if hidden else rate))
    for row in form.velocity:
        f_v = row.expression
        constraints.append(build_named_constraint(SymbolicConstraint(f_v, row.name, "velocity"), f_v, None))
    return constraints


def _explicit(rows: Sequence[LinearRow], *, numbers_only: bool) -> _Kinematics:
    """Solve, one after the other, rows that hold a single rate not yet known."""
    explicit: dict[Symbol, Expr] = {}
    remaining = list(rows)
    progress = True
    while progress:
        progress = False
        for row in list(remaining):
            open_rates = [w for w in row.coefficients if w not in explicit]
            if len(open_rates) != 1 or (numbers_only and not row.coefficients[open_rates[0]].is_number):
                continue
            explicit_terms = [c * explicit[w] for w, c in row.coefficients.items() if w in explicit]
            explicit[open_rates[0]] = -sympy.Add(row.rest, *explicit_terms) / row.coefficients[open_rates[0]]
            remaining.remove(row)
            progress = True
    return _Kinematics(explicit, tuple(_without_explicit(row, explicit) for row in remaining))


def _without_explicit(row: LinearRow, explicit: Mapping[Symbol, Expr]) -> LinearRow:
    """Move the rates that are explicit into the rest."""
    explicit_terms = [c * explicit[w] for w, c in row.coefficients.items() if w in explicit]
    implicit_coefficients = {w: c for w, c in row.coefficients.items() if w not in explicit}
    return LinearRow(row.name, implicit_coefficients, sympy.Add(row.rest, *explicit_terms))


def _all_explicit(form: KaneForm) -> Mapping[Symbol, Expr]:
    """Solve all kinematic equations in symbols: needed only where the other equations are not linear in q'."""
    first = _explicit(form.kinematics, numbers_only=False)
    if not first.remaining:
        return first.explicit
    rates = first.implicit
    K = sympy.Matrix([[row.coefficients.get(w, 0) for w in rates] for row in first.remaining])
    solution = K.LUsolve(sympy.Matrix([-row.rest for row in first.remaining]))
    return {**first.explicit, **dict(zip(rates, solution, strict=True))}


def plain_name(key: Any) -> str:
    """Return the name of a symbol, of a function of time without its argument, or of a derivative of one."""
    if isinstance(key, sympy.Derivative):
        name = plain_name(key.expr)
        for _ in range(sum(int(count) for _, count in key.variable_count)):
            name = str(der(name))
        return name
    return str(key.func) if isinstance(key, AppliedUndef) else str(key)
