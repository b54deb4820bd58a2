"""The general form of Peterson et al., table 1, in plain symbols, every row linear in what it is solved for.

    f_c(q, t) = 0                                   l configuration constraints
    f_v(q, u, t) = 0                                m velocity constraints, linear in u
    f_a(q, q', u, u', t) = 0                        their derivatives, linear in u'
    f_0(q, q', t) + f_1(q, u, t) = 0                n kinematic equations, f_0 linear in q'
    f_2(q, u', t) + f_3(q, q', u, r, t) = 0         o - m dynamic equations, f_2 linear in u'

Two additions: the dynamic equations may contain multipliers or reactions, f_4(q, t) linear in lambda, with one
more equation for each (Lagrange's equations; Kane's with auxiliary speeds); and the inputs r may appear
everywhere, in the constraints, too, where they prescribe a motion and bring their derivatives along.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy

__all__ = ["KaneForm", "Row", "in_order_of"]

Symbol = Any  # sympy.Symbol: sympy ships no types
Expr = Any  # sympy.Expr


@dataclass(frozen=True)
class Row:
    """One equation ``sum(coefficients[w] w) + rest = 0``, linear in the symbols w that it is solved for."""

    name: str  # for messages: ``f_a[2]``
    coefficients: Mapping[Symbol, Expr]  # without zeros
    rest: Expr  # free of w

    @property
    def expression(self) -> Expr:
        """The left-hand side."""
        return sympy.Add(*(c * w for w, c in self.coefficients.items()), self.rest)

    def part(self, symbols: Iterable[Symbol]) -> Expr:
        """Return the terms with these symbols alone."""
        wanted = set(symbols)
        return sympy.Add(*(c * w for w, c in self.coefficients.items() if w in wanted))


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
    velocity: tuple[Row, ...]  # f_v, m rows over u
    acceleration: tuple[Row, ...]  # f_a, m rows over u'
    kinematics: tuple[Row, ...]  # f_0 + f_1, n rows over q'
    dynamics: tuple[Row, ...]  # f_2 + f_3 + f_4, o - m + k rows over u' and the k multipliers

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

    @property
    def f_a(self) -> tuple[Expr, ...]:
        """The acceleration constraints as expressions."""
        return tuple(row.expression for row in self.acceleration)

    @property
    def f_0(self) -> tuple[Expr, ...]:
        """The terms of the kinematic equations that contain q'."""
        return tuple(row.part(self.q_dot) for row in self.kinematics)

    @property
    def f_1(self) -> tuple[Expr, ...]:
        """The other terms of the kinematic equations."""
        return tuple(row.rest for row in self.kinematics)

    @property
    def f_2(self) -> tuple[Expr, ...]:
        """The terms of the dynamic equations that contain u'."""
        return tuple(row.part(self.u_dot) for row in self.dynamics)

    @property
    def f_3(self) -> tuple[Expr, ...]:
        """The terms of the dynamic equations that contain neither u' nor lambda."""
        return tuple(row.rest for row in self.dynamics)

    @property
    def f_4(self) -> tuple[Expr, ...]:
        """The terms of the dynamic equations that contain lambda."""
        return tuple(row.part(self.multipliers) for row in self.dynamics)


def in_order_of(symbols: Sequence[Symbol], rows: Sequence[Row]) -> tuple[Row, ...]:
    """Return the rows, each that holds one of ``symbols`` alone in the place of that symbol if that is free."""
    if len(rows) != len(symbols):
        return tuple(rows)
    places: dict[int, Row] = {}
    others: list[Row] = []
    for row in rows:
        place = symbols.index(next(iter(row.coefficients))) if len(row.coefficients) == 1 else -1
        if place >= 0 and place not in places:
            places[place] = row
        else:
            others.append(row)
    left = iter(others)
    return tuple(places[i] if i in places else next(left) for i in range(len(rows)))
