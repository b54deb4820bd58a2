"""Values and exact derivatives of expressions, as functions of one column of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fmilin.constraints.expressions import Expression
from fmilin.signals import FloatArray

if TYPE_CHECKING:
    from fmilin.codegen.graph_evaluator import Evaluator
    from fmilin.constraints.in_graph import GraphFunctions

Node = Any  # casadi.SX or casadi.MX
MAX_DENSE_SIZE = 100_000  # entries of dg/ds up to which a product with the whole matrix is the quicker one


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
        self._constants = (np.array(list(constants.values()), dtype=np.float64),) if constants else ()
        self._make = partial(_build_functions, tuple(expressions), tuple(positions.items()), tuple(constants), size)

    @cached_property
    def _functions(self) -> GraphFunctions:
        """The functions, made when a number is first needed."""
        return self._make()

    def values(self, s: FloatArray) -> FloatArray:
        """Return g, shape (..., m), at one s (n,) or at many (..., n)."""
        return self._matrix(self._functions.values, s)[..., 0]

    def jacobian(self, s: FloatArray) -> FloatArray:
        """Return dg/ds, shape (..., m, n), at one s (n,) or at many (..., n)."""
        return self._matrix(self._functions.jacobian, s)

    def _matrix(self, function: Evaluator, s: FloatArray) -> FloatArray:
        if s.ndim == 1:
            return function(s, *self._constants)[0]
        matrices = function.at_points(s.reshape(-1, self.shape[1]), *self._constants)[0]
        return matrices.reshape(*s.shape[:-1], *matrices.shape[1:])

    def along(self, s: FloatArray, directions: FloatArray) -> FloatArray:
        """Return dg/ds directions, shape (m, k), for directions (n, k); a large matrix dg/ds is never made."""
        if self.shape[0] * self.shape[1] <= MAX_DENSE_SIZE:
            return np.asarray(self.jacobian(s) @ directions)
        rows, columns = self._functions.slopes.sparsity().get_triplet()
        slopes = np.zeros((self.shape[0], directions.shape[1]))
        np.add.at(slopes, rows, self._functions.entries(s, *self._constants)[0] * directions[columns])
        return slopes

    def curvature(self, s: FloatArray, direction: FloatArray) -> FloatArray:
        """Return d/ds (dg/ds . direction), shape (m, n): the second derivative contracted with ``direction``, (n,)."""
        return self._functions.curvature(s, *self._constants, direction)[0]

    def graph(self, s: Node, constants: Mapping[str, Node] | None = None) -> Node:
        """Return g as a node of the graph of ``s`` (n symbols or nodes of CasADi), with nodes for some constants."""
        values = {**self._named, **{n: node for n, node in (constants or {}).items() if n in self._named}}
        return self._functions.node(s, *values.values())


def find_expression_turn(expression: Expression, constants: Mapping[str, float] | None = None) -> float | None:
    """Return by how much an expression jumps where it wraps, as an angle ``atan2(x, -y)`` does; None if it does not."""
    if not any(step.operation == "atan2" for step in expression.steps):
        return None
    import casadi as ca

    from fmilin.codegen.turns import find_turn

    constants = constants or {}
    symbols: Any = ca.SX.sym("s", len(expression.names))
    hashes = [symbol.element_hash() for symbol in symbols.elements()]
    numbers = {key: constants[name] for key, name in zip(hashes, expression.names, strict=True) if name in constants}
    return find_turn(build_function(expression).graph(symbols), numbers)


def build_function(expression: Expression) -> ExpressionFunctions:
    """Return an expression as a function of its own variables, in their order."""
    return ExpressionFunctions(
        [expression], {name: i for i, name in enumerate(expression.names)}, len(expression.names)
    )


@lru_cache(maxsize=64)
def _build_functions(
    expressions: tuple[Expression, ...], positions: tuple[tuple[str, int], ...], constants: tuple[str, ...], size: int
) -> GraphFunctions:
    """Return the functions of these expressions; the same for all values of the constants."""
    from fmilin.constraints.in_graph import GraphFunctions

    return GraphFunctions(expressions, dict(positions), constants, size)
