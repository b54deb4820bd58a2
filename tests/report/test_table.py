"""What a person reads: numbers rounded with sense, names shortened, lines that fit."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest

from fmilin.adapters import Remark
from fmilin.report.numbers import eigenvalue_text, round_digits, shorten_name, value_with_unit
from fmilin.report.table import print_table
from tests.hand_made import LONG, pendulum, sized


@pytest.mark.parametrize(
    ("value", "pair", "text"),
    [
        (2.147676638502278j - 1e-17, True, "±2.1476766 i"),
        (-0.2423858093105051 + 2.13395502834838j, True, "-0.2423858 ± 2.133955 i"),
        (1e-9 + 1e-3j, True, "1e-09 ± 0.001 i"),
        (-1234567.891 + 0j, False, "-1234567.9"),
        (0j, False, "0"),
        (complex("nan"), False, "nan"),
        (complex("-inf"), False, "-inf"),
    ],
)
def test_eigenvalues_show_eight_digits_of_the_modulus(value: complex, pair: bool, text: str) -> None:
    assert eigenvalue_text(value, pair=pair) == text


def test_rounding_removes_what_is_noise_beside_the_modulus() -> None:
    assert round_digits(1e-12 + 3j) == 3j
    assert round_digits(1e-12 + 0j) == 1e-12
    assert round_digits(-0.0 + 0j) == 0


def test_names_are_shortened_in_the_middle() -> None:
    assert shorten_name("pin.x") == "pin.x"
    assert len(shorten_name(LONG)) == 60
    assert "…" in shorten_name(LONG)


def test_units_follow_the_value() -> None:
    assert value_with_unit(0.1 + 0.2, "m/s") == "0.3 m/s"
    assert value_with_unit(2.0, "") == "2"


def printed(linear: object, **options: float) -> str:
    stream = io.StringIO()
    print_table(linear, stream, **options)  # type: ignore[arg-type]
    return stream.getvalue()


def test_the_table_of_a_moving_point() -> None:
    text = printed(pendulum(), adjusted=0.001)
    assert "2 independent states out of 4" in text
    assert "pin.x, pin.vx" in text
    assert "FMI 2.0" in text
    assert "moved a state by 0.001" in text
    assert "rod.length = 1" in text
    assert "no: pin.vx changes at 1e-17 m/s2; f0 is kept" in text
    assert "3.132092" in text
    assert f"{np.sqrt(9.81) / (2 * np.pi):.8g}" in text
    assert "A 1.0e-13" in text
    assert "quoted" in text


@pytest.mark.parametrize("size", [(0, 0, 0, 0), (0, 2, 0, 0), (1, 0, 0, 1), (40, 60, 30, 50)])
def test_every_line_fits_into_80_columns(size: tuple[int, int, int, int]) -> None:
    linear = replace(sized(*size), warnings=(Remark("rank", "word " * 100),))
    lines = printed(linear).splitlines()
    assert max(map(len, lines)) <= 80
    assert all(line == line.rstrip() for line in lines)


@pytest.mark.parametrize(
    ("zeros", "lines"), [(2, ["0 (2 times)", "-1.5 (3 times)"]), (3, ["0 (3 times)", "-1.5 (2 times)"])]
)
def test_many_zeros_share_a_line(zeros: int, lines: list[str]) -> None:
    sample = sized(5, 0, 0, 0)
    exact = replace(sample.errors, A=np.zeros((5, 5)))
    linear = replace(sample, A=np.diag([0.0] * zeros + [-1.5] * (5 - zeros)), errors=exact)
    values = printed(linear).split("\u2500\n")[1].split("\n\n")[0].splitlines()
    assert [line.strip() for line in values] == lines


def test_long_lists_are_cut_with_a_count() -> None:
    assert "and 6 more" in printed(sized(30, 0, 0, 0))


def test_what_goes_to_a_file_follows_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    assert max(map(len, printed(sized(12, 0, 2, 2)).splitlines()[:12])) <= 50


def test_the_errors_of_a_matrix_of_zeros_are_absolute() -> None:
    """A part of what rounding left of zeros, "D 1.2e+00", says nothing."""
    linear = pendulum()
    D = np.full(linear.D.shape, 5e-15)
    errors = replace(linear.errors, D=np.full(D.shape, 6e-15))
    text = printed(replace(linear, D=D, errors=errors, accuracy=replace(linear.accuracy, D=1.2)))
    assert "D 1.2e+00" not in text
    assert "absolute errors about D 6.0e-15" in text
    nothing = printed(replace(linear, accuracy=replace(linear.accuracy, A=31.0, B=2.0, C=2.0, D=1.2)))
    assert "relative" not in nothing
