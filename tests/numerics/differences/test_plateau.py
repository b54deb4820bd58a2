"""A step-size sweep of one column: plateaus, stairs, jumps, kinks, and where a slope ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fmilin.numerics.differences import plateau_rows
from fmilin.numerics.differences.plateau import PlateauSlope, plateau_slope
from fmilin.numerics.differences.sweep import StepSweep, step_sweep
from fmilin.signals import FloatArray

Scalar = Callable[[float], float]


def slope_of(f: Scalar, at: float = 0.0, *, scale: float = 1.0) -> PlateauSlope:
    def line(s: float) -> FloatArray:
        return np.array([f(at + s)])

    sweep = step_sweep(line, line(0.0), scale, at)
    assert sweep is not None
    return plateau_slope(sweep, 0, line)


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
    entry = slope_of(lambda x: float(f(x, width)))
    assert abs(entry.slope - slope) <= 10 * entry.error + 1e-15
    assert entry.error <= 1e-6
    assert width / 4 <= entry.reach <= 8 * width


@pytest.mark.parametrize("quantum", [1e-2, 1e-4, 1e-7, 1e-10])
@pytest.mark.parametrize("wave", [0.0, 1.3])
def test_stairs_are_noise_of_the_height_of_a_stair(quantum: float, wave: float) -> None:
    entry = slope_of(lambda x: float(np.round((x + 0.2) / quantum) * quantum + wave * np.sin(x)), 0.1)
    true = 1.0 + wave * np.cos(0.1)
    assert abs(entry.slope - true) <= 10 * entry.error
    assert quantum <= entry.error <= max(300 * quantum, 1e-9)


def test_a_switch_beside_the_point_is_no_staircase() -> None:
    entry = slope_of(lambda x: -float(np.sin(x)) + 0.1 * (x > 1e-5))
    assert entry.slope == pytest.approx(-1.0, abs=1e-8)
    assert abs(entry.slope + 1.0) <= 10 * entry.error


@pytest.mark.parametrize("height", [1.0, 1e-6, -1e-10])
def test_a_jump_at_the_point_is_infinite(height: float) -> None:
    assert slope_of(lambda x: -x + height * (x > 0)).jump == np.inf


def test_noise_that_freezes_at_the_smallest_steps_is_no_jump() -> None:
    """As beside a point of a manifold, which comes out one bit further on however small the step is."""
    random = np.random.default_rng(8)
    seen: dict[float, float] = {0.0: 2e-6}

    def frozen(x: float) -> float:
        step = 1e-12 * round(x / 1e-12)
        return float(np.sin(x)) + (seen[0.0] if x == 0 else seen.setdefault(step or 1.0, 1e-6 * random.uniform(-1, 1)))

    entry = slope_of(frozen)
    assert np.isfinite(entry.jump)
    assert abs(entry.slope - 1.0) <= 10 * entry.error <= 1e-2


@pytest.mark.parametrize("right", [3.0, 1.5, 1.01])
@pytest.mark.parametrize("at", [0.0, 0.3])
def test_a_kink_at_the_point_has_two_slopes(right: float, at: float) -> None:
    entry = slope_of(lambda x: (x - at) * (right if x > at else 1.0), at)
    assert entry.jump == pytest.approx(right - 1.0, rel=1e-6)
    assert entry.slope == pytest.approx((right + 1.0) / 2, rel=1e-6)


@pytest.mark.parametrize("guard", [1e-16, 2.2e-16, 1e-15])
@pytest.mark.parametrize("at", [0.0, 0.3, 800.0])
def test_a_kink_that_is_guarded_over_a_unit_of_rounding_is_one(guard: float, at: float) -> None:
    """As (x + 0.5 |x|) where |x| > eps: no slope can be read from the few steps within."""
    unit = guard * max(at, 1.0)
    entry = slope_of(lambda x: -(x - at) + (0.5 * abs(x - at) if abs(x - at) > unit else 0.0), at)
    assert entry.jump == pytest.approx(1.0, rel=1e-6)
    assert entry.slope == pytest.approx(-1.0, rel=1e-6)


@pytest.mark.parametrize("distance", [1e-3, 1e-6, 1e-9])
def test_a_kink_beside_the_point_is_none(distance: float) -> None:
    entry = slope_of(lambda x: -x - 2 * max(x - distance, 0.0))
    assert entry.jump == 0
    assert abs(entry.slope + 1.0) <= 10 * entry.error <= 1e-6


def test_what_has_no_slope_has_an_estimate_of_its_size() -> None:
    entry = slope_of(lambda x: float(np.sign(x) * np.sqrt(abs(x))))
    assert entry.error > 0.1 * abs(entry.slope)


def test_a_slope_that_vanishes_linearly_is_found_at_the_smallest_steps() -> None:
    entry = slope_of(lambda x: -x * abs(x))
    assert abs(entry.slope) <= 10 * entry.error <= 1e-12


@pytest.mark.parametrize("level", [1e-12, 1e-9, 1e-6])
def test_noise_is_estimated_by_what_it_does(level: float) -> None:
    random = np.random.default_rng(3)
    for _ in range(20):
        entry = slope_of(lambda x: float(np.sin(x) + level * random.uniform(-1, 1)), 0.4)
        assert abs(entry.slope - np.cos(0.4)) <= 10 * entry.error <= 1e4 * level


def test_what_lies_beyond_the_domain_is_left_out() -> None:
    entry = slope_of(lambda x: float(np.sqrt(x)) if abs(x - 1) < 1e-4 else np.nan, 1.0)
    assert entry.slope == pytest.approx(0.5, rel=1e-8)


def test_a_point_without_surroundings_has_no_sweep() -> None:
    assert step_sweep(lambda s: np.array([np.nan]), np.zeros(1), 1.0, 0.0) is None


@pytest.mark.parametrize("width", [1.0, 1e-3, 1e-6])
@pytest.mark.parametrize("power", [1.05, 1.1, 1.2, 1.3, 1.5])
def test_the_error_of_a_slope_that_drifts_reaches_to_its_end(power: float, width: float) -> None:
    """x + sign(x) |x|^p, straight on beyond the width: differences 1 + h^(p - 1) go to 1 too slowly to arrive."""

    def f(x: float) -> float:
        near = min(abs(x), width)
        bend: float = near**power + power * width ** (power - 1) * (abs(x) - near)
        return x + float(np.sign(x)) * bend / 1000

    entry = slope_of(f)
    assert abs(entry.slope - 1.0) <= entry.error * (1 + 1e-9)


def test_terms_that_cancel_at_the_point_are_no_jump() -> None:
    """A rod (distance^2 - 1) / 2 that is one unit of rounding too short: longer than 1, it has lost this unit."""

    def line(s: float) -> FloatArray:
        return np.array([((1.0 + s - 6.123e-17) ** 2 - 1.0) / 2])

    sweep = step_sweep(line, line(0.0), 1.0, 1.0)
    assert sweep is not None
    entry = plateau_slope(sweep, 0, line, size=1.0)
    assert abs(entry.slope - 1.0) <= entry.error <= 1e-14


def mixed_rows(s: float, at: float, width: float) -> FloatArray:
    """Smooth rows, and rows of all kinds that are not: kinks, jumps, stairs, drag, noise."""
    x, noise = at + s, np.random.default_rng(abs(hash(s)) % 2**32).normal(size=3) if s else np.zeros(3)
    return np.array(
        [
            2.0 - 3.0 * x,
            np.sin(x / 3.0),
            np.exp(x / 7.0),
            x**4 - 50.0 * x,
            5.0,
            abs(s),
            abs(s - width),
            np.sign(s),
            np.sign(s - width) + x,
            np.tanh(s / width) - x,
            max(abs(s) - width, 0.0) * np.sign(s),
            np.round(x / width) * width,
            s * abs(s) + 0.1 * x,
            abs(s) ** 1.2 * np.sign(s),
            x + 1e-3 * width * np.cos(s / width),
            x + 1e-9 * noise[0],
            np.sin(x) + 1e-13 * noise[1],
            1e-6 * noise[2],
        ]
    )


@pytest.mark.parametrize("at", [0.0, -3.7])
@pytest.mark.parametrize("width", [1e-2, 1e-6])
def test_rows_together_have_the_slopes_of_each_alone(at: float, width: float, monkeypatch: pytest.MonkeyPatch) -> None:
    def line(s: float) -> FloatArray:
        return mixed_rows(s, at, width)

    sweep = step_sweep(line, line(0.0), 2.0, at)
    assert sweep is not None
    count = len(sweep.base)
    noise, sizes = np.where(np.arange(count) < count - 2, 0.0, 1e-6), np.linspace(0.0, 2.0, count)
    alone = [plateau_slope(sweep, i, line, float(noise[i]), float(sizes[i])) for i in range(count)]
    looked_at: list[int] = []

    def count_rows(sweep: StepSweep, row: int, *others: Any) -> PlateauSlope:
        looked_at.append(row)
        return plateau_slope(sweep, row, *others)

    monkeypatch.setattr(plateau_rows, "plateau_slope", count_rows)
    rows = plateau_rows.plateau_slopes(sweep, line, noise, sizes, np.zeros(count))
    for i, expected in enumerate(alone):
        actual = (rows.slope[i], rows.error[i], rows.jump[i], rows.reach[i], rows.beyond[i])
        assert actual == (expected.slope, expected.error, expected.jump, expected.reach, expected.beyond), i
    assert not {0, 1, 2, 3, 4} & set(looked_at)  # smooth rows
