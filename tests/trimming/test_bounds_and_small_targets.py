"""Targets far from one without nominal values, bounds of outputs, and targets that nothing reaches."""

import numpy as np
import pytest

import fmilin as fl
from fmilin import NumericalError
from fmilin.models import OdeModel


@pytest.mark.parametrize(("value", "factor"), [(4e-24, 1.6e-19), (-1e-15, 1.0), (4e-24, 1.0), (1e12, 2.5)])
def test_a_target_is_met_in_its_own_size(value: float, factor: float) -> None:
    model = OdeModel("flow", {"n": "u - 3*n"}, inputs=["u"], outputs={"y": f"{factor}*n"})
    point = fl.trim(model, fixed={"y": value}, free=["u"])
    np.testing.assert_allclose(point.states[0], value / factor, rtol=1e-9)
    np.testing.assert_allclose(point.inputs[0], 3 * value / factor, rtol=1e-9)


def test_a_tiny_target_of_a_nonlinear_output() -> None:
    model = OdeModel("rate", {"n": "u - 3*n"}, inputs=["u"], outputs={"y": "exp(n)"})
    point = fl.trim(model, fixed={"y": 1e-15}, free=["u"])
    np.testing.assert_allclose(point.states[0], np.log(1e-15), rtol=1e-9)


def arms() -> OdeModel:
    rates = {
        "a": "wa", "b": "wb",
        "wa": "ta - 19.62*sin(a) - 0.1*wa - 5*sin(a - b)", "wb": "tb - 9.81*sin(b) + 5*sin(a - b) - 0.1*wb",
    }  # fmt: skip
    return OdeModel("arms", rates, inputs=["ta", "tb"], outputs={"x": "sin(a) + sin(b)", "y": "-cos(a) - cos(b)"})


def test_the_nearest_point_within_the_bound_of_an_output_is_found() -> None:
    """Without the bound it hangs at x = 0; the least change of states and torques is found by brute force."""
    point = fl.trim(arms(), bounds={"x": (0.5, 1.5)}, free=["ta", "tb"])
    a, b = point.states[:2]
    np.testing.assert_allclose(np.sin(a) + np.sin(b), 0.5, atol=1e-9)
    np.testing.assert_allclose(point.inputs[0], 19.62 * np.sin(a) + 5 * np.sin(a - b), rtol=1e-9)
    np.testing.assert_allclose(point.inputs[1], 9.81 * np.sin(b) - 5 * np.sin(a - b), rtol=1e-9)


def test_a_target_out_of_reach_says_how_near_one_comes() -> None:
    with pytest.raises(NumericalError, match=r"the closest value is (2|1\.9999\d*)"):
        fl.trim(arms(), fixed={"x": 3.0}, free=["ta", "tb"])


def test_a_bound_of_an_output_with_no_slope_at_the_start_is_kept() -> None:
    model = OdeModel("well", {"x": "u - x^3 - x"}, inputs=["u"], outputs={"y": "x^2"}, start={"x": 0.0})
    point = fl.trim(model, bounds={"y": (4.0, 9.0)}, free=["u"])
    np.testing.assert_allclose(np.abs(np.append(point.states, point.inputs)), [2.0, 10.0], rtol=1e-9)


@pytest.mark.parametrize("exponent", [1, 2])
def test_a_bound_of_a_product_is_kept_from_where_both_factors_vanish(exponent: int) -> None:
    rates = {"x": "u - x", "z": "w - z"}
    model = OdeModel("product", rates, inputs=["u", "w"], outputs={"y": f"(x*z)^{exponent}"})
    point = fl.trim(model, bounds={"y": (4.0, 5.0)}, free=["u", "w"], minimize="u^2 + w^2")
    np.testing.assert_allclose(np.abs(point.states), 2 ** (1 / exponent), rtol=1e-6)  # least u^2 + w^2 with u w fixed


def test_a_bound_that_no_point_keeps_is_refused_from_where_its_slope_vanishes() -> None:
    model = OdeModel("turn", {"x": "u - sin(x)"}, inputs=["u"], outputs={"y": "cos(x)"})
    with pytest.raises(NumericalError, match="the closest value is 1"):
        fl.trim(model, bounds={"y": (1.2, 1.6)}, free=["u"])
