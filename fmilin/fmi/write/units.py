"""Units in the words of the standard: exponents of the SI base units, and a factor."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

BASE_UNITS = ("kg", "m", "s", "A", "K", "mol", "cd", "rad")  # in the order of the standard's schema


@dataclass(frozen=True, slots=True)
class BaseUnit:
    """``factor`` times a product of powers of the base units."""

    exponents: tuple[int, ...]  # in the order of :data:`BASE_UNITS`
    factor: float = 1.0

    @property
    def attributes(self) -> dict[str, str]:
        """What the element ``BaseUnit`` says of it, in FMI and SSP."""
        powers = {b: str(e) for b, e in zip(BASE_UNITS, self.exponents, strict=True) if e}
        return powers | ({"factor": repr(self.factor)} if self.factor != 1.0 else {})

    def times(self, other: BaseUnit, power: int) -> BaseUnit:
        """Return ``self * other**power``."""
        exponents = tuple(a + power * b for a, b in zip(self.exponents, other.exponents, strict=True))
        return BaseUnit(exponents, self.factor * other.factor**power)


def _unit(factor: float = 1.0, **exponents: int) -> BaseUnit:
    return BaseUnit(tuple(exponents.get(name, 0) for name in BASE_UNITS), factor)


_SYMBOLS = {
    "1": _unit(), "m": _unit(m=1), "s": _unit(s=1), "A": _unit(A=1), "K": _unit(K=1), "mol": _unit(mol=1),
    "cd": _unit(cd=1), "rad": _unit(rad=1), "g": _unit(1e-3, kg=1), "t": _unit(1e3, kg=1), "Hz": _unit(s=-1),
    "N": _unit(kg=1, m=1, s=-2), "Pa": _unit(kg=1, m=-1, s=-2), "J": _unit(kg=1, m=2, s=-2),
    "W": _unit(kg=1, m=2, s=-3), "C": _unit(A=1, s=1), "V": _unit(kg=1, m=2, s=-3, A=-1),
    "F": _unit(kg=-1, m=-2, s=4, A=2), "Ohm": _unit(kg=1, m=2, s=-3, A=-2), "Wb": _unit(kg=1, m=2, s=-2, A=-1),
    "T": _unit(kg=1, s=-2, A=-1), "H": _unit(kg=1, m=2, s=-2, A=-2), "L": _unit(1e-3, m=3), "l": _unit(1e-3, m=3),
    "min": _unit(60.0, s=1), "h": _unit(3600.0, s=1), "d": _unit(86400.0, s=1), "bar": _unit(1e5, kg=1, m=-1, s=-2),
    "deg": _unit(math.pi / 180, rad=1), "rev": _unit(2 * math.pi, rad=1), "rpm": _unit(2 * math.pi / 60, rad=1, s=-1),
    "%": _unit(0.01),
}  # fmt: skip

_PREFIXES = {"da": 1e1, "h": 1e2, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "d": 1e-1, "c": 1e-2, "m": 1e-3,
             "u": 1e-6, "µ": 1e-6, "n": 1e-9, "p": 1e-12}  # fmt: skip

_WITH_PREFIX = {"m", "s", "g", "A", "K", "mol", "N", "Pa", "J", "W", "C", "V", "F", "Ohm", "Wb", "T", "H", "Hz", "L",
                "l", "bar", "rad"}  # fmt: skip

_POWER = r"(?:\^?(?P<power>[+-]?\d+))?"
_TOKEN = re.compile(rf"\s*(?:(?P<operator>[./*·])|(?P<open>\()|(?:(?P<close>\))|(?P<symbol>[A-Za-zµ%]+|1)){_POWER})\s*")


def base_unit(unit: str) -> BaseUnit | None:
    """Return a unit in base units, or None where it is not understood.

    Products are written ``N.m``, ``N*m`` or ``N m``, quotients ``m/s2``, ``m/s^2`` or ``J/(kg.K)``.

    >>> base_unit("N.m/rad").exponents
    (1, 2, -2, 0, 0, 0, 0, -1)
    >>> base_unit("km/h").factor
    0.2777777777777778
    """
    tokens = list(_TOKEN.finditer(unit.strip()))
    if not tokens or "".join(token[0] for token in tokens) != unit.strip():
        return None
    return _product(tokens)


def _product(tokens: Sequence[re.Match[str]]) -> BaseUnit | None:
    """Multiply from left to right; None where operators or brackets are misplaced."""
    total, sign, after_operator = _unit(), 1, True
    outer: list[tuple[BaseUnit, int]] = []
    for token in tokens:
        if token["operator"]:
            if after_operator:
                return None
            sign, after_operator = (-1 if token["operator"] == "/" else 1), True
            continue
        if token["open"]:
            outer.append((total, sign))
            total, sign, after_operator = _unit(), 1, True
            continue
        power = int(token["power"] or 1)
        if token["close"]:
            if after_operator or not outer:
                return None
            inner = total
            total, sign = outer.pop()
        else:
            unit = _symbol(token["symbol"])
            if unit is None:
                return None
            inner = unit
        total, sign, after_operator = total.times(inner, sign * power), 1, False
    return None if after_operator or outer else total


def _symbol(text: str) -> BaseUnit | None:
    if text in _SYMBOLS:
        return _SYMBOLS[text]
    for prefix, factor in _PREFIXES.items():
        rest = text.removeprefix(prefix)
        if rest != text and rest in _WITH_PREFIX:
            return _unit(factor).times(_SYMBOLS[rest], 1)
    return None
