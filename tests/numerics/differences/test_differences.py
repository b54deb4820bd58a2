"""Differences: accuracy, honest error estimates, noise, scales."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fmilin as fl
from fmilin import Differences
from fmilin.errors import NumericalError
from fmilin.numerics.differences.differences import jacobian_by_differences, slopes
from fmilin.numerics.differences.sweep import POINTS, noise_from_table
from fmilin.signals import FloatArray
from tests.by_hand import FunctionModel, Parts


def smooth(x: FloatArray) -> FloatArray:
    return np.array([np.sin(x[0]) * np.exp(x[1]), x[0] ** 5 - x[1], np.cos(3 * x[0] + x[1]), 1 / (2 + x[0])])


def smooth_jacobian(x: FloatArray) -> FloatArray:
    a, b = x
    return np.array([
        [np.cos(a) * np.exp(b), np.sin(a) * np.exp(b)],
        [5 * a**4, -1.0],
        [-3 * np.sin(3 * a + b), -np.sin(3 * a + b)],
        [-1 / (2 + a) ** 2, 0.0],
    ])  # fmt: skip


@given(st.floats(-1.5, 1.5), st.floats(-2, 2))
@settings(max_examples=60, deadline=None)
def test_the_error_estimate_is_honest(a: float, b: float) -> None:
    x = np.array([a, b])
    J, error = jacobian_by_differences(smooth, x, np.ones(2))
    true = np.abs(J - smooth_jacobian(x))
    assert (true <= 10 * error).all()
    assert np.max(error) <= 1e-8 * np.max(np.abs(J))


@pytest.mark.parametrize("size", [1e-7, 1e-6, 1e-3, 1.0, 1e5, 1e9])
def test_variables_of_any_size_when_their_scale_is_known(size: float) -> None:
    x = np.array([0.7, -0.4])
    J, error = jacobian_by_differences(lambda s: smooth(s / size), x * size, np.full(2, size))
    true = smooth_jacobian(x) / size
    assert np.max(np.abs(J - true)) <= 1e-10 * np.max(np.abs(true))
    assert (np.abs(J - true) <= 10 * error).all()


@pytest.mark.parametrize("sizes", [(1e-7, 1e6), (1e9, 1e-3)])
def test_variables_of_different_sizes_beside_each_other(sizes: tuple[float, float]) -> None:
    x, scales = np.array([0.7, -0.4]), np.array(sizes)
    J, error = jacobian_by_differences(lambda s: smooth(s / scales), x * scales, scales)
    true = smooth_jacobian(x)
    assert np.max(np.abs(J * scales - true)) <= 1e-10 * np.max(np.abs(true))
    assert (np.abs(J * scales - true) <= 10 * error * scales).all()


@pytest.mark.parametrize("step", [2.0**-3, 2.0**-7, 2.0**-10])
def test_plain_central_differences_know_their_truncation(step: float) -> None:
    """sin(h)/h is 1 - h^2/6, nearly."""
    options = Differences(order=2, relative_step=step, retries=0)
    result = slopes(lambda j, s: np.array([np.sin(s)]), np.zeros(1), np.ones(1), options)
    assert result.J[0, 0] == pytest.approx(np.sin(step) / step, rel=1e-9)
    assert result.error[0, 0] == pytest.approx(1.0 - result.J[0, 0], rel=0.01)


@pytest.mark.parametrize("kink", [0.3, 2.0, -5.0])
def test_a_kink_has_its_height(kink: float) -> None:
    result = slopes(lambda j, s: np.array([s + kink / 2 * abs(s)]), np.zeros(1), np.ones(1))
    assert result.jump[0, 0] == pytest.approx(kink, rel=1e-6)


@pytest.mark.parametrize("factor", [1e-4, 1e-2, 1e2, 1e4])
def test_a_wrong_scale_is_found_out(factor: float) -> None:
    x = np.array([0.7, -0.4])
    J, error = jacobian_by_differences(smooth, x, np.full(2, factor))
    assert np.max(np.abs(J - smooth_jacobian(x))) <= 1e-7 * np.max(np.abs(J))
    assert (np.abs(J - smooth_jacobian(x)) <= 10 * error).all()


@pytest.mark.parametrize("level", [1e-12, 1e-10, 1e-8, 1e-6])
def test_noise_is_measured_and_the_step_follows_it(level: float) -> None:
    random = np.random.default_rng(1)
    x = np.array([0.7, -0.4])

    def noisy(s: FloatArray) -> FloatArray:
        return smooth(s) + level * random.standard_normal(4)

    J, error = jacobian_by_differences(noisy, x, np.ones(2))
    true = np.abs(J - smooth_jacobian(x))
    assert (true <= 10 * error).all()
    assert np.max(true) <= 1e4 * level  # a step of 1e-6 would give 1e6 times the noise


@pytest.mark.parametrize("level", [1e-14, 1e-9, 1e-4])
def test_the_difference_table_finds_the_noise_level(level: float) -> None:
    random = np.random.default_rng(7)
    s = np.arange(POINTS) * 1e-8
    estimates = [
        noise_from_table((2 + np.sin(s) + level * random.standard_normal(POINTS))[:, None])[0] for _ in range(200)
    ]
    assert 0.5 * level <= np.median(estimates) <= 2 * level


def test_a_function_that_repeats_exactly_still_has_rounding() -> None:
    assert noise_from_table(np.full((POINTS, 1), 3.0))[0] == pytest.approx(0.5 * np.spacing(3.0))


def test_plain_central_differences_take_two_evaluations_a_column() -> None:
    count = 0

    def line(j: int, s: float) -> FloatArray:
        nonlocal count
        count += 1
        x = np.array([0.3, 0.1, -0.2])
        x[j] += s
        return np.array([np.sin(x).sum()])

    result = slopes(line, line(0, 0.0), np.ones(3), Differences(order=2, retries=0))
    assert count == 1 + (POINTS - 1) + 2 * 3
    np.testing.assert_allclose(result.J[0], np.cos([0.3, 0.1, -0.2]), atol=1e-8)


def test_nan_on_one_side_is_refused_with_the_column() -> None:
    def line(j: int, s: float) -> FloatArray:
        return np.array([np.nan if j == 1 and s > 0 else s])

    with pytest.raises(NumericalError, match="cannot be evaluated near the point") as caught:
        slopes(line, np.zeros(1), np.ones(2))
    assert caught.value.variable == "1"


def test_a_small_domain_shortens_the_step() -> None:
    J, _ = jacobian_by_differences(
        lambda x: np.where(np.abs(x - 1) < 1e-5, np.sqrt(x), np.nan), np.array([1.0]), np.ones(1)
    )
    assert J[0, 0] == pytest.approx(0.5, rel=1e-8)


def test_nothing_to_measure_keeps_its_shape() -> None:
    assert slopes(lambda j, s: np.zeros(0), np.zeros(0), np.ones(2)).J.shape == (0, 2)
    assert slopes(lambda j, s: np.zeros(3), np.zeros(3), np.ones(0)).J.shape == (3, 0)


@pytest.mark.parametrize("factor", [1e-12, 1e-6, 1e6, 1e12])
def test_rows_in_other_units_are_as_accurate_and_their_estimates_as_close(factor: float) -> None:
    """One row in units that make its numbers small or large must not spoil its own estimate or the others'."""
    x, units = np.array([0.7, -0.4]), np.array([1.0, factor, 1.0, 1 / factor])
    J, error = jacobian_by_differences(lambda s: units * smooth(s), x, np.ones(2))
    true = np.abs(J - units[:, None] * smooth_jacobian(x))
    assert (true <= 10 * error).all()
    assert np.max(error / units[:, None]) <= 1e-9


def test_a_row_of_rounding_does_not_spoil_the_estimate_of_the_others() -> None:
    """At an equilibrium some rows are zero up to rounding, with slopes and bends of rounding alone."""

    def rows(x: FloatArray) -> FloatArray:
        return np.array([np.sin(x[0]), 1e-16 * np.sin(1e9 * x[0]), (1.0 + x[0] * 1e-17) - 1.0])

    J, error = jacobian_by_differences(rows, np.zeros(1), np.ones(1))
    assert abs(J[0, 0] - 1.0) <= 10 * error[0, 0] <= 1e-9


def test_a_row_without_slope_does_not_spoil_the_estimates_of_others() -> None:
    """At 0 a cubic has no slope, so that all that is measured of it is its bend."""
    _, error = jacobian_by_differences(lambda s: np.array([np.sin(s[0]), s[0] ** 3]), np.zeros(1), np.ones(1))
    assert error[0, 0] <= 1e-8


def test_noise_that_only_a_later_column_shows_is_noticed() -> None:
    """Tried along the first column the function repeats exactly; the second must not chase its noise to tiny steps."""
    random = np.random.default_rng(4)
    sizes = []

    def line(j: int, s: float) -> FloatArray:
        sizes.append(abs(s))
        return np.array([np.sin(0.3 + s), np.cos(s) + 1e-6 * random.standard_normal() if j else 1.0])

    result = slopes(line, np.array([np.sin(0.3), 1.0]), np.ones(2))
    np.testing.assert_allclose(result.J[0], np.cos(0.3), atol=1e-7)
    assert abs(result.J[1, 1]) <= 10 * result.error[1, 1]
    assert result.error[1, 1] <= 0.1
    assert min(s for s in sizes[POINTS - 1 :] if s) > 1e-6


def test_the_theory_page_names_functions_that_exist() -> None:
    page = (Path(__file__).parents[3] / "docs" / "theory" / "slopes.md").read_text(encoding="utf-8")
    names = [name for row in re.findall(r"^\|.*\|$", page, re.MULTILINE) for name in re.findall(r"`(\w+\.\w+)`", row)]
    assert len(names) >= 13
    for module, function in (name.split(".") for name in names):
        assert callable(getattr(importlib.import_module(f"fmilin.numerics.differences.{module}"), function))


def test_errors_are_numbers_where_the_model_is_none_far_away() -> None:
    def rates(t: float, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        return np.array([1 - x[0]]) if abs(x[0] - 1) < 0.05 else np.array([np.nan])

    lin = fl.linearize(FunctionModel(Parts(["x"], [1.0], rates)))
    assert lin.A[0, 0] == pytest.approx(-1.0, abs=1e-9)
    assert lin.errors.A[0, 0] < 1e-6
