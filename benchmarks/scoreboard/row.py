"""A row of the scoreboard: a published number, and the sources from which fmilin computes it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from fmilin.model.interface import Model

__all__ = ["Maker", "Row"]

Maker = Callable[[], AbstractContextManager[Model]]

EXACT = 1e-9
"""Relative: what is left of rounding where a source prints a formula."""

DOUBLE = 1e-12
"""Relative: digits that a source prints beyond are not asked of double precision."""


@dataclass(frozen=True)
class Row:
    """One published number.

    Parameters
    ----------
    system : str
    source : str
        Who printed it, where.
    page : str
        DOI or address.
    quantity : str
        With its unit.
    published : str, float or complex
        The digits as they are printed, real or as "-0.775+4.46j"; a number is the value of a formula that is printed.
    answer : callable
        What is asked of a model.
    doors : mapping
        Makers of the model, by the name of the source.
    formula : str
        As printed, where ``published`` is a number.
    peers : mapping
        Scripts in ``benchmarks/scoreboard/peers``, by the peer's name.
    remark : str
    left_out : float
        How far from zero a part may be that the source leaves out, relative to the number: more
        where it is badly conditioned.
    """

    system: str
    source: str
    page: str
    quantity: str
    published: str | float | complex
    answer: Callable[[Model], complex]
    doors: Mapping[str, Maker]
    formula: str = ""
    peers: Mapping[str, str] = field(default_factory=dict)
    remark: str = ""
    left_out: float = EXACT

    @property
    def value(self) -> complex:
        """Return the published number."""
        return complex(self.published)

    def ask(self, door: str) -> complex:
        """Return fmilin's number from a source."""
        with self.doors[door]() as model:
            return complex(self.answer(model))

    def agrees(self, number: complex) -> bool:
        """Return whether a number is the published one, to the last digit that is printed."""
        if not isinstance(self.published, str):
            return abs(number - self.value) <= EXACT * max(1.0, abs(self.value))
        units = _units(self.published, self.left_out)
        parts = zip((number.real, number.imag), (self.value.real, self.value.imag), units, strict=True)
        rounding = DOUBLE * abs(self.value)
        return all(abs(a - b) <= max(0.5000001 * unit, rounding) for a, b, unit in parts)


def _units(digits: str, left_out: float) -> tuple[float, float]:
    """Return one unit of the last digit of the real and of the imaginary part, and of one that is left out."""
    written = re.findall(r"([+-]?[0-9.]+(?:e[+-]?[0-9]+)?)(j?)", digits)
    units = {suffix: _unit(number) for number, suffix in written}
    absent = left_out * abs(complex(digits))
    return units.get("", absent), units.get("j", absent)


def _unit(number: str) -> float:
    mantissa, _, exponent = number.partition("e")
    return float(10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2])))
