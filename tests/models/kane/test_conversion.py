"""KanesMethod and LagrangesMethod objects as models: what is found in them, and what happens to leftover rates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy
from sympy.physics.mechanics import KanesMethod, Particle, Point, ReferenceFrame, dynamicsymbols
from sympy.physics.mechanics.models import n_link_pendulum_on_cart

import fmilin as fl
from fmilin import ModelError, UsageError
from fmilin.models import KaneModel, Labels
from fmilin.systems import rolling_disk
from tests.models.kane.blocks import blocks
from tests.models.kane.examples import cartesian_lagrange, disc, pendulum_on_a_moving_pivot

x, v = dynamicsymbols("x v")
k, c, b, m = sympy.symbols("k c b m")

UPRIGHT = {"q6": -1.0, "u2": -0.7, "u4": 0.7}


def test_the_disc_of_sympy_is_the_disc_of_the_paper() -> None:
    ours = rolling_disk(0.7)
    theirs = KaneModel.from_sympy(disc(), parameters={"m": 1, "r": 1, "g": 1}, start=UPRIGHT)
    x = fl.operating_point(ours, {"q1": 0.3, "q2": -0.4, "q3": 1.1, "u1": 0.2, "u2": -0.9, "u3": 0.5}).states
    np.testing.assert_allclose(
        theirs.evaluate(0.0, x, np.empty(0)).derivatives, ours.evaluate(0.0, x, np.zeros(2)).derivatives, atol=1e-14
    )
    assert theirs.independent == ("q1", "q2", "q3", "q4", "q5", "u1", "u2", "u3")


def test_sympys_own_linearizer_finds_the_same_matrices() -> None:
    """At a leaning point that is no equilibrium, all rates put in by hand, as sympy needs it."""
    kane = disc()
    model = KaneModel.from_sympy(kane, parameters={"m": 1, "r": 1, "g": 1}, start=UPRIGHT)
    values = {"q1": 0.3, "q2": -0.4, "q3": 1.1, "u1": 0.2, "u2": -0.9, "u3": 0.5}
    point = fl.operating_point(model, values)
    rates = model.evaluate(0.0, point.states, np.empty(0)).derivatives
    t = dynamicsymbols._t
    states = [*kane.q, *kane.u]
    at: dict[Any, Any] = {s.diff(t): rate for s, rate in zip(states, rates, strict=True)}
    at |= dict(zip(states, point.states, strict=True)) | dict.fromkeys(sympy.symbols("m r g"), 1)
    A, _ = kane.to_linearizer().linearize(op_point=at, A_and_B=True)
    np.testing.assert_allclose(model.matrices(point).A, np.array(A, dtype=float), atol=1e-13)


def test_linear_models_hold_numbers_where_sympy_leaves_accelerations() -> None:
    """A cart with two links away from equilibrium: sympy's A contains u' there."""
    kane = n_link_pendulum_on_cart(2)
    model = KaneModel.from_sympy(
        kane,
        parameters={"l0": 1.0, "l1": 0.8, "m0": 2.0, "m1": 1.0, "m2": 0.5, "g": 9.81},
        start={"q1": 0.1, "q2": 0.7},
    )
    A, _, _ = kane.linearize(A_and_B=True)
    left = {str(d) for d in A.atoms(sympy.Derivative)}
    assert "Derivative(u1(t), t)" in left
    lin = fl.linearize(model)
    assert lin.inputs.names == ("F",)
    assert np.isfinite(lin.A).all()
    again = fl.linearize(model, derivatives="differences")
    np.testing.assert_allclose(lin.A, again.A, atol=1e-8)
    np.testing.assert_allclose(lin.B, again.B, atol=1e-9)


def oscillator(load: Any, kinematics: Any = None) -> Any:
    """A mass on a line with coordinate x and speed v; ``load`` of (x, v) in N."""
    N = ReferenceFrame("N")
    P = Point("P")
    P.set_vel(N, v * N.x)
    kane = KanesMethod(N, [x], [v], kd_eqs=[kinematics or x.diff() - v])
    kane.kanes_equations([Particle("mass", P, sympy.Symbol("m"))], [(P, load * N.x)])
    return kane


@pytest.mark.parametrize("damping", [c * x.diff(), c * v])
def test_rates_in_a_load_become_speeds(damping: Any) -> None:
    model = KaneModel.from_sympy(oscillator(-k * x - damping), parameters={k: 3.0, c: 0.5, m: 2.0})
    np.testing.assert_allclose(fl.linearize(model).A, np.array([[0, 1], [-1.5, -0.25]]))


@pytest.mark.parametrize("added", [b * x.diff(dynamicsymbols._t, 2), b * v.diff()])
def test_second_derivatives_and_accelerations_in_a_load_move_to_the_mass_matrix(added: Any) -> None:
    """A load -b x'' acts like added mass."""
    model = KaneModel.from_sympy(oscillator(-k * x - added), parameters={k: 3.0, b: 1.0, m: 2.0})
    np.testing.assert_allclose(fl.linearize(model).A, np.array([[0, 1], [-1.0, 0]]))
    assert blocks(model, model.start).M_uud.ravel().tolist() in ([3.0], [-3.0])


def test_second_derivatives_follow_kinematic_equations_that_are_no_identity() -> None:
    """X' = (1 + x^2) v, so that x'' = (1 + x^2) v' + 2 x (1 + x^2) v^2."""
    load = -b * x.diff(dynamicsymbols._t, 2)
    model = KaneModel.from_sympy(oscillator(load, x.diff() - (1 + x**2) * v), parameters={b: 1.0, m: 2.0})
    at = np.array([0.5, 2.0])
    f = model.evaluate(0.0, at, np.empty(0)).derivatives
    s = 1 + 0.25
    np.testing.assert_allclose(f, [s * 2.0, -2 * 0.5 * s * 4.0 / (2.0 + s)])


def test_loads_nonlinear_in_accelerations_are_refused_by_name() -> None:
    with pytest.raises(UsageError, match=r"f_2\[1\] is not linear in der\(v\)"):
        KaneModel.from_sympy(oscillator(v.diff() ** 2), parameters={m: 2.0})


def test_functions_that_are_no_functions_of_time_are_refused_by_name() -> None:
    with pytest.raises(UsageError, match=r"'spring\(x\(t\)\)' is neither a function of time"):
        KaneModel.from_sympy(oscillator(sympy.Function("spring")(x)), parameters={m: 2.0})


def test_functions_that_no_code_can_be_made_of_are_refused_by_name() -> None:
    with pytest.raises(ModelError, match="no C code for the function 'besselj'"):
        KaneModel.from_sympy(oscillator(-sympy.besselj(0, x)), parameters={m: 2.0})


def test_symbols_without_value_are_named() -> None:
    with pytest.raises(UsageError, match=r"'k' appears in the equations and has no value"):
        KaneModel.from_sympy(oscillator(-k * x), parameters={"m": 2.0})


def test_something_else_is_refused() -> None:
    with pytest.raises(UsageError, match="KanesMethod or LagrangesMethod"):
        KaneModel.from_sympy(object())


def test_equations_are_formed_where_that_has_not_happened() -> None:
    N = ReferenceFrame("N")
    P = Point("P")
    P.set_vel(N, v * N.x)
    bodies = [Particle("mass", P, m)]
    kane = KanesMethod(N, [x], [v], kd_eqs=[x.diff() - v], bodies=bodies, forcelist=[(P, -k * x * N.x)])
    np.testing.assert_allclose(
        fl.linearize(KaneModel.from_sympy(kane, parameters={k: 3.0, m: 2.0})).A, np.array([[0, 1], [-1.5, 0]])
    )
    with pytest.raises(UsageError, match="call kanes_equations"):
        KaneModel.from_sympy(KanesMethod(N, [x], [v], kd_eqs=[x.diff() - v]), parameters={})


def test_specified_motion_brings_its_derivatives_as_inputs() -> None:
    """L theta'' = -g sin(theta) - pivot'' cos(theta)."""
    model = KaneModel.from_sympy(
        pendulum_on_a_moving_pivot(), parameters={"m": 2.0, "g": 9.81, "L": 0.5}, start={"theta": 0.3, "w": 1.0}
    )
    assert model.inputs.names == ("der(der(pivot))",)
    lin = fl.linearize(model)
    np.testing.assert_allclose(lin.A, np.array([[0, 1], [-9.81 / 0.5 * np.cos(0.3), 0]]), rtol=1e-14)
    np.testing.assert_allclose(lin.B, np.array([[0], [-np.cos(0.3) / 0.5]]), rtol=1e-14)
    np.testing.assert_allclose(fl.linearize(model).A, lin.A, rtol=1e-13)


def test_inputs_can_be_ordered_and_chosen_among_symbols() -> None:
    kane = n_link_pendulum_on_cart(1, joint_torques=True)
    values = {"l0": 1.0, "m0": 2.0, "m1": 1.0, "g": 9.81}
    assert KaneModel.from_sympy(kane, parameters=values).inputs.names == ("F", "T1")
    ordered = KaneModel.from_sympy(kane, parameters=values, inputs=dynamicsymbols("T1 F"))
    assert ordered.inputs.names == ("T1", "F")
    del values["g"]
    model = KaneModel.from_sympy(kane, parameters=values, inputs=["F", "T1", sympy.Symbol("g")], start={"g": 9.81})
    assert fl.linearize(model).B.shape == (4, 3)
    with pytest.raises(UsageError, match="'T1' appears in the equations and is not among the inputs"):
        KaneModel.from_sympy(kane, parameters=values | {"g": 1}, inputs=["F"])


def test_a_specified_function_may_be_held_as_a_parameter() -> None:
    kane = n_link_pendulum_on_cart(1)
    model = KaneModel.from_sympy(kane, parameters={"l0": 1.0, "m0": 2.0, "m1": 1.0, "g": 9.81, "F": 0.0})
    assert not len(model.inputs)


def test_outputs_may_be_written_in_functions_of_time() -> None:
    kane = n_link_pendulum_on_cart(1)
    q1, u1 = dynamicsymbols("q1 u1")
    model = KaneModel.from_sympy(
        kane,
        parameters={"l0": 1.0, "m0": 2.0, "m1": 1.0, "g": 9.81},
        outputs={"tip": kane.q[0] + sympy.Symbol("l0") * sympy.sin(q1), "acceleration": u1.diff(), "text": "q0*m1"},
        labels=Labels(units={kane.q[0]: "m", "tip": "m"}),
        start={q1: 0.2, u1: 1.0},
    )
    assert model.states.units[0] == "m"
    lin = fl.linearize(model)
    i = lin.states.names.index("q1")
    assert lin.C[0, i] == pytest.approx(np.cos(0.2))
    np.testing.assert_allclose(lin.C[1], lin.A[lin.states.names.index("u1")])
    np.testing.assert_allclose(lin.D[1], lin.B[lin.states.names.index("u1")])


def test_lagranges_equations_with_a_multiplier() -> None:
    model = KaneModel.from_sympy(
        cartesian_lagrange(),
        parameters={"m": 2.0, "g": 9.81, "L": 0.5},
        start={"y": 0.5},
        outputs={"tension": "2*L*lam1"},
    )
    assert model.states.names == ("x", "y", "x_dot", "y_dot")
    lin = fl.linearize(model, independent=["x", "x_dot"])
    np.testing.assert_allclose(lin.A, np.array([[0, 1], [-9.81 / 0.5, 0]]), rtol=1e-14)
    np.testing.assert_allclose(lin.B, np.array([[0], [0.5]]), rtol=1e-14)
    assert abs(lin.point.outputs["tension"]) == pytest.approx(2.0 * 9.81)
    np.testing.assert_allclose(fl.linearize(model, independent=["x", "x_dot"]).A, lin.A, rtol=1e-12)


def test_lagranges_equations_in_motion_against_the_closed_form() -> None:
    """At any angle and speed: theta'' = -(g/L) sin(theta) in the coordinate x = L sin(theta)."""
    L, theta, w = 0.5, 0.6, 1.7
    s, c = np.sin(theta), np.cos(theta)
    values = {"x": L * s, "y": L * c, "x_dot": L * c * w, "y_dot": -L * s * w}
    model = KaneModel.from_sympy(cartesian_lagrange(), parameters={"m": 2.0, "g": 9.81, "L": L}, start=values)
    lin = fl.linearize(model, independent=["x", "x_dot"])
    xs, vs = sympy.symbols("xs vs", real=True)
    angle, rate = sympy.asin(xs / L), vs / sympy.sqrt(L**2 - xs**2)
    acceleration = L * sympy.cos(angle) * (-9.81 / L * sympy.sin(angle)) - L * sympy.sin(angle) * rate**2
    row = [float(acceleration.diff(z).subs({xs: values["x"], vs: values["x_dot"]})) for z in (xs, vs)]
    np.testing.assert_allclose(lin.A, np.array([[0.0, 1.0], row]), rtol=1e-12)


def test_nonholonomic_lagranges_equations() -> None:
    """A knife edge: x' sin(psi) = y' cos(psi)."""
    from sympy.physics.mechanics import LagrangesMethod, Lagrangian, RigidBody, inertia

    X, Y, psi = dynamicsymbols("X Y psi")
    J = sympy.Symbol("J")
    N = ReferenceFrame("N")
    A = N.orientnew("A", "Axis", [psi, N.z])
    origin, P = Point("O"), Point("P")
    origin.set_vel(N, 0)
    P.set_pos(origin, X * N.x + Y * N.y)
    P.set_vel(N, X.diff() * N.x + Y.diff() * N.y)
    body = RigidBody("blade", P, A, m, (inertia(A, 0, 0, J), P))
    edge = X.diff() * sympy.sin(psi) - Y.diff() * sympy.cos(psi)
    lagrange = LagrangesMethod(Lagrangian(N, body), [X, Y, psi], nonhol_coneqs=[edge])
    model = KaneModel.from_sympy(
        lagrange, parameters={"m": 2.0, "J": 1.0}, start={"psi": 0.0, "X_dot": 3.0, "psi_dot": 0.5}
    )
    lin = fl.linearize(model, independent=["X", "Y", "psi", "X_dot", "psi_dot"])
    # in X' = v cos(psi): X'' = -v sin(psi) psi', Y' = X' tan(psi)
    expected = np.zeros((5, 5))
    expected[0, 3] = expected[2, 4] = 1.0
    expected[1, 2] = 3.0
    expected[3, 2] = -3.0 * 0.5  # -X' tan(psi) psi' at psi = 0
    np.testing.assert_allclose(lin.A, expected, atol=1e-14)


def test_auxiliary_speeds_bring_reaction_forces_as_outputs() -> None:
    """A pendulum with an auxiliary speed along the rod: its tension is m g cos(theta) + m L w^2."""
    theta, w, a, tension = dynamicsymbols("theta w a tension")
    g, L = sympy.symbols("g L")
    N = ReferenceFrame("N")
    A = N.orientnew("A", "Axis", [theta, N.z])
    A.set_ang_vel(N, w * N.z)
    origin = Point("O")
    origin.set_vel(N, 0)
    P = origin.locatenew("P", -L * A.y)
    P.set_vel(N, L * w * A.x + a * A.y)
    P.set_acc(N, L * w.diff() * A.x + L * w**2 * A.y)
    kane = KanesMethod(N, [theta], [w], kd_eqs=[theta.diff() - w], u_auxiliary=[a])
    kane.kanes_equations([Particle("bob", P, m)], [(P, -m * g * N.y + tension * A.y)])
    model = KaneModel.from_sympy(
        kane,
        parameters={"m": 2.0, "g": 9.81, "L": 0.5},
        outputs={"force": tension},
        start={"theta": 0.4, "w": 1.5},
    )
    assert model.states.names == ("theta", "w")
    assert not len(model.inputs)
    lin = fl.linearize(model)
    assert lin.point.outputs["force"] == pytest.approx(2.0 * 9.81 * np.cos(0.4) + 2.0 * 0.5 * 1.5**2)
    np.testing.assert_allclose(lin.C, np.array([[-2.0 * 9.81 * np.sin(0.4), 2 * 2.0 * 0.5 * 1.5]]), rtol=1e-13)
    np.testing.assert_allclose(lin.A, np.array([[0, 1], [-9.81 / 0.5 * np.cos(0.4), 0]]), rtol=1e-13)
    np.testing.assert_allclose(fl.linearize(model).C, lin.C, rtol=1e-12)
