"""From sympy to CasADi (Andersson et al., Mathematical Programming Computation 11, 2019), each part once."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

import casadi as ca
import numpy as np
import sympy
from sympy.core.function import AppliedUndef
from sympy.logic.boolalg import And, BooleanAtom, Not, Or, Xor

from fmilin.codegen.implicit import over, plus, sparse, times
from fmilin.errors import ModelError

Symbol = Any  # sympy.Symbol: sympy ships no types
Expr = Any  # sympy.Expr
SX = Any  # casadi.SX: neither does casadi

_FUNCTIONS: Mapping[Any, Callable[..., SX]] = {
    sympy.sin: ca.sin, sympy.cos: ca.cos, sympy.tan: ca.tan,
    sympy.asin: ca.asin, sympy.acos: ca.acos, sympy.atan: ca.atan, sympy.atan2: ca.atan2,
    sympy.sinh: ca.sinh, sympy.cosh: ca.cosh, sympy.tanh: ca.tanh,
    sympy.asinh: ca.asinh, sympy.acosh: ca.acosh, sympy.atanh: ca.atanh,
    sympy.cot: lambda x: ca.cos(x) / ca.sin(x), sympy.sec: lambda x: 1 / ca.cos(x), sympy.csc: lambda x: 1 / ca.sin(x),
    sympy.acot: lambda x: ca.atan(1 / x), sympy.asec: lambda x: ca.acos(1 / x), sympy.acsc: lambda x: ca.asin(1 / x),
    sympy.coth: lambda x: 1 / ca.tanh(x), sympy.sech: lambda x: 1 / ca.cosh(x), sympy.csch: lambda x: 1 / ca.sinh(x),
    sympy.acoth: lambda x: ca.atanh(1 / x), sympy.asech: lambda x: ca.acosh(1 / x),
    sympy.acsch: lambda x: ca.asinh(1 / x), sympy.sinc: lambda x: ca.if_else(x == 0, 1, ca.sin(x) / x),
    sympy.exp: ca.exp, sympy.log: ca.log, sympy.Abs: ca.fabs, sympy.sign: ca.sign,
    sympy.erf: ca.erf, sympy.erfc: lambda x: 1 - ca.erf(x),
    sympy.floor: ca.floor, sympy.ceiling: ca.ceil, sympy.frac: lambda x: x - ca.floor(x),
    sympy.Min: lambda *parts: reduce(lambda a, b: ca.if_else(a < b, a, b), parts),
    sympy.Max: lambda *parts: reduce(lambda a, b: ca.if_else(a > b, a, b), parts),
    sympy.Mod: lambda a, b: a - b * ca.floor(a / b),
    sympy.Heaviside: lambda x, at_zero: ca.if_else(x > 0, 1, ca.if_else(x < 0, 0, at_zero)),
    sympy.DiracDelta: lambda *_: ca.SX(0),
}  # fmt: skip

_CONDITIONS: Mapping[Any, Callable[..., SX]] = {
    sympy.Lt: lambda a, b: a < b, sympy.Le: lambda a, b: a <= b,
    sympy.Gt: lambda a, b: a > b, sympy.Ge: lambda a, b: a >= b,
    sympy.Eq: lambda a, b: a == b, sympy.Ne: lambda a, b: a != b,
    And: lambda *parts: reduce(ca.logic_and, parts), Or: lambda *parts: reduce(ca.logic_or, parts),
    Not: ca.logic_not, Xor: lambda *parts: reduce(lambda a, b: ca.if_else(a, ca.logic_not(b), b), parts),
}  # fmt: skip

MAX_PRODUCT_EXPONENT = 16  # whole powers up to this one are products: quicker than pow(), and exact for the small ones


class Graph:
    """Nodes of CasADi for the sympy expressions over some symbols."""

    def __init__(self) -> None:
        self._nodes: dict[Expr, SX] = {}

    def declare(self, symbols: Sequence[Symbol]) -> SX:
        """Let expressions contain ``symbols``; return them as a column of the graph, shape (len(symbols), 1)."""
        column = [ca.SX.sym(f"{s}") for s in symbols]
        self._nodes.update(zip(symbols, column, strict=True))
        return ca.vertcat(*column) if column else ca.SX(0, 1)

    def define(self, symbol: Symbol, expression: Expr | SX) -> None:
        """Let expressions contain ``symbol``, which stands for another expression or for a node."""
        self._nodes[symbol] = expression if isinstance(expression, ca.SX) else self.node(expression)

    def column(self, expressions: Iterable[Expr]) -> SX:
        """Return expressions as a dense column, shape (n, 1)."""
        nodes = [self.node(e) for e in expressions]
        return ca.densify(ca.vertcat(*nodes)) if nodes else ca.SX(0, 1)

    def matrix(self, entries: Mapping[tuple[int, int], Expr], shape: tuple[int, int]) -> SX:
        """Return a sparse matrix from its entries by row and column; zeros are left out."""
        return sparse({entry: self.node(e) for entry, e in entries.items() if e != 0}, shape)

    def node(self, expression: Expr) -> SX:
        """Return the node that holds the value of a sympy expression."""
        root = sympy.sympify(expression, strict=True)
        if not isinstance(root, sympy.Expr):
            raise _no_arithmetic(root)
        nodes, stack = self._nodes, [root]
        while stack:  # expressions may be deeper than Python lets functions call each other
            e = stack[-1]
            if e in nodes:
                stack.pop()
                continue
            missing = [a for a in self._parts(e) if a not in nodes]
            if missing:
                stack.extend(missing)
                continue
            nodes[e] = self._build_node(e)
            stack.pop()
        return nodes[root]

    def _parts(self, e: Expr) -> Sequence[Expr]:
        """Return what ``e`` is computed from."""
        if e.is_Symbol:
            raise ModelError(
                f"The symbol '{e}' appears in the equations but is neither time, a state, an input, an unknown "
                f"nor a parameter. Give it a value as a parameter."
            )
        if isinstance(e, BooleanAtom) or (e.is_number and not isinstance(e, sympy.Piecewise)):
            return ()
        if isinstance(e, sympy.Piecewise):
            return [part for branch in e.args for part in branch.args]
        if e.func in _CONDITIONS or e.is_Add or e.is_Mul or e.is_Pow or e.func in _FUNCTIONS:
            return e.args  # type: ignore[no-any-return]
        if isinstance(e, sympy.Function) and not isinstance(e, AppliedUndef):
            raise ModelError(
                f"There is no C code for the function '{e.func.__name__}', which appears in the equations. Write it "
                "with elementary functions."
            )
        raise _no_arithmetic(e)

    def _build_node(self, e: Expr) -> SX:
        """Return the node of ``e``; its parts have nodes."""
        if isinstance(e, BooleanAtom):
            return ca.SX(1 if e == sympy.true else 0)
        if isinstance(e, sympy.Piecewise):
            node = ca.SX(np.nan)  # where the author gave no value
            for value, condition in reversed(e.args):
                node = ca.if_else(self._nodes[condition], self._nodes[value], node)
            return node
        if e.is_number:
            return ca.SX(_to_number(e))
        parts = [self._nodes[a] for a in e.args]
        if e.is_Add:
            return reduce(plus, parts)
        if e.is_Mul:
            return self._product(e)
        if e.is_Pow:
            return _power(parts[0], e.args[1], parts[1])
        return (_CONDITIONS.get(e.func) or _FUNCTIONS[e.func])(*parts)

    def _product(self, e: Expr) -> SX:
        """Return a product; factors with negative powers are divided by."""
        above, below = [], []
        for factor in e.args:
            if factor.is_Pow and factor.exp == -1 and factor.base in self._nodes:
                below.append(self._nodes[factor.base])
            else:
                above.append(self._nodes[factor])
        product = reduce(times, above) if above else ca.SX(1)
        return over(product, reduce(times, below)) if below else product


def _power(base: SX, exponent: Expr, node: SX) -> SX:
    if exponent == sympy.S.Half:
        return ca.sqrt(base)
    if exponent == -sympy.S.Half:
        return 1 / ca.sqrt(base)
    if exponent.is_Integer and abs(int(exponent)) <= MAX_PRODUCT_EXPONENT:
        power = _whole_power(base, abs(int(exponent)))
        return power if exponent > 0 else over(ca.SX(1), power)
    return base**node


def _whole_power(base: SX, exponent: int) -> SX:
    if exponent == 1:
        return base
    half = _whole_power(base, exponent // 2)
    square = times(half, half)
    return times(square, base) if exponent % 2 else square


def _no_arithmetic(e: Any) -> ModelError:
    return ModelError(f"'{_short(e)}' is not arithmetic of plain symbols, so no code can be made from it.")


def _to_number(e: Expr) -> float:
    try:
        return float(e) if e.is_Rational else float(e.evalf(20))
    except (TypeError, ValueError, AttributeError, OverflowError):
        raise ModelError(f"'{_short(e)}' in the equations is not a real number.") from None


def _short(e: Any) -> str:
    text = str(e)
    return text if len(text) <= 80 else text[:77] + "..."
