"""Numbers as a person would write them: integers, simple fractions and roots, parameters by name."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import isfinite, sqrt

from fmilin.model.constraints.expressions import name_in_expression

__all__ = ["Numbers"]

AGREES = 1e-9
"""Relative difference at which a number is the simple one."""

MOST_DIGITS = 7
"""Of a decimal that somebody chose; what has more is written with all its digits."""

MOST_PARAMETERS = 60
"""Of more than these, products are not looked for: one of them fits by chance."""


class Numbers:
    """Writes numbers; a parameter whose value another parameter, an integer or a half has, too, is not guessed at.

    ``accuracy``: of the numbers, relative.
    """

    def __init__(self, parameters: Mapping[str, float], accuracy: float = AGREES) -> None:
        self._accuracy = max(accuracy, AGREES)
        usable = {n: abs(v) for n, v in parameters.items() if v and isfinite(v) and not self._simple(abs(v), 2)[0]}
        self._known: dict[str, float] = {}
        for name, value in usable.items():
            signed = name_in_expression(name)
            self._known[signed if parameters[name] > 0 else f"(-{signed})"] = value
        single = self._single = dict(self._known)
        for name, value in single.items():
            self._known[f"{name}^2"] = value * value
        if len(single) <= MOST_PARAMETERS:
            pairs = [(a, b) for a in single for b in single if a != b]
            self._known |= {f"{a}/{b}": single[a] / single[b] for a, b in pairs}
            self._known |= {f"{a}*{b}": single[a] * single[b] for a, b in pairs if a < b}

    def cost(self, value: float) -> float:
        """Return how hard a number is to read: 0 for 1, more for others, most for a row of digits."""
        text = self.magnitude(abs(value))[0] if value else "1"
        if text == "1":
            return 0.0
        if text.isdigit():
            return 1.0 + 0.1 * len(text)
        if text in self._single:
            return 0.5
        if any(c.isalpha() for c in text):
            return 2.0 + 0.1 * len(text)
        return 2.5 + 0.1 * len(text) if "/" in text else 0.5 + 0.5 * len(text)

    def value(self, value: float) -> float:
        """Return what the text of a number stands for."""
        return 0.0 if not value else self.magnitude(abs(value))[1] * (1 if value > 0 else -1)

    def product(self, value: float, term: str) -> str:
        """Return a number times a term, the term empty for 1."""
        text = self.magnitude(abs(value))[0]
        sign = "-" if value < 0 else ""
        if not term:
            return sign + text
        return f"{sign}{term}" if text == "1" else f"{sign}{text}*{term}"

    def magnitude(self, value: float) -> tuple[str, float]:
        """Return a positive number as text, and what that stands for."""
        simple = self._simple(value, 2)
        if simple[0]:
            return simple
        for factor, before in ((1, ""), (2, "2*"), (0.5, "0.5*"), (4, "4*"), (0.25, "0.25*")):
            fitting = [n for n, known in self._known.items() if self._agree(factor * known, value)]
            alone = [n for n in fitting if not set("*/^") & set(n)] or fitting
            if len(alone) == 1:
                return f"{before}{alone[0]}", factor * self._known[alone[0]]
        for found in (self._simple(value, 12), self._root(value)):
            if found[0]:
                return found
        return self._decimal(value)

    def _agree(self, a: float, b: float) -> bool:
        return abs(a - b) <= self._accuracy * b

    def _simple(self, value: float, denominators: int) -> tuple[str, float]:
        """Return an integer or a short fraction; no text for others."""
        if not 1e-6 < value < 1e9:
            return "", value
        fraction = Fraction(value).limit_denominator(denominators if value < 100 else 1)
        if not self._agree(float(fraction), value) or (fraction.numerator > 1000 and fraction.denominator > 1):
            return "", value
        exact = fraction.denominator in (2, 4, 5, 8, 10)
        number = float(fraction)
        return str(fraction) if fraction.denominator == 1 or not exact else f"{number:g}", number

    def _root(self, value: float) -> tuple[str, float]:
        for under in (2, 3, 5, 6, 7):
            text, number = self._simple(value / sqrt(under), 4)
            if text:
                return f"sqrt({under})" if text == "1" else f"{text}*sqrt({under})", number * sqrt(under)
        return "", value

    def _decimal(self, value: float) -> tuple[str, float]:
        """Return the shortest decimal that agrees."""
        for digits in range(1, 16):
            text = f"{value:.{digits}g}"
            if (digits <= MOST_DIGITS or self._accuracy > AGREES) and self._agree(float(text), value):
                return text, float(text)
        text = repr(float(f"{value:.15g}"))
        return text, float(text)
