"""Nodes that NumPy takes for numbers: they compute what the code computes, and nothing that is not needed."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from fmilin.codegen.scalars import Scalar, scalars, to_column, to_matrix


def computed(x: Any) -> Any:
    """Use every operation, on arrays with zeros and constants among them."""
    a, b, c = x[0], x[1], x[2]
    table = np.array([[0.0, 1.0, 2.0], [-1.0, 0.0, 0.5], [0.25, 0.0, 0.0]])
    moved = table @ x
    return np.array(
        [
            (a + b) * (c - a) - (a + b),
            1.0 - a,
            2.0 / (a + c),
            0.0 / a,
            (a - b) / c / 4.0,
            (b - a) * (a - b),
            (a * a + b * b + 1.0).sqrt() if hasattr(a, "sqrt") else np.sqrt(a * a + b * b + 1.0),
            np.cos(moved)[0] ** 3,
            np.sin(moved) @ moved,
            np.int64(3) * a - np.float64(0.5),
            a - a + 3.0,
            a * 0.0,
            0.0 - b,
        ],
        dtype=object,
    )


def test_the_nodes_compute_what_the_code_computes() -> None:
    x = ca.SX.sym("x", 3)
    result = ca.Function("f", [x], [to_column(computed(scalars(x)))])
    numbers = np.random.default_rng(2).uniform(0.5, 1.5, 3)
    assert np.allclose(np.array(result(numbers)).ravel(), computed(numbers).astype(float), rtol=1e-14, atol=1e-15)


def test_zeros_are_plain_numbers_again() -> None:
    a, b = scalars(ca.SX.sym("x", 2))
    for zero in (a * 0.0, 0 * b, a - a, 0.0 / a):
        assert not isinstance(zero, Scalar)
        assert zero == 0.0
    assert a + 0.0 is a
    assert a - 0 is a


def test_a_matrix_keeps_the_sparsity_of_the_code() -> None:
    x = ca.SX.sym("x", 2)
    a, b = scalars(x)
    matrix = to_matrix(np.array([[a, 0.0, 1.0], [a - a, b * b, 0.0]], dtype=object))
    assert matrix.shape == (2, 3)
    assert sorted(zip(*matrix.sparsity().get_triplet(), strict=True)) == [(0, 0), (0, 2), (1, 1)]
    assert to_matrix(np.empty((0, 3), dtype=object)).shape == (0, 3)
    assert to_column(np.empty(0, dtype=object)).shape == (0, 1)
