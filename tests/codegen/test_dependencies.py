"""What depends on what through a sparse linear system: by structure, not by value."""

from __future__ import annotations

import casadi as ca
import numpy as np

from fmilin.adapters import ImplicitSystem
from fmilin.codegen.c_source_export import generate
from fmilin.signals import Signals

Pattern = set[tuple[int, int]]


def through(pattern: Pattern, n: int) -> list[set[int]]:
    """Return on which entries of r = x each unknown depends, x' = w, W w = r."""
    x, w = ca.SX.sym("x", n), ca.SX.sym("w", n)
    W = ca.SX(n, n)
    for i, j in pattern:
        W[i, j] = 2.0
    none = ca.SX(0, 1)
    signals = Signals(f"x{i}" for i in range(n))
    system = ImplicitSystem(
        name="sample",
        time=ca.SX.sym("t"),
        states=x,
        inputs=none,
        parameters=none,
        unknowns=w,
        unknown_names=tuple(f"w{i}" for i in range(n)),
        matrix=ca.sparsify(W),
        right_hand_side=x,
        derivatives=w,
        outputs=none,
        state_signals=signals,
        input_signals=Signals(),
        output_signals=Signals(),
        parameter_signals=Signals(),
        parameter_values=np.empty(0),
    )
    return [set(row) for row in generate(system).depends]


def test_unknowns_depend_on_what_lies_below_them_in_block_triangular_form() -> None:
    # w0 alone; w1 and w2 coupled, and they need w0; w3 needs w1
    pattern = {(0, 0), (1, 1), (1, 2), (2, 1), (2, 2), (2, 0), (3, 3), (3, 1)}
    assert through(pattern, 4) == [{0}, {0, 1, 2}, {0, 1, 2}, {0, 1, 2, 3}]


def test_rows_need_not_stand_in_the_order_of_the_unknowns() -> None:
    assert through({(0, 1), (1, 0), (1, 1)}, 2) == [{0, 1}, {0}]  # row 0 gives w1, row 1 then w0


def test_dependencies_agree_with_the_inverse_of_random_matrices() -> None:
    random = np.random.default_rng(3)
    for _ in range(30):
        n = int(random.integers(1, 9))
        W = np.where(random.random((n, n)) < 0.3, random.normal(size=(n, n)), 0.0)
        W[np.arange(n), random.permutation(n)] = random.normal(size=n) + 3.0
        if abs(np.linalg.det(W)) < 1e-3:
            continue
        pattern = {(int(i), int(j)) for i, j in np.argwhere(W)}
        inverse = np.abs(np.linalg.inv(W)) > 1e-12
        assert through(pattern, n) == [set(map(int, np.flatnonzero(row))) for row in inverse]


def test_nothing_is_claimed_for_a_matrix_that_is_singular_in_structure() -> None:
    assert through({(0, 0), (1, 0)}, 2) == [{0, 1}, {0, 1}]


def test_no_unknowns_no_dependencies() -> None:
    assert through(set(), 0) == []
