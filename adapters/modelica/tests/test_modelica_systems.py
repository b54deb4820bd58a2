"""Models without a library: each against a closed form, or a form in independent coordinates written by hand."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rumoca", reason="the Modelica compiler rumoca has no wheel for this platform")

import fmilin as fl
from fmilin.errors import KinkError, ModelError
from fmilin.systems import four_bar

FILE = Path(__file__).parent / "models" / "systems.mo"
G = 9.81


def load(name, **options):
    return fl.load(f"{FILE}:Systems.{name}", **options)


def assert_same(linear, A, B=None):
    np.testing.assert_allclose(linear.A, A, rtol=1e-9, atol=1e-9)
    if B is not None:
        np.testing.assert_allclose(linear.B, B, rtol=1e-9, atol=1e-9)


def test_a_double_pendulum():
    """In x1, x2: M x'' = -K x, with the tensions at rest."""
    (m1, m2), (L1, L2) = (1.0, 0.7), (1.2, 0.8)
    a, b = (m1 + m2) * G / L1, m2 * G / L2
    K = np.array([[a + b, -b], [-b, b]])
    A = np.block([[np.zeros((2, 2)), np.eye(2)], [-np.linalg.solve(np.diag([m1, m2]), K), np.zeros((2, 2))]])
    linear = fl.linearize(load("DoublePendulum"))
    assert linear.states.names == ("x[1]", "x[2]", "vx[1]", "vx[2]")
    assert_same(linear, A, [[0], [0], [0], [1 / m2]])


def test_a_crane_whose_rope_is_driven():
    """The angle of the rope and the trolley move as in the textbook; the rope's length and its rate are inputs."""
    M, m, length = 5.0, 2.0, 3.0
    model = load("Crane")
    linear = fl.linearize(model)
    w = np.sqrt((M + m) / M * G / length)
    np.testing.assert_allclose(np.sort(linear.eigenvalues().imag), [-w, 0, 0, w], atol=1e-7)
    assert [name for name in model.inputs.names if name.startswith("der(")] == ["der(l)", "der(der(l))"]


def test_a_slider_crank_at_an_angle():
    """Lagrange's equation in phi alone: (J + m s'^2) w' = torque - s'(m s'' w^2 + k (s - 1))."""
    r, L, J, m, k, phi = 0.3, 1.0, 0.2, 1.5, 40.0, 1.0

    def acceleration(phi, w):
        root = np.sqrt(L**2 - (r * np.sin(phi)) ** 2)
        s = r * np.cos(phi) + root
        first = -r * np.sin(phi) - r**2 * np.sin(phi) * np.cos(phi) / root
        top, bottom = -(r**2) * np.sin(2 * phi) / 2, root
        second = -r * np.cos(phi) - r**2 * np.cos(2 * phi) / root + top * top / bottom**3
        return -first * (m * second * w**2 + k * (s - 1)) / (J + m * first**2)

    h = 1e-5
    slope = (8 * (acceleration(phi + h, 0) - acceleration(phi - h, 0)) - acceleration(phi + 2 * h, 0)
             + acceleration(phi - 2 * h, 0)) / (12 * h)  # fmt: skip
    linear = fl.linearize(load("SliderCrank"), independent=["phi", "w"])
    np.testing.assert_allclose(linear.A, [[0, 1], [slope, 0]], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(linear.f0, [0, acceleration(phi, 0)], rtol=1e-9)


def test_a_four_bar_linkage():
    """Published: +-2.147676638502 i (Gonzalez et al., with the closed form of fmilin.systems.four_bar)."""
    native, model = four_bar(), load("FourBar")
    at = dict(zip(native.states.names, native.start.states, strict=True))
    point = fl.operating_point(model, {"x0": at["x0"]})
    linear, same = (fl.linearize(m, p, independent=["x0", "vx0"]) for m, p in ((model, point), (native, None)))
    assert_same(linear, same.A, same.B)
    np.testing.assert_allclose(linear.eigenvalues().imag, [-2.147676638502278, 2.147676638502278], rtol=1e-10)


def test_capacitors_in_a_loop_with_their_source():
    """(C1 + C2) v2' = C1 u' - i and L i' = v2 - R i: u' is an input, and v1 follows from u and v2."""
    C1, C2, L, R = 1e-3, 2e-3, 0.5, 10.0
    linear = fl.linearize(load("CapacitorLoop"), independent=["v2", "i"])
    assert_same(linear, [[0, -1 / (C1 + C2)], [1 / L, -R / L]], [[0, C1 / (C1 + C2)], [0, 0]])
    assert linear.inputs.names == ("u", "der(u)")


def test_wheels_that_mesh():
    (J1, J2, J3), (r1, r2), c, d = (0.1, 0.2, 0.4), (2, 3), 5.0, 0.3
    J = J3 + r2**2 * J2 + (r1 * r2) ** 2 * J1
    linear = fl.linearize(load("GearTrain"), independent=["phi[3]", "w[3]"])
    assert_same(linear, [[0, 1], [-c / J, -d / J]], [[0], [r1 * r2 / J]])
    np.testing.assert_allclose(linear.C, [[1, 0]], atol=1e-12)


def test_tanks_a_record_a_function_and_a_branch():
    model = load("Tanks")
    linear = fl.linearize(model)
    rho, k, A = 1000.0, 2e-4, (1.5, 0.8)

    def slope(h):  # of k dp / (dp^2 + 1)^(1/4) by h
        dp = rho * G * h
        return rho * G * k * (dp**2 / 2 + 1) / (dp**2 + 1) ** 1.25

    q1, q2 = slope(2.0), slope(2.0)
    assert_same(linear, [[-q1 / A[0], q1 / A[0]], [q1 / A[1], -(q1 + q2) / A[1]]], [[1 / A[0]], [0]])
    with pytest.raises(KinkError, match=r"h\[2\]"):
        fl.linearize(model, fl.operating_point(model, {"h[2]": 1.0}))


def test_a_flow_whose_start_value_leaves_its_equation_without_a_slope():
    """q = sqrt(10 / 4), and dq/dh = 10 / (2 * 4 q)."""
    slope = 10 / (8 * np.sqrt(2.5))
    assert_same(fl.linearize(load("Torricelli")), [[-slope / 1.5, slope / 1.5], [slope / 2, -slope / 2]])


def test_a_parameter_of_a_record_and_of_an_array():
    linear = fl.linearize(load("Tanks", parameters={"A[1]": 3.0, "water.rho": 900.0}))
    standard = fl.linearize(load("Tanks", parameters={"water.rho": 900.0}))
    np.testing.assert_allclose(2 * linear.A[0], standard.A[0], rtol=1e-12)


def test_a_motor_with_its_controller():
    R, L, km, J, b, k, Ti = 1, 0.01, 0.2, 0.005, 0.001, 4, 0.5
    linear = fl.linearize(load("Motor"))
    assert linear.states.names == ("pi.x", "i", "w")
    A = [[0, 0, -1 / Ti], [k / L, -R / L, -(km + k) / L], [0, km / J, -b / J]]
    assert_same(linear, A, [[1 / Ti, 0], [k / L, 0], [0, -1 / J]])


def test_what_changes_at_events_is_held_and_said():
    model = load("Bouncing")
    linear = fl.linearize(model)
    assert_same(linear, [[0, 1], [0, -0.3]])
    assert any("held at their start values: kicks = 3" in note for note in model.notes)


def test_initial_equations_and_a_parameter_among_them():
    """x = sqrt(3) at the start, and p = 2 x."""
    model = load("Started")
    np.testing.assert_allclose(model.start.states, [np.sqrt(3), 2], rtol=1e-9)
    assert_same(fl.linearize(model), np.diag([-2 * np.sqrt(3), -2 * np.sqrt(3)]))


def test_what_was_before_an_event_is_held_and_said():
    model = load("Hysteresis")
    assert_same(fl.linearize(model), [[2]])
    assert model.notes == ("Variables that change at events only are held at their start values: pre(on) = 1.",)


def test_an_assertion_that_fails_at_the_start_is_told():
    (note,) = load("Asserted").notes
    assert note == "Assertions of the model fail at its start: 'x is too large'."


def test_a_singular_model_is_refused_with_its_equations():
    with pytest.raises(ModelError, match=r"systems.mo:\d+"):
        load("Singular")


def test_an_equation_that_begins_with_a_bracket_is_named_whole():
    from fmilin.errors import ConstraintError

    with pytest.raises(ConstraintError, match=re.escape("(x - s)^2 + y^2 = l^2")):
        fl.operating_point(load("Crane"), {"x": 99.0, "s": 0.0})


@pytest.mark.parametrize(
    ("name", "states", "total"),
    [
        ("ClosedTanks", [0.55, 0.55], "h1 + 1.5*h2 = 1.375"),
        ("ClosedVolumes", [0.72, 0.72, 0.36], "m[1] + m[2] + m[3] = 1.8"),
        ("ClosedCircuit", [4.0, 4.0], "v1 + 3*v2 = 16"),
        ("FreeInertias", [3.0, 3.0], "4*w1 + w2 = 15"),
    ],
)
def test_a_closed_network_comes_to_rest_with_the_total_of_its_start(name, states, total):
    point = fl.trim(load(name))
    np.testing.assert_allclose(point.states, states, rtol=1e-10)
    (said,) = [remark.message for remark in point.report.remarks if remark.kind == "conserved"]
    assert total in said
