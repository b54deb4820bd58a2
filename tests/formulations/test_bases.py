"""Velocity projections: five ways to R with Phi_q R = 0."""

from __future__ import annotations

import numpy as np
import pytest

from fmilin import NumericalError, UnknownNameError, UsageError
from fmilin.formulations import basis_of
from fmilin.formulations.form import METHODS, combinations_of_rows, find_rank
from fmilin.systems import four_bar_form
from tests.formulations.hand_made import random_form


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("m", "redundant"), [(0, 0), (3, 0), (3, 2), (7, 0)])
def test_every_basis_spans_the_free_velocities(method: str, m: int, redundant: int) -> None:
    form = random_form(5, m=m, redundant=redundant)
    sizes = np.array([1e-3, 1.0, 50.0, 1.0, 1e3, 1.0, 2.0])
    basis = basis_of(form.Phi_q, method, sizes=sizes)
    p = 7 - m
    assert basis.R.shape == (7, p)
    scaled = form.Phi_q * sizes
    np.testing.assert_allclose(scaled @ (basis.R / sizes[:, None]), 0, atol=1e-10 * np.abs(scaled).max(initial=1))
    np.testing.assert_allclose(basis.S @ basis.R, np.eye(p), atol=1e-12)
    np.testing.assert_allclose(basis.S / np.abs(basis.S).max(initial=1) @ basis.N, 0, atol=1e-9)
    assert find_rank(scaled @ (basis.N / sizes[:, None])) == m


def test_named_coordinates_are_the_coordinates() -> None:
    form = four_bar_form(3).dense()
    basis = basis_of(form.Phi_q, names=form.names, independent=["phi"])
    assert basis.chosen == (8,)
    phi = -np.arcsin(basis.R[0, 0])  # x_i' = -sin(phi) phi'
    np.testing.assert_allclose(basis.R[:, 0], [*([-np.sin(phi), -np.sqrt(1 - np.sin(phi) ** 2)] * 4), 1], atol=1e-14)


def test_orthonormal_bases_are_orthonormal() -> None:
    form = random_form(1)
    for method in ("zero-eigenvalue", "svd", "qr", "gram-schmidt"):
        R = basis_of(form.Phi_q, method).R
        np.testing.assert_allclose(R.T @ R, np.eye(4), atol=1e-13)


def test_as_many_rows_as_are_independent() -> None:
    form = random_form(2, redundant=2)
    U = combinations_of_rows(form.Phi_q)
    assert U.shape == (5, 3)
    np.testing.assert_allclose(U.T @ U, np.eye(3), atol=1e-13)
    assert find_rank(U.T @ form.Phi_q) == 3


def test_a_wrong_number_of_coordinates_is_refused_with_an_example() -> None:
    form = four_bar_form().dense()
    with pytest.raises(UsageError, match=r"2 independent coordinates were named, but 5 .* leave 1\. For example: phi"):
        basis_of(form.Phi_q, names=form.names, independent=["phi", "x0"])


def test_an_unknown_coordinate_is_refused_with_the_nearest() -> None:
    form = four_bar_form().dense()
    with pytest.raises(UnknownNameError, match=r"'ph' is not a position of the model\. Did you mean 'phi'"):
        basis_of(form.Phi_q, names=form.names, independent=["ph"])


def test_coordinates_that_do_not_determine_the_others_are_refused() -> None:
    Phi_q = np.array([[0.0, 1.0, 1.0], [0.0, 1.0, -1.0]])  # only the first can be free
    with pytest.raises(NumericalError, match=r"The coordinates b do not determine .* Use a"):
        basis_of(Phi_q, names="abc", independent=["b"])


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(UsageError, match=r"'lu' is not a way .* Choose one of: coordinates, zero-eigenvalue, svd, qr"):
        basis_of(np.eye(2), "lu")
    with pytest.raises(UsageError, match=r"require the method 'coordinates', not 'svd'"):
        basis_of(np.eye(2), "svd", names="ab", independent=["a"])
