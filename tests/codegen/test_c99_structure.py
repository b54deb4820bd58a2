"""The order of elimination and the dependencies through a sparse linear system."""

from __future__ import annotations

import numpy as np
import pytest

from fmilin.codegen.structure import band_order, dependencies_of_unknowns


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


def test_unknowns_depend_on_what_lies_below_them_in_block_triangular_form() -> None:
    # w0 alone; w1 and w2 coupled, and they need w0; w3 needs w1
    pattern = {(0, 0), (1, 1), (1, 2), (2, 1), (2, 2), (2, 0), (3, 3), (3, 1)}
    rows = [0b0001, 0b0010, 0b0100, 0b1000]
    assert dependencies_of_unknowns(pattern, rows) == [0b0001, 0b0111, 0b0111, 0b1111]


def test_rows_need_not_stand_in_the_order_of_the_unknowns() -> None:
    pattern = {(0, 1), (1, 0), (1, 1)}  # row 0 gives w1, row 1 then w0
    assert dependencies_of_unknowns(pattern, [0b01, 0b10]) == [0b11, 0b01]


def test_dependencies_agree_with_the_inverse_of_random_matrices() -> None:
    random = np.random.default_rng(3)
    for _ in range(30):
        n = int(random.integers(1, 9))
        W = np.where(random.random((n, n)) < 0.3, random.normal(size=(n, n)), 0.0)
        W[np.arange(n), random.permutation(n)] = random.normal(size=n) + 3.0
        if abs(np.linalg.det(W)) < 1e-3:
            continue
        pattern = {(int(i), int(j)) for i, j in np.argwhere(W)}
        found = dependencies_of_unknowns(pattern, [1 << i for i in range(n)])
        inverse = np.abs(np.linalg.inv(W)) > 1e-12
        assert found == [sum(1 << int(i) for i in np.flatnonzero(row)) for row in inverse]


def test_nothing_is_claimed_for_a_matrix_that_is_singular_in_structure() -> None:
    assert dependencies_of_unknowns({(0, 0), (1, 0)}, [0b01, 0b10]) == [0b11, 0b11]


def test_no_unknowns_no_dependencies() -> None:
    assert dependencies_of_unknowns(set(), []) == []
