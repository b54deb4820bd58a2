"""Points at which an FMU loses its instance: a fresh one is made as seldom as possible."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fmilin as fl
from fmilin.errors import ModelError
from fmilin.fmi.read import FmuModel, session
from fmilin.fmi.read.instance import Instance

Zoo = Callable[[str], Path]


@pytest.fixture
def restarts(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Start times of instances that were begun again."""
    made: list[float] = []
    original = Instance.begin_again

    def begin_again(self: Instance, time: float, settings: object) -> None:
        made.append(time)
        original(self, time, settings)  # type: ignore[arg-type]

    monkeypatch.setattr(Instance, "begin_again", begin_again)
    return made


@pytest.fixture
def divides(opened: Callable[..., FmuModel]) -> FmuModel:
    """v' = (-v^3 - x / k^8) / m^8, y = v / r^8, at x = m = k = r = 1, v = 0.5: m, k, r must be positive."""
    return opened("divides")


def matrices(m: float, k: float, r: float) -> tuple[np.ndarray, ...]:
    x, v = 1.0, 0.5
    force = -(v**3) - x / k**8
    A = np.array([[0.0, 1.0], [-1 / k**8, -3 * v**2]]) / np.array([[1.0], [m**8]])
    B = np.array([[0.0, 0.0, 0.0], [-8 * force / m**9, 8 * x / k**9 / m**8, 0.0]])
    return A, B, np.array([[0.0, 1 / r**8]]), np.array([[0.0, 0.0, -8 * v / r**9]])


def test_one_instance_is_lost_for_three_columns_and_none_the_second_time(
    divides: FmuModel, restarts: list[float]
) -> None:
    point = fl.operating_point(divides, {"m": 2.0, "k": 0.5, "r": 1.5})
    first = fl.linearize(divides, point)
    assert len(restarts) == 1
    second = fl.linearize(divides, point)
    assert len(restarts) == 1
    for name, expected in zip("ABCD", matrices(2.0, 0.5, 1.5), strict=True):
        actual = getattr(first, name)
        assert_array_equal(getattr(second, name), actual)
        allowed = getattr(first.accuracy, name) * np.abs(expected).max(axis=1, keepdims=True)
        assert (np.abs(actual - expected) <= allowed + 1e-15).all(), name
    assert first.accuracy == second.accuracy


def test_a_model_that_is_smooth_over_its_lengths_is_not_looked_at_far_away(
    divides: FmuModel, restarts: list[float]
) -> None:
    lin = fl.linearize(divides)
    assert not restarts
    for name, expected in zip("ABCD", matrices(1.0, 1.0, 1.0), strict=True):
        np.testing.assert_allclose(getattr(lin, name), expected, atol=1e-10)


def test_another_point_is_looked_at_by_itself(divides: FmuModel, restarts: list[float]) -> None:
    """What fails beside m = k = r = 1 says nothing about m = 2, k = 0.5, r = 1.5: the model is asked there."""
    fl.linearize(divides)
    restarts.clear()
    lin = fl.linearize(divides, fl.operating_point(divides, {"m": 2.0, "k": 0.5, "r": 1.5}))
    assert len(restarts) == 1
    for name, expected in zip("ABCD", matrices(2.0, 0.5, 1.5), strict=True):
        np.testing.assert_allclose(getattr(lin, name), expected, atol=1e-8)


def test_the_error_is_said_again_without_asking(divides: FmuModel, restarts: list[float]) -> None:
    x, bad, good = divides.start.states, np.array([0.0, 1.0, 1.0]), np.ones(3)
    messages = []
    for _ in range(3):
        with pytest.raises(ModelError, match="GetDerivatives") as error:
            divides.evaluate(0.0, x, bad)
        messages.append(str(error.value))
        assert error.value.costs_start
        divides.evaluate(0.0, x, good)
    assert len(set(messages)) == 1
    assert len(restarts) == 1


def test_a_limited_number_of_points_is_remembered(
    divides: FmuModel, restarts: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "MAX_LOST_POINTS", 2)
    x = divides.start.states
    for mass in (-1.0, -2.0, -3.0, -3.0, -2.0, -1.0):
        with pytest.raises(ModelError):
            divides.evaluate(0.0, x, np.array([mass, 1.0, 1.0]))
    assert len(restarts) == 3  # before the second, third, and last question
