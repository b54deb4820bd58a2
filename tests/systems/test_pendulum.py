"""The pendulum in Cartesian coordinates against closed forms in (x, vx)."""

from __future__ import annotations

import numpy as np
import pytest

from fmilin.signals import FloatArray
from fmilin.systems import cartesian_pendulum
from tests.systems.oracle import reduced, relative_error

L, M, G = 1.7, 0.4, 3.71
POINTS = [(0.0, 0.0), (0.6, 0.0), (0.6, 1.3), (-1.1, -2.0)]


def closed_form(angle: float, rate: float) -> tuple[FloatArray, FloatArray]:
    """A and B of vx' = -g s c + F c^2/m - vx^2 s/(L c^2), with s = x/L = sin(angle), at F = 0."""
    s, c, vx = np.sin(angle), np.cos(angle), L * rate * np.cos(angle)
    by_x = (-G * (c * c - s * s) / c - vx**2 * (1 + s * s) / (L * c**4)) / L
    return np.array([[0.0, 1.0], [by_x, -2 * vx * s / (L * c * c)]]), np.array([[0.0], [c * c / M]])


@pytest.mark.parametrize(("angle", "rate"), POINTS)
def test_reduction_to_horizontal_motion(angle: float, rate: float) -> None:
    A, B, _, _ = reduced(cartesian_pendulum(L, M, G, angle=angle, rate=rate), ["x", "vx"])
    expected_A, expected_B = closed_form(angle, rate)
    assert relative_error(A, expected_A) < 1e-13
    assert relative_error(B, expected_B) < 1e-13


def test_frequency_at_rest() -> None:
    A, *_ = reduced(cartesian_pendulum(L, M, G), ["x", "vx"])
    np.testing.assert_allclose(sorted(np.linalg.eigvals(A).imag), [-np.sqrt(G / L), np.sqrt(G / L)], rtol=1e-14)


@pytest.mark.parametrize(("angle", "rate"), POINTS)
def test_it_starts_on_its_rod(angle: float, rate: float) -> None:
    model = cartesian_pendulum(L, M, G, angle=angle, rate=rate)
    at = model.evaluate(0.0, model.start.states, model.start.inputs)
    np.testing.assert_allclose(at.residuals, 0.0, atol=1e-14)
    assert at.outputs[0] == pytest.approx(angle)


def test_it_hangs_at_rest() -> None:
    model = cartesian_pendulum()
    at = model.evaluate(0.0, model.start.states, model.start.inputs)
    assert at.derivatives.tolist() == [0.0] * 4
    assert at.outputs.tolist() == [0.0, 0.0, 9.81]


def test_the_accelerometer_sees_the_rod_and_the_input_but_not_gravity() -> None:
    """The specific force is (F - lambda x, -lambda y)/m: without input it points along the rod."""
    model = cartesian_pendulum(L, M, G, angle=0.6, rate=1.3)
    _, ax, ay = model.evaluate(0.0, model.start.states, np.zeros(1)).outputs
    np.testing.assert_allclose([ax, ay], (G * np.cos(0.6) + L * 1.3**2) * np.array([-np.sin(0.6), np.cos(0.6)]))
    D = reduced(model, ["x", "vx"])[3]
    c, s = np.cos(0.6), np.sin(0.6)
    np.testing.assert_allclose(D, [[0.0], [c * c / M], [s * c / M]], atol=1e-14)


def test_angle_and_its_rate_as_outputs() -> None:
    C = reduced(cartesian_pendulum(L, M, G, angle=0.6), ["x", "vx"])[2]
    np.testing.assert_allclose(C[0], [1 / (L * np.cos(0.6)), 0.0], rtol=1e-14)
