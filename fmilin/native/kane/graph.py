"""The general form as one graph of CasADi: the blocks of the equations, and the gradients of all rows.

The equations are

    f_0 + f_1        = K q' + k                    n rows
    (f_a, f_2 + ...) = W (u'; lambda) + b          o + k rows
    (f_c, f_v)                                     l + m rows

and the gradients have the columns (t, q, q', u, r), with q', u' and lambda held at the values that solve them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from fmilin.native.kane.form import KaneForm, Row
from fmilin.numerics.codegen.graph import Graph

__all__ = ["KaneGraph"]

SX = Any  # casadi.SX: casadi ships no types
Symbol = Any  # sympy.Symbol


class KaneGraph:
    """The nodes of a form; every subexpression that equations share stands once.

    ``known``: (t, q, u, r, p): what a point consists of. ``symbols``: the same in the form's symbols.
    ``kinematics_are_explicit``: whether K is the identity everywhere: q' = -k.
    """

    def __init__(self, form: KaneForm) -> None:
        self.form = form
        self.symbols = (form.time, *form.states, *form.inputs, *form.parameters)
        unknowns = (*form.u_dot, *form.multipliers)
        self._graph = Graph()
        self.known, self.q_dot, self.w = map(self._graph.declare, (self.symbols, form.q_dot, unknowns))
        n, o = len(form.q), len(form.u)
        self._u = self.known[1 + n : 1 + n + o]
        self._columns = ca.vertcat(
            self.known[: 1 + n], self.q_dot, self._u, self.known[1 + n + o : 1 + n + o + len(form.inputs)]
        )
        V, v = self._separated(form.velocity, form.u)
        found = [
            ca.vertcat(self._graph.column(form.f_c), V @ self._u + v),
            *self._separated(form.kinematics, form.q_dot),
            *self._separated((*form.acceleration, *form.dynamics), unknowns),
        ]
        self.constraints, self.K, self.k, self.W, self.b = ca.cse(found)
        self.kinematics_are_explicit = bool(self.K.is_constant() and np.array_equal(np.array(ca.DM(self.K)), np.eye(n)))

    @cached_property
    def constraint_gradients(self) -> SX:
        """The gradients of (f_c, f_v)."""
        return _gradients(self.constraints, self._columns)

    @cached_property
    def gradients(self) -> SX:
        """The gradients of (f_0 + f_1, f_a, f_2 + f_3 + f_4)."""
        return _gradients(ca.vertcat(self.K @ self.q_dot + self.k, self.W @ self.w + self.b), self._columns)

    def outputs(self, expressions: Sequence[Any]) -> tuple[SX, SX, SX]:
        """Return expressions over all symbols as a column, and their gradients for (t, q, u, r, p) and (q', w)."""
        column = self._graph.column(expressions)
        rates = ca.vertcat(self.q_dot, self.w)
        return column, _gradients(column, self.known), _gradients(column, rates)

    def _separated(self, rows: Sequence[Row], symbols: Sequence[Symbol]) -> tuple[SX, SX]:
        """Return the coefficients of ``symbols`` in the rows, and the rest of the rows."""
        places = {w: j for j, w in enumerate(symbols)}
        coefficients = {
            (i, places[w]): c for i, row in enumerate(rows) for w, c in row.coefficients.items() if w in places
        }
        matrix = self._graph.matrix(coefficients, (len(rows), len(symbols)))
        return matrix, self._graph.column([row.rest for row in rows])


def _gradients(rows: SX, columns: SX) -> SX:
    return ca.sparsify(ca.jacobian(rows, columns))
