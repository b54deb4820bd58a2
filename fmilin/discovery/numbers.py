"""Numbers as a person would write them: integers, simple fractions and roots, parameters by name."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import isfinite, sqrt

from fmilin.constraints.expressions import name_in_expression

__all__ = ["Numbers"]

AGREES = 1e-9
"""Relative difference at which a number is the simple one."""

MOST_PARAMETERS = 60
"""Of more than these, products are not looked for: one of them fits by chance."""


class Numbers:
    """Writes numbers; a parameter whose value another parameter, an integer or a half has, too, is not guessed at.

    Parameters
    ----------
    parameters : mapping of str to float
    """

    def __init__(self, parameters: Mapping[str, float]) -> None:
        usable = {n: abs(v) for n, v in parameters.items() if v and isfinite(v) and not _simple(abs(v), 2)}
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
        text = self.magnitude(abs(value)) if value else "1"
        if text == "1":
            return 0.0
        if text.isdigit():
            return 1.0 + 0.1 * len(text)
        if text in self._single:
            return 0.5
        if any(c.isalpha() for c in text):
            return 2.0 + 0.1 * len(text)
        return 2.5 + 0.1 * len(text) if "/" in text else 0.5 + 0.5 * len(text)

    def magnitude(self, value: float) -> str:
        """Return a positive number as text."""
        if simple := _simple(value, 2):
            return simple
        for factor, before in ((1, ""), (2, "2*"), (0.5, "0.5*"), (4, "4*"), (0.25, "0.25*")):
            fitting = [n for n, known in self._known.items() if abs(value - factor * known) <= AGREES * value]
            alone = [n for n in fitting if not set("*/^") & set(n)] or fitting
            if len(alone) == 1:
                return f"{before}{alone[0]}"
        return _simple(value, 12) or _root(value) or _decimal(value)

    def product(self, value: float, term: str) -> str:
        """Return a number times a term, the term empty for 1."""
        text = self.magnitude(abs(value))
        sign = "-" if value < 0 else ""
        if not term:
            return sign + text
        return f"{sign}{term}" if text == "1" else f"{sign}{text}*{term}"


def _simple(value: float, denominators: int) -> str:
    """Return an integer or a short fraction; empty for others."""
    if not 1e-6 < value < 1e9:
        return ""
    fraction = Fraction(value).limit_denominator(denominators if value < 100 else 1)
    if abs(value - fraction) > AGREES * value or (fraction.numerator > 1000 and fraction.denominator > 1):
        return ""
    exact = fraction.denominator in (2, 4, 5, 8, 10)
    return str(fraction) if fraction.denominator == 1 else f"{float(fraction):g}" if exact else f"{fraction}"


def _root(value: float) -> str:
    for under in (2, 3, 5, 6, 7):
        if simple := _simple(value / sqrt(under), 4):
            return f"sqrt({under})" if simple == "1" else f"{simple}*sqrt({under})"
    return ""


def _decimal(value: float) -> str:
    for digits in range(1, 8):
        short = float(f"{value:.{digits}g}")
        if abs(short - value) <= AGREES * value:
            return f"{short:.{digits}g}"
    return repr(float(f"{value:.15g}"))
