"""Orders of elimination: no fill where none is needed, and the factors that they lead to."""

from __future__ import annotations

import numpy as np

from fmilin.ground.signals import FloatArray
from fmilin.numerics.codegen.symmetric import Elimination, elimination_of


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
    order = elimination_of(pattern, 8)
    assert order is not None
    assert len(order.slots) == sum(i >= j for i, j in pattern)


def test_rows_of_constraints_wait_until_their_pivots_are_filled_in() -> None:
    random = np.random.default_rng(0)
    M, G = np.diag([1.0, 2.0, 3.0, 4.0]), random.normal(size=(2, 4))
    W = np.block([[M, G.T], [G, np.zeros((2, 2))]])
    order = elimination_of(pattern_of(W), 6)
    assert order is not None
    r = random.normal(size=6)
    np.testing.assert_allclose(solved(order, W, r), np.linalg.solve(W, r), rtol=1e-12)
    assert {order.slot(i, j) for i, j in pattern_of(W)} <= set(range(len(order.slots)))


def test_there_is_no_order_without_a_pivot() -> None:
    assert elimination_of({(0, 1), (1, 0)}, 2) is None
    nothing = elimination_of(set(), 0)
    assert nothing is not None
    assert nothing.order == ()
