"""Constraints that say nothing: ``x - x``, ``0*x``, ``sin(x)^2 + cos(x)^2 - 1`` vanish wherever the states are.

What is left of terms that cancel is rounding, and small in comparison. So an expression is computed together with the
size of the terms that it sums, at a few points at random: one that is rounding at all of them is zero.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from fmilin.ground.tolerances import CANCELLED
from fmilin.model.constraints.expressions import Expression


class _Sized(NamedTuple):
    """A number and the size of the terms that it was summed from."""

    value: float
    size: float


class _Sizes:
    """Floating-point numbers that remember what they were summed from."""

    def number(self, value: float) -> _Sized:
        return _Sized(float(value), abs(float(value)))

    def operation(self, name: str, operands: Sequence[_Sized]) -> _Sized:
        values, sizes = [o.value for o in operands], [o.size for o in operands]
        try:
            value = float(_OPERATIONS[name](*values) if name in _OPERATIONS else getattr(math, name)(*values))
            size = _size(name, value, values, sizes)
        except OverflowError:  # exp(1000)
            return _Sized(math.inf, math.inf)
        except (ArithmeticError, ValueError, TypeError):  # 1/0, sqrt(-1), (-1)^0.5
            return _Sized(math.nan, math.nan)
        return _Sized(value, size)

    def sympy(self, expression: Any, values: Mapping[Any, _Sized]) -> _Sized:
        terms = expression.as_ordered_terms() if expression.is_Add else [expression]
        numbers = {symbol: number.value for symbol, number in values.items()}
        try:
            parts = [float(term.evalf(subs=numbers)) for term in terms]
        except (ArithmeticError, TypeError, ValueError):
            return _Sized(math.nan, math.nan)
        return _Sized(math.fsum(parts), math.fsum(map(abs, parts)))

    def rate(self, value: _Sized, rates: Sequence[tuple[_Sized, _Sized]]) -> _Sized:
        return _Sized(math.nan, math.nan)  # the derivative of an expression that is tested itself


_OPERATIONS: Mapping[str, Callable[..., float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "^": math.pow,
    "negative": operator.neg, "pi": lambda: math.pi, "abs": abs, "min": min, "max": max,
}  # fmt: skip


def _size(name: str, value: float, values: Sequence[float], sizes: Sequence[float]) -> float:
    match name:
        case "*":
            return sizes[0] * sizes[1]
        case "/":
            return sizes[0] / abs(values[1]) * (sizes[1] / abs(values[1]))
        case _:
            return abs(value) + sum(sizes)


def vanishes(expression: Expression, points: Sequence[Mapping[str, float]]) -> bool:
    """Return whether an expression is zero up to rounding at all random points where it is defined, two at least."""
    numbers = [expression.built(_Sizes(), {n: _Sized(v, abs(v)) for n, v in point.items()}) for point in points]
    defined = [x for x in numbers if not (math.isnan(x.value) or math.isnan(x.size))]
    return len(defined) > 1 and all(abs(x.value) <= CANCELLED * x.size < math.inf for x in defined)
