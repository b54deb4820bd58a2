"""Expressions as nodes of a CasADi graph: what is evaluated and differentiated."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from fmilin.codegen.graph_evaluator import Backend, Evaluator
from fmilin.constraints.expressions import Expression

if TYPE_CHECKING:
    from fmilin.codegen.expression_graph import Graph

SX = Any  # casadi.SX: casadi ships no types


def _least(a: SX, b: SX) -> SX:
    """Return the lesser one; where both are equal, its slope is the mean of theirs. NaN where one of them is NaN."""
    return ca.if_else(a < b, a, ca.if_else(b < a, b, (a + b) / 2))


def _smallest(parts: Sequence[SX]) -> SX:
    """Return the least of them by halves: a chain of a thousand takes seconds to differentiate."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return _least(_smallest(parts[:half]), _smallest(parts[half:]))


_OPERATIONS: Mapping[str, Callable[..., SX]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "^": operator.pow,
    "negative": operator.neg, "pi": lambda: ca.SX(math.pi), "abs": ca.fabs,
    "min": lambda *parts: _smallest(parts), "max": lambda *parts: -_smallest([-part for part in parts]),
}  # fmt: skip


class InGraph:
    """Arithmetic on ``casadi.SX`` scalars; rows built by one and the same object share what they have in common."""

    def __init__(self) -> None:
        self._meanings: dict[Any, SX] = {}
        self._graph: Graph | None = None

    def number(self, value: float) -> SX:
        """Return a constant."""
        return ca.SX(float(value))

    def operation(self, name: str, operands: Sequence[SX]) -> SX:
        """Return the node of one operation."""
        if any(bool(operand.is_constant() and math.isnan(float(operand))) for operand in operands):
            return ca.SX(math.nan)
        result = (_OPERATIONS.get(name) or getattr(ca, name))(*operands)
        return ca.SX(math.nan) if result.is_constant() and not result.is_regular() else result

    def sympy(self, expression: Any, values: Mapping[Any, SX]) -> SX:
        """Return the node of a sympy expression."""
        from fmilin.codegen.expression_graph import Graph

        if self._graph is None or any(self._meanings.get(s, node) is not node for s, node in values.items()):
            self._graph, self._meanings = Graph(), {}
        for symbol, node in values.items():
            if symbol not in self._meanings:
                self._graph.define(symbol, node)
        self._meanings.update(values)
        return self._graph.node(expression)

    def rate(self, value: SX, rates: Sequence[tuple[SX, SX]]) -> SX:
        """Return the derivative along the rates of the variables."""
        if not rates:
            return ca.SX(0)
        variables, slopes = zip(*rates, strict=True)
        return ca.jtimes(value, ca.vertcat(*variables), ca.vertcat(*slopes))


class GraphFunctions:
    """The functions of s and the constants behind it, which make one column of symbols."""

    def __init__(
        self, expressions: Sequence[Expression], positions: Mapping[str, int], constants: Sequence[str], size: int
    ) -> None:
        self._size = size
        self.symbols: SX = ca.SX.sym("s", size + len(constants))
        scalars = ca.vertsplit(self.symbols)
        indices = {**positions, **{name: size + i for i, name in enumerate(constants)}}
        nodes = {name: scalars[i] for name, i in indices.items()}
        self.g: SX = ca.densify(ca.vertcat(ca.SX(0, 1), *(e.built(InGraph(), nodes) for e in expressions)))

    def node(self, *columns: Any) -> Any:
        """Return g as a node of the graph of s and constants that are nodes of CasADi themselves, or numbers."""
        return ca.Function("g", [self.symbols], [self.g])(ca.vertcat(*columns))

    @cached_property
    def values(self) -> Evaluator:
        """G."""
        return self._function(self.g)

    @cached_property
    def slopes(self) -> SX:
        """dg/ds, sparse."""
        return ca.sparsify(ca.jacobian(self.g, self.symbols)[:, : self._size])

    @cached_property
    def jacobian(self) -> Evaluator:
        """dg/ds as a matrix."""
        return self._function(self.slopes)

    @cached_property
    def entries(self) -> Evaluator:
        """The entries of dg/ds that are not zero by structure, one column."""
        return self._function(ca.vertcat(*self.slopes.nonzeros()))

    @cached_property
    def curvature(self) -> Evaluator:
        """d/ds (dg/ds . d); takes d, too."""
        d = ca.SX.sym("d", self._size)
        along = ca.vertcat(d, ca.SX(self.symbols.numel() - self._size, 1))
        H = ca.jacobian(ca.jtimes(self.g, self.symbols, along), self.symbols)[:, : self._size]
        return self._function(ca.sparsify(H), d)

    def _function(self, result: SX, *further: SX) -> Evaluator:
        """Return a function in which infinities are NaN: a stored ``inf`` could come back as finite, ``1/inf``."""
        largest = float(np.finfo(np.float64).max)
        entries = ca.SX(result)
        for i, entry in enumerate(result.nonzeros()):
            if not (entry.is_constant() or entry.is_symbolic()):
                entries.nz[i] = ca.if_else(ca.fabs(entry) <= largest, entry, np.nan)
        s, constants = self.symbols[: self._size], self.symbols[self._size :]
        arguments = [s, constants] if constants.numel() else [s]
        return Evaluator([*arguments, *further], [entries], Backend("casadi"))
