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
from numpy.typing import NDArray

from fmilin.codegen.graph import Graph
from fmilin.models.kane.form import KaneForm, Row
from fmilin.signals import FloatArray

__all__ = ["Entries", "KaneGraph"]

SX = Any  # casadi.SX: casadi ships no types
Symbol = Any  # sympy.Symbol


class Entries:
    """Where the nonzeros of a sparse matrix of the graph stand, and the others are zero.

    Parameters
    ----------
    matrix : SX
    """

    def __init__(self, matrix: SX) -> None:
        self.shape = tuple(matrix.shape)
        rows, columns = (np.array(part, dtype=np.intp) for part in matrix.sparsity().get_triplet())
        self._places: NDArray[np.intp] = rows * self.shape[1] + columns

    def filled(self, values: FloatArray) -> FloatArray:
        """Return the matrices, shape (k, rows, columns), from the values of the nonzeros, shape (k, nonzeros)."""
        matrices = np.zeros((len(values), self.shape[0] * self.shape[1]))
        matrices[:, self._places] = values
        return matrices.reshape(-1, *self.shape)


class KaneGraph:
    """The nodes of a form; every subexpression that equations share stands once.

    Parameters
    ----------
    form : KaneForm

    Attributes
    ----------
    symbols : tuple of Symbol
        What a point consists of: (t, q, u, r, p, q', u', lambda).
    point : SX
        The same as a column.
    first_unknown : int
        The position of q' in it.
    constraints : SX
        (f_c, f_v).
    K, k, W, b : SX
        See the module's text.

    Raises
    ------
    ModelError
        When an equation contains something that is no arithmetic.
    """

    def __init__(self, form: KaneForm) -> None:
        self.form = form
        self.symbols = (form.time, *form.states, *form.inputs, *form.parameters, *form.unknowns)
        self.first_unknown = len(self.symbols) - len(form.unknowns)
        self._graph = Graph()
        self.point = self._graph.declare(self.symbols)
        self._place = {s: i for i, s in enumerate(self.symbols)}
        lower, unknowns = (*form.acceleration, *form.dynamics), (*form.u_dot, *form.multipliers)
        V, v = self._taken_apart(form.velocity, form.u)
        found = [
            ca.vertcat(self._graph.column(form.f_c), V @ self._columns(form.u) + v),
            *self._taken_apart(form.kinematics, form.q_dot),
            *self._taken_apart(lower, unknowns),
        ]
        self.constraints, self.K, self.k, self.W, self.b = ca.cse(found)

    @property
    def kinematics_are_explicit(self) -> bool:
        """Whether K is the identity everywhere: q' = -k."""
        n = len(self.form.q)
        return bool(self.K.is_constant() and np.array_equal(np.array(ca.DM(self.K)), np.eye(n)))

    @cached_property
    def constraint_gradients(self) -> SX:
        """The gradients of (f_c, f_v)."""
        return self._gradients(self.constraints)

    @cached_property
    def gradients(self) -> SX:
        """The gradients of (f_0 + f_1, f_a, f_2 + f_3 + f_4)."""
        form = self.form
        q_dot, w = self._columns(form.q_dot), self._columns((*form.u_dot, *form.multipliers))
        return self._gradients(ca.vertcat(self.K @ q_dot + self.k, self.W @ w + self.b))

    def outputs(self, expressions: Sequence[Any]) -> tuple[SX, SX]:
        """Return expressions over the symbols as a column, and their gradient for all of the point."""
        column = self._graph.column(expressions)
        return column, ca.sparsify(ca.jacobian(column, self.point))

    def _gradients(self, rows: SX) -> SX:
        form = self.form
        columns = self._columns((form.time, *form.q, *form.q_dot, *form.u, *form.inputs))
        return ca.sparsify(ca.jacobian(rows, columns))

    def _columns(self, symbols: Sequence[Symbol]) -> SX:
        return self.point[[self._place[s] for s in symbols]]

    def _taken_apart(self, rows: Sequence[Row], symbols: Sequence[Symbol]) -> tuple[SX, SX]:
        """Return the coefficients of ``symbols`` in the rows, and the rest of the rows."""
        coefficients = [[row.coefficients.get(w, 0) for w in symbols] for row in rows]
        return self._graph.matrix(coefficients, len(symbols)), self._graph.column([row.rest for row in rows])
