"""Small dense systems: many at once, or one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg.lapack import dgetrf

from fmilin.adapters import DenseFactors
from fmilin.numerics.factors import lu_solved
from fmilin.signals import FloatArray


@pytest.mark.parametrize("count", [1, 4])
def test_systems_are_solved_whatever_their_scales(count: int) -> None:
    random = np.random.default_rng(5)
    sizes = 10.0 ** random.uniform(-8, 8, (count, 1, 5))
    W = random.normal(size=(count, 5, 5)) * 10.0 ** random.uniform(-8, 8, (count, 5, 1)) * sizes
    w = random.normal(size=(count, 5, 2)) / sizes.transpose(0, 2, 1)
    result = DenseFactors(W)
    assert not np.any(result.is_singular)
    np.testing.assert_allclose(result.solve(W @ w) / w, 1.0, rtol=1e-10)


def test_the_singular_ones_are_found() -> None:
    W = np.stack([np.eye(3), np.diag([1.0, 0.0, 1.0]), np.ones((3, 3)), 2 * np.eye(3)])
    assert np.flatnonzero(DenseFactors(W).is_singular).tolist() == [1, 2]
    assert [DenseFactors(one).is_singular for one in W] == [False, True, True, False]
    assert DenseFactors(W[:2]).null_vector().tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("count", [1, 3])
def test_empty_DenseFactors(count: int) -> None:
    result = DenseFactors(np.empty((count, 0, 0)))
    assert result.solve(np.empty((count, 0, 2))).shape == (count, 0, 2)
    assert not np.any(result.is_singular)


@pytest.mark.parametrize("count", [1, 3])
def test_what_is_not_a_number_stays_so(count: int) -> None:
    W = np.stack([np.full((2, 2), np.nan), np.eye(2), np.eye(2)])[:count]
    assert np.isnan(DenseFactors(W).rcond).tolist() == [True, False, False][:count]
    assert not np.any(DenseFactors(W).is_singular)
    result = DenseFactors(W).solve(np.ones((count, 2, 1)))
    assert np.isnan(result[0]).all()
    assert np.all(result[1:] == 1.0)


def test_one_matrix_and_right_hand_sides_at_many_points() -> None:
    random = np.random.default_rng(2)
    W, w = random.normal(size=(3, 3)), random.normal(size=(5, 3, 2))
    np.testing.assert_allclose(DenseFactors(W).solve(W @ w), w, rtol=1e-11)


def test_singularity_does_not_depend_on_units() -> None:
    W = np.array([[1e-9, 2e-4], [3e2, 7e9]])
    factors = DenseFactors(W)
    assert not factors.is_singular
    x = np.array([1e3, 1e-8])
    terms = W * x  # the second unknown is a small part of both sums
    condition = np.linalg.cond(terms / np.linalg.norm(terms, axis=1, keepdims=True))
    np.testing.assert_allclose(factors.solve(W @ x), x, rtol=8 * np.finfo(float).eps * condition)


@pytest.mark.parametrize("size", [2, 9, 60])
def test_a_matrix_that_is_singular_up_to_rounding_is_singular(size: int) -> None:
    rng = np.random.default_rng(size)
    W: FloatArray = rng.normal(size=(size, size))
    W[-1] = rng.normal(size=size - 1) @ W[:-1]
    assert DenseFactors(W).is_singular
    W[-1, 0] += 1e-9
    assert not DenseFactors(W).is_singular


@pytest.mark.parametrize("stack", [1, 2])
def test_where_singular_begins(stack: int) -> None:
    """[[1, 1], [1, 1 + 4e]] has the condition number 1/e in the 1-norm, for small e."""
    for e, singular in ((1e-13, False), (1e-15, True)):
        W = np.stack([np.array([[1.0, 1.0], [1.0, 1.0 + 4 * e]])] * stack)
        np.testing.assert_allclose(DenseFactors(W).rcond, e, rtol=0.3)
        assert np.all(DenseFactors(W).is_singular == singular)


@pytest.mark.parametrize("columns", [None, 1, 3, 4500])  # one by one, and so many that they are solved at once
def test_right_hand_sides_are_solved_whatever_their_number(columns: int | None) -> None:
    random = np.random.default_rng(9)
    A = random.uniform(-1.0, 1.0, (9, 9)) + 4 * np.eye(9)
    w = random.uniform(-1.0, 1.0, (9,) if columns is None else (9, columns))
    lu, pivots, _ = dgetrf(A)
    np.testing.assert_allclose(lu_solved(lu, pivots, A @ w), w, atol=1e-13)
    np.testing.assert_allclose(DenseFactors(A).solve(A @ w), w, atol=1e-13)


@pytest.mark.parametrize("part", [0.0, 1e-17, 1e-12, 1e-3])
def test_a_stack_refuses_what_each_of_its_matrices_refuses_alone(part: float) -> None:
    """Sizes from 1e-9 to 1e9 in rows and columns are no lack of rank."""
    rng = np.random.default_rng(2)
    sizes = 10.0 ** np.array([-9, 0, 9, 3])
    regular = rng.standard_normal((4, 4))
    nearly = regular.copy()
    nearly[3] = regular[0] + part * regular[3]
    stack = sizes[:, None] * np.stack((regular, nearly)) * sizes[::-1]
    expected = [bool(DenseFactors(one).is_singular) for one in stack]
    assert expected == [False, part < 1e-14]
    assert np.asarray(DenseFactors(stack).is_singular).tolist() == expected
