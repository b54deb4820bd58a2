"""Coordinates given as expressions, and inputs that prescribe a motion."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import sympy

import fmilin as fl
from fmilin import Constraint
from fmilin.manifold.verified_frame import build_frame
from fmilin.models import Labels, LagrangeModel
from fmilin.signals import FloatArray
from tests.by_hand import FunctionModel, Parts, pendulum

G, LENGTH, MASS = 9.81, 1.3, 2.0
ANGLE = "theta=atan2(x, -y)"


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(("angle", "rate"), [(0.0, 0.0), (0.7, 1.5), (-2.5, 0.8), (np.pi / 2, -1.0)])
def test_the_pendulum_in_its_angle_at_rest_and_moving(exact: bool, angle: float, rate: float) -> None:
    """theta'' = -g/l sin(theta) + F cos(theta) / (m l): A has no rate in it, wherever and however it moves."""
    lin = fl.linearize(pendulum(angle=angle, rate=rate, exact=exact), independent=[ANGLE])
    assert lin.states.names == ("theta", "der(theta)")
    np.testing.assert_allclose(lin.y0, [angle, rate], atol=1e-14)
    tolerance = 1e-12 if exact else 1e-8
    np.testing.assert_allclose(lin.A, [[0, 1], [-G / LENGTH * np.cos(angle), 0]], atol=tolerance)
    np.testing.assert_allclose(lin.B, [[0], [np.cos(angle) / (MASS * LENGTH)]], atol=tolerance)
    np.testing.assert_allclose(lin.f0, [rate, -G / LENGTH * np.sin(angle)], atol=1e-13)
    s, c = np.sin(angle), np.cos(angle)
    expected = LENGTH * np.array([[c, 0], [s, 0], [-s * rate, c], [c * rate, s]])
    np.testing.assert_allclose(lin.T, expected, atol=1e-13)


def test_psi_of_an_angle_goes_around_the_circle() -> None:
    model = pendulum(angle=0.7, rate=1.5)
    psi = build_frame(model, model.start, named=[ANGLE]).parametrization
    for angle in (0.6, 1.5, -0.3):
        x = psi.psi(np.array([angle, 0.4]))
        np.testing.assert_allclose(x[:2], LENGTH * np.array([np.sin(angle), -np.cos(angle)]), atol=1e-14)
        np.testing.assert_allclose(x[2:], 0.4 * LENGTH * np.array([np.cos(angle), np.sin(angle)]), atol=1e-14)


def test_states_and_expressions_may_be_mixed() -> None:
    lin = fl.linearize(pendulum(angle=0.7, rate=1.5, exact=True), independent=["theta=atan2(x,-y)", "vx"])
    theta = fl.linearize(pendulum(angle=0.7, rate=1.5, exact=True), independent=[ANGLE])
    P = np.array([[1.0, 0.0], [-LENGTH * np.sin(0.7) * 1.5, LENGTH * np.cos(0.7)]])  # (theta, vx) of (theta, w)
    np.testing.assert_allclose(lin.T @ P, theta.T, atol=1e-12)
    assert lin.states.names == ("theta", "vx")


def test_parameters_may_be_used() -> None:
    lin = fl.linearize(pendulum(angle=0.4, exact=True), independent=["theta = asin(x/L)"])
    np.testing.assert_allclose(lin.A[1, 0], -G / LENGTH * np.cos(0.4), rtol=1e-12)


def test_a_coordinate_that_is_not_one_to_one_is_refused() -> None:
    with pytest.raises(fl.NumericalError, match="height are not one-to-one on the manifold at this point"):
        fl.linearize(pendulum(), independent=["height = y^2"])


@pytest.mark.parametrize(
    ("named", "error", "message"),
    [
        (["a=x", "b=y", "c=vx"], fl.UsageError, r"3 independent coordinates were given, but the model has 2"),
        (["a=vx"], fl.UsageError, r"but the model has 2 at this point \(or 1 of position level\)"),
        (["theta=atan2(xx, y)"], fl.UnknownNameError, r"'xx' is not a state or parameter .* Did you mean 'x'"),
        (["theta=atan2(x y)"], fl.UsageError, "In the coordinate 'theta': Cannot read"),
        (["vx=x"], fl.UsageError, "has the name of a state"),
        (["a=x", "a=y"], fl.UsageError, "named twice"),
    ],
)
def test_wrong_coordinates_are_refused(named: list[str], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        fl.linearize(pendulum(angle=0.7), independent=named)


# -- prescribed motion ------------------------------------------------------------------------------


def cart(*, exact: bool, level: str = "position") -> FunctionModel:
    """A pendulum under a pivot that is moved sideways: x = pivot(t) + l sin(theta); the pivot's position s is an input.

    Inputs s, der(s), der(der(s)); constraint (x - s)^2 + y^2 = l^2. In theta: theta'' = -(g sin + s'' cos)/l.
    """

    def rates(t: float, state: np.ndarray, u: np.ndarray) -> np.ndarray:
        x, y, vx, vy = state
        s, ds, dds = u
        dx, dvx = x - s, vx - ds
        mu = (dx * (0.0 - dds) + y * -G + dvx**2 + vy**2) / (dx**2 + y**2)
        return np.array([vx + 0 * mu, vy + 0 * mu, -mu * dx, -G - mu * y])

    def jacobians(t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        h = 1e-30
        Jx = np.stack([rates(t, x + 1j * h * e, u).imag / h for e in np.eye(4)], axis=1)
        Ju = np.stack([rates(t, x, u + 1j * h * e).imag / h for e in np.eye(3)], axis=1)
        return Jx, Ju

    angle, rate = 0.5, 0.9
    sn, cn = np.sin(angle), np.cos(angle)
    start = [LENGTH * sn, -LENGTH * cn, LENGTH * cn * rate, LENGTH * sn * rate]
    return FunctionModel(
        Parts(
            ["x", "y", "vx", "vy"],
            start,
            lambda t, x, u: rates(t, x, u).real,
            inputs=["s", "der(s)", "der(der(s))"],
            constraints=["(x - s)^2 + y^2 - L^2"],
            parameters={"L": LENGTH},
            jacobians=jacobians if exact else None,
        )
    )


@pytest.mark.parametrize("exact", [True, False])
def test_a_driven_pivot_keeps_its_derivatives_as_inputs(exact: bool) -> None:
    model = cart(exact=exact)
    point = fl.operating_point(model, {"s": 0.3, "der(s)": -0.4, "der(der(s))": 2.0}, project=True)
    lin = fl.linearize(model, point, independent=["x"])
    x, y, vx, _ = point.states
    theta = np.arctan2(x - 0.3, -y)
    w = (vx + 0.4) / (LENGTH * np.cos(theta))
    sn, cn = np.sin(theta), np.cos(theta)
    # x = s + l sin theta, vx = s' + l cos theta w, w' = -(g sin + s'' cos)/l: differentiate in (theta, w, s, s', s'')
    wd = -(G * sn + 2.0 * cn) / LENGTH
    wd_theta = -(G * cn - 2.0 * sn) / LENGTH
    P = np.array([[LENGTH * cn, 0.0], [-LENGTH * sn * w, LENGTH * cn]])  # d(x, vx)/d(theta, w)
    # rates of (x, vx): (vx, s'' + l(cos wd - sin w^2))
    rate_theta = np.array(
        [[-LENGTH * sn * w, LENGTH * cn], [LENGTH * (cn * wd_theta - sn * wd - cn * w * w), -2 * LENGTH * sn * w]]
    )
    rate_u = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0 + LENGTH * cn * (-cn / LENGTH)]])
    A = rate_theta @ np.linalg.inv(P)
    B = rate_u - A @ np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])  # x, vx held: theta, w move against s, s'
    tolerance = 1e-10 if exact else 1e-7
    np.testing.assert_allclose(lin.A, A, atol=tolerance)
    np.testing.assert_allclose(lin.B, B, atol=tolerance)
    assert "prescribed-motion" in [w.kind for w in lin.warnings]
    # y = -sqrt(l^2 - (x - s)^2) moves with s at constant x
    np.testing.assert_allclose(lin.T_u[1], [-np.tan(theta), 0.0, 0.0], atol=1e-10)


def in_the_angle_about(a: float, model_at: dict[str, float]) -> tuple[FloatArray, FloatArray]:
    """A and B of :func:`cart` in Theta = atan2(x - a, -y) and its rate, from theta'' = -(g sin + s'' cos)/l by sympy.

    ``a`` stays where it is while the pivot s moves: Theta is the pendulum's own angle theta only for s = a.
    """
    theta, w, s, ds, dds = symbols = sympy.symbols("theta w s ds dds", real=True)
    angle = sympy.atan2(s - a + LENGTH * sympy.sin(theta), LENGTH * sympy.cos(theta))
    acceleration = -(G * sympy.sin(theta) + dds * sympy.cos(theta)) / LENGTH
    along = {theta: w, w: acceleration, s: ds, ds: dds}

    def rate(quantity: sympy.Expr) -> sympy.Expr:
        return sum((sympy.diff(quantity, v) * v_dot for v, v_dot in along.items()), sympy.S.Zero)

    y = sympy.Matrix([angle, rate(angle)])
    here = {v: model_at[str(v)] for v in symbols}
    P, Q = (np.array(y.jacobian(v).subs(here), dtype=float) for v in ([theta, w], [s, ds, dds]))
    moving = sympy.Matrix([rate(y[0]), rate(y[1])])
    F_q, F_u = (np.array(moving.jacobian(v).subs(here), dtype=float) for v in ([theta, w], [s, ds, dds]))
    A = F_q @ np.linalg.inv(P)
    return A, F_u - A @ Q


@pytest.mark.parametrize("exact", [True, False])
def test_an_angle_that_a_driven_pivot_moves(exact: bool) -> None:
    """The curvature of the coordinate meets what the input does to dependent states: D rho(x) f changes with Psi_u."""
    model = cart(exact=exact)
    point = fl.operating_point(model, {"s": 0.3, "der(s)": -0.4, "der(der(s))": 2.0}, project=True)
    x, y, vx, vy = point.states
    theta = float(np.arctan2(x - 0.3, -y))
    w = float((vx + 0.4) * np.cos(theta) + vy * np.sin(theta)) / LENGTH
    assert abs(w) > 0.1
    lin = fl.linearize(model, point, independent=["theta=atan2(x - 0.3, -y)"])
    A, B = in_the_angle_about(0.3, {"theta": theta, "w": w, "s": 0.3, "ds": -0.4, "dds": 2.0})
    tolerance = 1e-11 if exact else 1e-7
    np.testing.assert_allclose(lin.A, A, atol=tolerance * np.abs(A).max())
    np.testing.assert_allclose(lin.B, B, atol=tolerance * np.abs(B).max())


def test_prescribed_motion_without_its_derivative_is_refused_with_what_is_missing() -> None:
    parts = dataclasses.replace(cart(exact=False).parts, inputs=["s", "ds", "dds"])
    with pytest.raises(fl.ConstraintError, match=r"'s' prescribes a motion: .* no input 'der\(s\)'"):
        fl.linearize(FunctionModel(parts))


def test_inputs_that_prescribe_wrongly_are_found_out() -> None:
    """The model takes the acceleration of the pivot with the wrong sign."""
    right = cart(exact=False).parts
    parts = dataclasses.replace(right, rates=lambda t, x, u: right.rates(t, x, u * np.array([1, 1, -1])))
    model = FunctionModel(parts)
    point = fl.operating_point(model, {"der(der(s))": 2.0})
    with pytest.raises(fl.ConstraintError, match="motion does not keep"):
        fl.linearize(model, point)


def test_a_linear_model_may_take_prescribed_motions_as_states() -> None:
    model = cart(exact=True)
    point = fl.operating_point(model, {"s": 0.3}, project=True)
    lin = fl.linearize(model, point, independent=["theta=atan2(x - 0.3, -y)"])
    chain = lin.with_prescribed_states()
    assert chain.inputs.names == ("der(der(s))",)
    assert chain.states.names == (*lin.states.names, "s", "der(s)")
    s = 1.7j
    response = lin.C @ np.linalg.solve(s * np.eye(2) - lin.A, lin.B) + lin.D
    whole = np.linalg.solve(s * np.eye(4) - chain.A, chain.B)
    np.testing.assert_allclose(whole[2:, 0], [1 / s**2, 1 / s])
    np.testing.assert_allclose(
        whole[:2, 0], np.linalg.solve(s * np.eye(2) - lin.A, lin.B) @ np.array([1 / s**2, 1 / s, 1.0]), atol=1e-12
    )
    assert response.shape == (0, 3)
    np.testing.assert_allclose(chain.T[:, 2:], lin.T_u[:, :2])


def test_a_nonholonomic_constraint_with_a_driven_speed() -> None:
    """The first-order case: a state that must equal an input whose rate is another input."""
    model = FunctionModel(
        Parts(
            ["a", "b"],
            [1.0, 2.0],
            lambda t, x, u: np.array([u[1], -x[1] + x[0] ** 2]),
            inputs=["w", "der(w)"],
            constraints=[Constraint.from_text("a - w", level="velocity")],
        )
    )
    lin = fl.linearize(model, fl.operating_point(model, {"w": 1.0, "der(w)": 0.0}))
    assert lin.states.names == ("b",)
    np.testing.assert_allclose(lin.A, [[-1.0]], atol=1e-10)
    np.testing.assert_allclose(lin.B, [[2.0, 0.0]], atol=1e-9)


def test_lagrange_s_equations_take_the_derivatives_of_a_prescribed_motion_by_themselves() -> None:
    """The same driven pivot as a native model: the added inputs, and the same linear model as by hand."""
    native = LagrangeModel(
        "driven pivot",
        {"x": "vx", "y": "vy"},
        [["m", 0], [0, "m"]],
        [0, "-m*g"],
        constraints=["(x - s)^2 + y^2 - L^2"],
        inputs=["s"],
        parameters={"m": MASS, "g": G, "L": LENGTH},
        start={"x": LENGTH * np.sin(0.5), "y": -LENGTH * np.cos(0.5), "vx": 0.0, "vy": 0.0},
        labels=Labels(units={"x": "m", "y": "m", "s": "m"}),
    )
    assert native.inputs.names == ("s", "der(s)", "der(der(s))")
    assert native.inputs.units == ("m", "m/s", "m/s2")
    values = {"s": 0.3, "der(s)": -0.4, "der(der(s))": 2.0}
    by_hand = cart(exact=True)
    point = fl.operating_point(by_hand, values, project=True)
    same = fl.operating_point(native, values | dict(zip(("x", "vx"), point.states[[0, 2]].tolist(), strict=True)))
    np.testing.assert_allclose(same.states, point.states, atol=1e-12)
    one, other = (fl.linearize(m, p, independent=["x"]) for m, p in ((native, same), (by_hand, point)))
    for name in ("A", "B", "T", "T_u", "f0"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-11)
