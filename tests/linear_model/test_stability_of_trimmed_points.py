"""What is said of stability at a trimmed multiple root holds within the distance to which the root is known."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.models import OdeModel

DOUBLE = "0.6*x - x^2 - 0.09"  # -(x - 0.3)^2, with rounding of 1e-17: the root is known to 1e-8


def with_double_root(rate: str = DOUBLE) -> OdeModel:
    rates = {"x": rate, "z": "-q*z"}
    return OdeModel("double", rates, start={"x": 0.1, "z": 1.0}, parameters={"q": 1.0}, outputs={"y": "x"})


@pytest.mark.parametrize("rate", [DOUBLE, f"-({DOUBLE})", "sin(x) - 1", "1 - exp(x - 0.3) + (x - 0.3)"])
def test_rounding_of_a_double_root_decides_nothing(rate: str) -> None:
    model = with_double_root(rate)
    linear = fl.linearize(model, fl.trim(model))
    assert linear.stability().stable is None
    assert linear.eigenvalue_errors()[-1] > 1e-8 > abs(linear.eigenvalues()[-1])


def test_points_of_a_sweep_at_a_double_root_say_so_each() -> None:
    family = fl.sweep(with_double_root(), {"q": [1.0, 2.0, 3.0]}, trim=fl.TrimRequest())
    assert [family[k].stability().stable for k in range(3)] == [None] * 3


def test_a_simple_root_near_a_fold_is_stable() -> None:
    model = with_double_root(f"{DOUBLE} + 1e-4").with_start({"x": 0.5})
    linear = fl.linearize(model, fl.trim(model))
    assert linear.stability().stable is True
    np.testing.assert_allclose(linear.eigenvalues(), [-1.0, -0.02], rtol=1e-9)  # at x = 0.31


@pytest.mark.parametrize(
    ("rate", "word", "stable"),
    [("0.2 - x", "stable: ", True), ("x - 0.2", "unstable: ", False), (DOUBLE, "cannot be determined: ", None)],
)
def test_the_table_and_json_of_a_trimmed_point_say_whether_it_is_stable(
    rate: str, word: str, stable: bool | None, tmp_path: Path
) -> None:
    model = with_double_root(rate)
    linear = fl.linearize(model, fl.trim(model))
    assert f"Stability    {word}" in repr(linear)
    linear.save(tmp_path / "trimmed.json")
    assert json.loads((tmp_path / "trimmed.json").read_text())["stable"] is stable


def test_a_point_that_moves_has_no_statement_on_stability(tmp_path: Path) -> None:
    model = with_double_root("1 - x")
    linear = fl.linearize(model)
    assert "Stability" not in repr(linear)
    linear.save(tmp_path / "moving.json")
    assert json.loads((tmp_path / "moving.json").read_text())["stable"] is None
