"""Gains along periodic motions: those of constant systems by python-control, Riccati's equation where A varies."""

from __future__ import annotations

from functools import cache

import control
import numpy as np
import pytest
from scipy.linalg import expm

import fmilin as fl
from fmilin.models import OdeModel
from fmilin.signals import FloatArray

Q, R = np.diag([1.0, 2.0]), np.array([[0.3]])


@cache
def constant() -> fl.PeriodicModel:
    model = OdeModel("upright", {"x": "v", "v": "2*x - 0.3*v + u"}, inputs=["u"], outputs={"y": "x"})
    return fl.linearize_periodic(model, fl.periodic_orbit(model, period=1.5), points=16)


@cache
def resonant() -> fl.PeriodicModel:
    rates = {"x": "v", "v": "-(1 + 0.8*cos(2*time))*x + (1 + 0.5*sin(2*time))*u"}
    model = OdeModel("resonant", rates, inputs=["u", "w"], outputs={"y": "x"})
    return fl.linearize_periodic(model, fl.periodic_orbit(model, period=np.pi), inputs=["u"])


def rates_of(samples: FloatArray, period: float) -> FloatArray:
    """Return the rates of a periodic course at its samples: those of its trigonometric interpolation."""
    count = len(samples)
    orders = np.fft.fftfreq(count, 1.0 / count)
    if count % 2 == 0:
        orders[count // 2] = 0.0
    harmonics = np.fft.fft(samples, axis=0)
    factors = 2j * np.pi / period * orders
    rates: FloatArray = np.fft.ifft(factors[:, None, None] * harmonics, axis=0).real
    return rates


def test_gains_of_a_constant_system_are_those_of_python_control() -> None:
    periodic = constant()
    A, B, C = periodic.A[0], periodic.B[0], periodic.C[0]
    regulator = fl.design.periodic_lqr(periodic, Q, R)
    K, S, poles = control.lqr(A, B, Q, R, method="scipy")
    np.testing.assert_allclose(regulator.gain, np.broadcast_to(K, regulator.gain.shape), atol=1e-12)
    np.testing.assert_allclose(regulator.riccati[7], S, atol=1e-12)
    np.testing.assert_allclose(regulator.closed.floquet().exponents.real, np.sort(poles.real)[::-1], atol=1e-12)
    np.testing.assert_allclose(regulator.at(0.4), K, atol=1e-12)
    kalman = fl.design.periodic_kalman_filter(periodic, process={"u": 0.5}, measured={"y": 0.1})
    L, P, _ = control.lqe(A, B, C, [[0.5]], [[0.1]], method="scipy")
    np.testing.assert_allclose(kalman.gain[3], L, atol=1e-12)
    np.testing.assert_allclose(kalman.riccati[3], P, atol=1e-12)


def test_riccatis_equation_holds_at_every_phase_and_the_resonance_is_gone() -> None:
    periodic = resonant()
    A, B, C = periodic.A, periodic.B, periodic.C
    At, Bt, Ct = (np.swapaxes(M, 1, 2) for M in (A, B, C))
    assert not periodic.floquet().stable
    regulator = fl.design.periodic_lqr(periodic, Q, R)
    S = regulator.riccati
    residual = rates_of(S, np.pi) + At @ S + S @ A - S @ B @ Bt @ S / R + Q
    assert np.abs(residual).max() < 1e-11
    assert regulator.closed.floquet().margin < -0.5
    kalman = fl.design.periodic_kalman_filter(periodic, process={"u": 0.5}, measured={"y": 0.1})
    P = kalman.riccati
    residual = rates_of(P, np.pi) - (A @ P + P @ At - P @ Ct @ C @ P / 0.1 + 0.5 * B @ Bt)
    assert np.abs(residual).max() < 1e-11
    assert kalman.closed.floquet().stable


def test_what_cannot_be_done_is_told() -> None:
    lost = OdeModel("lost", {"x": "x*(1 + cos(time))", "z": "-z + u"}, inputs=["u"], outputs={"y": "z"})
    periodic = fl.linearize_periodic(lost, fl.periodic_orbit(lost, period=2 * np.pi), points=16)
    with pytest.raises(fl.NumericalError, match=r"undamped or unstable mode.*it is not controllable from u"):
        fl.design.periodic_lqr(periodic, np.eye(2), np.eye(1))
    with pytest.raises(
        fl.NumericalError, match=r"undamped or unstable mode.*: it is not observable from y, or not excited"
    ):
        fl.design.periodic_kalman_filter(periodic, process={"u": 1.0}, measured={"y": 1.0})
    with pytest.raises(fl.UsageError, match=r"shapes \(2, 2\) and \(2, 2\); they need \(2, 2\) and \(1, 1\)"):
        fl.design.periodic_lqr(periodic, np.eye(2), np.eye(2))
    with pytest.raises(fl.UsageError, match="inputs must be positive definite"):
        fl.design.periodic_lqr(periodic, np.eye(2), -np.eye(1))
    with pytest.raises(fl.UsageError, match="No variance is given for y"):
        fl.design.periodic_kalman_filter(periodic, process={"u": 1.0}, measured={})
    with pytest.raises(fl.UnknownNameError, match="'w' is not an input"):
        fl.design.periodic_kalman_filter(periodic, process={"w": 1.0}, measured={"y": 1.0})


def test_a_period_as_one_sample_is_what_the_parts_make_one_after_the_other() -> None:
    periodic = constant()
    lifted = periodic.lifted(3)
    h = periodic.period / 3
    held = expm(np.block([[periodic.A[0], periodic.B[0]], [np.zeros((1, 3))]]) * h)
    F, G, C = held[:2, :2], held[:2, 2:], periodic.C[0]
    np.testing.assert_allclose(lifted.A, F @ F @ F, atol=1e-12)
    np.testing.assert_allclose(lifted.B, np.hstack((F @ F @ G, F @ G, G)), atol=1e-12)
    np.testing.assert_allclose(lifted.C, np.vstack((C, C @ F, C @ F @ F)), atol=1e-12)
    np.testing.assert_allclose(lifted.D[2], np.hstack((C @ F @ G, C @ G, [[0.0]]))[0], atol=1e-12)
    assert (lifted.sample_time, lifted.inputs.names) == (periodic.period, ("u.0", "u.1", "u.2"))
    multipliers = resonant().floquet().multipliers
    np.testing.assert_allclose(np.sort(resonant().lifted(4).eigenvalues().real), np.sort(multipliers.real), atol=1e-12)
    with pytest.raises(fl.UsageError, match="one part at least, not 0"):
        periodic.lifted(0)
