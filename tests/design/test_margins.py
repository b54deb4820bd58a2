"""Margins of loops, against published numbers and python-control."""

from __future__ import annotations

import control
import numpy as np
import pytest

import fmilin as fl
from fmilin.composition.system import ConnectedModel
from fmilin.design.margins import compute_margins
from fmilin.errors import UsageError
from fmilin.numerics.feedback import StateSpace
from fmilin.signals import FloatArray


def loop(plant: control.StateSpace, gain: float = 1.0, dt: float = 0.0) -> ConnectedModel:
    plant = control.ss(plant, inputs="u", outputs="y")
    law = control.ss([], [], [], [[gain]], dt, inputs="u", outputs="y")
    return fl.connect({"plant": plant, "law": law}, [("plant.y", "law.u", -1.0), ("law.y", "plant.u")])


def third_order() -> control.StateSpace:
    return control.tf2ss(control.tf([25.0], [1.0, 10.0, 10.0, 10.0]))


def test_the_example_of_seiler_packard_and_gahinet() -> None:
    """An introduction to disk margins (2020): alpha 0.46, gains 0.63 to 1.59 and 26 degrees; classical 3.6 and 29.1."""
    margins = fl.design.margins(fl.loop_transfer(loop(third_order()), "plant.u"))
    assert margins.stable
    assert list(margins.gain) == [0.0, pytest.approx(3.6, abs=1e-9)]
    assert margins.phase == pytest.approx(29.1, abs=0.05)
    assert margins.disk == pytest.approx(0.46, abs=0.005)
    assert list(margins.disk_gain) == [pytest.approx(0.63, abs=0.005), pytest.approx(1.59, abs=0.01)]
    assert margins.disk_phase == pytest.approx(26, abs=0.5)
    assert margins.delay == pytest.approx(np.deg2rad(margins.phase) / margins.phase_frequency, rel=1e-12)
    grid = np.linspace(1.9, 2.0, 20001)
    assert margins.disk == pytest.approx(control.disk_margins(control.tf(third_order()), grid)[0], rel=1e-7)


def test_a_sampled_loop_as_python_control_has_it() -> None:
    sampled = control.c2d(control.ss(third_order()), 0.1)
    margins = fl.design.margins(fl.loop_transfer(loop(third_order(), dt=0.1), "plant.u"))
    with pytest.warns(UserWarning, match="Falling back"):
        gain, phase, at, crossing = control.margin(sampled)
    assert margins.gain[1] == pytest.approx(gain, rel=1e-3)
    assert margins.phase == pytest.approx(phase, abs=0.05)
    assert [margins.gain_frequency, margins.phase_frequency] == [pytest.approx(at, rel=1e-3), pytest.approx(crossing)]


def test_a_loop_that_needs_its_gain() -> None:
    """1/(s - 1) with gain 4: stable from a quarter of it on."""
    plant = control.tf2ss(control.tf([1.0], [1.0, -1.0]))
    margins = fl.design.margins(fl.loop_transfer(loop(plant, 4.0), "plant.u"))
    assert list(margins.gain) == [pytest.approx(0.25), np.inf]
    assert not fl.design.margins(fl.loop_transfer(loop(plant, 0.5), "plant.u")).stable
    assert "unstable: it has no margins" in str(fl.design.margins(fl.loop_transfer(loop(plant, 0.5), "plant.u")))


def test_several_wires_have_a_disk_margin_against_all_at_once() -> None:
    system = loop(third_order())
    single, both = (fl.design.margins(fl.loop_transfer(system, w)) for w in ("plant.u", ["plant.u", "law.u"]))
    assert both.disk < single.disk
    assert np.isnan(both.phase)
    assert "phase nan" not in str(both)


def test_what_is_no_loop() -> None:
    with pytest.raises(UsageError, match="margins are defined for a loop"):
        fl.design.margins(fl.opened(loop(third_order()), "plant.u"))


def closed_by(plant: control.StateSpace, dt: float = 0.0, gain: float = 1.0) -> fl.design.Margins:
    return fl.design.margins(fl.loop_transfer(loop(plant, gain, dt), "plant.u"))


def constant_loop(value: float, dt: float = 0.0) -> StateSpace:
    return StateSpace(np.zeros((0, 0)), np.zeros((0, 1)), np.zeros((1, 0)), np.array([[value]]), dt)


def test_the_upper_gain_of_a_sampled_lag_is_at_half_the_sampling_frequency() -> None:
    """1/(s + 1) sampled at 1 s: L(-1) = -(1 - e)/(1 + e), e = exp(-1)."""
    margins = closed_by(control.tf2ss(control.tf([1.0], [1.0, 1.0])), 1.0)
    e = np.exp(-1)
    assert list(margins.gain) == [0.0, pytest.approx((1 + e) / (1 - e), rel=1e-12)]
    assert margins.gain_frequency == pytest.approx(np.pi)


def test_a_sampled_integrator_bears_twice_the_inverse_of_its_sample_time() -> None:
    margins = closed_by(control.tf2ss(control.tf([1.0], [1.0, 0.0])), 0.5)
    assert list(margins.gain) == [0.0, pytest.approx(4.0, rel=1e-12)]
    assert margins.disk == pytest.approx(1.2, rel=1e-12)


def test_the_upper_gain_of_a_loop_with_feedthrough_is_at_infinite_frequency() -> None:
    margins = closed_by(control.tf2ss(control.tf([-0.5, 1.0], [1.0, 1.0])))
    assert list(margins.gain) == [0.0, pytest.approx(2.0, rel=1e-12)]
    assert margins.gain_frequency == np.inf
    assert margins.delay == np.inf


def test_a_lower_end_at_zero_frequency_of_a_sampled_unstable_plant() -> None:
    """z = 1: the pole exp(h) of 1/(s - 1) needs L(1) < -1, and L(-1) > -1 limits the gain."""
    h = 0.1
    a = np.exp(h)
    margins = closed_by(control.tf2ss(control.tf([1.0], [1.0, -1.0])), h, 4.0)
    assert list(margins.gain) == [pytest.approx(1 / 4, rel=1e-10), pytest.approx((1 + a) / (a - 1) / 4, rel=1e-10)]


def test_a_loop_that_needs_a_gain_by_routh() -> None:
    """k (s + 2)^2 / (s^2 (s - 1)): Routh's condition of s^3 + (k - 1) s^2 + 4 k s + 4 k is (k - 1) 4 k > 4 k: k > 2."""
    plant = control.tf2ss(control.tf([1.0, 4.0, 4.0], [1.0, -1.0, 0.0, 0.0]))
    assert list(closed_by(plant, gain=8.0).gain) == [pytest.approx(0.25, rel=1e-9), np.inf]


def test_a_conditionally_stable_loop_has_both_ends() -> None:
    """k (s + 1) (s + 2) / (s^3 (1 + s/20)^2): both ends are real crossings by the argument of L."""
    plant = control.tf([1.0, 3.0, 2.0], [1 / 400, 1 / 10, 1.0, 0.0, 0.0, 0.0])
    margins = closed_by(control.tf2ss(plant), gain=6.0)
    squares = [w.real for w in np.roots(_real_crossings(plant)) if abs(w.imag) < 1e-9 and w.real > 0]
    ends = [-1 / (6.0 * plant(1j * np.sqrt(square)).real) for square in squares]
    low, high = max(e for e in ends if 0 < e < 1), min(e for e in ends if e > 1)
    assert list(margins.gain) == [pytest.approx(low, rel=1e-9), pytest.approx(high, rel=1e-9)]


def _real_crossings(plant: control.TransferFunction) -> np.ndarray:
    """Return the polynomial in w^2 of the frequencies at which the plant is real, N(jw) D(-jw) being real."""
    numerator, denominator = plant.num[0][0], plant.den[0][0]
    powers = np.arange(len(denominator))[::-1]
    product = np.polymul(numerator, denominator * (-1.0) ** powers)
    odd = product[::-1][1::2] * (-1.0) ** np.arange(len(product[::-1][1::2]))
    coefficients: FloatArray = odd[::-1]
    return coefficients


def test_a_loop_that_is_zero_has_no_bounds() -> None:
    margins = compute_margins(StateSpace(-np.eye(2), np.zeros((2, 1)), np.ones((1, 2)), np.zeros((1, 1))))
    assert margins.stable
    assert margins.gain == (0.0, np.inf)
    assert [margins.phase, margins.delay, margins.disk] == [np.inf, np.inf, pytest.approx(2.0)]


def test_constant_loops() -> None:
    half = compute_margins(constant_loop(0.5))
    assert list(half.gain) == [0.0, pytest.approx(2.0)]
    assert (half.phase, half.delay) == (np.inf, np.inf)
    # -2: no factor reaches +1; every delay makes waves that double in each turn.
    assert compute_margins(constant_loop(-2.0)).gain == (0.0, np.inf)
    assert compute_margins(constant_loop(-2.0)).delay == 0.0
    assert compute_margins(constant_loop(-2.0, 0.1)).delay == 0.1
    minus_one = compute_margins(constant_loop(-1.0))
    assert (minus_one.phase, minus_one.disk, minus_one.disk_phase) == (180.0, np.inf, 180.0)
    # +2 with k = 1 is algebraically solvable, 1 is the gain that must not be reached: only 1/2 ends the interval.
    assert list(compute_margins(constant_loop(2.0)).gain) == [pytest.approx(0.5), np.inf]
    assert not compute_margins(constant_loop(1.0)).stable
    assert "has no unique solution" in str(compute_margins(constant_loop(1.0)))


def test_a_pole_on_the_unit_circle_bears_small_gains() -> None:
    """z^2 - 2 c z + 1 - k/5: by Jury's conditions |1 - k/5| < 1 and 2 c < 2 - k/5."""
    c = np.cos(0.7)
    A = np.array([[2 * c, -1.0], [1.0, 0.0]])
    loop = StateSpace(A, np.array([[1.0], [0.0]]), np.array([[0.0, 0.2]]), np.zeros((1, 1)), 1.0)
    assert list(compute_margins(loop).gain) == [0.0, pytest.approx((2 - 2 * c) / 0.2, rel=1e-9)]


def test_an_unstable_hidden_mode_leaves_no_margins() -> None:
    A = np.diag([-1.0, 0.1])
    loop = StateSpace(A, np.array([[1.0], [0.0]]), np.array([[-1.0, 0.0]]), np.zeros((1, 1)))
    assert not compute_margins(loop).stable


def test_a_stable_chain_of_equal_lags_of_order_twelve() -> None:
    """1/(s + 1)^12, defective, with the gain sec(pi/12)^12 at w = tan(pi/12)."""
    n = 12
    A = -np.eye(n) + np.diag(np.ones(n - 1), 1)
    loop = StateSpace(A, np.eye(n)[:, -1:], -np.eye(n)[:1], np.zeros((1, 1)))
    margins = compute_margins(loop)
    assert list(margins.gain) == [0.0, pytest.approx(1 / np.cos(np.pi / n) ** n, rel=1e-9)]
    assert margins.gain_frequency == pytest.approx(np.tan(np.pi / n), rel=1e-9)
    assert not margins.warnings


def test_the_furuta_pendulum_of_the_documentation() -> None:
    """LQG at 10 ms: eigenvalues of the closed loop over the gain reach the unit circle at 0.39 and 3.57."""
    plant = fl.systems.furuta_pendulum()
    linear = fl.linearize(plant, outputs=["arm.q", "pendulum.q"])
    kalman = fl.design.kalman_filter(
        linear, 0.01, process={"torque": 1e-6}, measured={"arm.q": 1e-6, "pendulum.q": 1e-6}
    )
    K, _, _ = control.dlqr(kalman.sampled.A, kalman.sampled.B, np.diag([1, 1, 0.1, 0.1]), [[10.0]])
    regulator = fl.design.KalmanRegulator(kalman, K).linear_model().to_control()
    series = regulator * kalman.sampled.to_control()
    margins = compute_margins(StateSpace(series.A, series.B, series.C, series.D, 0.01))
    assert list(margins.gain) == [pytest.approx(0.39, abs=0.005), pytest.approx(3.57, abs=0.005)]
    assert margins.phase == pytest.approx(40.9, abs=0.05)
    for end in margins.gain:
        gains = end * (1 - 1e-6), end * (1 + 1e-6)
        radii = [np.abs(np.linalg.eigvals(series.A + gain * series.B @ series.C)).max() for gain in gains]
        assert (radii[0] - 1) * (radii[1] - 1) < 0
