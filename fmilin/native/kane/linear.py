"""Which symbols an expression contains, and its linear terms: subexpressions are looked at once, none is expanded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy

from fmilin.native.kane.form import Row

__all__ = ["SymbolsIn", "linear_row"]

Symbol = Any  # sympy.Symbol: sympy ships no types
Expr = Any  # sympy.Expr


class SymbolsIn:
    """The symbols in expressions; what large expressions share is remembered."""

    def __init__(self) -> None:
        self._known: dict[Expr, frozenset[Symbol]] = {}

    def __call__(self, expression: Expr) -> frozenset[Symbol]:
        """Return the symbols in ``expression``."""
        if expression.is_Symbol:
            return frozenset((expression,))
        found = self._known.get(expression)
        if found is None:
            found = self._known[expression] = frozenset().union(*map(self, expression.args))
        return found


def linear_row(
    name: str, expression: Expr, symbols: Sequence[Symbol], inside: SymbolsIn | None = None
) -> tuple[Row, tuple[Symbol, ...]]:
    """Take an expression apart into coefficients of ``symbols`` and the rest.

    ``inside``: what is known from other expressions. Returns also those of ``symbols`` in which the expression is not
    linear; the row means nothing if there are any.
    """
    inside = inside or SymbolsIn()
    if not inside(expression).intersection(symbols):
        return Row(name, {}, expression), ()
    terms = _Terms(symbols, inside)
    row = terms.row(name, expression)
    if terms.nonlinear:  # maybe only in form: (w + 1)^2 - w^2
        terms = _Terms(symbols, inside)
        row = terms.row(name, sympy.expand(expression))
    return row, tuple(w for w in symbols if w in terms.nonlinear)


class _Terms:
    """Linear terms of expressions: a coefficient for each symbol, and the rest."""

    def __init__(self, symbols: Sequence[Symbol], inside: SymbolsIn) -> None:
        self._symbols, self._inside = tuple(symbols), inside
        self._wanted = frozenset(symbols)
        self._known: dict[Expr, tuple[dict[Symbol, Expr], Expr]] = {}
        self.nonlinear: set[Symbol] = set()
        """Symbols that were met in something else than a sum or a product with what is free of them."""

    def row(self, name: str, expression: Expr) -> Row:
        """Return the row ``expression = 0``."""
        coefficients, rest = self._of(expression)
        return Row(name, {w: coefficients[w] for w in self._symbols if coefficients.get(w, 0) != 0}, rest)

    def _of(self, e: Expr) -> tuple[dict[Symbol, Expr], Expr]:
        found = self._known.get(e)
        if found is None:
            found = self._known[e] = self._separated(e)
        return found

    def _separated(self, e: Expr) -> tuple[dict[Symbol, Expr], Expr]:
        present = self._inside(e) & self._wanted
        if not present:
            return {}, e
        if e.is_Symbol:
            return {e: sympy.S.One}, sympy.S.Zero
        if e.is_Add:
            parts = [self._of(term) for term in e.args]
            slopes = {w: sympy.Add(*(c[w] for c, _ in parts if w in c)) for w in present}
            return slopes, sympy.Add(*(rest for _, rest in parts))
        moving = [factor for factor in e.args if self._inside(factor) & self._wanted]
        if e.is_Mul and len(moving) == 1:
            others = sympy.Mul(*(factor for factor in e.args if factor is not moving[0]))
            slopes, rest = self._of(moving[0])
            return {w: others * c for w, c in slopes.items()}, others * rest
        self.nonlinear |= present
        return {}, sympy.S.Zero
