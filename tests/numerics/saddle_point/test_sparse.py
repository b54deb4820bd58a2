"""Sparse factors against dense ones, and their refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from fmilin.adapters import DenseFactors, NullSpaceFactors
from fmilin.errors import NumericalError
from fmilin.numerics.factors import SparseFactors, regular_factors, singular
from fmilin.signals import FloatArray


def chain(n: int) -> tuple[FloatArray, FloatArray]:
    """M and G of n unequal masses whose neighbours are tied in pairs."""
    G = np.eye(n)[::2] - np.eye(n, k=1)[::2]
    return np.diag(np.linspace(1.0, 1e6, n)), G


def test_the_members_agree() -> None:
    M, G = chain(40)
    W = np.block([[M, G.T], [G, np.zeros((len(G), len(G)))]])
    right = np.random.default_rng(3).standard_normal((len(W), 2))
    members = DenseFactors(W), SparseFactors(sparse.csc_array(W)), regular_factors(sparse.csc_array(W), "The equations")
    for factors in members:
        np.testing.assert_allclose(factors.solve(right), NullSpaceFactors(M, G).solve(right), rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(factors.solve(right[:, 0]), factors.solve(right)[:, 0], rtol=1e-12)
        assert not factors.is_singular


@pytest.mark.parametrize("is_sparse", [False, True])
def test_one_refusal_for_both(is_sparse: bool) -> None:
    def factors(W: FloatArray) -> None:
        regular_factors(sparse.csc_array(W) if is_sparse else W, "The equations of 'chain'")

    W = np.diag([1.0, 2.0, 0.0])
    with pytest.raises(
        NumericalError, match="The equations of 'chain' have no unique solution at this point"
    ) as caught:
        factors(W)
    assert caught.value.condition_number == np.inf
    nearly = np.array([[1.0, 1.0, 0.0], [1.0, 1.0 + 1e-15, 0.0], [0.0, 0.0, 1.0]])
    with pytest.raises(NumericalError, match="no unique solution"):
        factors(nearly)
    regular_factors(sparse.csc_array(nearly), "The equations", estimate=False)
    factors(nearly + np.diag([0.0, 1e-12, 0.0]))
    with pytest.raises(NumericalError, match="contain a NaN or an infinity"):
        factors(W * np.nan)


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
def test_what_a_singular_matrix_leaves_open_is_named_whatever_the_size_of_the_direction(size: float) -> None:
    direction = size * np.array([1.0, 0.0, -3.0, 1e-9])
    result = singular(0.0, "The equations", ["a", "b", "c", "d"], direction=direction)
    assert "leaves c, a undetermined" in str(result)
    assert result.variable == "c"
