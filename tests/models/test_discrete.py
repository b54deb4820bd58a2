"""Discrete-time models along points against differences and complex steps of the same integrators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm

import fmilin as fl
from fmilin.errors import NumericalError, UsageError
from fmilin.models import FunctionModel, OdeModel
from fmilin.signals import FloatArray
from fmilin.systems import cartesian_pendulum, four_bar, rolling_disk, slider_crank

Rates = Callable[[float, Any, Any], Any]


def rk4(rates: Rates, t: float, x: Any, u: Any, h: float) -> Any:
    a = rates(t, x, u)
    b = rates(t + h / 2, x + h / 2 * a, u)
    c = rates(t + h / 2, x + h / 2 * b, u)
    d = rates(t + h, x + h * c, u)
    return x + h / 6 * (a + 2 * b + 2 * c + d)


def midpoint(rates: Rates, t: float, x: Any, u: Any, h: float) -> Any:
    """The implicit midpoint rule by plain iteration."""
    m = x
    for _ in range(200):
        m = x + h / 2 * rates(t + h / 2, m, u)
    return 2 * m - x


INTEGRATORS = {"rk4": rk4, "midpoint": midpoint}


def driven() -> OdeModel:
    """A nonlinear plant that depends on time, its own rates in closed form below."""
    equations = {"q": "v", "v": "F*cos(q) - sin(q) - d*v*v + sin(3*time)"}
    return OdeModel("driven", equations, inputs=["F"], parameters={"d": 0.2})


def driven_rates(t: float, x: Any, u: Any) -> Any:
    q, v = x
    return np.array([v, u[0] * np.cos(q) - np.sin(q) - 0.2 * v * v + np.sin(3 * t)])


@pytest.mark.parametrize("integrator", ["rk4", "midpoint"])
def test_slopes_are_the_complex_steps_of_the_integrator(integrator: str) -> None:
    model, h, dt = driven(), 1e-30, 0.15
    points = [
        replace(model.start, time=0.1 * k, states=np.array([0.3 * k, 1 - k]), inputs=np.array([0.5 * k]))
        for k in range(5)
    ]
    found = model.discrete_along(points, dt, integrator=integrator, steps=3)
    for k, point in enumerate(points):
        z = np.concatenate((point.states, point.inputs)).astype(complex)
        columns = []
        for direction in np.eye(3):
            step = z + 1j * h * direction
            x, t = step[:2], point.time
            for i in range(3):
                x = INTEGRATORS[integrator](driven_rates, t + i * dt / 3, x, step[2:], dt / 3)
            columns.append(x.imag / h)
        np.testing.assert_allclose(np.hstack((found.A[k], found.B[k])), np.array(columns).T, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(found.y_next[k], x.real, rtol=1e-13)
        np.testing.assert_allclose(found.A[k] @ found.y[k] + found.B[k] @ found.u[k] + found.c[k], x.real, rtol=1e-12)


@pytest.mark.parametrize(("integrator", "tolerance"), [("rk4", 2e-8), ("midpoint", 2e-8)])
def test_on_the_manifold_they_are_the_differences_of_lifting_and_stepping(integrator: str, tolerance: float) -> None:
    model, dt, h = slider_crank(), 0.01, 1e-5
    first = fl.linearize(model)
    values = dict(zip(first.states.names, (0.6, 1.3), strict=True))
    point = fl.operating_point(model, values)
    found = model.discrete_along([point], dt, integrator=integrator, independent=first.states.names)
    kept = [model.states.positions[name] for name in found.states]

    def step(y: Sequence[float], u: FloatArray) -> Any:
        at = fl.operating_point(model, dict(zip(found.states, y, strict=True)))
        x = INTEGRATORS[integrator](lambda t, x, u: model.evaluate(t, x, u).derivatives, 0.0, at.states, u, dt)
        return x[kept]

    y, u = found.y[0], point.inputs
    np.testing.assert_allclose(found.y_next[0], step(y, u), rtol=1e-9)
    A = np.array([(step(y + h * e, u) - step(y - h * e, u)) / (2 * h) for e in np.eye(len(y))]).T
    np.testing.assert_allclose(found.A[0], A, atol=tolerance * np.abs(A).max())
    B = np.array([(step(y, u + h * e) - step(y, u - h * e)) / (2 * h) for e in np.eye(len(u))]).T
    np.testing.assert_allclose(found.B[0], B, atol=tolerance * np.abs(B).max())


@pytest.mark.parametrize(("integrator", "order"), [("rk4", 5), ("midpoint", 3)])
def test_at_rest_the_order_against_the_matrix_exponential(integrator: str, order: int) -> None:
    model = four_bar()
    errors = []
    for dt in (0.04, 0.02):
        found = model.discrete_along([model.start] * 2, dt, integrator=integrator)
        lin = fl.linearize(model, independent=found.states)
        exact = expm(dt * np.block([[lin.A, lin.B], [np.zeros((1, 3))]]))
        errors.append(np.abs(np.hstack((found.A[1], found.B[1])) - exact[:2]).max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.1)


def test_in_motion_the_frozen_matrices_are_off_by_the_square_of_the_step() -> None:
    model = cartesian_pendulum(length=1.0, gravity=4.0)
    point = fl.operating_point(model, {"x": 0.5, "vx": 1.0})
    gaps = []
    for dt in (0.02, 0.01):
        found = model.discrete_along([point], dt)
        A = fl.linearize(model, point, independent=found.states).A
        gaps.append(np.abs(found.A[0] - expm(dt * A)).max())
    assert np.log2(gaps[0] / gaps[1]) == pytest.approx(2, abs=0.15)


def test_blocks_threads_and_rolling_constraints(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = rolling_disk(2.0)
    points = [disk.start] * 150
    found = disk.discrete_along(points, 0.01, threads=2)
    alone = disk.discrete_along(points[:1], 0.01)
    for name in ("A", "B", "c", "x_next"):
        np.testing.assert_allclose(getattr(found, name)[149], getattr(alone, name)[0], rtol=1e-12, atol=1e-14)
    assert found.states == fl.linearize(disk, independent=found.states).states.names


def test_compiled_and_interpreted_are_the_same() -> None:
    crank = slider_crank()
    points = [crank.start] * 3
    interpreted = crank.discrete_along(points, 0.02)
    crank.matrices_along(points, compiled=True)
    compiled = crank.discrete_along(points, 0.02)
    np.testing.assert_allclose(compiled.A, interpreted.A, rtol=1e-10)
    np.testing.assert_allclose(compiled.c, interpreted.c, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dt": 0.0}, "give a positive number of seconds"),
        ({"dt": float("nan")}, "give a positive number of seconds"),
        ({"dt": 0.1, "integrator": "euler"}, "use rk4 or midpoint"),
        ({"dt": 0.1, "steps": 0}, "steps=0: give a positive whole number"),
        ({"dt": 0.1, "threads": 0}, "threads=0: give a positive whole number"),
    ],
)
def test_impossible_arguments(arguments: dict[str, Any], message: str) -> None:
    model = cartesian_pendulum()
    with pytest.raises(UsageError, match=message):
        model.discrete_along([model.start], **arguments)
    with pytest.raises(UsageError, match="No operating point was given"):
        model.discrete_along([], 0.1)


def test_steps_that_lead_nowhere_name_the_point() -> None:
    bursting = OdeModel("bursting", {"x": "x*x"}, start={"x": 0.1})
    points = [bursting.start, replace(bursting.start, states=np.array([1e200]))]
    with pytest.raises(NumericalError, match="from point 1 leads to an infinite state"):
        bursting.discrete_along(points, 1.0)
    points = [bursting.start, replace(bursting.start, states=np.array([3.0]))]
    with pytest.raises(NumericalError, match="from point 1 does not converge"):
        bursting.discrete_along(points, 1.0, integrator="midpoint")  # x_m = 3 + x_m^2/2 has no solution
    with pytest.raises(NumericalError, match="from point 0 does not converge"):
        bursting.discrete_along(points, 10.0, integrator="midpoint")  # 1 - h x is zero at once


def test_coordinates_that_become_singular_are_named() -> None:
    model = cartesian_pendulum()
    level = fl.operating_point(model, {"y": 0.0})
    with pytest.raises(NumericalError, match="singular at point 1"):
        model.discrete_along([model.start, level], 0.01, independent=["x", "vx"])


def test_a_model_without_a_graph_is_told_the_other_way() -> None:
    model = FunctionModel("plain", {"x": 1.0}, lambda t, x, u: -x)
    with pytest.raises(UsageError, match="linearize_along"):
        model.discrete_along([model.start], 0.1)


def test_steps_that_are_too_long_for_the_fastest_motion_are_told() -> None:
    """x' = -1000 x over 0.01 s: rk4 makes 291 of exp(-10); 20 steps, or the implicit rule, are near it."""
    model = OdeModel("fast", {"x": "u - 1000*x"}, inputs=["u"])
    points = [fl.operating_point(model)]
    coarse = model.discrete_along(points, 0.01)
    assert coarse.A[0, 0, 0] == pytest.approx(1 - 10 + 50 - 1000 / 6 + 10000 / 24)
    [said] = coarse.remarks
    assert said.kind == "step"
    assert "midpoint" in str(said)
    fine = model.discrete_along(points, 0.01, steps=200)
    assert fine.remarks == ()
    assert fine.A[0, 0, 0] == pytest.approx(np.exp(-10), rel=1e-4)
