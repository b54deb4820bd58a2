"""Entries that are zero by the structure of a model have no error, and eigenvalues that follow from them are exact."""

import numpy as np
import pytest

import fmilin as fl
from fmilin.models import LagrangeModel, OdeModel


def test_a_double_integrator_has_two_eigenvalues_that_are_exactly_zero() -> None:
    model = OdeModel(
        "cart", {"x": "v", "v": "F/m"}, inputs=["F"], parameters={"m": 2.0}, outputs={"position": "x", "force": "F/m"}
    )
    linear = fl.linearize(model)
    assert linear.eigenvalue_errors().tolist() == [0.0, 0.0]
    for name in "ABD":  # an output that is a state has the row of T, and its error
        matrix, error = getattr(linear, name), getattr(linear.errors, name)
        assert (error[matrix == 0] == 0).all()
    assert 0 < linear.errors.A[0, 1] < 1e-14
    assert 0 < linear.errors.B[1, 0] < 1e-14


def test_a_free_body_on_a_slanted_guide_has_eigenvalues_of_zero_within_rounding() -> None:
    model = LagrangeModel(
        "slider", {"x": "vx", "y": "vy"}, [["m", 0], [0, "m"]], ["F", "0"], constraints=["x + y"], inputs=["F"],
        parameters={"m": 2.0},
    )  # fmt: skip
    linear = fl.linearize(model)
    assert np.abs(linear.eigenvalues()).max() == 0.0
    assert linear.eigenvalue_errors().max() < 1e-14


@pytest.mark.parametrize("rate", ["w*sin(x)", "x*w", "x**2 + w**2"])
def test_a_slope_that_vanishes_at_the_point_alone_keeps_its_error(rate: str) -> None:
    linear = fl.linearize(OdeModel("point", {"x": "-x", "w": f"-3*w + z + {rate}", "z": "-5*z"}))
    row, column = 1, 0
    assert linear.A[row, column] == 0.0
    assert linear.errors.A[row, column] > 0.0
    assert linear.errors.A[0, 1] == 0.0


def test_models_of_a_path_state_no_error_for_zeros_of_the_structure() -> None:
    model = OdeModel("chain", {"x": "v", "v": "-a*sin(th)", "th": "w", "w": "F - a*w*cos(th)"}, inputs=["F"],
                     parameters={"a": 2.0})  # fmt: skip
    points = [fl.operating_point(model, {"th": angle}) for angle in np.linspace(0.1, 0.4, 8)]
    always_zero = np.array([[1, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0], [1, 1, 0, 0]], dtype=bool)
    for linear in fl.linearize_along(model, points):
        assert (linear.errors.A[always_zero] == 0).all()
        assert linear.errors.A[3, 2] > 0
        assert linear.errors.A[1, 2] > 0
        assert linear.eigenvalue_errors().max() < 1e-14
