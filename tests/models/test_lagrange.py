"""Lagrange's equations with multipliers against solutions by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy

from fmilin import NumericalError, UsageError
from fmilin.codegen.system_functions import SystemFunctions
from fmilin.constraints.declared import Level
from fmilin.models import Labels, LagrangeModel, SymbolicConstraint, der
from fmilin.signals import FloatArray
from tests.exact import products_of

x, y, vx, vy, F, L, m, g = sympy.symbols("x y vx vy F L m g")


def pendulum(**changes: Any) -> LagrangeModel:
    given: dict[str, Any] = {
        "coordinates": {x: vx, y: vy},
        "mass_matrix": [[m, 0], [0, m]],
        "forces": [F, -m * g],
        "constraints": [SymbolicConstraint((x**2 + y**2 - L**2) / 2, name="rod")],
        "inputs": [F],
        "parameters": {L: 2.0, m: 3.0, g: 9.81},
        "outputs": {"tension": sympy.Symbol("lambda[1]") * L, "ax": der(vx)},
        "start": {x: 1.2, y: -1.6, vx: 0.8, vy: 0.6},
        "labels": Labels(units={x: "m", y: "m"}),
    }
    return LagrangeModel("pendulum", **(given | changes))


def central_difference(model: LagrangeModel, column: int, h: float = 1e-5) -> FloatArray:
    n, k = len(model.states), len(model.inputs)
    d = h * np.eye(n + k)[column]
    x0, u0 = model.start.states, model.start.inputs
    ahead, behind = model.evaluate(0.0, x0 + d[:n], u0 + d[n:]), model.evaluate(0.0, x0 - d[:n], u0 - d[n:])
    both = [np.concatenate((e.derivatives, e.outputs, e.residuals)) for e in (ahead, behind)]
    result: FloatArray = (both[0] - both[1]) / (2 * h)
    return result


def test_tension_and_accelerations_of_a_moving_pendulum() -> None:
    # tangential: theta'' = -g/L sin + F cos/(m L); along the rod: T = m (v^2/L + g cos) + F sin
    model = pendulum()
    F0, sin, cos, v = 0.7, 0.6, 0.8, 1.0
    at = model.evaluate(0.0, model.start.states, np.array([F0]))
    theta2 = -9.81 / 2 * sin + F0 * cos / 6
    np.testing.assert_allclose(at.outputs[0], 3 * (v**2 / 2 + 9.81 * cos) + F0 * sin, rtol=1e-14)
    np.testing.assert_allclose(at.derivatives[2], 2 * (theta2 * cos - (v / 2) ** 2 * sin), rtol=1e-14)
    np.testing.assert_allclose(at.outputs[1], at.derivatives[2], rtol=1e-15)


def test_the_hidden_constraint_is_the_velocity_along_the_rod() -> None:
    model = pendulum()
    assert model.constraints.names == ("rod", "rate of rod")
    np.testing.assert_allclose(model.evaluate(0.0, model.start.states, np.zeros(1)).residuals, 0.0, atol=1e-15)
    off = model.evaluate(0.0, np.array([1.0, -1.0, 0.5, 2.0]), np.zeros(1)).residuals
    np.testing.assert_allclose(off, [-1.0, -1.5], rtol=1e-15)


def test_velocities_get_the_unit_of_the_rate() -> None:
    assert pendulum().states.units == ("m", "m", "m/s", "m/s")


def test_products_agree_with_central_differences() -> None:
    model = pendulum()
    exact = products_of(model, 0.0, model.start.states, model.start.inputs, np.eye(4, 5), np.eye(1, 5, 4))
    columns = np.concatenate((exact.derivatives, exact.outputs, exact.residuals))
    for k in range(5):
        np.testing.assert_allclose(columns[:, k], central_difference(model, k), rtol=1e-8, atol=1e-8)


def test_the_motion_stays_on_the_constraint() -> None:
    """With (2.3) in the equations the second derivative of g vanishes wherever the state is, on the manifold or not."""
    model = pendulum()
    state = np.array([0.9, -1.4, 0.3, 2.2])
    a = model.evaluate(0.0, state, np.array([0.4])).derivatives
    second = a[2] * state[0] + a[3] * state[1] + state[2] ** 2 + state[3] ** 2
    assert abs(second) < 1e-13


def test_a_moving_pivot_brings_its_own_acceleration() -> None:
    """The pivot moves as sin(time): 0 = ((x - sin t)^2 + y^2 - L^2)/2, differentiated twice."""
    t = sympy.Symbol("time")
    model = pendulum(constraints=[((x - sympy.sin(t)) ** 2 + y**2 - L**2) / 2])
    at, state = 0.4, np.array([0.9, -1.4, 0.3, 2.2])
    d, dd = state[0] - np.sin(at), state[2] - np.cos(at)
    here = model.evaluate(at, state, np.zeros(1))
    np.testing.assert_allclose(here.residuals[1], d * dd + state[1] * state[3], rtol=1e-14)
    a = here.derivatives
    second = d * (a[2] + np.sin(at)) + dd**2 + state[1] * a[3] + state[3] ** 2
    assert abs(second) < 1e-13


def test_a_nonholonomic_constraint_acts_on_velocities_alone() -> None:
    """A skate: the velocity across the blade is zero, and the multiplier is the force across it."""
    phi, w, M = sympy.symbols("phi w M")
    across = SymbolicConstraint(vx * sympy.sin(phi) - vy * sympy.cos(phi), name="blade", level="velocity")
    model = LagrangeModel(
        "skate",
        {x: vx, y: vy, phi: w},
        sympy.diag(m, m, 1),
        [0, 0, M],
        constraints=[across],
        inputs=[M],
        parameters={m: 2.0},
        start={vx: 3.0, w: 0.5},
    )
    assert model.constraints.names == ("blade",)
    at = model.with_interface(outputs=["lambda[1]"]).evaluate(0.0, model.start.states, model.start.inputs)
    np.testing.assert_allclose(at.derivatives, [3.0, 0.0, 0.5, 0.0, 1.5, 0.0], atol=1e-15)
    assert abs(at.outputs[0]) == pytest.approx(2.0 * 3.0 * 0.5)


def test_a_coordinate_without_mass_is_held_by_its_constraint() -> None:
    theta, w = sympy.symbols("theta w")
    model = pendulum(
        coordinates={x: vx, y: vy, theta: w},
        mass_matrix=[[m, 0, 0], [0, m, 0], [0, 0, 0]],
        forces=[F, -m * g, 0],
        constraints=[(x**2 + y**2 - L**2) / 2, x - L * sympy.sin(theta)],
        start={y: -2.0},
    )
    assert model.evaluate(0.0, model.start.states, model.start.inputs).derivatives.tolist() == [0.0] * 6


def test_a_redundant_constraint_is_named() -> None:
    rod = (x**2 + y**2 - L**2) / 2
    model = pendulum(constraints=[rod, 2 * rod])
    with pytest.raises(NumericalError, match=r"leaves lambda\[\d\], lambda\[\d\] undetermined"):
        model.evaluate(0.0, model.start.states, model.start.inputs)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mass_matrix": [[m, 1], [0, m]]}, "the mass matrix is not symmetric"),
        ({"mass_matrix": [[m, 1]]}, "the mass matrix is 1 by 2 and should be 2 by 2"),
        ({"forces": [F]}, "there are 1 forces for 2 coordinates"),
        ({"constraints": [x - vx]}, "may contain coordinates, inputs, parameters and time only"),
        ({"constraints": [SymbolicConstraint(vx**2, level="velocity")]}, "is not linear in the velocities"),
        ({"coordinates": {x: vx, y: vx}}, "'vx', a velocity, is declared twice"),
        ({"forces": [F, "-m*g*c"]}, "force 2 contains 'c', which has no value"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        pendulum(**changes)


def test_symmetry_is_judged_by_value_not_by_form() -> None:
    c, s = sympy.cos(x), sympy.sin(x)
    model = pendulum(mass_matrix=[[m + 1, c**2 + s**2], [1, m + 1]])
    assert len(model.states) == 4
    rounded = pendulum(mass_matrix=[[m + 2, x * y + 0.3], [x * y + 0.1 + 0.2, m + 2]])  # x y is not in the difference
    assert len(rounded.states) == 4


def test_constraints_are_differentiated_as_symbols_are() -> None:
    """One of each kind, in any order: the rows of W and r are G and -(Gdot v + ...), term by term."""
    t, s, x, y, theta, vx, vy, w, F, L, m, g = sympy.symbols("time s x y theta vx vy w F L m g", real=True)
    ds, dds = der(s), der(der(s))
    laws: list[tuple[Any, Level]] = [
        (vx * sympy.sin(theta) - vy * sympy.cos(x * t) + s * w, "velocity"),
        (sympy.Abs(x) * y**3 / L - s**2 * t, "position"),
        (vy * x - sympy.sqrt(y + theta**2) * vx - t, "velocity"),
        (sympy.exp(x * y) + sympy.cos(theta - s), "position"),
    ]
    q, v = sympy.Matrix([x, y, theta]), sympy.Matrix([vx, vy, w])
    model = pendulum(
        coordinates=dict(zip(q, v, strict=True)),
        mass_matrix=sympy.diag(m, m, 1),
        forces=[F, -m * g, 0],
        constraints=[SymbolicConstraint(e, level=level) for e, level in laws],
        inputs=[F, s],
        parameters={L: 2.0, m: 1.5, g: 9.0},
    )
    at = {x: -0.7, y: 1.1, theta: 0.4, vx: 0.3, vy: -0.8, w: 1.7, t: 0.6, s: 0.9, ds: -0.5, dds: 2.3}
    values = at | {F: 0.2, m: 1.5, g: 9.0, L: 2.0}

    def rate(e: Any) -> Any:
        return e.diff(t) + sum(e.diff(a) * b for a, b in [*zip(q, v, strict=True), (s, ds), (ds, dds)])

    def number(e: Any) -> float:
        return float(e.subs(values))

    linear = [e if level == "velocity" else rate(e) for e, level in laws]
    named = {str(symbol): value for symbol, value in values.items()}
    state, inputs = (np.array([named[signal.name] for signal in some]) for some in (model.states, model.inputs))
    graph = model.in_graph()
    assert graph is not None
    W, r = SystemFunctions(graph).equations(0.6, state, inputs, model.engine.p)
    np.testing.assert_allclose(W[3:, :3], [[number(a.diff(b)) for b in v] for a in linear], rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(r[3:], [-number(rate(a)) for a in linear], rtol=1e-12)
    assert np.array_equal(W[:3, 3:], W[3:, :3].T)
    residuals = model.constraint_residuals(0.6, state, inputs)
    assert residuals is not None
    expected = [number(e) for e, _ in laws] + [number(rate(e)) for e, level in laws if level == "position"]
    np.testing.assert_allclose(residuals, expected, rtol=1e-13)
