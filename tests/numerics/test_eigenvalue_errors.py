"""How far eigenvalues may be off: against mpmath, ensembles of perturbed matrices, and closed forms."""

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linear_sum_assignment

from fmilin.numerics.eigenvalue_errors import (
    Complex,
    compute_eigenvalue_errors,
    compute_eigenvalues,
    group_eigenvalues,
)
from fmilin.signals import FloatArray

# Jordan forms: orders of the blocks, and the eigenvalue of each.
FORMS = [
    ((2,), (0.0,)),
    ((3,), (0.0,)),
    ((4,), (-1.0,)),
    ((2, 1, 1), (0.0, 0.0, 3.0)),
    ((3, 1), (0.0, -2.0)),
    ((2, 2), (1.0, 1.0)),
    ((1, 1, 1), (2.0, 2.0, -5.0)),
]


def multiply_out(sizes: tuple[int, ...], values: tuple[float, ...], condition: float, seed: int) -> FloatArray:
    random = np.random.default_rng(seed)
    n = sum(sizes)
    J = np.zeros((n, n))
    k = 0
    for size, value in zip(sizes, values, strict=True):
        J[k : k + size, k : k + size] = value * np.eye(size) + np.eye(size, k=1)
        k += size
    first, second = (np.linalg.qr(random.normal(size=(n, n)))[0] for _ in range(2))
    S = first @ np.diag(np.geomspace(1, condition, n)) @ second
    return np.asarray(S @ J @ np.linalg.inv(S))


def eigenvalues_by_mpmath(A: FloatArray) -> Complex:
    with mpmath.workdps(40):
        return np.array([complex(value) for value in mpmath.eig(mpmath.matrix(A.tolist()))[0]])


def distances(values: Complex, others: Complex) -> FloatArray:
    table = np.abs(values[:, None] - others)
    rows, columns = linear_sum_assignment(table)
    return np.asarray(table[rows, columns])


def require_within(found: FloatArray, errors: FloatArray) -> None:
    assert (found <= 1.1 * errors).all(), (found, errors)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("sizes", "values"), FORMS)
def test_the_exact_eigenvalues_of_defective_matrices_are_within_the_errors(
    sizes: tuple[int, ...], values: tuple[float, ...], seed: int
) -> None:
    A = multiply_out(sizes, values, 10.0, seed)
    errors = compute_eigenvalue_errors(A, np.zeros_like(A))
    require_within(distances(compute_eigenvalues(A), eigenvalues_by_mpmath(A)), errors)


@pytest.mark.parametrize("size", [1e-11, 1e-6])
@pytest.mark.parametrize(("sizes", "values"), FORMS)
def test_matrices_with_entries_within_their_errors_have_eigenvalues_within_theirs_and_some_come_near(
    sizes: tuple[int, ...], values: tuple[float, ...], size: float
) -> None:
    random = np.random.default_rng(3)
    A = multiply_out(sizes, values, 5.0, 1)
    E = size * np.abs(random.normal(size=A.shape))
    own = compute_eigenvalues(A)
    errors = compute_eigenvalue_errors(A, E)
    farthest = np.zeros(len(A))
    for _ in range(100):
        signs = np.sign(random.normal(size=A.shape))
        farthest = np.maximum(farthest, distances(own, compute_eigenvalues(A + E * signs)))
    require_within(farthest, errors)
    assert errors.max() <= 10 * farthest.max()


def test_an_eigenvalue_of_a_stiff_matrix_is_known_to_its_own_size_once_the_matrix_is_balanced() -> None:
    random = np.random.default_rng(0)
    for _ in range(10):
        size = 10.0 ** random.uniform(-6, 6, 5)
        A = random.normal(size=(5, 5)) * size[:, None] / size
        errors = compute_eigenvalue_errors(A, 1e-12 * np.abs(A))
        require_within(distances(compute_eigenvalues(A), eigenvalues_by_mpmath(A)), errors)
        assert errors.max() < 1e-9


def test_a_chain_of_integrators_has_exact_zeros() -> None:
    chain = np.eye(4, k=1)
    assert not compute_eigenvalues(chain).any()
    assert not compute_eigenvalue_errors(chain, np.zeros((4, 4))).any()


@pytest.mark.parametrize("order", [2, 3, 4])
def test_an_error_in_the_corner_of_a_chain_of_integrators_moves_zero_by_its_root(order: int) -> None:
    chain = np.eye(order, k=1)
    E = np.zeros((order, order))
    E[-1, 0] = 1e-12
    assert_allclose(compute_eigenvalue_errors(chain, E), 1e-12 ** (1 / order), rtol=0.5)


def test_the_error_of_a_simple_eigenvalue_is_the_sum_of_what_the_entries_move_it_by() -> None:
    A = np.array([[1.0, 1e3], [0.0, 2.0]])
    E = np.array([[0.0, 0.0], [1e-9, 0.0]])
    # by the characteristic polynomial: (1 - s)(2 - s) = 1e3 * 1e-9
    assert_allclose(compute_eigenvalue_errors(A, E), 1e-6, rtol=0.01)


def test_eigenvalues_of_separate_parts_do_not_share_their_errors() -> None:
    A = np.diag([1.0, 1e9])
    E = np.diag([1e-12, 10.0])
    assert_allclose(compute_eigenvalue_errors(A, E), [1e-12, 10.0])


def test_matrices_without_rows_and_with_unknown_errors() -> None:
    assert compute_eigenvalue_errors(np.zeros((0, 0)), np.zeros((0, 0))).shape == (0,)
    assert np.isinf(compute_eigenvalue_errors(np.eye(2), np.full((2, 2), np.nan))).all()


def test_groups_are_eigenvalues_with_overlapping_discs() -> None:
    values = np.array([-1.0, 0.0, 0.1, 0.2, 5.0])
    errors = np.array([0.1, 0.05, 0.05, 0.05, 1e-9])
    assert group_eigenvalues(values.astype(complex), errors) == [[0], [1, 2, 3], [4]]
