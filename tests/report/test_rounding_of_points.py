"""Values of a point that are rounding are shown as 0; small ones that mean something are not."""

import fmilin as fl
from fmilin.models import OdeModel
from fmilin.report.numbers import hide_rounding
from fmilin.signals import Signal, Signals


def signals(*units: str, nominal: float | None = None) -> Signals:
    return Signals([Signal(f"x{k}", unit, nominal) for k, unit in enumerate(units)])


def test_rounding_beside_the_nominal_value_or_values_of_the_same_unit_is_0() -> None:
    assert hide_rounding({"x0": 7.7e-34}, signals("m", nominal=1.0)) == {"x0": 0.0}
    assert hide_rounding({"x0": 7.7e-34}, signals("m")) == {"x0": 0.0}
    assert hide_rounding({"x0": 3e-17, "x1": -0.5}, signals("m", "m")) == {"x0": 0.0, "x1": -0.5}


def test_small_values_keep_their_digits() -> None:
    assert hide_rounding({"x0": 4e-24}, signals("m")) == {"x0": 4e-24}
    assert hide_rounding({"x0": 3e-17, "x1": 2.0}, signals("C", "m")) == {"x0": 3e-17, "x1": 2.0}
    assert hide_rounding({"x0": 3e-17}, signals("C", nominal=1e-15)) == {"x0": 3e-17}
    assert hide_rounding({"x0": 1e-13, "x1": 1.0}, signals("m", "m")) == {"x0": 1e-13, "x1": 1.0}


def test_the_table_shows_0_and_the_file_has_the_digits() -> None:
    model = OdeModel("cart", {"x": "v", "v": "-x - v"}, start={"x": 7.7e-34})
    linear = fl.linearize(model)
    assert linear.point.states["x"] == 7.7e-34
    assert "e-34" not in str(linear)
    assert "x = 0" in str(linear)
