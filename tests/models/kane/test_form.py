"""What a KaneModel is told, and what it refuses; linear terms of expressions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy

import fmilin as fl
from fmilin import ConstraintError, UsageError
from fmilin.models import KaneModel, der
from fmilin.models.kane.kane_form import SymbolsIn, linear_row
from tests.exact import products_of
from tests.models.kane.examples import bead
from tests.models.kane.table import f_0, f_1, f_2, f_3, f_a

VALUES = {"m": 2.0, "g": 9.81}


def model(**changes: Any) -> KaneModel:
    return KaneModel("bead", bead(**changes), parameters=VALUES, start={"x": 0.3, "y": 0.045})


def test_the_rates_are_those_of_a_bead_on_a_parabola() -> None:
    """(1 + x^2) x'' + x x'^2 + g x = 0."""
    x, v = 0.7, -1.3
    found = model().evaluate(0.0, np.array([x, x**2 / 2, v, x * v]), np.empty(0)).derivatives
    acceleration = -(x * v**2 + 9.81 * x) / (1 + x**2)
    np.testing.assert_allclose(found, [v, x * v, acceleration, v**2 + x * acceleration], rtol=1e-14)


def test_the_letters_can_be_read_back() -> None:
    form = model().form
    x, vx = sympy.symbols("x vx", real=True)
    assert f_0(form) == (der("x"), der("y"))
    assert f_1(form)[0] == -vx
    assert form.f_c[0].free_symbols == {x, sympy.Symbol("y", real=True)}
    assert f_a(form)[0] == der("vy") - x * der("vx") - vx * der("x")
    assert der("vx") in f_2(form)[0].free_symbols
    assert f_3(form)[0] == x * sympy.Symbol("m", real=True) * sympy.Symbol("g", real=True)
    assert form.order == 2


def test_f_a_is_derived_when_it_is_left_out() -> None:
    given = model(f_a=["der(vy) - x*der(vx) - vx*der(x)"])
    assert f_a(given.form) == f_a(model().form)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"f_2": ["m*der(vx)^2 + x*m*der(vy)"]}, r"f_2\[1\] is not linear in der\(vx\)"),
        ({"f_2": ["m*der(vx)*der(vy)"]}, r"f_2\[1\] is not linear in der\(vx\), der\(vy\)"),
        ({"f_0": ["sin(der(x))", "der(y)"]}, r"f_0\[1\] is not linear in der\(x\)"),
        ({"f_1": ["-vx^2", "-vy"]}, r"f_1\[1\] is not linear in vx"),
        ({"f_v": ["vy^2 - x*vx"]}, r"f_v\[1\] is not linear in vy"),
        ({"f_a": ["der(vy)*der(vx)"]}, r"f_a\[1\] is not linear in der\(vx\), der\(vy\)"),
        ({"f_3": ["x*m*g + der(vx)"]}, r"f_3\[1\] may not contain der\(vx\)"),
        ({"f_c": ["y - x^2/2 + vx"]}, r"f_c\[1\] may not contain vx"),
        ({"f_v": ["der(y) - x*vx"]}, r"f_v\[1\] may not contain der\(y\)"),
        ({"f_3": ["x*m*g*k"]}, r"f_3\[1\] contains 'k', which has no value"),
        ({"f_0": ["der(x)"]}, r"f_0 has 1 rows and should have 2"),
        ({"f_2": ["m*der(vx)", "m*der(vy)"]}, r"f_2 has 2 rows and should have 1"),
        ({"f_v": []}, r"f_2 has 1 rows and should have 2"),
        ({"f_a": []}, r"f_a has 0 rows and should have 1"),
        ({"u": ["vx", "x"]}, r"'x', a speed, is declared twice"),
        ({"names": ["rail"]}, r"1 names for 2 constraints"),
        ({"q": "xy", "f_2": "m*der(vx)"}, r"complete: q, f_2 should be given as lists, even with a single entry\.$"),
    ],
)
def test_what_does_not_fit_the_form_is_refused_by_name(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        model(**changes)


def test_all_problems_are_said_at_once() -> None:
    with pytest.raises(UsageError, match=r"f_1\[1\] is not linear in vx.*f_3\[1\] contains 'k'|f_3.*f_1"):
        model(f_1=["-vx^2", "-vy"], f_3=["k"])


def test_linear_in_fact_is_linear_enough() -> None:
    squares = model(f_2=["((1 + m*der(vx))^2 - 1 - m^2*der(vx)^2)/2 + x*m*der(vy)"])
    at = np.array([0.7, 0.245, -1.3, -0.91])
    np.testing.assert_allclose(
        squares.evaluate(0.0, at, np.empty(0)).derivatives, model().evaluate(0.0, at, np.empty(0)).derivatives
    )


def test_velocity_constraints_that_miss_a_configuration_constraint_are_refused() -> None:
    with pytest.raises(
        ConstraintError, match=r"do not keep the configuration constraints: .*d/dt f_c\[1\] is"
    ) as caught:
        model(f_v=["vy - 2*x*vx"])
    assert list(caught.value.residuals) == ["d/dt f_c[1]"]


@pytest.mark.parametrize("f_a", ["der(vy) - x*der(vx)", "der(vy) + x*der(vx) - vx^2", "der(vx)"])
def test_acceleration_constraints_that_are_no_derivatives_are_refused(f_a: str) -> None:
    with pytest.raises(ConstraintError, match=r"not the time derivatives .*d/dt f_v\[1\] is .*Leave f_a out"):
        model(f_a=[f_a])


def test_equivalent_constraints_are_as_good_as_derivatives() -> None:
    """f_v twice the derivative of f_c; f_a another multiple, with q' eliminated."""
    other = model(f_v=["2*(vy - x*vx)"], f_a=["5*(der(vy) - x*der(vx) - vx^2)"])
    at = np.array([0.7, 0.245, -1.3, -0.91])
    np.testing.assert_allclose(
        other.evaluate(0.0, at, np.empty(0)).derivatives, model().evaluate(0.0, at, np.empty(0)).derivatives
    )


def test_names_of_constraints_reach_the_messages() -> None:
    named = model(names=["rail", "along the rail"])
    assert named.constraints.names[:2] == ("rail", "along the rail")


def test_kinematic_equations_may_be_coupled_and_rates_may_enter_squared() -> None:
    """x' and y' from two equations in both; the centripetal term of f_a and f_3 in q' instead of u."""
    coupled = model(
        f_0=["der(x) + 2*der(y)", "der(y) - der(x)"],
        f_1=["-vx - 2*vy", "-vy + vx"],
        f_a=["der(vy) - x*der(vx) - der(x)^2"],
    )
    at = np.array([0.7, 0.245, -1.3, -0.91])
    plain = model()
    np.testing.assert_allclose(
        coupled.evaluate(0.0, at, np.empty(0)).derivatives,
        plain.evaluate(0.0, at, np.empty(0)).derivatives,
        rtol=1e-14,
    )
    direction = np.random.default_rng(1).normal(size=(4, 3))
    ours, theirs = (
        products_of(m, 0.0, at, np.empty(0), direction, np.empty((0, 3))).derivatives for m in (coupled, plain)
    )
    np.testing.assert_allclose(ours[:3], theirs[:3], rtol=1e-13)  # off the manifold f_a differs by (x' - vx) terms


def test_a_form_without_constraints_inputs_or_coordinates_works() -> None:
    from fmilin.models import KaneEquations

    spin = KaneModel(
        "spin", KaneEquations(q=[], u=["w"], f_0=[], f_1=[], f_2=["J*der(w)"], f_3=["d*w"]), parameters={"J": 2, "d": 3}
    )
    lin = fl.linearize(spin)
    assert lin.A.tolist() == [[-1.5]]
    assert lin.B.shape == (1, 0)


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
