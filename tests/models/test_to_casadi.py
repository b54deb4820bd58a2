"""Models as CasADi functions: the same numbers as the model, the same slopes as the linear model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import casadi as ca
import numpy as np
import pytest

import fmilin as fl
from fmilin.models import LagrangeModel, OdeModel
from fmilin.models.casadi_form import CasadiModel, IndependentForm
from fmilin.signals import FloatArray
from fmilin.systems import cartesian_pendulum, four_bar, furuta_pendulum
from tests.systems.linkages import five_bar_mechanism
from tests.systems.skate_model import skate

Make = Callable[[], fl.Model]


def mass_matrix() -> OdeModel:
    return OdeModel(
        "implicit",
        {"x": "v", "v": "F - k*x - v^2*time", "z": "x"},
        mass_matrix=[["1 + x^2", 0, 0], [0, "m", "x"], [0, "v", "2 + x^2"]],
        inputs=["F"],
        parameters={"k": 0.3, "m": 1.5},
        outputs={"force": "F*x", "acceleration": "der(v)"},
        start={"x": 0.4, "v": -0.7, "F": 0.2},
    )


def driven_pendulum() -> LagrangeModel:
    """A pendulum whose pivot moves as an input prescribes, with the input's derivatives as further inputs."""
    return LagrangeModel(
        "driven",
        {"x": "vx", "y": "vy"},
        [["m", 0], [0, "m"]],
        [0, "-m*g"],
        constraints=["(x - s)^2 + y^2 - l^2"],
        inputs=["s"],
        parameters={"m": 1.0, "g": 9.81, "l": 0.5},
        start={"y": -0.5},
    )


MODELS: dict[str, Make] = {
    "mechanism without loops": furuta_pendulum,
    "mechanism with loops": five_bar_mechanism,
    "Lagrange": four_bar,
    "Kane": skate,
    "mass matrix": mass_matrix,
}


@pytest.fixture(scope="module", params=list(MODELS))
def case(request: pytest.FixtureRequest) -> tuple[fl.Model, CasadiModel]:
    model = MODELS[request.param]()
    return model, fl.to_casadi(model)


def column(function: Any, *arguments: Any) -> FloatArray:
    found: FloatArray = function(*arguments).full()[:, 0]
    return found


def test_numbers_are_those_of_the_model(case: tuple[fl.Model, CasadiModel]) -> None:
    model, nonlinear = case
    random = np.random.default_rng(5)
    for _ in range(3):
        x = model.start.states + 0.02 * random.standard_normal(len(model.states))
        u = model.start.inputs + 0.1 * random.standard_normal(len(model.inputs))
        expected = model.evaluate(0.7, x, u)
        for function, value in (
            (nonlinear.f, expected.derivatives),
            (nonlinear.c, expected.outputs),
            (nonlinear.g, expected.residuals),
        ):
            size = np.abs(value).max(initial=1.0)
            np.testing.assert_allclose(column(function, x, u, 0.7), value, rtol=0, atol=1e-12 * size)


def test_names_and_units_are_those_of_the_model(case: tuple[fl.Model, CasadiModel]) -> None:
    model, nonlinear = case
    assert [nonlinear.f.name_in(i) for i in range(3)] == ["x", "u", "t"]
    assert [f.name_out(0) for f in (nonlinear.f, nonlinear.c, nonlinear.g)] == ["x_dot", "out", "residuals"]
    assert nonlinear.f.size1_in(0) == len(nonlinear.states) == len(model.states)
    assert [(s.name, s.unit) for s in nonlinear.states] == [(s.name, s.unit) for s in model.states]
    assert (nonlinear.inputs.names, nonlinear.outputs.names) == (model.inputs.names, model.outputs.names)


def slopes(form: IndependentForm, u: FloatArray) -> Sequence[FloatArray]:
    """Return dF/dy, dF/du, dC/dy, dC/du at the start of y."""
    y = form.coordinates.starts
    Y, U = ca.MX.sym("y", len(y)), ca.MX.sym("u", len(u))
    values = form.F(Y, U, 0), form.C(Y, U, 0)
    both = ca.Function("slopes", [Y, U], [ca.densify(ca.jacobian(v, s)) for v in values for s in (Y, U)])
    return [part.full() for part in both(y, u)]


def test_slopes_in_independent_coordinates_are_the_linear_model(case: tuple[fl.Model, CasadiModel]) -> None:
    model, nonlinear = case
    lin = fl.linearize(model)
    form = nonlinear.in_independent_coordinates()
    assert form.coordinates.names == lin.states.names
    for ours, theirs in zip(slopes(form, model.start.inputs), (lin.A, lin.B, lin.C, lin.D), strict=True):
        size = np.abs(theirs).max(initial=1.0)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12 * lin.accuracy.conditioning * size)
    f0 = column(form.F, form.coordinates.starts, model.start.inputs, 0.0)
    np.testing.assert_allclose(f0, lin.f0, rtol=0, atol=1e-12 * max(1.0, np.abs(lin.f0).max(initial=0.0)))


def test_psi_keeps_to_the_manifold_far_from_its_point() -> None:
    model = four_bar()
    form = fl.to_casadi(model).in_independent_coordinates(independent=["phi", "w"])
    phi, w = form.coordinates.starts + np.array([0.4, 1.5])
    x = column(form.psi, [phi, w], model.start.inputs, 0.0)
    there = fl.operating_point(model, {"phi": phi, "w": w})
    np.testing.assert_allclose(x, there.states, rtol=0, atol=1e-11)
    out = column(form.C, [phi, w], model.start.inputs, 0.0)
    np.testing.assert_allclose(out, model.evaluate(0.0, x, model.start.inputs).outputs, rtol=0, atol=1e-12)


def test_coordinates_may_be_expressions() -> None:
    model = cartesian_pendulum()
    wanted = ["theta = atan2(x, -y)"]
    point = fl.operating_point(model, {"x": 0.3})
    form = fl.to_casadi(model).in_independent_coordinates(point, independent=wanted)
    lin = fl.linearize(model, point, independent=wanted)
    assert form.coordinates.names == ("theta", "der(theta)")
    A, B, _, _ = slopes(form, point.inputs)
    np.testing.assert_allclose(A, lin.A, atol=1e-11 * np.abs(lin.A).max())
    np.testing.assert_allclose(B, lin.B, atol=1e-11)


def test_the_manifold_may_move_with_an_input() -> None:
    model = driven_pendulum()
    point = fl.operating_point(model, {"s": 0.3, "der(s)": -0.4, "der(der(s))": 2.0}, project=True)
    form = fl.to_casadi(model).in_independent_coordinates(point, independent=["x", "vx"])
    lin = fl.linearize(model, point, independent=["x", "vx"])
    A, B, _, _ = slopes(form, point.inputs)
    np.testing.assert_allclose(A, lin.A, atol=1e-9 * np.abs(lin.A).max())
    np.testing.assert_allclose(B, lin.B, atol=1e-9 * np.abs(lin.B).max())


def test_functions_take_symbols_and_can_be_differentiated_twice() -> None:
    nonlinear = fl.to_casadi(furuta_pendulum())
    x, u = ca.MX.sym("x", 4), ca.MX.sym("u")
    bent = ca.Function("bent", [x, u], [ca.hessian(nonlinear.f(x, u, 0)[3], x)[0]])
    first = ca.Function("first", [x, u], [ca.gradient(nonlinear.f(x, u, 0)[3], x)])
    at, h = np.array([0.2, 2.0, 0.5, -1.0]), 1e-5
    measured = [(column(first, at + h * e, 0.1) - column(first, at - h * e, 0.1)) / (2 * h) for e in np.eye(4)]
    np.testing.assert_allclose(bent(at, 0.1).full(), np.stack(measured), rtol=0, atol=1e-6)


def test_the_chosen_interface_and_parameters_are_used() -> None:
    model = mass_matrix().with_interface(inputs=[], outputs=["z", "der(x)"]).with_parameters({"k": 2.0})
    nonlinear = fl.to_casadi(model)
    x = np.array([0.3, 0.1, -0.2])
    expected = model.evaluate(0.0, x, np.empty(0))
    np.testing.assert_allclose(column(nonlinear.f, x, [], 0.0), expected.derivatives, rtol=1e-13)
    np.testing.assert_allclose(column(nonlinear.c, x, [], 0.0), expected.outputs, rtol=1e-13)


def test_an_indefinite_matrix_is_solved_with_pivots_of_each_point() -> None:
    """W = [[x, 1 + y^2], [1 + y^2, x]] is indefinite at the start; at x = 0 its first pivot is zero."""
    W = [["x", "1 + y^2"], ["1 + y^2", "x"]]
    model = OdeModel("indefinite", {"x": "sin(y)", "y": "x + 2"}, mass_matrix=W, start={"x": 0.5, "y": 0.3})
    nonlinear = fl.to_casadi(model)
    for x, y in ((0.5, 0.3), (0.0, 0.3), (4.0, 0.1)):
        expected = np.linalg.solve([[x, 1 + y**2], [1 + y**2, x]], [np.sin(y), x + 2])
        np.testing.assert_allclose(column(nonlinear.f, [x, y], [], 0.0), expected, rtol=1e-13)


def test_a_definite_matrix_is_eliminated_in_scalars() -> None:
    assert fl.to_casadi(furuta_pendulum()).f.is_a("SXFunction")
    assert not fl.to_casadi(four_bar()).f.is_a("SXFunction"), "with multipliers it is indefinite"
