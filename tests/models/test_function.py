"""Python functions as models: complex step, interface, bad code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fmilin as fl
from fmilin.models import FunctionModel
from fmilin.systems import cartesian_pendulum

Array = np.ndarray[Any, Any]


def rates(t: float, s: Array, u: Array) -> Array:
    x, y, vx, vy = s
    mu = (x * u[0] - 9.81 * y + vx**2 + vy**2) / (x**2 + y**2)
    return np.array([vx, vy, u[0] - mu * x, -9.81 - mu * y])


def pendulum(*, analytic: bool = True, angle: float = 0.6, rate: float = 1.2) -> FunctionModel:
    s, c = np.sin(angle), np.cos(angle)
    return FunctionModel(
        "pendulum",
        {"x": s, "y": -c, "vx": rate * c, "vy": rate * s},
        rates,
        inputs=["a"],
        outputs={"energy": lambda t, s, u: (s[2] ** 2 + s[3] ** 2) / 2 + 9.81 * s[1]},
        constraints=["x^2 + y^2 - L^2"],
        parameters={"L": 1.0},
        analytic=analytic,
    )


def test_complex_step_agrees_with_the_symbolic_model_to_rounding() -> None:
    other = fl.linearize(cartesian_pendulum(angle=0.6, rate=1.2), independent=["x"])
    lin = fl.linearize(pendulum(), independent=["x"])
    assert lin.method.derivatives == "exact"
    np.testing.assert_allclose(lin.A, other.A, rtol=1e-13, atol=1e-13)
    differenced = fl.linearize(pendulum(analytic=False), independent=["x"])
    assert differenced.method.derivatives == "differences"
    np.testing.assert_allclose(differenced.A, lin.A, atol=1e-9)
    np.testing.assert_allclose(differenced.C, lin.C, atol=1e-9)


def test_any_quantity_may_be_an_output_or_a_constraint() -> None:
    model = pendulum().with_interface(inputs=[], outputs=["der(vx)", "y", "energy"])
    assert model.inputs.names == ()
    lin = fl.linearize(model, independent=["x"])
    np.testing.assert_array_equal(lin.C[0], lin.A[1])
    np.testing.assert_array_equal(lin.C[1], lin.T[1])
    closed = model.with_constraints([fl.Constraint.from_text("der(vx)*0 + x^2 + y^2 - 1")])
    np.testing.assert_allclose(fl.linearize(closed, independent=["x"]).A, lin.A, atol=1e-7)
    with pytest.raises(fl.UnknownNameError, match=r"'enargy' is not an output .* Did you mean 'energy'"):
        model.with_interface(outputs=["enargy"])


def test_code_that_only_claims_to_be_analytic_is_found_out() -> None:
    model = FunctionModel("abs", {"x": 2.0}, lambda t, s, u: np.array([-abs(s[0]) * s[0].real]), analytic=True)
    lin = fl.linearize(model)
    assert lin.A[0, 0] == pytest.approx(-4.0, abs=1e-8)
    assert "directional-derivative" in [w.kind for w in lin.warnings]


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda t, s, u: np.array([1.0, 2.0]), fl.UsageError, "returns 2 values for 1 states"),
        (lambda t, s, u: s[5], fl.ModelError, "failed: IndexError"),
        (lambda t, s, u: 1 / 0, fl.ModelError, "failed: ZeroDivisionError"),
    ],
)
def test_wrong_functions_are_refused(function: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        fl.linearize(FunctionModel("wrong", {"x": 1.0}, function))


def test_a_conversion_to_float_is_pointed_at() -> None:
    model = FunctionModel("casts", {"x": 1.0}, lambda t, s, u: np.array([float(s[0])]), analytic=True)
    with pytest.raises(fl.ModelError, match="not analytic must not be declared analytic"):
        fl.linearize(model)
