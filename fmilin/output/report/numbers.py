"""Numbers and names as people read them; the files carry all digits and all characters."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fmilin.families.family import LinearFamily
    from fmilin.ground.signals import Signals
    from fmilin.linear_model.model import LinearModel
SIGNIFICANT = 8  # digits shown of an eigenvalue
LONGEST_NAME = 60


def rounded(value: complex, digits: int = SIGNIFICANT) -> complex:
    """Round both parts to ``digits`` significant digits of the modulus: what is noise beside it becomes 0."""
    size = abs(value)
    if size == 0 or not math.isfinite(size):
        return value
    decimals = digits - 1 - int(f"{size:e}".partition("e")[2])
    return complex(round(value.real, decimals) + 0.0, round(value.imag, decimals) + 0.0)


def eigenvalue_text(value: complex, *, pair: bool) -> str:
    """Return ``-0.24238581 ± 2.133955 i`` for a pair, or the real number alone."""
    shown = rounded(value)
    real = f"{shown.real:.{SIGNIFICANT}g}"
    if not pair:
        return real
    imaginary = f"{abs(shown.imag):.{SIGNIFICANT}g} i"
    return f"±{imaginary}" if shown.real == 0 else f"{real} ± {imaginary}"


def rough(value: float) -> str:
    """Return two significant digits, without an exponent where that is shorter."""
    return f"{float(f'{value:.2g}'):g}"


def value_with_unit(value: float, unit: str) -> str:
    """Return a value with its unit, but for a mere 1; angles in rad in degrees, too."""
    degrees = f" ({math.degrees(value):.6g}°)" if unit == "rad" and value and math.isfinite(value) else ""
    return f"{value:.8g} {'' if unit == '1' else unit}".rstrip() + degrees


def matrices_of(result: LinearModel | LinearFamily) -> Iterator[tuple[str, Signals, Signals]]:
    """Yield A, B, C and D with the signals of their rows and columns."""
    y, u, out = result.states, result.inputs, result.outputs
    yield from (("A", y, y), ("B", y, u), ("C", out, y), ("D", out, u))


def shortened(name: str, longest: int = LONGEST_NAME) -> str:
    """Return a long name with its middle left out."""
    half = longest // 2
    return name if len(name) <= longest else f"{name[:half]}…{name[-half + 1 :]}"
