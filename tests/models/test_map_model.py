"""Sampled nonlinear models: fixed and periodic points with their multipliers, in closed form."""

from __future__ import annotations

from pathlib import Path

import casadi as ca
import numpy as np
import pytest
import sympy

import fmilin as fl
from fmilin.models import DiscreteModel


def logistic(r: float = 3.2) -> DiscreteModel:
    return DiscreteModel("logistic", {"x": "r*x*(1 - x)"}, sample_time=0.5, parameters={"r": r}, start={"x": 0.6})


def henon() -> DiscreteModel:
    x, y, a, b = sympy.symbols("x y a b", real=True)
    equations = {x: 1 - a * x**2 + y, y: b * x}
    start = {x: 0.6, y: 0.2}
    return DiscreteModel("henon", equations, sample_time=1.0, parameters={a: 1.4, b: 0.3}, start=start)


def test_the_fixed_point_of_the_logistic_map_loses_stability_at_3() -> None:
    rates = np.array([1.5, 2.8, 2.99, 3.01, 3.4])
    family = fl.sweep(logistic(), {"r": rates}, trim=fl.TrimRequest())
    assert family.sample_time == 0.5
    np.testing.assert_allclose(family.A.ravel(), 2 - rates, atol=1e-12)
    np.testing.assert_array_equal([family[i].stability().stable for i in range(len(rates))], np.abs(2 - rates) < 1)
    assert fl.trim(logistic(2.8)).report.stable is True
    assert fl.trim(logistic(3.2)).report.stable is False


@pytest.mark.parametrize("r", [3.2, 3.4, 3.5])
def test_points_of_period_two_have_the_multiplier_of_the_closed_form(r: float) -> None:
    """x = (r + 1 +- sqrt((r - 3)(r + 1)))/(2 r), and f'(x1) f'(x2) = 4 + 2 r - r^2."""
    model = logistic(r)
    point = fl.trim(model.iterate(2), guess={"x": 0.45})
    pair = (r + 1 + np.array([-1, 1]) * np.sqrt((r - 3) * (r + 1))) / (2 * r)
    np.testing.assert_allclose(model.orbit(point, 2).ravel(), [*pair, pair[0]], atol=1e-12)
    lin = fl.linearize(model.iterate(2), point)
    np.testing.assert_allclose(lin.A, [[4 + 2 * r - r**2]], atol=1e-12)
    assert (lin.sample_time, lin.method.derivatives) == (1.0, "exact")


def test_the_henon_map_has_the_published_fixed_point_and_determinant() -> None:
    """x = 0.6313544770895048 for a = 1.4, b = 0.3; the Jacobian of every point has the determinant -b."""
    model = henon()
    point = fl.trim(model)
    lin = fl.linearize(model, point)
    assert abs(point["x"] - 0.6313544770895048) < 1e-14
    np.testing.assert_allclose(np.sort(lin.eigenvalues()), [-1.9237388, 0.1559463], atol=1e-6)
    trajectory = fl.simulate(model, stop_time=20.0)
    elsewhere = fl.linearize(model, trajectory.point(7))
    assert abs(np.linalg.det(elsewhere.A) + 0.3) < 1e-12
    assert [remark.kind for remark in elsewhere.warnings] == ["off-equilibrium"]
    np.testing.assert_allclose(elsewhere.f0, trajectory.states[8] - trajectory.states[7], atol=1e-14)


def test_a_map_on_a_circle_is_linearized_in_one_coordinate() -> None:
    """The angle's tangent is multiplied by sqrt(k): at (1, 0) the multiplier is sqrt(k), at (0, 1) its inverse."""
    length = "sqrt(x^2 + k*y^2)"
    model = DiscreteModel(
        "circle",
        {"x": f"x/{length}", "y": f"sqrt(k)*y/{length}"},
        sample_time=1.0,
        parameters={"k": 0.25},
        start={"x": 0.8, "y": 0.6},
        constraints=["x^2 + y^2 - 1"],
    )
    for guess, multiplier in (({"x": 0.95}, 0.5), ({"y": 0.999}, 2.0)):
        lin = fl.linearize(model, fl.trim(model, guess=guess))
        np.testing.assert_allclose(lin.A, [[multiplier]], atol=1e-9)
    assert fl.simulate(model, stop_time=30.0).largest_drift < 1e-14
    with pytest.raises(fl.UsageError, match="linearized where it is a fixed point"):
        fl.linearize(model)


def test_a_constraint_that_the_map_does_not_keep_is_rejected() -> None:
    model = DiscreteModel("shrinks", {"x": "x/2", "y": "y"}, sample_time=1.0, constraints=["x - y"])
    with pytest.raises(fl.ConstraintError, match="does not keep these constraints: 'x - y'"):
        fl.linearize(model)


def test_a_saturating_sampled_loop_has_the_eigenvalues_of_its_closed_form(tmp_path: Path) -> None:
    """A plant x+ = a x + b u with u = tanh(kp e + ki z) and z+ = z + e: at rest u' = 1 - u0^2."""
    a, b, kp, ki = 0.9, 0.5, 0.4, 0.1
    command = "tanh(kp*(r - x) + ki*z)"
    model = DiscreteModel(
        "loop",
        {"x": f"a*x + b*{command}", "z": "z + r - x"},
        sample_time=0.02,
        inputs=["r"],
        parameters={"a": a, "b": b, "kp": kp, "ki": ki},
        outputs={"u": command},
    )
    point = fl.trim(model, fixed={"r": 2.0})
    held = (1 - a) * 2.0 / b
    slope = 1 - held**2
    A = np.array([[a - b * kp * slope, b * ki * slope], [-1, 1]])
    lin = fl.linearize(model, point)
    np.testing.assert_allclose(lin.A, A, atol=1e-12)
    np.testing.assert_allclose(lin.B.ravel(), [b * kp * slope, 1], atol=1e-12)
    np.testing.assert_allclose(lin.C, [[-kp * slope, ki * slope]], atol=1e-12)
    lin.save(tmp_path / "loop.json")
    assert fl.LinearModel.load(tmp_path / "loop.json").sample_time == 0.02
    stepped = fl.simulate(model, point, stop_time=4.0, inputs={"r": 2.01})
    assert abs(stepped["x"][-1] - 2.01) < 1e-6
    assert len(stepped) == 201


def test_functions_and_casadi_functions_are_maps() -> None:
    x, u = ca.SX.sym("x", 2), ca.SX.sym("u")
    function = ca.Function("F", [x, u], [ca.vertcat(1 - 1.4 * x[0] ** 2 + x[1] + u, 0.3 * x[0])])

    def python(t: float, s: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.array([1 - 1.4 * s[0] ** 2 + s[1] + v[0], 0.3 * s[0]])

    start = {"x": 0.6, "y": 0.2}
    expected = fl.linearize(henon(), fl.trim(henon()))
    by_casadi = DiscreteModel.from_function("F", start, function, sample_time=1.0, inputs=["u"])
    by_python = DiscreteModel.from_function("F", start, python, sample_time=1.0, inputs=["u"], analytic=True)
    for model in (by_casadi, by_python):
        lin = fl.linearize(model, fl.trim(model, fixed={"u": 0.0}))
        np.testing.assert_allclose(lin.A, expected.A, atol=1e-12)
        np.testing.assert_allclose(lin.B, [[1], [0]], atol=1e-12)
        assert lin.method.derivatives == "exact"
        twice = fl.linearize(model.iterate(2), fl.trim(model.iterate(2), fixed={"u": 0.0}))
        np.testing.assert_allclose(twice.A, expected.A @ expected.A, atol=1e-11)


def test_what_needs_rates_in_time_rejects_maps() -> None:
    model = henon()
    for call in (
        lambda: fl.to_casadi(model),
        lambda: fl.periodic_orbit(model, period=3.0),
        lambda: fl.trim(model, stable=True),
    ):
        with pytest.raises(fl.UsageError, match="sampled every 1 s and has no rates in time"):
            call()
    with pytest.raises(fl.UsageError, match="give a positive number of seconds"):
        DiscreteModel("never", {"x": "x"}, sample_time=0.0)
    with pytest.raises(fl.UsageError, match="is not a multiple of the sample time"):
        fl.simulate(model, stop_time=3.0, step=1.5)
