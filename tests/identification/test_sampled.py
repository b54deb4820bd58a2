from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg

from fmilin.errors import NumericalError
from fmilin.identification.discrete_models import Continuous, Sampled, find_continuous_model, sample_model
from fmilin.identification.displaced_states import settle
from tests.identification.toys import oscillators


def made(step: float, reading: str = "at once", frequencies: tuple[float, ...] = (1.0, 3.0)) -> Sampled:
    plant = oscillators(frequencies, D=True)
    A, B = plant.over(step)
    C, D = plant.C, plant.D
    if reading == "end of step":
        C, D = plant.C @ A, plant.C @ B + plant.D
    return Sampled(A, B, C, D, step, reading, np.empty((0, len(A))), np.zeros(len(A)))


@pytest.mark.parametrize("reading", ["at once", "end of step"])
def test_the_continuous_model_behind_held_inputs_is_found(reading: str) -> None:
    plant = oscillators((1.0, 3.0), D=True)
    continuous = find_continuous_model(made(0.2, reading))
    for name in "ABCD":
        np.testing.assert_allclose(getattr(continuous, name), getattr(plant, name), atol=1e-12)
    assert continuous.nyquist == pytest.approx(0.6 * np.sqrt(1 - 0.05**2) / np.pi, rel=1e-9)


def test_an_integrator_and_a_drift_are_no_singular_case() -> None:
    A, f0, step = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([0.0, 2.0]), 0.5
    E = linalg.expm(step * np.block([[A, np.eye(2)], [np.zeros((2, 4))]]))
    double = Sampled(
        E[:2, :2], E[:2, 2:] @ [[0.0], [1.0]], np.eye(2), np.zeros((2, 1)), step, "at once", np.eye(2), E[:2, 2:] @ f0
    )
    continuous = find_continuous_model(double)
    np.testing.assert_allclose(continuous.A, A, atol=1e-14)
    np.testing.assert_allclose(continuous.B, [[0.0], [1.0]], atol=1e-14)
    np.testing.assert_allclose(continuous.f0, f0, atol=1e-13)


def test_another_step_gives_the_model_of_that_step() -> None:
    for reading in ("at once", "end of step"):
        half = sample_model(find_continuous_model(made(0.2, reading)), 0.1, reading)
        for name in "ABCD":
            np.testing.assert_allclose(getattr(half, name), getattr(made(0.1, reading), name), atol=1e-12)


def test_a_delay_has_no_continuous_model() -> None:
    delay = Sampled(
        np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [1.0]]), np.array([[1.0, 0.0]]), np.zeros((1, 1)), 0.1,
        "at once", np.empty((0, 2)), np.zeros(2),
    )  # fmt: skip
    with pytest.raises(NumericalError, match=r"2 of the 2 eigenvalues over one step of 0\.1 s are zero: a delay"):
        find_continuous_model(delay)


def test_a_motion_near_half_the_sampling_frequency_is_refused() -> None:
    with pytest.raises(NumericalError, match=r"lies at 0\.9\d+ of half the sampling frequency.*alias"):
        find_continuous_model(made(1.0, frequencies=(1.0, 3.0)))


def test_the_response_is_that_of_the_recursion() -> None:
    model = made(0.2)
    u = np.random.default_rng(1).standard_normal((20, 2))
    x, expected = np.zeros(4), []
    for row in u:
        expected.append(model.C @ x + model.D @ row)
        x = model.A @ x + model.B @ row
    np.testing.assert_allclose(model.response(u), expected, atol=1e-14)


def test_other_coordinates_answer_the_same() -> None:
    model = made(0.2)
    other = model.in_coordinates(np.random.default_rng(2).standard_normal((4, 4)))
    u = np.random.default_rng(1).standard_normal((20, 2))
    np.testing.assert_allclose(other.response(u), model.response(u), atol=1e-12)


def test_slow_is_not_still() -> None:
    """T' = (283 - T)/1e7 at 280.5 changes by 2.5e-7 per second and is no rest; at 283 rounding is all there is."""
    none = np.zeros((1, 0))

    def room(rate: float, slope: float) -> Continuous:
        return Continuous(np.array([[slope]]), none, none.T, np.zeros((0, 0)), np.array([rate]), np.eye(1), 0.0)

    scales, errors = np.array([283.0]), room(0.0, 1e-13)
    assert settle(room(2.5e-7, -1e-7), errors, scales).f0 == 2.5e-7
    assert settle(room(1e-17, -1e-7), errors, scales).f0 == 0.0
