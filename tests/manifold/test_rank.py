"""How many constraints are independent, and which: from singular values and what is known of their errors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg

from fmilin.manifold.coordinates import compute_condition_numbers, condition_number, conditioning
from fmilin.manifold.rank import (
    choose_regular_columns,
    decide_rank,
    independent_rows,
    is_regular,
    pivoted_qr,
    scaled,
    singular_values,
    threshold,
)


@pytest.mark.parametrize(("angle", "rank"), [(1.0, 2), (0.1, 2), (0.04, 2), (3e-3, 1), (0.0, 1)])
def test_however_rough_a_gradient_is_what_differs_by_percents_differs(angle: float, rank: int) -> None:
    """Two rows with an angle between them, of which the smaller singular value is half, known to five percent."""
    H = np.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)]])
    error = np.full((2, 2), 0.05 / np.sqrt(2))
    ones = np.ones(2)
    assert decide_rank(scaled(H, ones, ones, error)[0], threshold(H, ones, error)).rank == rank


@pytest.mark.parametrize("error", [1e-12, 1e-9, 1e-7])
def test_however_good_a_measured_gradient_is_a_part_in_a_million_is_nothing(error: float) -> None:
    H, ones = np.array([[1.0, 0.0], [1.0, 2e-6]]), np.ones(2)
    assert decide_rank(H, threshold(H, ones, np.full((2, 2), error))).rank == 1
    assert decide_rank(H, threshold(H, ones, np.zeros((2, 2)))).rank == 2


@pytest.mark.parametrize("shape", [(1, 4), (3, 3), (7, 4), (150, 160)])
def test_pivots_and_singular_values_are_those_of_scipy(shape: tuple[int, int]) -> None:
    matrix = np.random.default_rng(4).normal(size=shape)
    diagonal, order = pivoted_qr(matrix)
    R, expected = linalg.qr(matrix, mode="r", pivoting=True)
    assert order.tolist() == expected.tolist()
    np.testing.assert_allclose(diagonal, np.abs(np.diag(R)), rtol=1e-10)
    np.testing.assert_allclose(singular_values(matrix), linalg.svdvals(matrix), rtol=1e-10)


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        ([[1.0, 1.0], [1.0, 1.0 + 1e-3]], True),
        ([[1.0, 1.0], [1.0, 1.0 + 1e-7]], False),  # not singular, but not beyond doubt
        ([[1e-9, 0.0], [0.0, 1e9]], True),  # rows in other units
        ([[1.0, 2.0], [2.0, 4.0]], False),
        ([[1.0, 2.0], [0.0, 0.0]], False),
        ([[1.0, np.nan], [0.0, 1.0]], False),
    ],
)
def test_a_matrix_is_regular_beyond_doubt(matrix: list[list[float]], expected: bool) -> None:
    assert is_regular(np.array(matrix)) == expected


def test_columns_that_are_regular_together_are_chosen() -> None:
    matrix = np.array([[1.0, 2.0, 0.0, 0.0], [2.0, 4.0, 0.0, 1e-3], [0.0, 0.0, 0.0, 1.0]])
    assert choose_regular_columns(matrix) == []  # of rank 2
    matrix[0, 2] = 1.0
    columns = choose_regular_columns(matrix)
    assert len(columns) == 3
    assert np.linalg.matrix_rank(matrix[:, columns]) == 3
    assert choose_regular_columns(np.zeros((2, 3))) == []


def test_a_matrix_that_is_not_finite_has_no_singular_values() -> None:
    with pytest.raises(np.linalg.LinAlgError, match="not finite"):
        singular_values(np.array([[1.0, np.nan], [0.0, 1.0]]))


def test_rows_are_divided_by_their_norms_and_rows_of_rounding_become_zero() -> None:
    H, scales = np.array([[3.0, 2.0], [1e-15, 0.0], [0.0, 0.0]]), np.array([1.0, 2.0])
    Hs, sizes = scaled(H, scales, np.array([1.0, 7.0, 0.0]), np.zeros_like(H))
    assert sizes.tolist() == [5.0, 7.0, 1.0]
    assert Hs.tolist() == [[0.6, 0.8], [0.0, 0.0], [0.0, 0.0]]
    assert decide_rank(Hs).rank == 1


def test_rows_that_are_mostly_error_become_zero() -> None:
    H, error = np.array([[1.0, 0.0], [0.0, 1e-3]]), np.array([[0.0, 0.0], [2e-4, 0.0]])
    Hs, sizes = scaled(H, np.ones(2), np.ones(2), error)
    assert Hs.tolist() == [[1.0, 0.0], [0.0, 0.0]]
    assert sizes.tolist() == [1.0, 1.0]


def test_coordinates_that_vanish_have_an_infinite_condition_number() -> None:
    assert conditioning(np.zeros((1, 2)), np.array([[1.0, 0.0]]), np.ones(2)) == np.inf
    assert condition_number(np.array([[1.0, 0.0], [1.0, 0.0]])) == np.inf
    assert condition_number(np.empty((0, 0))) == 1.0
    assert condition_number(np.diag([4.0, 0.5])) == 8.0


def test_condition_numbers_of_a_batch_are_those_of_its_points() -> None:
    R, H = np.eye(3)[:1], np.random.default_rng(0).standard_normal((3, 2, 3))
    H[1, 1], H[2, 0, 0] = H[1, 0], np.nan
    expected = [np.linalg.cond(np.concatenate((R, H[0]))), np.inf, np.inf]
    batch = compute_condition_numbers(R, H)
    assert batch[1] > 1e15
    np.testing.assert_allclose(batch[[0, 2]], np.array(expected)[[0, 2]])
    np.testing.assert_allclose(
        np.concatenate([compute_condition_numbers(R, h[None]) for h in H])[[0, 2]], batch[[0, 2]]
    )


def test_nearly_parallel_rows_are_independent_where_the_rank_says_so() -> None:
    assert independent_rows(np.array([[1.0, 0.0], [1.0, 1e-12]]), 2, preferred=2) == [0, 1]
