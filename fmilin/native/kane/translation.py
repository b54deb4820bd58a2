"""From the functions of time of ``sympy.physics.mechanics`` to plain symbols, each subexpression once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import sympy
from sympy.core.function import AppliedUndef

from fmilin.native.declaration import TIME, der
from fmilin.native.kane.linear import SymbolsIn

__all__ = ["Translation"]

Expr = Any  # sympy.Expr: sympy ships no types
Symbol = Any  # sympy.Symbol


class Translation:
    """Rewrites expressions; shared subexpressions stay shared, so that large equations take a moment only.

    ``f(t)`` becomes the symbol ``f``, its derivatives ``der(f)`` and ``der(der(f))``, other symbols their real
    twins of the same name, time the symbol ``time``; floats keep all digits of a double.

    time: as it is called in the expressions.
    meanings: what certain functions, symbols or derivatives become instead; a callable is asked when it is needed and
        returns an expression that is translated in turn.
    dynamic: functions of time and their derivatives that were met and had no meaning, in the order of meeting.
    constants: other symbols that were met and had no meaning.
    symbols_in: the symbols in translated expressions.
    """

    def __init__(self, time: Symbol, meanings: Mapping[Expr, Expr | Callable[[], Expr]]) -> None:
        self._time = time
        self._meanings = dict(meanings)
        self._known: dict[Expr, Expr] = {}
        self.dynamic: dict[str, Symbol] = {}
        self.constants: dict[str, Symbol] = {}
        self.problems: list[str] = []
        self.symbols_in = SymbolsIn()

    def __call__(self, expression: Expr) -> Expr:
        """Return ``expression`` in plain symbols."""
        found = self._known.get(expression)
        if found is None:
            found = self._known[expression] = self._translated(expression)
        return found

    def _translated(self, e: Expr) -> Expr:
        if e in self._meanings:
            meaning = self._meanings[e]
            return self(meaning()) if callable(meaning) and not isinstance(meaning, sympy.Basic) else meaning
        if e == self._time:
            return sympy.Symbol(TIME, real=True)
        if e.is_Symbol:
            return self.constants.setdefault(str(e), sympy.Symbol(str(e), real=True))
        if isinstance(e, sympy.Float):
            return sympy.Float(float(e), 17)
        if isinstance(e, AppliedUndef) and e.args == (self._time,):
            return self._dynamic(str(e.func))
        if isinstance(e, sympy.Derivative):
            return self._derivative(e)
        if isinstance(e, AppliedUndef | sympy.Integral | sympy.Subs):
            self.problems.append(f"'{e}' is no function of time and no elementary function")
            return sympy.S.Zero
        if not e.args:
            return e
        arguments = [self(a) for a in e.args]
        return e if all(new is old for new, old in zip(arguments, e.args, strict=True)) else e.func(*arguments)

    def _derivative(self, e: Expr) -> Expr:
        base, order = e.expr, _order_in(e, self._time)
        if isinstance(base, AppliedUndef) and base.args == (self._time,) and order:
            name = str(base.func)
            for _ in range(order):
                name = str(der(name))
            return self._dynamic(name)
        done = e.doit()
        if done != e and not isinstance(done, sympy.Derivative):
            return self(done)
        self.problems.append(f"'{e}' is a derivative that sympy cannot carry out")
        return sympy.S.Zero

    def _dynamic(self, name: str) -> Symbol:
        return self.dynamic.setdefault(name, sympy.Symbol(name, real=True))


def _order_in(derivative: Expr, time: Symbol) -> int:
    """Return how often the derivative is with respect to time, 0 when it is with respect to something else, too."""
    counts = dict(derivative.variable_count)
    return int(counts[time]) if set(counts) == {time} else 0
