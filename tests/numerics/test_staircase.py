"""Order and index of pencils that are mixed from a Weierstrass form by decimal matrices."""

from __future__ import annotations

import numpy as np
import pytest

from fmilin.numerics.staircase import deflate
from tests.native.dae.mixed_pencils import mixed_pencil


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


def test_a_singular_pencil_is_not_told() -> None:
    assert deflate(np.zeros((2, 2)), np.array([[1.0, 1.0], [1.0, 1.0]])) is None


def test_an_empty_pencil_has_order_zero() -> None:
    deflation = deflate(np.zeros((0, 0)), np.zeros((0, 0)))
    assert deflation is not None
    assert deflation.order == 0
