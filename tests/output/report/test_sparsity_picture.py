"""Sparsity pictures: the structure of the factors against numeric ones, and the paper's observation about it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg, sparse

from fmilin import UsageError
from fmilin.native.formulations.sparse import sparse_form_of
from fmilin.native.systems import flexible_double_pendulum, four_bar_form
from fmilin.output.report.sparsity_picture import factor_structure, mass_matrices, sparsity_picture


@pytest.mark.parametrize("seed", range(5))
def test_the_structure_of_a_factor_is_that_of_the_numbers(seed: int) -> None:
    random = np.random.default_rng(seed)
    A = random.standard_normal((14, 14)) * (random.random((14, 14)) < 0.12)
    M = A @ A.T + 10 * np.eye(14)
    L = linalg.cholesky(M, lower=True)
    found = np.zeros((14, 14), dtype=bool)
    found[factor_structure(sparse.csc_array(M))] = True
    assert np.array_equal(np.abs(L) > 1e-14, found)


def test_minimal_coordinates_couple_what_the_others_keep_apart() -> None:
    form = sparse_form_of(flexible_double_pendulum(5))
    Mr, M, Mp = mass_matrices(form).values()
    half = form.n // 2
    for matrix, coupled in ((M, 0), (Mp, 16)):  # the penalty couples the ends of the links, where the joint is
        assert matrix.shape == (42, 42)
        assert abs(matrix[:half, half:]).nnz * 2 == coupled
    assert Mr.shape == (32, 32)
    filled = [len(factor_structure(matrix)[0]) / (len(matrix.diagonal()) ** 2 / 2) for matrix in (Mr, M, Mp)]
    assert filled[0] > 0.8
    assert max(filled[1:]) < 0.6


def test_a_picture_and_its_limit() -> None:
    assert sparsity_picture(four_bar_form(20), title="four-bar").startswith(b"\x89PNG")
    with pytest.raises(UsageError, match="nothing but a black square"):
        sparsity_picture(four_bar_form(2000), title="four-bar")
