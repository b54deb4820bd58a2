"""Loops that have to be solved: their slopes, their solutions, and none."""

from __future__ import annotations

import control
import numpy as np
import pytest

import fmilin as fl
from fmilin.composition.algebraic_loops import depends_at_once
from fmilin.fmi.write import build_fmu
from fmilin.models import FunctionModel, OdeModel
from tests.composition.plants import first_order
from tests.shared import shared


def test_a_loop_with_a_solution_by_hand() -> None:
    """x' = -x + u, y = x + u/2; z' = -2 z + v, w = z - 0.6 v + r; u = w, v = y."""
    members = {"a": first_order("a", -1.0, 0.5), "b": first_order("b", -2.0, -0.6)}
    system = fl.connect(members, [("a.y", "b.u"), ("b.y", "a.u")], inputs={"r": "b.r"}, outputs=["a.y", "b.y", "a.u"])
    A, B, C, D = np.diag([-1.0, -2.0]), np.eye(2), np.eye(2), np.diag([0.5, -0.6])
    K, L = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[1.0], [0.0]])
    S = np.linalg.inv(np.eye(2) - K @ D)
    linear = fl.linearize(system)
    assert linear.method.derivatives == "exact"
    np.testing.assert_allclose(linear.A, A + B @ S @ K @ C, atol=1e-14)
    np.testing.assert_allclose(linear.B, B @ S @ L, atol=1e-14)  # r enters the output of b, which feeds a.u
    np.testing.assert_allclose(linear.D[2], S[0] @ L, atol=1e-14)
    x, r = np.array([0.7, -0.2]), np.array([0.4])
    u, v = S @ (K @ C @ x + L @ r)
    at = system.evaluate(0.0, x, r)
    np.testing.assert_allclose(at.outputs, [x[0] + 0.5 * u, x[1] - 0.6 * v + r[0], u], atol=1e-14)


def test_a_nonlinear_loop_and_its_slope_by_the_implicit_function() -> None:
    """u = x + u^2/4 has u = 2 - 2 sqrt(1 - x), du/dx = 1/sqrt(1 - x), and no solution beyond x = 1."""
    member = OdeModel("n", {"x": "-x + u"}, inputs=["u"], outputs={"y": "x + u^2/4"}, start={"x": 0.5})
    system = fl.connect({"n": member}, [("n.y", "n.u")])
    for x in (0.5, 0.9, 0.2):
        at = system.evaluate(0.0, np.array([x]), np.empty(0))
        assert at.outputs[0] == pytest.approx(2 - 2 * np.sqrt(1 - x), rel=1e-14)
        again = system.evaluate(0.0, np.array([x]), np.empty(0))
        assert at.outputs[0] == again.outputs[0]  # to the last bit, warm start or not
    assert fl.linearize(system).A[0, 0] == pytest.approx(-1 + 1 / np.sqrt(0.5), rel=1e-13)
    with pytest.raises(fl.NumericalError, match=r"loop through 'n\.u' has no solution near"):
        system.evaluate(0.0, np.array([1.5]), np.empty(0))
    assert any("several solutions" in note and "n.u" in note for note in system.notes)


def test_a_loop_whose_members_have_no_exact_slopes() -> None:
    member = FunctionModel(
        "f",
        {"x": 0.5},
        lambda _t, x, u: [-x[0] + u[0]],
        inputs=["u"],
        outputs={"y": lambda _t, x, u: x[0] + u[0] ** 2 / 4},
    )
    linear = fl.linearize(fl.connect({"n": member}, [("n.y", "n.u")]))
    assert linear.method.derivatives == "differences"
    assert linear.A[0, 0] == pytest.approx(-1 + 1 / np.sqrt(0.5), rel=1e-8)


@pytest.mark.parametrize("scale", [1.0, 1e6, 1e-7])
def test_a_loop_without_a_single_solution_is_named_whatever_the_units(scale: float) -> None:
    a = OdeModel("a", {"x": "-x + u"}, inputs=["u"], outputs={"y": f"x + {scale}*u"})
    b = OdeModel("b", {"z": "-z + v"}, inputs=["v"], outputs={"y": f"z + v/{scale}"})
    with pytest.raises(fl.NumericalError, match=r"'a\.u', 'b\.v'.*det\(I - K D\) = 0"):
        fl.connect({"a": a, "b": b}, [("a.y", "b.v"), ("b.y", "a.u")])
    nearly = OdeModel("b", {"z": "-z + v"}, inputs=["v"], outputs={"y": f"z + {1 + 1e-6}*v/{scale}"})
    fl.connect({"a": a, "b": nearly}, [("a.y", "b.v"), ("b.y", "a.u")])


def test_a_loop_through_accelerations_becomes_c() -> None:
    """A force that follows the acceleration it causes: (m + k) a = -c x."""
    cart = OdeModel("cart", {"x": "v", "v": "F - x"}, inputs=["F"], outputs={"a": "F - x"}, start={"x": 1.0})
    mass = control.ss([], [], [], [[-0.5]], inputs=["a"], outputs=["F"])
    system = fl.connect({"cart": cart, "added": mass}, [("cart.a", "added.a"), ("added.F", "cart.F")])
    path = shared("composition_loop.fmu", lambda path: build_fmu(system, path))
    expected = np.array([[0.0, 1.0], [-1 / 1.5, 0.0]])
    np.testing.assert_allclose(fl.linearize(system).A, expected, atol=1e-14)
    with fl.load(path) as model:
        np.testing.assert_allclose(fl.linearize(model).A, expected, atol=1e-14)


def test_a_nonlinear_loop_becomes_no_c() -> None:
    member = OdeModel("n", {"x": "-x + u"}, inputs=["u"], outputs={"y": "x + u^2/4"}, start={"x": 0.5})
    with pytest.raises(fl.UsageError, match=r"n\.u close a loop"):
        fl.connect({"n": member}, [("n.y", "n.u")]).in_graph()


def test_a_loop_that_is_none_where_the_system_starts_is_found_later() -> None:
    """y = max(u - 5, 0) follows nothing at u = 0; at z = 10 the loop u = z + 0.1 (u - 5) has the solution 9.5/0.9."""
    a = OdeModel("a", {"x": "-x"}, inputs=["u"], outputs={"y": "max(u - 5, 0)"})
    b = OdeModel("b", {"z": "-z"}, inputs=["u"], outputs={"y": "z + 0.1*u"})
    system = fl.connect({"a": a, "b": b}, [("a.y", "b.u"), ("b.y", "a.u")], outputs=["a.u"])
    assert system.evaluate(0.0, np.array([0.0, 1.0]), np.empty(0)).outputs[0] == 1.0
    far = system.evaluate(0.0, np.array([0.0, 10.0]), np.empty(0))
    assert far.outputs[0] == pytest.approx(9.5 / 0.9, rel=1e-14)
    assert system.coupling.loops == [["a.u", "b.u"]]


@pytest.mark.parametrize("analytic", [True, False])
def test_the_factor_of_a_wire_scales_what_goes_through_at_once(analytic: bool) -> None:
    """y = 3 r feeds w = u over a wire of factor -2: dw/dr = -6, and du/dr with it."""
    members = {
        "a": FunctionModel(
            "a", {}, lambda *_: [], inputs=["r"], outputs={"y": lambda t, x, u: 3 * u[0]}, analytic=analytic
        ),
        "b": FunctionModel(
            "b", {}, lambda *_: [], inputs=["u"], outputs={"w": lambda t, x, u: u[0]}, analytic=analytic
        ),
    }
    system = fl.connect(members, [("a.y", "b.u", -2.0, 5.0)], inputs=["a.r"], outputs=["b.w", "b.u"])
    linear = fl.linearize(system)
    assert (linear.method.derivatives == "exact") is analytic
    np.testing.assert_allclose(linear.D, [[-6.0], [-6.0]], rtol=1e-8)


@pytest.mark.parametrize("analytic", [True, False])
def test_the_factors_of_a_loop_decide_whether_it_has_a_solution(analytic: bool) -> None:
    """u = k (u + r) with k of the wire: u = k/(1 - k) r, and none for k = 1."""
    member = FunctionModel(
        "m", {}, lambda *_: [], inputs=["u", "r"], outputs={"y": lambda t, x, u: u[0] + u[1]}, analytic=analytic
    )
    linear = fl.linearize(fl.connect({"m": member}, [("m.y", "m.u", -4.0)], inputs=["m.r"], outputs=["m.u"]))
    np.testing.assert_allclose(linear.D, [[-0.8]], rtol=1e-8)
    with pytest.raises(fl.NumericalError, match=r"m\.u"):
        fl.linearize(fl.connect({"m": member}, [("m.y", "m.u", 1.0)], inputs=["m.r"], outputs=["m.u"]))


def test_a_loop_with_several_solutions_is_followed_along_its_branch() -> None:
    """u = u - sin(u - x) has the solutions x + k pi; from x = 0, u = 0 it is x itself, however far."""
    member = OdeModel("m", {"x": "-x"}, inputs=["u"], outputs={"y": "u - sin(u - x)"})
    system = fl.connect({"m": member}, [("m.y", "m.u")], outputs=["m.u"])
    positions = np.arange(0.0, 12.0, 0.5)
    branch = [system.evaluate(0.0, np.array([x]), np.empty(0)).outputs[0] for x in positions]
    np.testing.assert_allclose(branch, positions, atol=1e-12)
    assert system.coupling.further_solutions(0.0, np.array([11.5]), np.empty(0))
    again = system.evaluate(0.0, np.array([12.0]), np.empty(0)).outputs[0]
    assert again == pytest.approx(12.0, abs=1e-12)  # the look at others has not left the branch


@pytest.mark.parametrize("declared", [False, True])
def test_outputs_depend_at_once_on_what_they_copy_and_on_what_the_equations_say(declared: bool) -> None:
    """y = (x, u1, 3 u0, x u1): a state, an input, and terms of which one is zero at the start."""
    model = OdeModel(
        "m",
        {"x": "-x + u0"},
        inputs=["u0", "u1"],
        outputs={"a": "x", "b": "u1", "c": "3*u0", "d": "x*u1"},
    )
    if not declared:
        model.structure = None
    expected = [[False, False], [False, True], [True, False], [False, True]]
    np.testing.assert_array_equal(depends_at_once("m", model), expected)
