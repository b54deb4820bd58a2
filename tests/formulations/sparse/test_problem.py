"""Solutions of stiff sparse systems against solutions known exactly: all entries are integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from fmilin import NumericalError
from fmilin.formulations.sparse.problem import EXTENDED, RefinedFactors, to_extended_precision
from fmilin.numerics.factors import SparseFactors


def beam(n: int) -> Any:
    """A clamped beam by differences, with condition number about n^4."""
    main, beside, far = np.full(n, 6.0), np.full(n - 1, -4.0), np.ones(n - 2)
    main[-2:], beside[-1] = [5.0, 1.0], -2.0
    i = np.arange(n)
    rows = np.concatenate((i, i[1:], i[:-1], i[2:], i[:-2]))
    columns = np.concatenate((i, i[:-1], i[1:], i[:-2], i[2:]))
    return sparse.csc_array((np.concatenate((main, beside, beside, far, far)), (rows, columns)))


@pytest.mark.parametrize("kind", [np.float64, np.complex128])
def test_refinement_wins_back_what_the_factors_lose(kind: type[Any]) -> None:
    n = 2000
    W = beam(n).astype(kind)
    x: Any = np.random.default_rng(1).integers(-9, 9, n).astype(kind)
    right = W @ x  # exact: small integers
    plain = np.max(np.abs(SparseFactors(W).solve(right) - x))
    refined = np.max(np.abs(RefinedFactors(to_extended_precision(W), "the beam").solve(right) - x))
    assert plain > 1e-6
    if EXTENDED < 1e-18:  # the long double of this machine has more digits than a double
        assert refined < 1e-2 * plain  # 2^-11, and what one right-hand side makes of it
    else:
        assert refined < 10 * plain


def test_many_right_hand_sides() -> None:
    W = beam(40)
    X = np.random.default_rng(2).standard_normal((40, 3))
    np.testing.assert_allclose(RefinedFactors(to_extended_precision(W), "the beam").solve(W @ X), X, atol=1e-11)


def test_a_singular_matrix_is_said() -> None:
    with pytest.raises(NumericalError, match="The beam is singular"):
        RefinedFactors(to_extended_precision(0 * beam(5)), "the beam")
