"""Start values: fixed ones first, then those that the model writes, whatever name they are written for."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rumoca", reason="the Modelica compiler rumoca has no wheel for this platform")

import fmilin as fl
from fmilin.cli.main import main

FILE = Path(__file__).parent / "models" / "interface.mo"


def load(name, **options):
    return fl.load(f"{FILE}:Interface.{name}", **options)


def start_of(model):
    return dict(zip(model.states.names, model.start.states.tolist(), strict=True))


def moved(linear):
    return [str(remark) for remark in linear.warnings if remark.kind == "moved"]


def test_the_outermost_start_value_counts():
    start = start_of(load("Aliases"))
    assert start["plain.x"] == 1.0
    assert start["modified.x"] == 5.0
    assert start["negative.x"] == -6.0
    assert start["is_fixed.x"] == 7.0
    assert start["both.x"] == 8.0
    assert start["below.x"] == 10.0


def test_start_values_that_lose_are_reported_with_what_they_became():
    (text,) = moved(fl.linearize(load("Aliases")))
    assert "modified.x = 1 became 5" in text
    assert "both.y = 9 became 8" in text


OPEN_SWITCH = """model OpenSwitch
  Real i(start = 1), k(start = 1);
  Real v, s;
initial equation
  i = 0;
equation
  1e-3*der(i) = v - 0.2*i;
  1e-3*der(k) = 100 - v;
  i = 1e-5*s + 1e-17*s^3;
  k = 1e-5*s - 1e-17*s^3;
end OpenSwitch;
"""


def test_the_voltage_of_an_open_switch_may_change_by_billions_of_volts_per_second(tmp_path):
    """Two inductors in series, of 1e-3 H each: current changes at 100/2e-3 A/s, the voltage at 1e5 times that."""
    path = tmp_path / "switch.mo"
    path.write_text(OPEN_SWITCH, encoding="utf-8")
    linear = fl.linearize(fl.load(path))
    np.testing.assert_allclose(linear.A, [[-0.2 / 2e-3]], rtol=1e-9)
    np.testing.assert_allclose(linear.f0, [100 / 2e-3], rtol=1e-9)


def test_a_rope_hangs_where_the_model_says_so():
    """The rope is vertical, so that the spectrum is that of a crane with rail damping d = 4."""
    model = load("Rope")
    start = start_of(model)
    assert start["y"] == -2.5
    assert start["s"] == start["x"] == 0.0
    linear = fl.linearize(model)
    assert not moved(linear)
    M, m, rope, d, g = 8.0, 3.0, 2.5, 4.0, 9.81
    crane = [[0, 0, 1, 0], [0, 0, 0, 1], [0, m * g / M, -d / M, 0], [0, -(M + m) * g / (M * rope), d / (M * rope), 0]]
    expected = np.sort_complex(np.linalg.eigvals(np.array(crane)))
    np.testing.assert_allclose(np.sort_complex(linear.eigenvalues()), expected, atol=1e-7)


def test_a_start_value_that_cannot_be_kept_is_reported():
    """x comes first and stays; y goes to the circle."""
    model = load("Contradiction")
    start = start_of(model)
    assert start["x"] == 0.3
    assert start["y"] == pytest.approx(-np.sqrt(1 - 0.09), rel=1e-12)
    (text,) = moved(fl.linearize(model))
    assert "y = -0.9 became -0.953939" in text
    assert "x = " not in text
    elsewhere = fl.operating_point(model, {"x": 0.1})
    assert not moved(fl.linearize(model, elsewhere))


def test_free_parameters_are_found_near_start_values_that_follow_from_others():
    model = load("FreeParameter")
    assert model.parameters["b"] == pytest.approx(2.0, rel=1e-12)
    assert model.parameters["far"] == pytest.approx(1e6, rel=1e-12)
    np.testing.assert_allclose(fl.linearize(model).A, [[-2]], rtol=1e-12)
    np.testing.assert_allclose(fl.linearize(load("FreeParameter", parameters={"a": 9.0})).A, [[-3]], rtol=1e-12)


def test_the_time_constants_of_a_lightning_impulse_are_the_published_ones():
    """10/350 us: 470.1 us and 4.064 us; the curve has its half value where the model wants it."""
    parameters = load("Impulse").parameters
    slow, fast = parameters["tau1"], parameters["tau2"]
    assert slow == pytest.approx(470.1e-6, rel=1e-4)
    assert fast == pytest.approx(4.064e-6, rel=1e-4)
    peak = np.log(slow / fast) * slow * fast / (slow - fast)
    curve = [np.exp(-t / slow) - np.exp(-t / fast) for t in (peak, parameters["T10"] - 1e-6 + 350e-6)]
    assert curve[1] == pytest.approx(0.5 * curve[0], rel=1e-9)


def test_coordinates_are_found_where_currents_are_far_larger_than_voltages():
    """(1 + 1) v' = -g v."""
    linear = fl.linearize(load("Conducting"))
    np.testing.assert_allclose(linear.A, [[-5e11]], rtol=1e-12)


def test_terms_with_a_parameter_that_an_initial_equation_determines_stay():
    """The coefficients r start at 0, where x' = r (x - u) has no terms; the initial equations say r = (-1/T, -2/T)."""
    model = load("Poles")
    linear = fl.linearize(model)
    np.testing.assert_allclose(linear.A, [[-4, 0], [8, -8]], rtol=1e-12)
    np.testing.assert_allclose(linear.B, [[4], [0]], rtol=1e-12)
    assert start_of(model) == {"x[1]": pytest.approx(3.0), "x[2]": pytest.approx(3.0)}
    assert not linear.warnings
    for slower in (load("Poles", parameters={"T": 0.5}), model.with_parameters({"T": 0.5})):
        np.testing.assert_allclose(fl.linearize(slower).A, [[-2, 0], [4, -4]], rtol=1e-12)


def test_a_start_that_initial_equations_determine_follows_the_parameters():
    """der(x) = 0 and z = x at the start, where x' = k u - x: x = k u."""
    model = load("SteadyStart")
    assert start_of(model)["x"] == pytest.approx(6.0)
    for changed in (model.with_parameters({"k": 5.0}), load("SteadyStart", parameters={"k": 5.0})):
        assert start_of(changed) == {"x": pytest.approx(10.0), "z": pytest.approx(10.0)}


def test_an_amplifier_starts_between_its_limits(standard_library):
    """Whole steps of Newton's iteration from zero currents jump from one limit to the other."""
    name = "modelica:Modelica.Electrical.Analog.Examples.OpAmps.LowPass"
    linear = fl.linearize(fl.load(name, options={"library": [str(standard_library)]}))
    # C = T/R2 with T = 1/(2 pi), R1 = R2; the input is at -v/(1 + V0) instead of 0
    assert linear.A[0, 0] == pytest.approx(-2 * np.pi * (1 + 1 / 15001), rel=1e-9)


PENDULUM = """model Pendulum
  Real x(start = 1), y(start = -2), vx, vy, T;
  Real speed(start = 0.5, fixed = true) = vx;
equation
  der(x) = vx;
  der(y) = vy;
  der(vx) = -T*x;
  der(vy) = -T*y - 9.81;
  x^2 + y^2 = 4;
end Pendulum;
"""


def test_a_report_says_which_start_values_were_kept_and_why(tmp_path, capsys):
    """A rope of length 2: y = -sqrt(3) with x = 1, and vy = vx/sqrt(3)."""
    file = tmp_path / "pendulum.mo"
    file.write_text(PENDULUM)
    model = fl.load(str(file))
    report = {value.name: value for value in model.report_start()}
    assert report["x"][2:] == (1, 1, "kept: written by the model")
    assert report["speed"][2:] == (0.5, 0.5, "kept: fixed = true")
    assert report["y"].requested == -2
    assert report["y"].reached == pytest.approx(-(3**0.5))
    assert report["y"].reason.startswith("moved")
    assert report["vy"].requested is None
    assert report["vy"].reached == pytest.approx(0.5 / 3**0.5)
    assert main(["info", str(file), "--start"]) == 0
    assert re.search(r"y +-2 +-1\.7320508 +moved: the equations", capsys.readouterr().out)


LOSSES = """model Losses "A machine of which the losses follow the root of a sum of squares, from currents at zero"
  parameter Real R = 2, L = 0.5, k = 0.3, J = 0.1;
  Real i[2](each start = 0), rms, w(start = 10, fixed = true);
initial equation
  der(i) = {0, 0};
equation
  L*der(i[1]) = 10 - R*i[1] + L*w*i[2];
  L*der(i[2]) = -R*i[2] - L*w*i[1];
  rms = sqrt((i[1]^2 + i[2]^2)/2);
  J*der(w) = -k*rms*w;
end Losses;
"""


def test_currents_leave_zero_where_the_root_of_their_squares_has_no_derivative(tmp_path):
    """With Z = R + j w L the currents are 10/Z; the last row of A is the gradient of -k rms w/J."""
    (tmp_path / "losses.mo").write_text(LOSSES)
    model = fl.load(tmp_path / "losses.mo")
    current = 10 / (2 + 5j)
    np.testing.assert_allclose(model.start.states, [current.real, current.imag, 10], rtol=1e-9)
    rms = abs(current) / np.sqrt(2)
    gradient = [current.real / (2 * rms) * 10, current.imag / (2 * rms) * 10, rms]
    np.testing.assert_allclose(fl.linearize(model).A[2], -3 * np.array(gradient), rtol=1e-9)


STARTS = """model Starts
  parameter Real k = 0.5;
  Real x, y(start = 0), p(start = 400, fixed = true) "x and y are far from their start values";
  discrete Real least "determined by an initial equation, then held";
  Real m, H, h, T(start = 313.15, fixed = true), level(start = 0.9, fixed = true) "empty where m and H start";
initial equation
  der(y) = 3*y;
  least = 2*x + 3;
equation
  der(x) = least - y;
  der(y) = x;
  p = x + y;
  when x > 1000 then
    least = x;
  end when;
  m = 2*level;
  H = m*h;
  h = 4*(T - 273.15) + 0.01*(T - 273.15)^2;
  der(m) = -k*m;
  der(H) = -k*m*h;
end Starts;
"""


def test_starts_far_from_start_values_in_tanks_and_of_held_variables(tmp_path):
    """The states are x = 3 y = 300, m = 1.8, H = m h with h = 160 + 16; 'least' is 603, and H falls as m does."""
    (tmp_path / "starts.mo").write_text(STARTS)
    model = fl.load(tmp_path / "starts.mo")
    np.testing.assert_allclose(model.start.states, [300, 100, 1.8, 316.8], rtol=1e-9)
    assert model.parameters["least"] == pytest.approx(603)
    linear = fl.linearize(model)
    np.testing.assert_allclose(linear.f0, [503, 300, -0.9, -158.4], rtol=1e-9)
    expected = [[0, -1, 0, 0], [1, 0, 0, 0], [0, 0, -0.5, 0], [0, 0, 0, -0.5]]
    np.testing.assert_allclose(linear.A, expected, atol=1e-9)


WHEEL = """model Wheel
  Real phi(start = 0, fixed = true), w(start = 0, fixed = true);
  Real x, v, slip, f;
equation
  der(phi) = w;
  x = phi;
  {v} = der({x});
  slip^2 + slip = v^2 + 0.11;
  f + f^3 = 2*v/slip;
  der(w) = -f;
end Wheel;
"""


def test_a_start_without_values_of_the_equations_is_guessed_from_velocities_at_rest(tmp_path):
    """At f = slip = 0 the friction is 0/0; at rest slip is 0.1, and der(w) = -20w."""
    path = tmp_path / "wheel.mo"
    path.write_text(WHEEL)
    np.testing.assert_allclose(sorted(fl.linearize(fl.load(str(path))).eigenvalues().real), [-20, 0], atol=1e-6)
