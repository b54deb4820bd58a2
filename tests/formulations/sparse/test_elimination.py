"""Null spaces by elimination against singular values, closed forms and lost ranks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg, sparse

from fmilin import NumericalError
from fmilin.formulations.sparse import sparse_null_space
from fmilin.signals import FloatArray
from fmilin.systems import four_bar_form


@settings(max_examples=60, deadline=None)
@given(
    m=st.integers(0, 12),
    extra=st.integers(0, 8),
    density=st.floats(0.1, 0.9),
    redundant=st.integers(0, 3),
    seed=st.integers(0, 99),
)
def test_random_jacobians_of_any_rank(m: int, extra: int, density: float, redundant: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    rows = random.standard_normal((m, m + extra)) * (random.random((m, m + extra)) < density)
    full = np.vstack((rows, random.standard_normal((redundant, m)) @ rows)) if m else rows
    rank = np.linalg.matrix_rank(full, tol=1e-9) if full.size else 0
    found = sparse_null_space(sparse.csr_array(full))
    R = found.R.toarray()
    assert R.shape == (m + extra, m + extra - rank)
    np.testing.assert_allclose(full @ R, 0.0, atol=1e-9 * (1 + np.max(np.abs(R), initial=0.0)))
    np.testing.assert_array_equal(R[found.independent], np.eye(R.shape[1]))
    assert np.linalg.matrix_rank(full[found.rows], tol=1e-9) == rank == len(found.dependent)


def test_the_linkage_moves_as_one() -> None:
    form = four_bar_form(loops=300)
    found = sparse_null_space(form.Phi_q, [form.n - 1])
    across = form.names.index("x0"), form.names.index("y0")
    R = found.R.toarray().ravel()
    phi = np.arctan2(-R[across[0]], R[across[1]])  # every point moves across its rod
    np.testing.assert_allclose(R[:-1], np.tile([-np.sin(phi), np.cos(phi)], 301), rtol=1e-13)
    assert R[-1] == 1.0
    assert found.R.nnz == form.n


def test_entries_do_not_grow_along_a_chain_of_nearly_dependent_columns() -> None:
    random = np.random.default_rng(5)
    n = 200
    beside = random.uniform(0.01, 100.0, n - 1)
    Phi_q = sparse.csr_array(np.hstack((np.eye(n - 1), np.zeros((n - 1, 1)))) + np.eye(n)[1:] * beside[:, None])
    R = sparse_null_space(Phi_q).R
    assert abs(Phi_q @ R).max() < 1e-9 * abs(R).max()


def test_any_velocity_is_lifted_to_a_change_of_the_constraints() -> None:
    random = np.random.default_rng(6)
    Phi_q = sparse.csr_array(random.standard_normal((7, 12)))
    found = sparse_null_space(Phi_q)
    right = sparse.csc_array(random.standard_normal((7, 90)) * (random.random((7, 90)) < 0.2))
    X = found.lift(right)
    np.testing.assert_allclose((Phi_q @ X - right).toarray(), 0.0, atol=1e-11)
    assert abs(X[found.independent]).max() == 0.0


def test_tangent_spaces_agree_with_singular_values() -> None:
    form = four_bar_form(loops=4, angle=2.0, speed=1.0)
    R = sparse_null_space(form.Phi_q).R.toarray()
    V = linalg.null_space(form.Phi_q.toarray())
    assert linalg.subspace_angles(R, V)[0] < 1e-14


@pytest.mark.parametrize("named", [[0, 1], [], [0]])
def test_coordinates_that_determine_nothing_are_refused(named: list[int]) -> None:
    # x_0 alone: the row of x_0 and x_1 leaves x_2 free
    Phi_q = sparse.csr_array([[1.0, -1.0, 0.0]])
    with pytest.raises(NumericalError, match="do not determine the others"):
        sparse_null_space(Phi_q, named)


def null_space(*rows: list[float], named: list[int] | None = None) -> tuple[FloatArray, FloatArray]:
    """Return Phi_q and R, dense."""
    Phi_q = np.array(rows)
    return Phi_q, sparse_null_space(sparse.csr_array(Phi_q), named).R.toarray()


@pytest.mark.parametrize("small", [1e-2, 1e-4, 1e-8])
def test_no_coordinate_is_solved_for_by_a_small_entry(small: float) -> None:
    """The first coordinate is the only one that the second constraint does not contain, and hardly in the first."""
    Phi_q, R = null_space([small, 1.0, 0.0], [0.0, 1.0, 1.0])
    assert np.max(np.abs(R)) <= 1.0
    np.testing.assert_allclose(Phi_q @ R, 0.0, atol=1e-15)


@pytest.mark.parametrize("part", [1e-3, 1e-9, 1e-11])
def test_a_weak_coupling_is_not_what_rounding_left(part: float) -> None:
    _, R = null_space([1.0, 1.0, 0.0, 0.0], [1.0, 1.0 + part, 1.0, 1.0], named=[1, 2])
    np.testing.assert_allclose(R[3], [-part, -1.0], rtol=1e-4)


@pytest.mark.parametrize("value", [0.1, 1.0 / 3.0, 0.7])
def test_what_rounding_left_is_no_coupling(value: float) -> None:
    """Three times a row in sevenths, say, leaves 1e-16 of a zero, which names would be tied to."""
    row = [value, value / 7, 0.3, 0.0]
    _, R = null_space(row, [*(np.array(row[:3]) * 3.3 / 1.7), 1.0], named=[1, 2])
    np.testing.assert_array_equal(R[3], [0.0, 0.0])


@pytest.mark.parametrize(("part", "freedoms"), [(1.0, 1), (1e-5, 1), (1e-8, 1), (1e-12, 2), (0.0, 2)])
def test_rows_that_are_nearly_the_same_are_two_or_one(part: float, freedoms: int) -> None:
    assert null_space([1.0, 1.0, 0.0], [1.0, 1.0, part])[1].shape[1] == freedoms


@pytest.mark.parametrize(("part", "told"), [(1.0, True), (1e-4, True), (1e-7, True), (3e-10, False), (0.0, False)])
def test_named_coordinates_that_hardly_determine_the_others_are_refused(part: float, *, told: bool) -> None:
    rows = [1.0, part]
    if told:
        np.testing.assert_allclose(null_space(rows, named=[0])[1], [[1.0], [-1.0 / part]])
    else:
        with pytest.raises(NumericalError, match="named as independent do not determine the others"):
            null_space(rows, named=[0])
