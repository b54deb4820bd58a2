"""The grammar of constraints: what it reads, what it refuses, and that it computes the right derivatives."""

from __future__ import annotations

import contextlib
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fmilin.constraints.compiled import CompiledExpressions
from fmilin.constraints.expressions import Expression, ExpressionError, name_in_expression, parse


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("x^2 + y**2 - L^2", ("x", "y", "L")),
        ("pin.x - rod.length*cos(q[1])", ("pin.x", "rod.length", "q[1]")),
        ("der(v) - der(body.w[2])", ("der(v)", "der(body.w[2])")),
        ("`strange name!` * 2", ("strange name!",)),
        ("T[1, 2] + T[1,2]", ("T[1,2]",)),
        ("winkel_ü + größe.α", ("winkel_ü", "größe.α")),
        ("der( v )", ("der(v)",)),
        ("2 + pi", ()),
    ],
)
def test_names_are_read_as_in_the_model(text: str, names: tuple[str, ...]) -> None:
    assert parse(text).names == names


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2*3^2/6 - 4", 0.0),
        ("-2^2", -4.0),
        ("2^3^2", 512.0),
        ("(1 + 2) * -3", -9.0),
        ("atan2(1, -1)", math.atan2(1, -1)),
        ("min(3, 1, 2) + max(1, 4)", 5.0),
        ("abs(-2) + sqrt(9) + exp(0) + log(1)", 6.0),
        ("sin(pi/6) + cosh(0) + tanh(0)", 1.5),
        (".5e1 + 1.e-1 + 007", 12.1),
        ("asin(1) - pi/2 + acos(1) + atan(0)", 0.0),
    ],
)
def test_arithmetic_has_its_usual_meaning(text: str, value: float) -> None:
    assert CompiledExpressions([parse(text)], []).values([])[0] == pytest.approx(value, abs=1e-15)


@pytest.mark.parametrize(
    "text",
    ["", "  ", "x +", "a b", "__import__('os')", "x**", "lambda: 1", "x if y else z", "1 == 2", "(((", "0x10", "1_000",
     "x.real()", "f(x)", "sin(x, y)", "min(x)", "[1, 2]", "x; y", "x = 1", "'x'", "x and y", "x @ y", "x // y", "x % 2",
     "der(der(x))", "sin", "sin + 1", "x\x00", "(" * 300 + "x" + ")" * 300, "x" * 30_000],
)  # fmt: skip
def test_what_is_no_arithmetic_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError, match=r"expression|limit"):
        parse(text).to_sympy(dict.fromkeys(("x", "y", "z", "a", "b"), 0))


def test_a_refusal_shows_where() -> None:
    with pytest.raises(ExpressionError, match="at character 5: '=' does not belong") as caught:
        parse("x^2 = 1")
    assert caught.value.position == 4


def test_a_tower_of_powers_does_not_exhaust_the_memory() -> None:
    assert not np.isfinite(CompiledExpressions([parse("9^9^9^9")], []).values([])[0])


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    with contextlib.suppress(ExpressionError):  # any other exception fails the test
        assert all(isinstance(name, str) for name in parse(text).names)


@given(st.text(min_size=1).filter(lambda s: "`" not in s))
def test_any_name_can_be_written_into_an_expression(name: str) -> None:
    assert parse(name_in_expression(name)).names == (name,)


def test_a_single_variable_is_recognized() -> None:
    assert parse(" loop.gap ").is_variable
    assert parse("`a b`").is_variable
    assert not parse("-x").is_variable
    assert Expression.variable("odd name").is_variable


def test_derivatives_agree_with_complex_step() -> None:
    text = "x^2*sin(y) - exp(-x*z)/(1 + y^2) + sqrt(z)*atan2(y, x) + x^y"
    compiled = CompiledExpressions([parse(text)], ["x", "y", "z"])
    s = np.array([1.3, 0.7, 2.1])
    d = np.array([0.2, -0.5, 0.9])

    def g(v: np.ndarray) -> complex:
        x, y, z = v
        angle = np.log((x + 1j * y) / (x - 1j * y)) / 2j
        return complex(x**2 * np.sin(y) - np.exp(-x * z) / (1 + y**2) + np.sqrt(z) * angle + x**y)

    def g_real(v: np.ndarray) -> float:
        return float(compiled.values(v.tolist())[0])

    assert g_real(s) == pytest.approx(g(s).real, rel=1e-14)
    jacobian = compiled.jacobian(s.tolist())[0]
    h = 1e-6
    expected = [(g_real(s + h * e) - g_real(s - h * e)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(jacobian, expected, rtol=1e-8)
    along = [
        (compiled.jacobian((s + h * e).tolist())[0] @ d - compiled.jacobian((s - h * e).tolist())[0] @ d) / (2 * h)
        for e in np.eye(3)
    ]
    np.testing.assert_allclose(compiled.curvature(s.tolist(), d)[0], along, rtol=1e-7)


def test_outside_its_domain_a_function_is_nan() -> None:
    compiled = CompiledExpressions([parse("sqrt(x)"), parse("x")], ["x"])
    assert np.isnan(compiled.values([-1.0])).all()


def test_abs_min_and_max_have_slopes_beside_the_kink() -> None:
    compiled = CompiledExpressions([parse("abs(x) + min(x, y) + 2*max(x, y)")], ["x", "y"])
    np.testing.assert_allclose(compiled.jacobian([-1.0, 2.0]), [[-1.0 + 1.0, 2.0]])
    np.testing.assert_allclose(compiled.jacobian([3.0, 2.0]), [[1.0 + 2.0, 1.0]])
