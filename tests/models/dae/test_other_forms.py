"""Algebraic variables in ordinary differential equations and Python functions; singular mass matrices."""

from __future__ import annotations

import numpy as np
import pytest

import fmilin as fl
from fmilin.models import DaeModel, FunctionModel, OdeModel
from fmilin.signals import FloatArray
from tests.models.dae.test_newton import slope_of_flow

TRUTH = np.array([[-1.0, 1.0], [1.0, -1.0]]) * slope_of_flow(2.0, 1.0) - [[0.0, 0.0], [0.0, 0.05]]
START = {"h1": 2.0, "h2": 1.0, "q": 0.5}


def test_an_ordinary_differential_equation_with_an_algebraic_variable() -> None:
    model = OdeModel(
        "tanks",
        {"h1": "-q", "h2": "q - k*sqrt(h2) + u"},
        algebraic={"q": "h1 - h2 - r*q - s*q^3"},
        inputs=["u"],
        parameters={"k": 0.1, "r": 0.5, "s": 2.0},
        start=START,
    )
    assert isinstance(model, DaeModel)
    assert np.abs(fl.linearize(model).A - TRUTH).max() < 1e-13


@pytest.mark.parametrize("analytic", [True, False])
def test_python_functions_with_an_algebraic_variable(*, analytic: bool) -> None:
    def rates(t: float, s: FloatArray, u: FloatArray) -> FloatArray:
        h1, q, h2 = s
        del h1
        return np.array([-q, q - 0.1 * np.sqrt(h2) + u[0]])

    model = FunctionModel(
        "tanks",
        {"h1": 2.0, "q": 0.5, "h2": 1.0},
        rates,
        inputs=["u"],
        algebraic={"q": lambda t, s, u: s[0] - s[2] - 0.5 * s[1] - 2 * s[1] ** 3},
        analytic=analytic,
    )
    lin = fl.linearize(model, outputs=["q"])
    assert lin.method.derivatives == ("exact" if analytic else "differences")
    tolerance = 1e-13 if analytic else 1e-9
    assert np.abs(lin.A - TRUTH).max() < tolerance
    assert np.abs(lin.C - [slope_of_flow(2.0, 1.0) * np.array([1.0, -1.0])]).max() < tolerance


def test_a_singular_mass_matrix_leaves_a_constraint() -> None:
    mass = [[1, 0], [0, "a"]]
    model = OdeModel("singular", {"x": "-x + z", "z": "x - 2*z"}, mass_matrix=mass, parameters={"a": 0.0})
    assert isinstance(model, DaeModel)
    lin = fl.linearize(model, independent=["x"])
    assert abs(lin.A[0, 0] + 0.5) < 1e-14
    assert type(OdeModel("regular", {"x": "-x"}, mass_matrix=[["a"]], parameters={"a": 2.0})) is OdeModel


def test_constraints_beside_algebraic_variables_are_refused() -> None:
    with pytest.raises(fl.UsageError, match=r"constraints of 'both' are equations of the model"):
        OdeModel("both", {"x": "-z"}, algebraic={"z": "z - x"}, constraints=["x"])
