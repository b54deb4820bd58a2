"""Differences at many points at once, compared with exact derivatives and with those of each point alone."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from fmilin.numerics.differences.differences import slopes
from fmilin.numerics.differences.directional import Surroundings, choose_direction
from fmilin.numerics.differences.point_differences import FAR_STEP_SIZE, Numbers, PointDifferences, difference_points
from fmilin.signals import FloatArray

Function = Callable[[FloatArray], FloatArray]

POINTS = np.column_stack((np.linspace(-1.0, 1.0, 21), np.linspace(0.5, 1.5, 21)))
AT_ZERO = 10  # the point whose first variable is zero


def smooth(x: FloatArray) -> FloatArray:
    return np.stack((np.sin(x[..., 0]) * x[..., 1], np.exp(-x[..., 1]) + x[..., 0] ** 3), axis=-1)


def smooth_derivatives(x: FloatArray) -> FloatArray:
    rows = (
        np.stack((np.cos(x[..., 0]) * x[..., 1], np.sin(x[..., 0])), axis=-1),
        np.stack((3 * x[..., 0] ** 2, -np.exp(-x[..., 1])), axis=-1),
    )
    return np.stack(rows, axis=-2)


def displace(x: FloatArray, displacement: FloatArray) -> FloatArray:
    return smooth(x + displacement)


def measure(function: Function, points: FloatArray = POINTS) -> PointDifferences:
    def displaced(numbers: Numbers, displacements: FloatArray) -> FloatArray:
        return np.array([function(x) for x in points[numbers] + displacements])

    scales = np.ones_like(points)
    direction = np.tile(choose_direction(np.ones(points.shape[1])), (len(points), 1))
    return difference_points(displaced, scales, points, direction, lambda _, slope: np.ones_like(slope))


def test_differences_of_a_smooth_function_are_exact_within_their_errors() -> None:
    measured = measure(smooth)
    exact = smooth_derivatives(POINTS)
    assert not measured.is_doubtful.any()
    assert np.abs(measured.J - exact).max() < 1e-10
    assert (np.abs(measured.J - exact) <= 3 * measured.error).all()


def test_each_point_has_the_derivatives_and_errors_that_it_has_alone() -> None:
    measured = measure(smooth)
    for x, J, error in zip(POINTS, measured.J, measured.error, strict=True):

        def line(j: int, s: float, x: FloatArray = x) -> FloatArray:
            return smooth(x + s * np.eye(2)[j])

        far = {step: smooth(x + step * choose_direction(np.ones(2))) for step in (FAR_STEP_SIZE, -FAR_STEP_SIZE)}
        around = Surroundings(partial(displace, x), x, np.zeros(2), far)
        alone = slopes(line, smooth(x), np.ones(2), terms=np.ones_like, around=around)
        np.testing.assert_allclose(J, alone.J, atol=1e-14)
        np.testing.assert_allclose(error, alone.error, rtol=1e-3)


@pytest.mark.parametrize(
    "disturb",
    [
        lambda x: np.abs(x[0]),
        lambda x: np.sign(x[0]),
        lambda x: np.tanh(x[0] / 1e-7),
        lambda x: 1e-3 * np.abs(x[0]),
    ],
    ids=["kink", "jump", "steep", "small kink"],
)
def test_a_point_at_a_kink_is_doubtful_and_those_far_from_it_are_not(disturb: Callable[[FloatArray], float]) -> None:
    measured = measure(lambda x: smooth(x) + np.array([disturb(x), 0.0]))
    assert measured.is_doubtful[AT_ZERO]
    far = np.abs(POINTS[:, 0]) > 0.3
    assert not measured.is_doubtful[far].any()
    others = POINTS[far]
    step = np.array([1e-3, 0.0])
    slope = np.array([[disturb(x + step) - disturb(x - step), 0.0] for x in others]) / 2e-3
    exact = smooth_derivatives(others)
    exact[:, 0] += slope
    assert np.abs(measured.J[far] - exact).max() < 1e-9


def test_errors_hold_the_noise_of_values() -> None:
    digits = 1e-9
    measured = measure(lambda x: np.rint(smooth(x) / digits) * digits)
    deviation = np.abs(measured.J - smooth_derivatives(POINTS))
    certain = ~measured.is_doubtful
    assert deviation.max() > 1e-9
    assert (deviation[certain] <= 3 * measured.error[certain]).all()


def test_a_function_that_does_not_repeat_itself_is_doubtful() -> None:
    last = np.zeros(2)

    def lags(x: FloatArray) -> FloatArray:
        values = smooth(x) + 1e-8 * last
        last[:] = x
        return values

    assert measure(lags).is_doubtful.all()


def test_values_that_are_no_numbers_leave_the_other_points_as_they_are() -> None:
    def undefined(x: FloatArray) -> FloatArray:
        return smooth(x) if abs(x[0]) > 0.5 else np.full(2, np.nan)

    measured = measure(undefined)
    assert measured.is_doubtful[AT_ZERO]
    certain = ~measured.is_doubtful
    assert certain.sum() >= 6
    assert np.abs(measured.J - smooth_derivatives(POINTS))[certain].max() < 1e-10


def test_a_second_difference_that_vanishes_by_chance_is_no_roughness() -> None:
    points = np.linspace(0.7, 0.9, 201)[:, None]
    measured = measure(lambda x: np.array([np.sin(x[0]) + 0.5 * x[0] ** 2 * np.sin(0.7853981633974483)]), points)
    assert not measured.is_doubtful.any()
