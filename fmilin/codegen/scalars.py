"""Nodes of a graph that NumPy takes for numbers: numerical code runs on them, and what is zero stays a plain zero."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from fmilin.codegen.implicit import minus, over, plus, sparse, times

SX = Any  # casadi.SX: casadi ships no types


class Scalar:
    """A number to come: a node."""

    __slots__ = ("node",)

    def __init__(self, node: SX) -> None:
        self.node = node

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Scalar):
            return _simplify(plus(self.node, other.node))
        if not _is_plain(other):
            return NotImplemented
        return Scalar(plus(self.node, ca.SX(float(other)))) if other else self

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, Scalar):
            return _simplify(minus(self.node, other.node))
        return self + -other if _is_plain(other) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return -self + other if _is_plain(other) else NotImplemented

    def __neg__(self) -> Scalar:
        return Scalar(-self.node)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Scalar):
            return Scalar(times(self.node, other.node))
        if not _is_plain(other):
            return NotImplemented
        return Scalar(times(self.node, ca.SX(float(other)))) if other else 0.0

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, Scalar):
            return _simplify(over(self.node, other.node))
        return Scalar(over(self.node, ca.SX(float(other)))) if _is_plain(other) else NotImplemented

    def __rtruediv__(self, other: Any) -> Any:
        if not _is_plain(other):
            return NotImplemented
        return Scalar(over(ca.SX(float(other)), self.node)) if other else 0.0

    def __pow__(self, power: int) -> Any:
        result: Any = 1.0
        for _ in range(int(power)):
            result = self * result
        return result

    def sin(self) -> Scalar:
        """Return sin x; NumPy's name for it, as those of the next two."""
        return Scalar(ca.sin(self.node))

    def cos(self) -> Scalar:
        """Return cos x."""
        return Scalar(ca.cos(self.node))

    def clip_symbolically(self, low: float, high: float) -> tuple[Any, Any]:
        """Return x within two limits, and 1 where it is inside of them, 0 beyond; limits may be infinite."""
        value, inside = self.node, ca.SX(1)
        if low == high:
            return low, 0.0
        if np.isfinite(low):
            value, inside = ca.fmax(value, low), ca.if_else(self.node < low, 0, inside)
        if np.isfinite(high):
            value, inside = ca.fmin(value, high), ca.if_else(self.node > high, 0, inside)
        return Scalar(value), _simplify(inside)

    def sqrt(self) -> Scalar:
        """Return the square root."""
        return Scalar(ca.sqrt(self.node))


def scalars(column: SX) -> Any:
    """Return the entries of a column of symbols as an array of numbers, shape (n,)."""
    array = np.empty(column.numel(), dtype=object)
    array[:] = [Scalar(node) for node in column.elements()]
    return array


def to_column(array: Any) -> SX:
    """Return an array of numbers, shape (n,), as a dense column."""
    nodes = [_node(x) for x in array]
    return ca.densify(ca.vertcat(*nodes)) if nodes else ca.SX(0, 1)


def to_matrix(array: Any) -> SX:
    """Return an array of numbers, shape (m, n), as a matrix without its zeros."""
    entries = ((i, j, x) for i, row in enumerate(array) for j, x in enumerate(row))
    return sparse({(i, j): _node(x) for i, j, x in entries if isinstance(x, Scalar) or x}, np.shape(array))


def _simplify(node: SX) -> Any:
    return float(node) if node.is_constant() else Scalar(node)


def _node(x: Any) -> SX:
    return x.node if isinstance(x, Scalar) else ca.SX(float(x))


def _is_plain(x: Any) -> bool:
    return isinstance(x, (float, int, np.number, np.bool_))
