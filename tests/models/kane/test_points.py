"""Points of Kane's procedure: refused off the constraints, and motions that are prescribed."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import fmilin as fl
from fmilin import ConstraintError, NumericalError, OperatingPoint, UsageError
from fmilin.models import KaneModel
from fmilin.systems import rolling_disk
from tests.general_way import hide_procedure
from tests.models.kane.examples import bead, pulled_pendulum


def test_a_point_off_the_constraints_is_refused_with_each_residual() -> None:
    model = rolling_disk()
    states = model.start.states.copy()
    states[5] += 0.1
    states[9] += 0.2
    with pytest.raises(ConstraintError, match=r"'contact' is 0\.1 instead of 0; 'slip along c_x' is 0\.2") as caught:
        fl.linearize(model, OperatingPoint(0.0, states, np.zeros(2)))
    assert set(caught.value.residuals) == {"contact", "slip along c_x"}


@pytest.mark.parametrize(("states", "inputs"), [(5, 2), (12, 1), (13, 2)])
def test_points_of_other_sizes_are_refused(states: int, inputs: int) -> None:
    disk = rolling_disk()
    point = OperatingPoint(0.0, np.zeros(states), np.zeros(inputs))
    message = f"has {states} states and {inputs} inputs, but 'rolling_disk' has 12 and 2"
    for use in (partial(fl.linearize, disk), disk.matrices):
        with pytest.raises(UsageError, match=message):
            use(point)


def test_a_point_outside_the_domain_is_named() -> None:
    model = KaneModel("root", bead(f_3=["x*m*g*sqrt(x)"]), parameters={"m": 2, "g": 9.81}, start={"x": 0.5, "y": 0.125})
    point = OperatingPoint(0.0, np.array([-0.5, 0.125, 0.0, 0.0]), np.empty(0))
    with pytest.raises(NumericalError, match=r"NaN for the derivative of the state 'vx'"):
        fl.linearize(model, point)


def test_singular_kinematics_are_named() -> None:
    loose = KaneModel("loose", bead(f_2=["0*der(vx)"], f_3=["x"]), parameters={"m": 2, "g": 9.81})
    with pytest.raises(NumericalError, match=r"dynamic equations have no unique solution.*undetermined"):
        loose.evaluate(0.0, np.zeros(4), np.empty(0))
    stuck = KaneModel(
        "stuck",
        bead(f_0=["x*der(x)", "der(y)"], f_v=["vy - vx"]),
        parameters={"m": 2, "g": 9.81},
        start={"x": 1, "y": 0.5},
    )
    with pytest.raises(NumericalError, match=r"kinematic equations have no unique solution.*der\(x\)") as caught:
        stuck.evaluate(0.0, np.zeros(4), np.empty(0))
    assert caught.value.variable == "der(x)"
    with pytest.raises(NumericalError, match="kinematic equations"):
        stuck.matrices(OperatingPoint(0.0, np.zeros(4), np.empty(0)))


def test_constraints_that_move_with_time() -> None:
    """A rope of the length L(t) = 1 + t/10: L theta'' = -g sin(theta) - 2 L' theta', in x = L sin(theta)."""
    model = pulled_pendulum("1 + time/10", f_v=["x*vx + y*vy - (1 + time/10)/10"], start={"y": 1.0, "vy": 0.1})
    L, rate, theta, w = 1.2, 0.1, 0.5, 0.8
    s, c = np.sin(theta), np.cos(theta)
    states = np.array([L * s, L * c, rate * s + L * c * w, rate * c - L * s * w])
    point = OperatingPoint(2.0, states, np.empty(0))
    acceleration = -(9.81 * s + 2 * rate * w) / L
    rates = model.evaluate(2.0, states, np.empty(0)).derivatives
    np.testing.assert_allclose(rates[2], 2 * rate * c * w - L * s * w**2 + L * c * acceleration, rtol=1e-13)
    own = fl.linearize(model, point, independent=["x", "vx"])
    general = fl.linearize(hide_procedure(model), point, independent=["x", "vx"])
    np.testing.assert_allclose(own.A, general.A, rtol=1e-11)
    np.testing.assert_allclose(own.T, general.T, atol=1e-13)


def test_a_prescribed_motion_moves_the_dependent_states_at_once() -> None:
    model = pulled_pendulum(
        "L",
        f_v=["x*vx + y*vy - L*`der(L)`"],
        inputs=["L", "der(L)", "der(der(L))"],
        start={"x": 0.6, "y": 0.8, "L": 1.0, "vx": 0.8 * 0.5 + 0.3 * 0.6, "vy": -0.6 * 0.5 + 0.3 * 0.8, "der(L)": 0.3,
               "der(der(L))": -0.2},
    )  # fmt: skip
    own = fl.linearize(model, independent=["x", "vx"])
    general = fl.linearize(hide_procedure(model), independent=["x", "vx"])
    assert own.T_u.any()
    np.testing.assert_allclose(own.T_u, general.T_u, atol=1e-9)
    for letter in "ABT":
        np.testing.assert_allclose(getattr(own, letter), getattr(general, letter), atol=1e-8, err_msg=letter)
    assert "prescribed-motion" in {w.kind for w in own.warnings}
    full = own.with_prescribed_states()
    assert len(full.inputs) == 1

    # A second method: x along a finite change of the rope's length, y = sqrt(L^2 - x^2)
    def rate_of_vx(L: float) -> float:
        x, vx, dL = 0.6, own.y0[1], 0.3
        y = np.sqrt(L**2 - x**2)
        states = np.array([x, y, vx, (L * dL - x * vx) / y])
        return float(model.evaluate(0.0, states, np.array([L, dL, -0.2])).derivatives[2])

    slope = (rate_of_vx(1 + 1e-5) - rate_of_vx(1 - 1e-5)) / 2e-5
    assert own.B[1, 0] == pytest.approx(slope, rel=1e-8)
