"""What steps close to the point and far from it say of slopes along one direction through all columns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from fmilin.numerics.differences.directional import Contradiction, Surroundings, choose_direction, directional_check
from fmilin.signals import FloatArray

ONE = np.ones(1)


def checked(f: Callable[[float], float], slope: float, *, noise: float = 0.0) -> Contradiction:
    """Compare f with the slope that is claimed for it at 0."""

    def function(d: FloatArray) -> FloatArray:
        return np.array([f(float(d[0]))])

    far = {s: function(s * choose_direction(ONE)) for s in (0.25, 0.125, -0.125, -0.25)}
    around = Surroundings(function, np.zeros(1), np.zeros(1), far)
    return directional_check(
        around, function(np.zeros(1)), np.array([[slope]]), np.zeros((1, 1)), np.array([noise]), ONE
    )


def test_what_is_linear_contradicts_nothing() -> None:
    assert checked(lambda x: 1.0 + 3.0 * x, 3.0).step is None


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize("height", [1e-6, 1e-11])
def test_a_jump_at_the_point_is_seen_under_what_was_taken_for_noise(sign: float, side: float, height: float) -> None:
    check = checked(lambda x: 3.0 * x + sign * height * (side * x > 0), 3.0, noise=height)
    assert check.step is not None
    assert check.step < 1e-12


@pytest.mark.parametrize("level", [1e-12, 1e-9, 1e-6])
def test_noise_is_no_jump(level: float) -> None:
    random = np.random.default_rng(7)
    assert checked(lambda x: 3.0 * x + level * random.standard_normal(), 3.0, noise=level).step is None


@pytest.mark.parametrize("width", [1e-5, 1e-9, 1e-11, 1e-13])
def test_a_steeper_place_however_narrow_is_seen(width: float) -> None:
    check = checked(lambda x: x + width * float(np.tanh(x / width)), 1.0)
    assert check.step is not None
