"""Values and exact derivatives of expressions, as functions of one column of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache, partial
from threading import local
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmilin.ground.signals import FloatArray
from fmilin.model.constraints.expressions import Expression

if TYPE_CHECKING:
    from fmilin.numerics.codegen.evaluator import Buffered

SX = Any  # casadi.SX: casadi ships no types
Node = Any  # casadi.SX or casadi.MX
LARGEST_DENSE = 100_000  # entries of dg/ds up to which a product with the whole matrix is the quicker one


class ExpressionFunctions:
    """Expressions g(s), s (n,), with first derivatives and one contraction of the second; NaN where not finite."""

    def __init__(
        self,
        expressions: Sequence[Expression],
        positions: Mapping[str, int],
        size: int,
        constants: Mapping[str, float] | None = None,
    ) -> None:
        constants = constants or {}
        self.shape = (len(expressions), size)
        self._named = dict(constants)
        self._constants = np.array(list(constants.values()), dtype=np.float64)
        self._make = partial(_made, tuple(expressions), tuple(positions.items()), tuple(constants), size)

    @cached_property
    def _made(self) -> _Made:
        """The functions, made when a number is first needed."""
        return self._make()

    def values(self, s: FloatArray) -> FloatArray:
        """Return g, shape (..., m), at one s (n,) or at many (..., n)."""
        function = self._made.values.buffered
        if s.ndim > 1:
            return function.at_points(self._points(s)).reshape(*s.shape[:-1], self.shape[0])
        self._set(function, s)
        function.run()
        return function.results[0].copy()

    def jacobian(self, s: FloatArray) -> FloatArray:
        """Return dg/ds, shape (..., m, n), at one s (n,) or at many (..., n)."""
        functions, cells = self._made.jacobian
        function = functions.buffered
        if s.ndim > 1:
            points = self._points(s)
            matrices = np.zeros((len(points), self.shape[0] * self.shape[1]))
            matrices[:, cells] = function.at_points(points).reshape(len(points), len(cells))
            return matrices.reshape(*s.shape[:-1], *self.shape)
        self._set(function, s)
        return self._filled(function, cells)

    def _points(self, s: FloatArray) -> FloatArray:
        """Return arguments (..., n) with the constants, shape (k, n + constants)."""
        points = s.reshape(-1, self.shape[1])
        return np.hstack((points, np.broadcast_to(self._constants, (len(points), len(self._constants)))))

    def along(self, s: FloatArray, directions: FloatArray) -> FloatArray:
        """Return dg/ds directions, shape (m, k), for directions (n, k); a large matrix dg/ds is never made."""
        if self.shape[0] * self.shape[1] <= LARGEST_DENSE:
            return np.asarray(self.jacobian(s) @ directions)
        functions, cells = self._made.jacobian
        function = functions.buffered
        self._set(function, s)
        function.run()
        rows, columns = np.divmod(cells, self.shape[1])
        slopes = np.zeros((self.shape[0], directions.shape[1]))
        np.add.at(slopes, rows, function.results[0][:, None] * directions[columns])
        return slopes

    def curvature(self, s: FloatArray, direction: FloatArray) -> FloatArray:
        """Return d/ds (dg/ds . direction), shape (m, n): the second derivative contracted with ``direction``, (n,)."""
        functions, cells = self._made.curvature
        function = functions.buffered
        self._set(function, s)
        function.arguments[1][:] = direction
        return self._filled(function, cells)

    def graph(self, s: Node, constants: Mapping[str, Node] | None = None) -> Node:
        """Return g as a node of the graph of ``s`` (n symbols or nodes of CasADi), with nodes for some constants."""
        import casadi as ca

        values = {**self._named, **{n: node for n, node in (constants or {}).items() if n in self._named}}
        return ca.Function("g", [self._made.graph[0]], [self._made.graph[1]])(ca.vertcat(s, *values.values()))

    def _set(self, function: Buffered, s: FloatArray) -> None:
        argument = function.arguments[0]
        argument[: len(s)] = s
        argument[len(s) :] = self._constants

    def _filled(self, function: Buffered, cells: NDArray[np.intp]) -> FloatArray:
        function.run()
        matrix = np.zeros(self.shape)
        matrix.put(cells, function.results[0])
        return matrix


@lru_cache(maxsize=64)
def _made(
    expressions: tuple[Expression, ...], positions: tuple[tuple[str, int], ...], constants: tuple[str, ...], size: int
) -> _Made:
    """Return the functions of these expressions; the same for all values of the constants."""
    return _Made(expressions, dict(positions), constants, size)


class _Made:
    """The functions of s and, behind it, the constants: one column of numbers."""

    def __init__(
        self, expressions: Sequence[Expression], positions: Mapping[str, int], constants: Sequence[str], size: int
    ) -> None:
        self._expressions, self._size = expressions, size
        self._positions = {**positions, **{name: size + i for i, name in enumerate(constants)}}
        self._length = size + len(constants)

    @cached_property
    def graph(self) -> tuple[SX, SX]:
        """(s, constants) and g, columns."""
        import casadi as ca

        from fmilin.model.constraints.in_graph import InGraph

        s = ca.SX.sym("s", self._length)
        scalars = ca.vertsplit(s)
        nodes = {name: scalars[i] for name, i in self._positions.items()}
        return s, ca.densify(ca.vertcat(ca.SX(0, 1), *(e.built(InGraph(), nodes) for e in self._expressions)))

    @cached_property
    def values(self) -> _InEachThread:
        """G."""
        s, g = self.graph
        return _function([s], g)

    @cached_property
    def jacobian(self) -> tuple[_InEachThread, NDArray[np.intp]]:
        """Entries of dg/ds, and where they lie."""
        import casadi as ca

        s, g = self.graph
        J = ca.sparsify(ca.jacobian(g, s)[:, : self._size])
        return _function([s], J), self._cells(J)

    @cached_property
    def curvature(self) -> tuple[_InEachThread, NDArray[np.intp]]:
        """Entries of d/ds (dg/ds . d), and where they lie; takes d, too."""
        import casadi as ca

        s, g = self.graph
        d = ca.SX.sym("d", self._size)
        along = ca.vertcat(d, ca.SX(self._length - self._size, 1))
        H = ca.sparsify(ca.jacobian(ca.jtimes(g, s, along), s)[:, : self._size])
        return _function([s, d], H), self._cells(H)

    def _cells(self, matrix: SX) -> NDArray[np.intp]:
        """Return where the nonzeros of ``matrix`` lie in a flat array, row by row."""
        rows, columns = (np.array(indices, dtype=np.intp) for indices in matrix.sparsity().get_triplet())
        cells: NDArray[np.intp] = rows * self._size + columns
        return cells


def _function(arguments: Sequence[SX], result: SX) -> _InEachThread:
    """Return a function in which infinities are NaN: a stored ``inf`` could come back as a finite number, ``1/inf``."""
    import casadi as ca

    from fmilin.numerics.codegen.implicit import cse_option

    largest = float(np.finfo(np.float64).max)
    entries = ca.SX(result)
    for i, entry in enumerate(result.nonzeros()):
        if not (entry.is_constant() or entry.is_symbolic()):
            entries.nz[i] = ca.if_else(ca.fabs(entry) <= largest, entry, np.nan)
    return _InEachThread(ca.Function("g", list(arguments), [entries], cse_option(entries)))


class _InEachThread(local):
    """A function with arrays of its own in each thread: models in several threads share what :func:`_made` keeps."""

    def __init__(self, function: Any) -> None:
        from fmilin.numerics.codegen.evaluator import Buffered

        self.buffered = Buffered(function)
