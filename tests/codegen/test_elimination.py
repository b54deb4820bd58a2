"""Orders of elimination: no fill where none is needed, and the factors that they lead to.

The order of elimination in a sparse linear system.
"""

from __future__ import annotations

import numpy as np
import pytest

from fmilin.codegen.elimination_order import Elimination, band_order, order_elimination
from fmilin.signals import FloatArray


def pattern_of(W: FloatArray) -> set[tuple[int, int]]:
    return {(int(i), int(j)) for i, j in zip(*np.nonzero(W), strict=True)}


def solved(order: Elimination, W: FloatArray, r: FloatArray) -> FloatArray:
    """Solve by W = L D L' in the order, with what the slots keep and nothing else."""
    n = len(W)
    L, D, left = np.eye(n), np.zeros(n), W.copy()
    for k, below in zip(order.order, order.below, strict=True):
        D[k] = left[k, k]
        for i in below:
            assert (i, k) in order.slots
            L[i, k] = left[i, k] / D[k]
        for i in below:
            for j in below:
                left[i, j] -= L[i, k] * left[j, k]
        left[k, :] = left[:, k] = 0.0
    assert not left.any()
    return np.asarray(np.linalg.solve(L.T, np.linalg.solve(L, r) / D))


def test_the_mass_matrix_of_a_tree_fills_in_nowhere() -> None:
    parents = [-1, 0, 1, 1, 3, 0, 5, 5]
    above: list[set[int]] = []
    for i, parent in enumerate(parents):
        above.append({i} | (above[parent] if parent >= 0 else set()))
    pattern = {(i, j) for i in range(8) for j in range(8) if i in above[j] or j in above[i]}
    order = order_elimination(pattern, 8)
    assert order is not None
    assert len(order.slots) == sum(i >= j for i, j in pattern)


def test_rows_of_constraints_wait_until_their_pivots_are_filled_in() -> None:
    random = np.random.default_rng(0)
    M, G = np.diag([1.0, 2.0, 3.0, 4.0]), random.normal(size=(2, 4))
    W = np.block([[M, G.T], [G, np.zeros((2, 2))]])
    order = order_elimination(pattern_of(W), 6)
    assert order is not None
    r = random.normal(size=6)
    np.testing.assert_allclose(solved(order, W, r), np.linalg.solve(W, r), rtol=1e-12)
    assert {order.slot(i, j) for i, j in pattern_of(W)} <= set(range(len(order.slots)))


def test_there_is_no_order_without_a_pivot() -> None:
    assert order_elimination({(0, 1), (1, 0)}, 2) is None
    nothing = order_elimination(set(), 0)
    assert nothing is not None
    assert nothing.order == ()


def placed(pattern: set[tuple[int, int]], n: int) -> np.ndarray:
    order = band_order(pattern, n)
    assert sorted(order.rows) == sorted(order.columns) == list(range(n))
    matrix = np.zeros((n, n), dtype=bool)
    for i, j in pattern:
        matrix[order.rows[i], order.columns[j]] = True
    rows, columns = np.nonzero(matrix)
    assert (order.lower, order.upper) == (max(0, (rows - columns).max()), max(0, (columns - rows).max()))
    return matrix


@pytest.mark.parametrize("shuffled_rows", [False, True])
def test_a_shuffled_tridiagonal_matrix_gets_its_band_back(shuffled_rows: bool) -> None:
    n = 30
    random = np.random.default_rng(1)
    columns = random.permutation(n)
    rows = random.permutation(n) if shuffled_rows else columns
    pattern = {(int(rows[i]), int(columns[j])) for i in range(n) for j in range(n) if abs(i - j) <= 1}
    placed(pattern, n)
    order = band_order(pattern, n)
    assert order.lower + order.upper <= 4


def test_a_full_matrix_keeps_its_full_band() -> None:
    order = band_order({(i, j) for i in range(4) for j in range(4)}, 4)
    assert (order.lower, order.upper) == (3, 3)


def test_a_matrix_that_is_singular_in_structure_has_an_order_too() -> None:
    placed({(0, 0), (1, 0), (2, 1), (2, 2)}, 3)
    assert band_order(set(), 2).rows == (0, 1)
