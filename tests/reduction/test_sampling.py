"""Sampled models against the exact motion of the continuous ones, and against python-control."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Literal

import control
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from fmilin import LinearModel
from fmilin.errors import NumericalError, UsageError
from fmilin.linear_model.model import EntryErrors
from fmilin.reduction import Conditioning, discretize
from fmilin.signals import FloatArray, Signals
from tests.hand_made import pendulum, sized
from tests.reduction.cases import cart_with_pendulum, from_matrices, masses_and_springs

H = 0.1
Hold = Literal["zoh", "foh", "tustin"]
HOLDS: list[Hold] = ["zoh", "foh", "tustin"]


def moving() -> LinearModel:
    """Away from an equilibrium, with direct feedthrough and dependent states that follow the inputs."""
    linear = sized(4, 2, 2, 3)
    return replace(linear, A=linear.A - np.eye(4))


def steps(linear: LinearModel, u: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Deviations of outputs and of all states at the samples, starting at the point."""
    z, outputs, states = np.zeros(len(linear.A)), [], []
    for du in u:
        outputs.append(linear.C @ z + linear.D @ du)
        states.append(linear.T @ z + linear.T_u @ du)
        z = linear.f0 + linear.A @ z + linear.B @ du
    return np.array(outputs), np.array(states)


@pytest.mark.parametrize("hold", ["zoh", "foh"])
def test_samples_are_exact_for_held_and_for_straight_inputs(hold: Hold) -> None:
    linear = moving()
    rng = np.random.default_rng(2)
    u = rng.standard_normal((12, 2))
    u[0] = 0.0  # in straight lines from rest: the state of foh is y - G2 du

    def rate(t: float, dy: FloatArray) -> FloatArray:
        k = min(int(t / H + 1e-9), len(u) - 2)
        du = u[k] if hold == "zoh" else u[k] + (u[k + 1] - u[k]) * (t / H - k)
        return np.asarray(linear.f0 + linear.A @ dy + linear.B @ du)

    dy, y = [np.zeros(4)], np.zeros(4)
    for k in range(len(u) - 1):
        y = solve_ivp(rate, (k * H + 1e-12, (k + 1) * H - 1e-12), y, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
        dy.append(y)
    outputs, states = steps(discretize(linear, H, hold), u)
    assert np.allclose(outputs, np.array(dy) @ linear.C.T + u @ linear.D.T, atol=1e-9)
    assert np.allclose(states, np.array(dy) @ linear.T.T + u @ linear.T_u.T, atol=1e-9)


def test_tustin_is_the_trapezoidal_rule() -> None:
    linear = moving()
    u = np.random.default_rng(4).standard_normal((10, 2))
    u[0] = 0.0
    one = np.eye(4)
    # (y_k - y_{k-1}) / h = mean of the rates, started such that the state y - h/2 (A dy + B du) is zero.
    dy = [np.linalg.solve(one - H / 2 * linear.A, H / 2 * linear.B @ u[0])]
    for a, b in itertools.pairwise(u):
        known = dy[-1] + H / 2 * (linear.A @ dy[-1] + linear.B @ (a + b)) + H * linear.f0
        dy.append(np.linalg.solve(one - H / 2 * linear.A, known))
    outputs, states = steps(discretize(linear, H, "tustin"), u)
    assert np.allclose(outputs, np.array(dy) @ linear.C.T + u @ linear.D.T, atol=1e-12)
    assert np.allclose(states, np.array(dy) @ linear.T.T + u @ linear.T_u.T, atol=1e-12)


@pytest.mark.parametrize("hold", HOLDS)
@pytest.mark.parametrize("model", [masses_and_springs(3), cart_with_pendulum(), sized(5, 1, 2, 2)])
def test_frequency_responses_are_those_of_python_control(hold: Hold, model: LinearModel) -> None:
    mine = discretize(model, H, hold).to_control()
    theirs = control.sample_system(model.to_control(), H, method={"tustin": "bilinear"}.get(hold, hold))
    w = np.geomspace(1e-2, 30, 40)
    assert mine.dt == H
    assert np.allclose(mine(np.exp(1j * w * H)), theirs(np.exp(1j * w * H)), rtol=1e-8, atol=1e-10)


def test_the_double_integrator_in_closed_form() -> None:
    linear = from_matrices(np.eye(2, k=1), np.eye(2)[:, 1:], np.eye(2)[:1])
    zoh = discretize(replace(linear, f0=np.array([0.0, 2.0])), H)
    assert np.allclose(zoh.A, [[1.0, H], [0.0, 1.0]], rtol=1e-15)
    assert np.allclose(zoh.B, [[H**2 / 2], [H]], rtol=1e-14)
    assert np.allclose(zoh.f0, [H**2, 2 * H], rtol=1e-14)
    assert zoh.states == linear.states
    assert zoh.sample_time == H
    rates = [mode.eigenvalue for mode in discretize(masses_and_springs(2), H).modes()]
    assert np.allclose(rates, [mode.eigenvalue for mode in masses_and_springs(2).modes()], rtol=1e-10)


def test_states_of_foh_and_tustin_have_names_of_their_own() -> None:
    assert discretize(pendulum(), H, "zoh").states.names == ("pin.x", "pin.vx")
    assert discretize(pendulum(), H, "foh").states.names == ("pin.x (foh)", "pin.vx (foh)")
    assert discretize(pendulum(), H, "tustin").full_states.names == pendulum().full_states.names


@pytest.mark.parametrize("hold", HOLDS)
@pytest.mark.parametrize(("order", "inputs", "outputs"), [(0, 0, 0), (0, 2, 1), (3, 0, 0), (3, 0, 2), (3, 2, 0)])
def test_any_size(hold: Hold, order: int, inputs: int, outputs: int) -> None:
    linear = discretize(sized(order, 1, inputs, outputs), H, hold)
    assert linear.B.shape == (order, inputs)
    assert linear.C.shape == (outputs, order)
    assert linear.T.shape == (order + 1, order)
    assert linear.T_u.shape == (order + 1, inputs)


def test_errors_follow_what_they_change() -> None:
    linear = masses_and_springs(2)
    zeros = linear.errors
    linear = replace(linear, errors=EntryErrors(np.full((4, 4), 1e-6), zeros.B, zeros.C, zeros.D, zeros.T))
    sampled = discretize(linear, H)
    assert 1e-8 < sampled.accuracy.A < 1e-6
    moved = discretize(replace(linear, A=linear.A + 1e-6), H)
    assert np.allclose(np.abs(moved.A - sampled.A), sampled.errors.A, rtol=1e-3, atol=1e-12)


def test_a_motion_faster_than_the_samples_is_said() -> None:
    linear = masses_and_springs(3)
    assert [w.kind for w in discretize(linear, 3.0).warnings] == ["aliasing"]
    assert discretize(linear, 1.0).warnings == ()


@pytest.mark.parametrize("sample_time", [0.0, -1.0, float("nan"), float("inf")])
def test_bad_sample_times(sample_time: float) -> None:
    with pytest.raises(UsageError, match=r"sample time of .* is not possible"):
        discretize(pendulum(), sample_time)


def test_bad_requests() -> None:
    with pytest.raises(UsageError, match=r"sampled already, every 0\.1 s"):
        discretize(discretize(pendulum(), H), H)
    with pytest.raises(UsageError, match="'impulse' is not a method of discretization"):
        discretize(pendulum(), H, "impulse")  # type: ignore[arg-type]  # what a person may write
    unstable = from_matrices([[1000.0]], [[1.0]], [[1.0]])
    with pytest.raises(NumericalError, match="cannot be sampled every 1 s by zoh"):
        discretize(unstable, 1.0)
    with pytest.raises(NumericalError, match="2/h is an eigenvalue"):
        discretize(unstable, 0.002, "tustin")


def test_steps_in_their_order() -> None:
    steps = Conditioning(minimal=True, order=1, hold="zoh", sample_time=H, balance="norms")
    A = np.diag([-1.0, -30.0, 5.0])
    linear = from_matrices(A, np.array([[1.0], [0.1], [0.0]]), np.ones((1, 3)))
    small = steps.apply(linear)
    assert pytest.approx(np.array([[np.exp(-H)]]), rel=1e-2) == small.A
    assert [w.kind for w in small.warnings] == ["minimal", "reduced"]
    modal = Conditioning(frequencies=(0, 10), modal=True).apply(masses_and_springs(2))
    assert modal.states == Signals(modal.states)
    assert modal.states.names[0] == "mode1.re"


def test_contradictions_are_refused() -> None:
    with pytest.raises(UsageError, match="needs a method and a sample time"):
        Conditioning(hold="zoh")
    with pytest.raises(UsageError, match="needs a method and a sample time"):
        Conditioning(sample_time=1.0)
    with pytest.raises(UsageError, match=r"leave Conditioning\(modal=True\) or Conditioning\(balance=\.\.\.\) out"):
        Conditioning(modal=True, balance="norms")
    with pytest.raises(UsageError, match=r"Conditioning\(order=-1\): the order must not be negative"):
        Conditioning(order=-1)
