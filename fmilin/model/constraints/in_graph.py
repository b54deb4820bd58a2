"""Expressions as nodes of a CasADi graph: what is evaluated and differentiated."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import casadi as ca

if TYPE_CHECKING:
    from fmilin.numerics.codegen.graph import Graph

SX = Any  # casadi.SX: casadi ships no types


def _least(a: SX, b: SX) -> SX:
    """Return the lesser one; where both are equal, its slope is the mean of theirs. NaN where one of them is NaN."""
    return ca.if_else(a < b, a, ca.if_else(b < a, b, (a + b) / 2))


def _least_of(parts: Sequence[SX]) -> SX:
    """Return the least of them by halves: a chain of a thousand takes seconds to differentiate."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return _least(_least_of(parts[:half]), _least_of(parts[half:]))


_OPERATIONS: Mapping[str, Callable[..., SX]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "^": operator.pow,
    "negative": operator.neg, "pi": lambda: ca.SX(math.pi), "abs": ca.fabs,
    "min": lambda *parts: _least_of(parts), "max": lambda *parts: -_least_of([-part for part in parts]),
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
        from fmilin.numerics.codegen.graph import Graph

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
