"""Linear terms of expressions: found in products and sums, refused elsewhere, and nothing is expanded on the way."""

from __future__ import annotations

import pytest
import sympy

from fmilin.native.kane.linear import SymbolsIn, linear_row

a, b, v, w = sympy.symbols("a b v w", real=True)


@pytest.mark.parametrize(
    ("expression", "coefficients", "rest"),
    [
        (a * w + b, {w: a}, b),
        (a * (b * (w + v) - w * sympy.sin(a) + 3), {v: a * b, w: a * b - a * sympy.sin(a)}, 3 * a),
        ((w + a) / b, {w: 1 / b}, a / b),
        (sympy.cos(a) * b, {}, sympy.cos(a) * b),
        (w, {w: 1}, 0),
    ],
)
def test_coefficients_and_the_rest(
    expression: sympy.Expr, coefficients: dict[sympy.Symbol, sympy.Expr], rest: sympy.Expr
) -> None:
    row, nonlinear = linear_row("row", expression, [v, w])
    assert not nonlinear
    assert set(row.coefficients) == set(coefficients)
    assert all(sympy.expand(row.coefficients[s] - c) == 0 for s, c in coefficients.items())
    assert sympy.expand(row.rest - rest) == 0


@pytest.mark.parametrize(
    ("expression", "nonlinear"), [(sympy.sin(w) + v, (w,)), (v * w, (v, w)), (a / w, (w,)), (w**2 + a * v, (w,))]
)
def test_nonlinear_symbols_are_named(expression: sympy.Expr, nonlinear: tuple[sympy.Symbol, ...]) -> None:
    assert linear_row("row", expression, [v, w])[1] == nonlinear


def test_what_is_nonlinear_only_in_form_is_linear() -> None:
    row, nonlinear = linear_row("row", (w + a) ** 2 - w**2, [w])
    assert not nonlinear
    assert row.coefficients == {w: 2 * a}
    assert row.rest == a**2


def test_shared_parts_are_looked_at_once() -> None:
    """Written out, the expression would have 2^80 terms: only what remembers comes to an end."""
    shared = a + w
    for i in range(80):
        shared = sympy.Add(shared, sympy.Mul(sympy.Symbol(f"p{i}"), shared, evaluate=False), evaluate=False)
    inside = SymbolsIn()
    row, nonlinear = linear_row("row", shared, [v, w], inside)
    assert not nonlinear
    assert set(row.coefficients) == {w}
    assert len(inside(shared)) == 82
    assert inside(row.coefficients[w]) == inside(shared) - {a, w}
    assert inside(row.rest) == inside(shared) - {w}
