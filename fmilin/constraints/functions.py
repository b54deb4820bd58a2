"""Values and exact derivatives of expressions, as functions of one column of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmilin.constraints.expressions import Expression
from fmilin.signals import FloatArray

if TYPE_CHECKING:
    from fmilin.codegen.buffered import Buffered

__all__ = ["ExpressionFunctions"]

SX = Any  # casadi.SX: casadi ships no types
Node = Any  # casadi.SX or casadi.MX


LARGEST_DENSE = 100_000
"""Entries of dg/ds up to which a product with the whole matrix is the quicker one."""


class ExpressionFunctions:
    """Expressions g(s), with first derivatives and one contraction of the second.

    What is not a finite real number (``sqrt(-1)``, ``1/0``, ``exp(1000)``) is NaN.

    Parameters
    ----------
    expressions : sequence of Expression
        m of them.
    places : mapping of str to int
        Where in s each variable stands; several names may stand for one place.
    size : int
        n, the length of s.
    constants : mapping of str to float
        Variables that have a value once and for all.
    """

    def __init__(
        self,
        expressions: Sequence[Expression],
        places: Mapping[str, int],
        size: int,
        constants: Mapping[str, float] | None = None,
    ) -> None:
        self.shape = (len(expressions), size)
        self._expressions, self._places, self._constants = tuple(expressions), places, constants or {}

    def values(self, s: FloatArray) -> FloatArray:
        """Return g, shape (..., m), at one s (n,) or at many (..., n)."""
        function = self._values
        if s.ndim > 1:
            points = function.at_points(s.reshape(-1, self.shape[1]))
            return points.reshape(*s.shape[:-1], self.shape[0])
        function.arguments[0][:] = s
        function.run()
        return function.results[0].copy()

    def jacobian(self, s: FloatArray) -> FloatArray:
        """Return dg/ds, shape (m, n)."""
        function, cells = self._jacobian
        function.arguments[0][:] = s
        return self._filled(function, cells)

    def along(self, s: FloatArray, directions: FloatArray) -> FloatArray:
        """Return dg/ds directions, shape (m, k), for directions (n, k); a large matrix dg/ds is never made."""
        if self.shape[0] * self.shape[1] <= LARGEST_DENSE:
            small: FloatArray = self.jacobian(s) @ directions
            return small
        function, cells = self._jacobian
        function.arguments[0][:] = s
        function.run()
        rows, columns = np.divmod(cells, self.shape[1])
        found = np.zeros((self.shape[0], directions.shape[1]))
        np.add.at(found, rows, function.results[0][:, None] * directions[columns])
        return found

    def curvature(self, s: FloatArray, direction: FloatArray) -> FloatArray:
        """Return d/ds (dg/ds . direction), shape (m, n): the second derivative contracted with ``direction``, (n,)."""
        function, cells = self._curvature
        function.arguments[0][:] = s
        function.arguments[1][:] = direction
        return self._filled(function, cells)

    def graph(self, s: Node) -> Node:
        """Return g as a node of the graph of ``s``, a column of n symbols or nodes of CasADi."""
        import casadi as ca

        return ca.Function("g", [self._graph[0]], [self._graph[1]])(s)

    def _filled(self, function: Buffered, cells: NDArray[np.intp]) -> FloatArray:
        function.run()
        matrix = np.zeros(self.shape)
        matrix.put(cells, function.results[0])
        return matrix

    @cached_property
    def _graph(self) -> tuple[SX, SX]:
        """S and g, shapes (n, 1) and (m, 1)."""
        import casadi as ca

        from fmilin.constraints.in_graph import InGraph

        s, arithmetic = ca.SX.sym("s", self.shape[1]), InGraph()
        scalars = ca.vertsplit(s)
        nodes = {name: scalars[place] for name, place in self._places.items()}
        nodes |= {name: arithmetic.number(value) for name, value in self._constants.items()}
        return s, ca.densify(ca.vertcat(ca.SX(0, 1), *(e.built(arithmetic, nodes) for e in self._expressions)))

    @cached_property
    def _values(self) -> Buffered:
        s, g = self._graph
        return _function([s], g)

    @cached_property
    def _jacobian(self) -> tuple[Buffered, NDArray[np.intp]]:
        import casadi as ca

        s, g = self._graph
        J = ca.sparsify(ca.jacobian(g, s))
        return _function([s], J), self._cells(J)

    @cached_property
    def _curvature(self) -> tuple[Buffered, NDArray[np.intp]]:
        import casadi as ca

        s, g = self._graph
        d = ca.SX.sym("d", self.shape[1])
        H = ca.sparsify(ca.jacobian(ca.jtimes(g, s, d), s))
        return _function([s, d], H), self._cells(H)

    def _cells(self, matrix: SX) -> NDArray[np.intp]:
        """Return where the nonzeros of ``matrix`` lie in a flat array, row by row."""
        rows, columns = (np.array(indices, dtype=np.intp) for indices in matrix.sparsity().get_triplet())
        cells: NDArray[np.intp] = rows * self.shape[1] + columns
        return cells


def _function(arguments: Sequence[SX], result: SX) -> Buffered:
    """Return a function in which infinities are NaN: a kept ``inf`` could come back as a finite number, ``1/inf``."""
    import casadi as ca

    from fmilin.codegen.buffered import Buffered
    from fmilin.codegen.nodes import sharing

    largest = float(np.finfo(np.float64).max)
    entries = ca.SX(result)
    for i, entry in enumerate(result.nonzeros()):
        if not (entry.is_constant() or entry.is_symbolic()):
            entries.nz[i] = ca.if_else(ca.fabs(entry) <= largest, entry, np.nan)
    return Buffered(ca.Function("g", list(arguments), [entries], sharing(entries)))
