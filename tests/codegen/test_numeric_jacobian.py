"""Partial derivatives entry by entry."""

from __future__ import annotations

import pytest
import sympy

from fmilin.codegen.jacobian import matrix_entries, sparse_jacobian
from fmilin.errors import UsageError

x, y, z = sympy.symbols("x y z", real=True)


def test_only_entries_that_are_not_zero_are_kept() -> None:
    entries = sparse_jacobian([x**2, z, y * x], [x, y])
    assert entries.shape == (3, 2)
    assert list(zip(entries.rows, entries.columns, entries.expressions, strict=True)) == [
        (0, 0, 2 * x),
        (2, 0, y),
        (2, 1, x),
    ]


def test_a_matrix_without_rows_keeps_its_width() -> None:
    assert matrix_entries([], 4).shape == (0, 4)


def test_a_function_that_has_no_derivative_is_refused() -> None:
    with pytest.raises(UsageError, match=r"'unknown\(x\)' has no derivative with respect to 'x'"):
        sparse_jacobian([sympy.Function("unknown")(x)], [x])
