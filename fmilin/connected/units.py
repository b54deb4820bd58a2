"""Between the units of two ends of a connection: checked, converted where both are understood, never guessed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from fmilin.fmi.write.units import base_unit
from fmilin.ground.errors import UsageError

__all__ = ["NO_CHANGE", "AbsoluteUnit", "Affine", "conversion"]


class Affine(NamedTuple):
    """``value = factor * other + offset``."""

    factor: float = 1.0
    offset: float = 0.0

    def after(self, first: Affine) -> Affine:
        """Return what ``first`` and then this one make of a value."""
        return Affine(self.factor * first.factor, self.factor * first.offset + self.offset)


NO_CHANGE = Affine()


class AbsoluteUnit(NamedTuple):
    """``factor * value + offset`` in base units of these exponents, in the order kg, m, s, A, K, mol, cd, rad."""

    exponents: tuple[int, ...]
    factor: float = 1.0
    offset: float = 0.0


_MEND = "give the connection a factor and no conversion (convert_units=False, suppressUnitConversion in SSP files)"
_KELVIN = (0, 0, 0, 0, 1, 0, 0, 0)
_WITH_OFFSET = {
    "degC": AbsoluteUnit(_KELVIN, 1.0, 273.15),
    "degF": AbsoluteUnit(_KELVIN, 5 / 9, 273.15 - 32 * 5 / 9),
}


def conversion(source: str, target: str, where: str, declared: Mapping[str, AbsoluteUnit] | None = None) -> Affine:
    """Return what makes a number in the unit ``source`` one in ``target``; nothing where one of them is not known.

    ``source``, ``target``: as the models write them. ``declared``: units that a file defines; they go before those that
    are known here.
    """
    if not source or not target or source == target:
        return Affine()
    a, b = _understood(source, declared or {}), _understood(target, declared or {})
    if a is None or b is None:
        unknown = source if a is None else target
        raise UsageError(
            f"{where}: '{source}' becomes '{target}', and the unit '{unknown}' is not understood, so nothing says by "
            f"which factor: {_MEND}."
        )
    if a.exponents != b.exponents:
        raise UsageError(
            f"{where}: the units do not fit, '{source}' and '{target}' measure different things. Connect others, or "
            f"{_MEND}."
        )
    return Affine(a.factor / b.factor, (a.offset - b.offset) / b.factor)


def _understood(unit: str, declared: Mapping[str, AbsoluteUnit]) -> AbsoluteUnit | None:
    if (found := declared.get(unit) or _WITH_OFFSET.get(unit)) is not None:
        return found
    base = base_unit(unit)
    return None if base is None else AbsoluteUnit(base.exponents, base.factor)
