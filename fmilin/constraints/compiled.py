"""Values and exact derivatives of user-written expressions, compiled once by sympy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fmilin.constraints.expressions import Expression
from fmilin.signals import FloatArray

__all__ = ["CompiledExpressions"]


class CompiledExpressions:
    """Expressions g(s) over named scalars s, with first derivatives and one contraction of the second.

    Parameters
    ----------
    expressions : sequence of Expression
        m of them.
    names : sequence of str
        The scalars, n of them, in the order in which values are given; every variable of every expression
        must be among them.
    """

    def __init__(self, expressions: Sequence[Expression], names: Sequence[str]) -> None:
        self.shape = (len(expressions), len(names))
        self._expressions = tuple(expressions)
        self._names = tuple(names)
        self._cache: dict[str, tuple[Callable[..., list[float]], list[tuple[int, int]]]] = {}

    def values(self, s: Sequence[float]) -> FloatArray:
        """Return g, shape (m,). NaN where a function is outside its domain."""
        function, _ = self._compiled("values")
        return np.array(_call(function, s, self.shape[0]), dtype=np.float64)

    def jacobian(self, s: Sequence[float]) -> FloatArray:
        """Return dg/ds, shape (m, n)."""
        function, places = self._compiled("jacobian")
        return self._filled(_call(function, s, len(places)), places)

    def curvature(self, s: Sequence[float], direction: FloatArray) -> FloatArray:
        """Return d/ds (dg/ds . direction), shape (m, n): the second derivative contracted with ``direction``, (n,)."""
        function, places = self._compiled("curvature")
        return self._filled(_call(function, s, len(places), direction), places)

    def depends_on(self, name: str) -> bool:
        """Whether any of the expressions contains the variable ``name``."""
        return any(name in e.names for e in self._expressions)

    def _filled(self, entries: list[float], places: list[tuple[int, int]]) -> FloatArray:
        matrix = np.zeros(self.shape)
        if places:
            rows, columns = zip(*places, strict=True)
            matrix[rows, columns] = entries
        return matrix

    def _compiled(self, what: str) -> tuple[Callable[..., list[float]], list[tuple[int, int]]]:
        if what not in self._cache:
            self._cache[what] = self._compile(what)
        return self._cache[what]

    def _compile(self, what: str) -> tuple[Callable[..., list[float]], list[tuple[int, int]]]:
        import sympy

        symbols = {n: sympy.Symbol(f"s_{i}", real=True) for i, n in enumerate(self._names)}
        direction = [sympy.Symbol(f"d_{i}", real=True) for i in range(len(symbols))]
        column = {n: i for i, n in enumerate(self._names)}
        entries: list[Any] = []
        places: list[tuple[int, int]] = []
        for row, expression in enumerate(self._expressions):
            g = expression.to_sympy(symbols)
            if what == "values":
                entries.append(g)
                continue
            if what == "curvature":
                g = sum(sympy.diff(g, symbols[n]) * direction[column[n]] for n in expression.names)
            for name in expression.names:
                entry = sympy.diff(g, symbols[name])
                if entry != 0:
                    entries.append(entry)
                    places.append((row, column[name]))
        function = sympy.lambdify(
            [list(symbols.values()), direction], entries, modules=[_STEPS, "math"], cse=True, docstring_limit=0
        )
        return function, places


_STEPS: dict[str, Callable[..., float]] = {
    # Derivatives of abs, min and max away from the kink; at the kink the mean of both sides.
    "sign": lambda x: float((x > 0) - (x < 0)),
    "Heaviside": lambda x, at_zero=0.5: 1.0 if x > 0 else (0.0 if x < 0 else float(at_zero)),
    "DiracDelta": lambda *_: 0.0,
}


def _call(
    function: Callable[..., list[float]], s: Sequence[float], size: int, direction: FloatArray | None = None
) -> list[float]:
    try:
        return function(list(s), [0.0] * len(s) if direction is None else direction.tolist())
    except (ValueError, ZeroDivisionError, OverflowError):
        return [float("nan")] * size
