"""One column over all scales of steps: plateaus, stairs, jumps, kinks, and where a slope ends."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from fmilin.ground.signals import FloatArray
from fmilin.numerics.differences.climb import Climb, climbed
from fmilin.numerics.differences.ladder import ladder_of

Scalar = Callable[[float], float]


def climb(f: Scalar, at: float = 0.0, *, scale: float = 1.0) -> Climb:
    def line(s: float) -> FloatArray:
        return np.array([f(at + s)])

    ladder = ladder_of(line, line(0.0), scale, at)
    assert ladder is not None
    return climbed(ladder, 0, line)


@pytest.mark.parametrize("width", [1e-2, 1e-5, 1e-8, 1e-11])
@pytest.mark.parametrize(
    ("f", "slope"),
    [
        (lambda x, w: -w * np.sin(x / w), -1.0),
        (lambda x, w: -x - w * np.tanh(x / w), -2.0),
        (lambda x, w: -np.sign(x) * max(abs(x) - w, 0.0), 0.0),
    ],
    ids=["a ripple", "friction", "a deadzone"],
)
def test_the_plateau_at_the_point_is_the_slope(f: Callable[[float, float], float], slope: float, width: float) -> None:
    found = climb(lambda x: float(f(x, width)))
    assert abs(found.slope - slope) <= 10 * found.error + 1e-15
    assert found.error <= 1e-6
    assert width / 4 <= found.reach <= 8 * width


@pytest.mark.parametrize("quantum", [1e-2, 1e-4, 1e-7, 1e-10])
@pytest.mark.parametrize("beside", [0.0, 1.3])
def test_stairs_are_noise_of_the_height_of_a_stair(quantum: float, beside: float) -> None:
    found = climb(lambda x: float(np.round((x + 0.2) / quantum) * quantum + beside * np.sin(x)), 0.1)
    true = 1.0 + beside * np.cos(0.1)
    assert abs(found.slope - true) <= 10 * found.error
    assert quantum <= found.error <= max(300 * quantum, 1e-9)


def test_a_switch_beside_the_point_is_no_staircase() -> None:
    found = climb(lambda x: -float(np.sin(x)) + 0.1 * (x > 1e-5))
    assert found.slope == pytest.approx(-1.0, abs=1e-8)
    assert abs(found.slope + 1.0) <= 10 * found.error


@pytest.mark.parametrize("height", [1.0, 1e-6, -1e-10])
def test_a_jump_at_the_point_is_infinite(height: float) -> None:
    assert climb(lambda x: -x + height * (x > 0)).jump == np.inf


def test_noise_that_freezes_at_the_smallest_steps_is_no_jump() -> None:
    """As beside a point of a manifold, which comes out one bit further on however small the step is."""
    random = np.random.default_rng(8)
    seen: dict[float, float] = {0.0: 2e-6}

    def frozen(x: float) -> float:
        step = 1e-12 * round(x / 1e-12)
        return float(np.sin(x)) + (seen[0.0] if x == 0 else seen.setdefault(step or 1.0, 1e-6 * random.uniform(-1, 1)))

    found = climb(frozen)
    assert np.isfinite(found.jump)
    assert abs(found.slope - 1.0) <= 10 * found.error <= 1e-2


@pytest.mark.parametrize("right", [3.0, 1.5, 1.01])
@pytest.mark.parametrize("at", [0.0, 0.3])
def test_a_kink_at_the_point_has_two_slopes(right: float, at: float) -> None:
    found = climb(lambda x: (x - at) * (right if x > at else 1.0), at)
    assert found.jump == pytest.approx(right - 1.0, rel=1e-6)
    assert found.slope == pytest.approx((right + 1.0) / 2, rel=1e-6)


@pytest.mark.parametrize("distance", [1e-3, 1e-6, 1e-9])
def test_a_kink_beside_the_point_is_none(distance: float) -> None:
    found = climb(lambda x: -x - 2 * max(x - distance, 0.0))
    assert found.jump == 0
    assert abs(found.slope + 1.0) <= 10 * found.error <= 1e-6


def test_what_has_no_slope_has_an_estimate_of_its_size() -> None:
    found = climb(lambda x: float(np.sign(x) * np.sqrt(abs(x))))
    assert found.error > 0.1 * abs(found.slope)


def test_a_slope_that_vanishes_linearly_is_found_at_the_smallest_steps() -> None:
    found = climb(lambda x: -x * abs(x))
    assert abs(found.slope) <= 10 * found.error <= 1e-12


@pytest.mark.parametrize("level", [1e-12, 1e-9, 1e-6])
def test_noise_is_estimated_by_what_it_does(level: float) -> None:
    random = np.random.default_rng(3)
    for _ in range(20):
        found = climb(lambda x: float(np.sin(x) + level * random.uniform(-1, 1)), 0.4)
        assert abs(found.slope - np.cos(0.4)) <= 10 * found.error <= 1e4 * level


def test_what_lies_beyond_the_domain_is_left_out() -> None:
    found = climb(lambda x: float(np.sqrt(x)) if abs(x - 1) < 1e-4 else np.nan, 1.0)
    assert found.slope == pytest.approx(0.5, rel=1e-8)


def test_a_point_without_surroundings_has_no_ladder() -> None:
    assert ladder_of(lambda s: np.array([np.nan]), np.zeros(1), 1.0, 0.0) is None


@pytest.mark.parametrize("power", [1.1, 1.2, 1.3])
def test_the_error_of_a_slope_that_drifts_reaches_to_its_end(power: float) -> None:
    """sign(x) |x|^p has the slope 0 at 0, and differences h^(p - 1) that go there too slowly to arrive."""
    found = climb(lambda x: float(np.sign(x) * abs(x) ** power))
    assert abs(found.slope) <= found.error * (1 + 1e-9)
