"""Order and index of pencils that are mixed from a Weierstrass form by decimal matrices."""

from __future__ import annotations

import numpy as np
import pytest

from fmilin.numerics.staircase import deflate, is_order_doubtful
from tests.models.dae.mixed_pencils import mixed_pencil


@pytest.mark.parametrize("seed", range(30))
def test_a_mixed_pencil_has_the_order_index_and_eigenvalues_of_its_parts(seed: int) -> None:
    pencil = mixed_pencil(seed)
    deflation = deflate(pencil.E, pencil.F)
    assert deflation is not None
    assert (deflation.order, deflation.index) == (len(pencil.A), pencil.index)
    distances = np.abs(deflation.eigenvalues()[:, None] - np.linalg.eigvals(pencil.A)[None, :])
    assert distances.min(axis=1).max() < 1e-6


def test_stiff_circuits_keep_all_their_eigenvalues() -> None:
    """C v' = i, i = (u - v) / R with 1e-15 F and 1e3 Ohm beside a tenth of a second."""
    E = np.diag([1e-15, 0.0, 0.1])
    A = np.array([[0.0, 1.0, 0.0], [-1e-3, -1.0, 0.0], [0.0, 0.0, -1.0]])
    deflation = deflate(E, A)
    assert deflation is None or deflation.order == 2  # 2e13 apart: not told


@pytest.mark.parametrize("small", [1e-17, -1e-14, 1e-10])
def test_an_entry_that_is_rounding_or_meant_makes_the_order_doubtful_where_it_decides(small: float) -> None:
    """x' = v, 2 v' = F - 3 x, small F = p - x: order 2 if it is meant, 0 if it is rounding."""
    E = np.diag([1.0, 2.0, 0.0])
    A = np.array([[0.0, 1.0, 0.0], [-3.0, 0.0, 1.0], [-1.0, 0.0, -small]])
    assert is_order_doubtful(E, A)
    A[2, 2] = 0.0
    A[1, 0] = small  # beside 2 v' = F, this one does not change the order
    assert not is_order_doubtful(E, A)


def test_a_singular_pencil_is_not_told() -> None:
    assert deflate(np.zeros((2, 2)), np.array([[1.0, 1.0], [1.0, 1.0]])) is None


def test_an_empty_pencil_has_order_zero() -> None:
    deflation = deflate(np.zeros((0, 0)), np.zeros((0, 0)))
    assert deflation is not None
    assert deflation.order == 0
