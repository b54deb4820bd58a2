"""Factors of stacks of matrices: as exact as those of each matrix."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import hilbert

from fmilin.numerics.factors import DenseFactors


@pytest.mark.parametrize("order", [3, 5, 7])
@pytest.mark.parametrize("count", [1, 2, 8])
def test_solutions_of_ill_conditioned_stacks_leave_small_residuals(order: int, count: int) -> None:
    factor = np.arange(1.0, count + 1.0)[:, None, None]
    W = factor * hilbert(order)  # of condition 5e2 to 5e8
    right = W @ np.random.default_rng(3).normal(size=(count, order, 4))
    solution = DenseFactors(W).solve(right)
    size = np.abs(W).sum(axis=2).max(axis=1) * np.abs(solution).max(axis=(1, 2))
    backward_error = np.abs(W @ solution - right).max(axis=(1, 2)) / size
    assert (backward_error < 100 * np.finfo(float).eps).all()
