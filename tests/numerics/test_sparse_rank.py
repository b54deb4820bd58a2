"""The rank of sparse matrices, and equilibria of large models: the answers of singular values, without these."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from fmilin.numerics.balanced import is_equilibrium
from fmilin.numerics.sparse_equilibrium import is_sparse_equilibrium
from fmilin.numerics.sparse_rank import equilibrate, find_left_null_space
from fmilin.signals import FloatArray
from fmilin.tolerances import RANK


def null_space_by_singular_values(matrix: FloatArray) -> FloatArray:
    U, sigma, _ = np.linalg.svd(matrix)
    sigma = np.concatenate((sigma, np.zeros(len(matrix) - len(sigma))))
    return np.asarray(U[:, sigma <= RANK * sigma[0]])


def random_matrix(random: np.random.Generator, dependent: int) -> sparse.csr_array:
    """Return a sparse matrix without empty rows or columns, of which some rows are combinations of two others."""
    m = int(random.integers(5, 60))
    n = m + int(random.integers(0, 3))
    is_entry = random.random((m, n)) < random.uniform(0.05, 0.3)
    M = np.where(is_entry, random.uniform(-1.0, 1.0, (m, n)), 0.0) + np.eye(m, n)
    for _ in range(dependent):
        i, j, k = random.choice(m, 3, replace=False)
        M[i] = 2 * M[j] - M[k]
    if random.random() < 0.5:
        M[:, random.integers(n)] = 0.0
    M = M[M.any(axis=1)]
    return sparse.csr_array(M[:, M.any(axis=0)])


@pytest.mark.parametrize("seed", range(40))
def test_combinations_of_rows_are_those_of_the_singular_value_decomposition(seed: int) -> None:
    random = np.random.default_rng(seed)
    matrix, _, _ = equilibrate(random_matrix(random, dependent=seed % 4))
    expected = null_space_by_singular_values(matrix.toarray())
    combinations = find_left_null_space(matrix, RANK)
    assert combinations is not None
    assert combinations.shape == expected.shape
    assert np.abs(expected - combinations @ (combinations.T @ expected)).max(initial=0.0) < 1e-6


def second_difference(count: int, *, is_free: bool) -> sparse.csr_array:
    K = np.eye(count, k=-1) - 2 * np.eye(count) + np.eye(count, k=1)
    if is_free:
        K[0, 0] = K[-1, -1] = -1.0
    return sparse.csr_array(K)


def test_a_long_chain_is_regular_with_fixed_ends_and_keeps_its_momentum_with_free_ones() -> None:
    count = 2000  # the smallest singular value is 6e-7 of the largest
    fixed, _, _ = equilibrate(second_difference(count, is_free=False))
    free, weights, _ = equilibrate(second_difference(count, is_free=True))
    nothing, combination = find_left_null_space(fixed, RANK), find_left_null_space(free, RANK)
    assert nothing is not None
    assert combination is not None
    assert nothing.shape == (count, 0)
    (momentum,) = (combination * weights[:, None]).T
    assert momentum / momentum[0] == pytest.approx(np.ones(count), rel=1e-6)


def test_too_many_combinations_are_left_to_arrays() -> None:
    matrix = sparse.csr_array(np.ones((200, 3)))
    assert find_left_null_space(matrix, RANK) is None


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("distance", [0.0, 1e-6, 1.0])
def test_a_point_is_an_equilibrium_as_singular_values_say(seed: int, distance: float) -> None:
    random = np.random.default_rng(seed)
    count = 20
    is_entry = random.random((count, count)) < 0.2
    A = np.where(is_entry, random.uniform(-1.0, 1.0, (count, count)), 0.0) - 3 * np.eye(count)
    if seed % 3 == 0:  # nothing holds one of the states
        A[:, 4] = 0.0
    sizes = 10.0 ** random.uniform(-2.0, 2.0, count)
    J = np.hstack((A, random.uniform(0.0, 1.0, (count, 2))))
    rates = 1e-9 * distance * A @ random.uniform(-1.0, 1.0, count)
    errors = 1e-15 * np.abs(J)
    expected = is_equilibrium(rates, sizes, J, errors, count)
    assert is_sparse_equilibrium(rates, sizes, sparse.csr_array(J), sparse.csr_array(errors)) == expected
