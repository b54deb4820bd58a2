"""Numbers that write down what is done with them: numerical code becomes statements that code can be made from.

NumPy computes with them in arrays of objects. A number is a sum of symbols with factors; it becomes a symbol of its own
with a statement only when it is multiplied, divided or put into a function. Constants never leave a statement, zeros
disappear, and equal statements are one, so that the sparsity of the numerical code is that of the result.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import sympy

__all__ = ["Number", "Recorder"]

Symbol = Any  # sympy.Symbol: sympy ships no types
Expr = Any  # sympy.Expr

LONGEST = 12
"""Sums of more terms become a symbol before more is added, so that a chain of sums is not written out anew."""


class Recorder:
    """The statements so far.

    Attributes
    ----------
    statements : list of (Symbol, Expr)
        Each over plain symbols and the symbols of earlier statements.
    """

    def __init__(self) -> None:
        self.statements: list[tuple[Symbol, Expr]] = []
        self._known: dict[Any, Symbol] = {}

    def numbers(self, symbols: Sequence[Symbol]) -> Any:
        """Return symbols as an array of numbers, shape (len(symbols),)."""
        return _objects([Number(self, 0.0, {symbol: 1.0}) for symbol in symbols], (len(symbols),))

    def expressions(self, array: Any) -> Any:
        """Return an array of numbers and floats as expressions, each a symbol or a constant; same shape."""
        flat = [expression_of(x) for x in np.asarray(array, dtype=object).ravel()]
        return _objects(flat, np.shape(array))

    def needed_by(self, expressions: Iterable[Expr]) -> tuple[tuple[Symbol, Expr], ...]:
        """Return the statements that expressions need, in their order."""
        needed = set().union(*(e.free_symbols for e in expressions))
        found = []
        for symbol, operation in reversed(self.statements):
            if symbol in needed:
                needed |= operation.free_symbols
                found.append((symbol, operation))
        return tuple(reversed(found))

    def stated(self, key: Any, operation: Expr) -> Symbol:
        """Return the symbol of an operation, which ``key`` identifies; a new one where there is none."""
        symbol = self._known.get(key)
        if symbol is None:
            symbol = self._known[key] = sympy.Symbol(f"[{len(self.statements)}]")  # not real: no state is called so
            self.statements.append((symbol, operation))
        return symbol


class Number:
    """A constant and symbols with factors.

    Parameters
    ----------
    recorder : Recorder
    constant : float
    terms : dict of Symbol to float
    """

    __slots__ = ("constant", "recorder", "terms")

    def __init__(self, recorder: Recorder, constant: float, terms: dict[Symbol, float]) -> None:
        self.recorder, self.constant, self.terms = recorder, constant, terms

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Number):
            return self._plus(other)
        if not _is_plain(other):
            return NotImplemented
        return Number(self.recorder, self.constant + float(other), self.terms) if other else self

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + -other if isinstance(other, Number) or _is_plain(other) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return -self + other if _is_plain(other) else NotImplemented

    def __neg__(self) -> Number:
        return self._times(-1.0)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Number):
            return self._by(other)
        if not _is_plain(other):
            return NotImplemented
        return self._times(float(other)) if other else 0.0

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, Number):
            return self._by(other.reciprocal())
        return Number(self.recorder, self.constant / float(other), {s: f / float(other) for s, f in self.terms.items()})

    def __rtruediv__(self, other: Any) -> Any:
        return self.reciprocal() * other if _is_plain(other) else NotImplemented

    def __pow__(self, power: int) -> Any:
        result: Any = 1.0
        for _ in range(int(power)):
            result = self * result
        return result

    def reciprocal(self) -> Number:
        """Return 1 / x."""
        factor, symbol = self.factored()
        return self._new(1 / factor, ("/", symbol), sympy.Pow(symbol, -1))

    def sin(self) -> Number:
        """Return sin x; NumPy's name for it, as those of the next two."""
        factor, symbol = self.factored()
        return self._new(factor, ("sin", symbol), sympy.sin(symbol))

    def cos(self) -> Number:
        """Return cos x."""
        _, symbol = self.factored()
        return self._new(1.0, ("cos", symbol), sympy.cos(symbol))

    def sqrt(self) -> Number:
        """Return the square root."""
        symbol = self._stated()
        return self._new(1.0, ("sqrt", symbol), sympy.sqrt(symbol))

    def factored(self) -> tuple[float, Symbol]:
        """Return a sign, or the factor of a single symbol for products, and a symbol, whose product the number is."""
        if len(self.terms) == 1 and not self.constant:
            symbol, factor = next(iter(self.terms.items()))
            if abs(factor) == 1.0:
                return factor, symbol
        first = min(self.terms, key=lambda symbol: symbol.name)  # so that x - y and y - x are one statement
        sign = -1.0 if self.terms[first] < 0 else 1.0
        return sign, (self if sign > 0 else -self)._stated()

    def _stated(self) -> Symbol:
        if len(self.terms) == 1 and not self.constant and next(iter(self.terms.values())) == 1.0:
            return next(iter(self.terms))
        key = ("+", self.constant, frozenset(self.terms.items()))
        return self.recorder.stated(key, expression_of(self, whole=True))

    def _plus(self, other: Number) -> Any:
        one, two = (x if len(x.terms) <= LONGEST else x._short() for x in (self, other))
        terms = dict(one.terms)
        for symbol, factor in two.terms.items():
            total = terms.pop(symbol, 0.0) + factor
            if total:
                terms[symbol] = total
        constant = one.constant + two.constant
        return Number(self.recorder, constant, terms) if terms else constant

    def _short(self) -> Number:
        factor, symbol = self.factored()
        return Number(self.recorder, 0.0, {symbol: factor})

    def _times(self, factor: float) -> Number:
        return Number(self.recorder, self.constant * factor, {s: f * factor for s, f in self.terms.items()})

    def _by(self, other: Number) -> Number:
        (f, a), (g, b) = self._as_factor(), other._as_factor()
        if str(b) < str(a):
            a, b = b, a
        return self._new(f * g, ("*", a, b), sympy.Mul(a, b))

    def _as_factor(self) -> tuple[float, Symbol]:
        if len(self.terms) == 1 and not self.constant:
            symbol, factor = next(iter(self.terms.items()))
            return factor, symbol
        return self.factored()

    def _new(self, factor: float, key: Any, operation: Expr) -> Number:
        return Number(self.recorder, 0.0, {self.recorder.stated(key, operation): factor})


def expression_of(x: Any, *, whole: bool = False) -> Expr:
    """Return a number as a sum of symbols if ``whole`` or short, else as one symbol; a float as it is."""
    if not isinstance(x, Number):
        return _exact(float(x))
    if not whole and len(x.terms) > 1:
        factor, symbol = x.factored()
        return symbol if factor > 0 else -symbol
    terms = [symbol if factor == 1.0 else _exact(factor) * symbol for symbol, factor in x.terms.items()]
    return sympy.Add(*terms, _exact(x.constant))


def _exact(value: float) -> Expr:
    return sympy.Integer(int(value)) if value.is_integer() and abs(value) < 2**31 else sympy.Float(value, 17)


def _is_plain(x: Any) -> bool:
    return isinstance(x, numbers.Real | np.bool_)


def _objects(flat: Sequence[Any], shape: tuple[int, ...]) -> Any:
    array = np.empty(len(flat), dtype=object)
    array[:] = flat
    return array.reshape(shape)
