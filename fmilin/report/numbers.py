"""Numbers and names as people read them; the files carry all digits and all characters."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from fmilin.tolerances import EPS

if TYPE_CHECKING:
    from fmilin.families.family import LinearFamily
    from fmilin.linear_model.model import LinearModel
    from fmilin.linear_model.modes import EigenvalueCluster
    from fmilin.model.interface import ModelInfo
    from fmilin.signals import Signals

SIGNIFICANT_DIGITS = 8  # digits shown of an eigenvalue
LONGEST_NAME = 60
MAX_DECIMALS = 300  # powers of ten that a double holds


def round_digits(value: complex, digits: int = SIGNIFICANT_DIGITS) -> complex:
    """Round both parts to ``digits`` significant digits of the modulus: a part below its rounding becomes 0."""
    size = abs(value)
    if size == 0 or not math.isfinite(size):
        return value
    decimals = digits - 1 - int(f"{size:e}".partition("e")[2])
    return complex(round(value.real, decimals) + 0.0, round(value.imag, decimals) + 0.0)


def eigenvalue_text(value: complex, *, pair: bool) -> str:
    """Return ``-0.24238581 ± 2.133955 i`` for a pair, or the real number alone."""
    rounded_value = round_digits(value)
    real = f"{rounded_value.real:.{SIGNIFICANT_DIGITS}g}"
    if not pair:
        return real
    imaginary = f"{abs(rounded_value.imag):.{SIGNIFICANT_DIGITS}g} i"
    return f"±{imaginary}" if rounded_value.real == 0 else f"{real} ± {imaginary}"


def cluster_text(cluster: EigenvalueCluster) -> str:
    """Return eigenvalues with the digits that are known: ``-0.24238581 ± 2.133955 i``, ``0 (4 times, +- 1e-3)``."""
    value = round_to_error(cluster.eigenvalue, cluster.error)
    text = eigenvalue_text(value, pair=cluster.is_pair)
    notes = []
    if not cluster.is_pair and value.imag != 0:  # of a sampled model: a real z < 0, which has no conjugate
        notes.append("alternates: z < 0")
    if cluster.count > 1:
        notes.append(f"{cluster.count} times")
    is_visible = cluster.error > 0.5 * 10.0 ** (1 - SIGNIFICANT_DIGITS) * abs(cluster.eigenvalue)
    if is_visible and math.isfinite(cluster.error):
        notes.append(f"+- {error_text(cluster.error)}")
    return f"{text} ({', '.join(notes)})" if notes else text


def error_text(error: float) -> str:
    """Return one significant digit: ``1e-3``, ``0.02``."""
    if 0.01 <= error < 1000 or error == 0:
        return f"{float(f'{error:.1g}'):g}"
    mantissa, _, exponent = f"{error:.0e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


def round_to_error(value: complex, error: float) -> complex:
    """Return a number without the digits that are smaller than its error; a part within the error is 0."""
    if not math.isfinite(error) or not math.isfinite(abs(value)) or error <= 0:
        return value
    real, imaginary = (0.0 if abs(part) <= error else part for part in (value.real, value.imag))
    decimals = 1 - math.floor(math.log10(error))
    if decimals > MAX_DECIMALS:
        return complex(real, imaginary)
    return complex(round(real, decimals) + 0.0, round(imaginary, decimals) + 0.0)


def count_known_digits(value: float, error: float, most: int) -> int:
    """Return how many significant digits of a number its error leaves, from 1 to ``most``."""
    if error <= 0 or value == 0:
        return most
    return min(max(int(math.log10(abs(value) / error)) + 1, 1), most) if error < abs(value) else 1


def rough(value: float) -> str:
    """Return two significant digits, without an exponent where that is shorter."""
    return f"{float(f'{value:.2g}'):g}"


def value_with_unit(value: float, unit: str) -> str:
    """Return a value with its unit, but for a mere 1; angles in rad in degrees, too."""
    degrees = f" ({math.degrees(value):.6g}°)" if unit == "rad" and value and math.isfinite(value) else ""
    return f"{value:.8g} {'' if unit == '1' else unit}".rstrip() + degrees


ROUNDING_FACTOR = 4.0  # times eps and the size of a value: what a sum of values of that size leaves for a zero


def hide_rounding(values: Mapping[str, float], signals: Signals) -> dict[str, float]:
    """Return values by name, 0 for those that are rounding relative to their nominal value.

    Without a nominal value the size is the largest of the same unit. Of values that are all tiny none is hidden, except
    below the square of eps, where a difference of two numbers about 1 cannot lie.
    """
    largest: dict[str, float] = {}
    for signal in signals:
        if signal.unit and signal.name in values:
            largest[signal.unit] = max(largest.get(signal.unit, 0.0), abs(values[signal.name]))
    displayed = dict(values)
    for signal in signals:
        value = values.get(signal.name, 0.0)
        size = signal.nominal or largest.get(signal.unit, 0.0)
        least = ROUNDING_FACTOR * EPS * abs(size) if signal.nominal else max(ROUNDING_FACTOR * EPS * size, EPS**2)
        if signal.name in displayed and abs(value) < least:
            displayed[signal.name] = 0.0
    return displayed


def values_text(values: Mapping[str, float]) -> str:
    """Return values by name as ``x = 0.5, y = 1``."""
    return ", ".join(f"{name} = {value:g}" for name, value in values.items())


def grid_text(family: LinearFamily) -> str:
    """Return the size of a grid as ``grid 3 x 2``."""
    return f"grid {' x '.join(map(str, family.shape)) or 'of one point'}"


def interface_text(info: ModelInfo) -> str:
    """Return the standard that a model follows, or that it is native."""
    return f"FMI {info.fmi_version}" if info.fmi_version else "native"


def list_matrices(result: LinearModel | LinearFamily) -> Iterator[tuple[str, Signals, Signals]]:
    """Yield A, B, C and D with the signals of their rows and columns."""
    y, u, out = result.states, result.inputs, result.outputs
    yield from (("A", y, y), ("B", y, u), ("C", out, y), ("D", out, u))


def shorten_name(name: str, longest: int = LONGEST_NAME) -> str:
    """Return a long name with its middle left out."""
    half = longest // 2
    return name if len(name) <= longest else f"{name[:half]}…{name[-half + 1 :]}"
