"""From the general form to the one symbolic form that all code is made from: W w = r, x' = f(t, x, u, p, w).

With w = (q', u', lambda), W is the matrix M~ of Peterson et al.; rates q' that one kinematic equation gives
explicitly are intermediate quantities instead, so that q' = u stays visible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sympy

from fmilin.model.constraints.declared import Constraint
from fmilin.native.declaration import (
    Equations,
    Expr,
    Symbol,
    SymbolicConstraint,
    named_constraint,
    rate_along,
    vanishes,
)
from fmilin.native.kane.form import KaneForm, LinearRow, SymbolsIn, linear_row


@dataclass(frozen=True)
class _Kinematics:
    """q' as far as it is explicit, and the rows that remain."""

    explicit: Mapping[Symbol, Expr]
    remaining: tuple[LinearRow, ...]

    @property
    def implicit(self) -> tuple[Symbol, ...]:
        """The rates that the remaining rows are solved for."""
        return tuple(dict.fromkeys(w for row in self.remaining for w in row.coefficients))


def solved_form(form: KaneForm) -> Equations:
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
    return Equations(
        states=form.states,
        derivatives=[*(kinematics.explicit.get(w, w) for w in form.q_dot), *form.u_dot],
        unknowns=unknowns,
        W={(i, columns[w]): c for i, row in enumerate(all_rows) for w, c in row.coefficients.items() if w in columns},
        r=[-row.rest for row in all_rows],
        intermediate=[(w, kinematics.explicit[w]) for w in form.q_dot if w in kinematics.explicit],
        extra_names={str(symbol): symbol for symbol in form.multipliers},
    )


def constraints_of(form: KaneForm, equations: Equations) -> list[Constraint]:
    """Return f_c, with its rate where that can be written down in the speeds, and f_v."""
    rates = dict(zip(form.states, equations.derivatives, strict=True))
    unknown = set(equations.unknowns)
    inputs = set(form.inputs)
    constraints = []
    for name, f_c in zip(form.configuration_names, form.f_c, strict=True):
        rate = rate_along(f_c, rates, form.time)
        hidden = rate.free_symbols & unknown or f_c.free_symbols & inputs or vanishes(rate)
        constraints.append(named_constraint(SymbolicConstraint(f_c, name), f_c, None if hidden else rate))
    for row in form.velocity:
        f_v = row.expression
        constraints.append(named_constraint(SymbolicConstraint(f_v, row.name, "velocity"), f_v, None))
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
    left = {w: c for w, c in row.coefficients.items() if w not in explicit}
    return LinearRow(row.name, left, sympy.Add(row.rest, *explicit_terms))


def _all_explicit(form: KaneForm) -> Mapping[Symbol, Expr]:
    """Solve all kinematic equations in symbols: needed only where the other equations are not linear in q'."""
    first = _explicit(form.kinematics, numbers_only=False)
    if not first.remaining:
        return first.explicit
    rates = first.implicit
    K = sympy.Matrix([[row.coefficients.get(w, 0) for w in rates] for row in first.remaining])
    solution = K.LUsolve(sympy.Matrix([-row.rest for row in first.remaining]))
    return {**first.explicit, **dict(zip(rates, solution, strict=True))}
