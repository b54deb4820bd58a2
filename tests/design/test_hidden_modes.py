"""No steady filter where a mode that stays is observed, or excited, by rounding only; honest weak modes keep theirs."""

from __future__ import annotations

import control
import numpy as np
import pytest
from scipy.linalg import block_diag

import fmilin as fl
from fmilin import design
from fmilin.models import OdeModel
from fmilin.reduction import discretize
from fmilin.signals import FloatArray
from tests.design.test_feedthrough import linear_system


def oscillator(damping: float = 0.0) -> fl.LinearModel:
    equations = {"x": "v", "v": f"-x - {damping!r}*v + u"}
    return fl.linearize(OdeModel("oscillator", equations, inputs=["u"], outputs={"y": "x"}))


def position_filter(linear: fl.LinearModel, h: float) -> design.KalmanFilter:
    return design.kalman_filter(linear, h, process={"u": 1.0}, measured={"y": 1.0})


@pytest.mark.parametrize("half_turns", [1, 2, 3, 7])
def test_an_oscillator_sampled_at_half_turns_has_no_steady_filter(half_turns: int) -> None:
    """At h = k pi the sampled matrix is +-1: the velocity is not observable from the position."""
    with pytest.raises(fl.NumericalError, match=r"no steady Kalman filter.*not observable from y.*moves v"):
        position_filter(oscillator(), half_turns * np.pi)


@pytest.mark.parametrize("off", [1e-2, 1e-4, 1e-6])
def test_beside_half_turns_the_filter_is_there_with_a_variance_of_one_over_the_distance(off: float) -> None:
    """The velocity is seen with the weight sin(off): its variance is the root of q R over that weight."""
    near, nearer = (position_filter(oscillator(), np.pi + distance) for distance in (off, off / 4))
    assert near.relative_error < 1e-2
    assert nearer.covariance[1, 1] == pytest.approx(4 * near.covariance[1, 1], rel=0.1)


@pytest.mark.parametrize("damping", [1e-2, 1e-4, 1e-6])
def test_damping_makes_a_hidden_mode_decay(damping: float) -> None:
    """The velocity's variance is that of the open loop: 1/(2 damping) for white noise of density 1."""
    w = np.sqrt(1 - damping**2 / 4)
    kf = position_filter(oscillator(damping), np.pi / w)
    assert kf.covariance[1, 1] == pytest.approx(1 / (2 * damping), rel=0.3)


def hidden(seed: int, strength: float, growth: float) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Return A, B, C and a sample time: a mode that stays, seen with a strength, mixed with others by T."""
    random = np.random.default_rng(seed)
    w = random.uniform(0.3, 3.0)
    kinds = [np.array([[growth]]), np.array([[growth, w], [-w, growth]]), np.array([[growth, 1.0], [0.0, growth]])]
    mode = kinds[seed % 3]
    n = int(random.integers(1, 4))
    A = block_diag(mode, -np.diag(random.uniform(0.2, 3.0, n)))
    C = random.normal(size=(1, len(A)))
    C[0, : len(mode)] *= strength
    if seed % 3 == 2:
        C[0, :2] = strength, 1.0
    T = np.eye(len(A)) + 0.4 * random.normal(size=A.shape) / np.sqrt(len(A))
    T *= 10 ** random.uniform(-3, 3, (len(A), 1))
    inverse = np.linalg.inv(T)
    return T @ A @ inverse, T @ random.normal(size=(len(A), 2)), C @ inverse, float(random.uniform(0.05, 0.4))


def noisy_filter(A: FloatArray, B: FloatArray, C: FloatArray, h: float, *, hold_noise: bool) -> design.KalmanFilter:
    linear = linear_system(A, B, C, np.zeros((len(C), B.shape[1])))
    process = dict.fromkeys(linear.inputs.names, 1.0)
    return design.kalman_filter(
        linear, h, process=process, measured=dict.fromkeys(linear.outputs.names, 1.0), hold_noise=hold_noise
    )


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("growth", [0.0, 0.1])
def test_a_random_mode_that_stays_and_is_seen_by_rounding_only_is_named(seed: int, growth: float) -> None:
    with pytest.raises(fl.NumericalError, match="no steady Kalman filter"):
        noisy_filter(*hidden(seed, 0.0, growth), hold_noise=bool(seed % 2))


@pytest.mark.parametrize("seed", range(12))
def test_a_random_mode_on_the_limit_that_no_noise_reaches_is_named(seed: int) -> None:
    A, B, C, h = hidden(seed, 0.0, 0.0)
    with pytest.raises(fl.NumericalError, match="on the stability limit is not excited by the process noise"):
        noisy_filter(A.T, C.T, B.T, h, hold_noise=bool(seed % 2))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(("strength", "growth"), [(1e-2, 0.0), (1e-4, 0.0), (1e-2, -1e-6), (1e-2, 0.05)])
def test_a_random_mode_that_is_seen_honestly_has_its_filter(seed: int, strength: float, growth: float) -> None:
    kf = noisy_filter(*hidden(seed, strength, growth), hold_noise=bool(seed % 2))
    assert kf.relative_error < 1e-2
    closed = (np.eye(len(kf.gain)) - kf.gain @ kf.sampled.C) @ kf.sampled.A
    assert np.abs(np.linalg.eigvals(closed)).max() < 1


@pytest.mark.parametrize("seed", range(6))
def test_a_regulator_does_not_rely_on_rounding(seed: int) -> None:
    """A mode on the limit that B moves by 1e-16 of its terms: the gain that is to move it is refused, in both forms."""
    random = np.random.default_rng(seed)
    T = np.eye(3) + 0.3 * random.normal(size=(3, 3))
    A = T @ np.diag([0.0, -0.5, -1.2]) @ np.linalg.inv(T)
    lin = linear_system(A, T @ np.array([[0.0], [1.0], [-1.0]]), np.eye(3), np.zeros((3, 1)))
    sampled = discretize(lin, 0.1)
    gain = control.place(sampled.A, sampled.B, [0.9, 0.8, 0.7])
    assert np.abs(gain).max() > 1e10
    words = (
        r"no stabilizing regulator: an undamped or unstable mode is not controllable from u0 beyond rounding.*z = 1,"
    )
    with pytest.raises(fl.NumericalError, match=words):
        design.state_feedback(lin, gain, 0.1)
    everything = design.kalman_filter(lin, 0.1, process=np.eye(3), measured=dict.fromkeys(lin.outputs.names, 1.0))
    with pytest.raises(fl.NumericalError, match=words):
        design.KalmanRegulator(everything, gain)
    slow = np.asarray(
        np.linalg.inv(T)[1:2], dtype=np.float64
    )  # this gain acts on a mode that decays, and leaves the other one alone
    assert design.state_feedback(lin, 0.1 * slow, 0.1).gain.shape == (1, 3)


@pytest.mark.parametrize("h", [0.1, 1.0, np.pi - 1e-3])
def test_an_honest_regulator_is_taken(h: float) -> None:
    lin = oscillator()
    sampled = control.c2d(lin.to_control(), h)
    gain, _, _ = control.dlqr(sampled.A, sampled.B, np.eye(2), np.eye(1))
    assert design.state_feedback(lin, gain, h).gain.shape == (1, 2)
