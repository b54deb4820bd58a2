"""The order of elimination in a sparse linear system."""

from __future__ import annotations

import numpy as np
import pytest

from fmilin.numerics.codegen.band import band_order


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
