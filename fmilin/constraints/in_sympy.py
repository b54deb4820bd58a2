"""Expressions in sympy: for what is written as text (Modelica, C, LaTeX) and for models declared in sympy."""

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import sympy


class InSympy:
    """Exact arithmetic; what has two numbers as operands and no real result is NaN."""

    def number(self, value: float) -> Any:
        """Return an exact integer, or a float of 17 digits."""
        return sympy.Integer(value) if isinstance(value, int) else sympy.Float(value, 17)

    def operation(self, name: str, operands: Sequence[Any]) -> Any:
        """Return the sympy expression of one operation."""
        if sympy.nan in operands:
            return sympy.nan
        result = (_OPERATIONS.get(name) or getattr(sympy, name))(*operands)
        return sympy.nan if result.is_number and not _is_finite(result) else result

    def sympy(self, expression: Any, values: Mapping[Any, Any]) -> Any:
        """Return the expression with its symbols replaced."""
        return expression.xreplace(dict(values))

    def rate(self, value: Any, rates: Sequence[tuple[Any, Any]]) -> Any:
        """Return the total derivative."""
        return sum((sympy.diff(value, x) * dx for x, dx in rates), sympy.S.Zero)


def _is_finite(number: Any) -> bool:
    try:
        return math.isfinite(float(number))
    except (TypeError, ValueError, OverflowError):  # imaginary, undefined, or too large even to be written down
        return False


def _power(base: Any, exponent: Any) -> Any:
    """Return ``base ** exponent``; two numbers make a double, so that ``9^9^9^9`` cannot exhaust the memory."""
    if not (base.is_number and exponent.is_number):
        return sympy.Pow(base, exponent)
    try:
        return sympy.Float(float(base) ** float(exponent), 17)
    except (OverflowError, ZeroDivisionError, TypeError):
        return sympy.nan


_OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "^": _power,
    "negative": operator.neg, "pi": lambda: sympy.pi, "abs": sympy.Abs,
    "min": partial(sympy.Min, evaluate=False), "max": partial(sympy.Max, evaluate=False),  # nothing is compared
}  # fmt: skip
