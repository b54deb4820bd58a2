"""Units taken apart into base units."""

from __future__ import annotations

import math

import pytest

from fmilin.fmi.write.description_writer import BASE_UNITS, base_unit
from fmilin.signals import rate_unit


def exponents(unit: str) -> dict[str, int]:
    actual = base_unit(unit)
    assert actual is not None
    return {name: e for name, e in zip(BASE_UNITS, actual.exponents, strict=True) if e}


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("1", {}),
        ("rad/s", {"rad": 1, "s": -1}),
        ("m/s2", {"m": 1, "s": -2}),
        ("m/s^2", {"m": 1, "s": -2}),
        ("m s-2", {"m": 1, "s": -2}),
        ("N.m", {"kg": 1, "m": 2, "s": -2}),
        ("N*m/rad", {"kg": 1, "m": 2, "s": -2, "rad": -1}),
        ("N·s/m", {"kg": 1, "s": -1}),
        ("kg.m2", {"kg": 1, "m": 2}),
        ("J/(kg.K)", {"m": 2, "s": -2, "K": -1}),
        ("(m/s)2", {"m": 2, "s": -2}),
        ("1/s", {"s": -1}),
        ("m/s/s", {"m": 1, "s": -2}),
        ("V", {"kg": 1, "m": 2, "s": -3, "A": -1}),
        ("mol/m3", {"mol": 1, "m": -3}),
    ],
)
def test_units_of_mechanics_are_understood(unit: str, expected: dict[str, int]) -> None:
    assert exponents(unit) == expected


@pytest.mark.parametrize(
    ("unit", "factor"),
    [("deg", math.pi / 180), ("km/h", 1 / 3.6), ("rpm", math.pi / 30), ("mm", 1e-3), ("kN", 1e3), ("g", 1e-3),
     ("mg", 1e-6), ("MPa", 1e6), ("min", 60.0), ("h", 3600.0), ("%", 0.01), ("m", 1.0), ("cm2", 1e-4)],
)  # fmt: skip
def test_factors_lead_to_base_units(unit: str, factor: float) -> None:
    actual = base_unit(unit)
    assert actual is not None
    assert actual.factor == pytest.approx(factor, rel=1e-15)


@pytest.mark.parametrize("unit", ["", "furlong", "m/", "(m", "m)", "m//s", "mdeg", "m&s", "kkg", "m..s", "/"])
def test_what_is_not_understood_is_left_alone(unit: str) -> None:
    assert base_unit(unit) is None


@pytest.mark.parametrize(
    ("unit", "rate"),
    [("", ""), ("m", "m/s"), ("m/s", "m/s2"), ("rad/s2", "rad/s3"), ("N.s/m", "N.s/m/s"), ("1", "1/s")],
)
def test_rates_have_units(unit: str, rate: str) -> None:
    assert rate_unit(unit) == rate
