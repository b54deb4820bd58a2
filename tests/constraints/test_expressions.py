"""The grammar of constraints: what it reads, what it refuses, and that it computes the right derivatives."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from fmilin.constraints.expression_functions import ExpressionFunctions
from fmilin.constraints.expressions import Expression, ExpressionError, name_in_expression, parse


def functions(*texts: str, over: Sequence[str] = ()) -> ExpressionFunctions:
    return ExpressionFunctions([parse(text) for text in texts], {name: i for i, name in enumerate(over)}, len(over))


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
    assert functions(text).values(np.empty(0))[0] == pytest.approx(value, abs=1e-15)
    assert float(parse(text).to_sympy({})) == pytest.approx(value, abs=1e-15)


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
    with pytest.raises(ExpressionError, match="at character 5: '=' is not part") as caught:
        parse("x^2 = 1")
    assert caught.value.position == 4


def test_a_tower_of_powers_does_not_exhaust_the_memory() -> None:
    assert not np.isfinite(functions("9^9^9^9").values(np.empty(0))[0])


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
    compiled = functions(text, over="xyz")
    s = np.array([1.3, 0.7, 2.1])
    d = np.array([0.2, -0.5, 0.9])

    def g(v: np.ndarray) -> complex:
        x, y, z = v
        return complex(x**2 * np.sin(y) - np.exp(-x * z) / (1 + y**2) + np.sqrt(z) * np.arctan(y / x) + x**y)

    assert compiled.values(s)[0] == pytest.approx(g(s).real, rel=1e-14)
    slopes = [g(s + 1e-30j * e).imag / 1e-30 for e in np.eye(3)]
    np.testing.assert_allclose(compiled.jacobian(s)[0], slopes, rtol=1e-13)
    h = 1e-6
    along = [(compiled.jacobian(s + h * e)[0] @ d - compiled.jacobian(s - h * e)[0] @ d) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(compiled.curvature(s, d)[0], along, rtol=1e-7)


GRAMMAR = """x + y*z; x - y/z; x^3 - y^-2 + x^(1/3); x^y; x**2.5; 2^x; pi*x; -x^2; sin(x)*cos(y)*tan(z); asin(x/9)
acos(y/9) + atan(z); atan2(x, y); sinh(x) - cosh(y)*tanh(z); exp(x*y); log(x + y); sqrt(x*z); abs(x - y)
min(x, y, z); max(x, y*z, 2); x*y*z - x*y*z; x; 3; 2*x + 1e-3*y; (x + y)^2/(x + y)""".replace("\n", ";")


@pytest.mark.parametrize("text", [text.strip() for text in GRAMMAR.split(";")])
def test_values_slopes_and_curvature_are_those_of_sympy(text: str) -> None:
    at, along = np.array([1.3, 0.7, 2.1]), np.array([0.2, -0.5, 0.9])
    compiled, symbols = functions(text, over="xyz"), dict(zip("xyz", sympy.symbols("x:z", real=True), strict=True))
    g = parse(text).to_sympy(symbols)
    slopes = [sympy.diff(g, s) for s in symbols.values()]
    bent = [sympy.diff(sum(a * b for a, b in zip(slopes, along, strict=True)), s) for s in symbols.values()]
    numbers = dict(zip(symbols.values(), at, strict=True))
    first, second = ([float(e.subs(numbers)) for e in row] for row in (slopes, bent))
    assert compiled.values(at)[0] == pytest.approx(float(g.subs(numbers)), rel=1e-14)
    np.testing.assert_allclose(compiled.jacobian(at)[0], first, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(compiled.curvature(at, along)[0], second, rtol=1e-13, atol=1e-15)


def test_an_expression_from_sympy_has_the_same_derivatives_as_its_text() -> None:
    a, b = sympy.symbols("a b", real=True)
    positions = {"x": 0, "y": 1}
    both = [
        ExpressionFunctions([e, parse("y")], positions, 2)
        for e in (Expression.from_sympy(a**3 * sympy.sin(a * b), {a: "x", b: "y"}), parse("x^3*sin(x*y)"))
    ]
    s, d = np.array([1.2, -0.4]), np.array([0.3, 0.8])
    for one, other in ((both[0].values(s), both[1].values(s)), (both[0].jacobian(s), both[1].jacobian(s))):
        np.testing.assert_allclose(one, other, rtol=1e-14)
    np.testing.assert_allclose(both[0].curvature(s, d), both[1].curvature(s, d), rtol=1e-13)


def test_one_symbol_may_stand_for_different_variables_in_two_expressions() -> None:
    a = sympy.Symbol("a")
    both = [Expression.from_sympy(a**2, {a: "x"}), Expression.from_sympy(a**2, {a: "y"})]
    assert ExpressionFunctions(both, {"x": 0, "y": 1}, 2).values(np.array([2.0, 3.0])).tolist() == [4.0, 9.0]


def test_a_rate_is_the_derivative_along_the_rates_of_the_variables() -> None:
    rate = parse("x^2*y + L").rate({"x": "vx", "y": "vy", "z": "vz"})
    assert rate.names == ("x", "y", "L", "vx", "vy")
    compiled = ExpressionFunctions([rate], {"x": 0, "y": 1, "vx": 2, "vy": 3}, 4, {"L": 1.0})
    x, y, vx, vy = s = np.array([2.0, 3.0, 0.5, -0.25])
    assert compiled.values(s)[0] == 2 * x * y * vx + x**2 * vy
    np.testing.assert_allclose(compiled.jacobian(s)[0], [2 * y * vx + 2 * x * vy, 2 * x * vx, 2 * x * y, x**2])
    symbols = {name: sympy.Symbol(name) for name in rate.names}
    assert float(rate.to_sympy(symbols).subs({"x": x, "y": y, "vx": vx, "vy": vy, "L": 1})) == compiled.values(s)[0]


def test_a_number_can_be_taken_off() -> None:
    less = parse("x^2").minus(0.1)
    assert less.text == "(x^2) - (0.1)"
    assert ExpressionFunctions([less], {"x": 0}, 1).values(np.array([3.0]))[0] == 9 - 0.1


def test_many_points_at_once_are_the_points_one_by_one() -> None:
    compiled = functions("x*sin(y)", "sqrt(x)", "3", over="xy")
    s = np.linspace(-1, 1, 24).reshape(3, 4, 2)
    result = compiled.values(s)
    assert result.shape == (3, 4, 3)
    one_by_one = [[compiled.values(point) for point in row] for row in s]
    np.testing.assert_array_equal(result, one_by_one)
    assert compiled.values(s[:0]).shape == (0, 4, 3)


@pytest.mark.parametrize(
    "text", ["sqrt(x)", "log(x)", "asin(x - 3)", "x^0.5", "x^(1/3)", "x/y", "exp(999*y + 999)", "min(sqrt(x), 9)",
             "x + 1/0", "0*sqrt(-1)*x", "min(x, 1/0)", "x*log(0)", "atan2(x, 1/0)"],
)  # fmt: skip
def test_outside_its_domain_a_function_is_nan(text: str) -> None:
    compiled = functions(text, "x", over="xy")
    values = compiled.values(np.array([-1.0, 0.0]))
    assert np.isnan(values[0])
    assert values[1] == -1.0, "the other rows keep their values"


def test_where_a_slope_is_infinite_it_is_nan() -> None:
    compiled = functions("sqrt(x) + y", over="xy")
    np.testing.assert_array_equal(compiled.jacobian(np.array([0.0, 1.0])), [[np.nan, 1.0]])


def test_abs_min_and_max_have_slopes_beside_the_kink_and_their_mean_at_it() -> None:
    compiled = functions("abs(x) + min(x, y) + 2*max(x, y)", over="xy")
    np.testing.assert_allclose(compiled.jacobian(np.array([-1.0, 2.0])), [[-1.0 + 1.0, 2.0]])
    np.testing.assert_allclose(compiled.jacobian(np.array([3.0, 2.0])), [[1.0 + 2.0, 1.0]])
    np.testing.assert_allclose(compiled.jacobian(np.array([0.0, 0.0])), [[1.5, 1.5]])


def test_a_sum_of_many_terms_is_read_or_refused_but_never_too_deep() -> None:
    assert functions("+".join(["x"] * 400), over="x").values(np.array([2.0]))[0] == 800.0
    with pytest.raises(ExpressionError, match="it nests too deeply"):
        parse("+".join(["x"] * 600))


def test_expressions_from_sympy_are_printed_when_asked() -> None:
    x, y = sympy.symbols("x y")
    names = {x: "x", y: "y"}
    e = Expression.from_sympy(x**2 + y, names)
    assert e.text == "x^2 + y"
    assert e == Expression.from_sympy(y + x**2, names)
    assert e != Expression.from_sympy(x**2 - y, names)
    assert hash(e) == hash(Expression.from_sympy(y + x**2, names))
    assert e.minus(2.0).text == "(x^2 + y) - (2.0)"
    assert Expression.from_sympy(x, names).is_variable


@pytest.mark.parametrize(
    "text",
    [
        "(3*x)^999999999",
        "(x/3)^(-1e9)",
        "x^(10^9)",
        "x**-(2000 - 1)",
        "((x^99)^99)^99",
        "sin(x)^1000001",
        "(" * 100 + "x" + ")^2" * 100,
        "x^(9^9^9^9)",
        "x^1e308",
    ],
)
def test_powers_that_nobody_can_write_out_are_refused(text: str) -> None:
    with pytest.raises(ExpressionError, match="its powers have more than 1000 factors"):
        parse(text)


@pytest.mark.parametrize(
    "text", ["x^1000", "x^-12", "(x^10)^10", "10^6*x", "x^y^z", "x^0.5", "1e9*x^2", "2^x^1000", "2^3000*x"]
)
def test_powers_of_physics_are_not(text: str) -> None:
    assert parse(text).names


@pytest.mark.parametrize(
    "text",
    [
        "sin(" * 60 + "x" + ")" * 60,
        "^".join(["x"] * 60),
        f"min({', '.join(f'{i}*x' for i in range(1, 51))})",
        f"max({', '.join(f'x + y^{i}' for i in range(1, 51))})",
        "min(x, " * 40 + "y" + ")" * 40,
        "*".join(["x"] * 400),
    ],
    ids=["nested sines", "a tower of powers", "min", "max", "nested min", "a product"],
)
def test_nested_expressions_have_values_and_slopes_in_both_arithmetics(text: str) -> None:
    expression = parse(text)
    positions = {name: i for i, name in enumerate(expression.names)}
    functions, point = (
        ExpressionFunctions([expression], positions, len(positions)),
        np.array([1.05, 0.4])[: len(positions)],
    )
    meanings = {"sin": math.sin, **dict(zip(positions, point.tolist(), strict=True))}
    exact = eval(text.replace("^", "**"), {"min": min, "max": max}, meanings)
    np.testing.assert_allclose(functions.values(point), exact, rtol=1e-9)
    assert expression.to_sympy({name: sympy.Symbol(name, real=True) for name in positions}).free_symbols
    assert np.isfinite(functions.jacobian(point)).all()
    assert np.isfinite(functions.curvature(point, np.ones(len(point)))).all()


@pytest.mark.parametrize("text", ["+".join(["x*y"] * 3000), "-" * 5000 + "x", "+" * 3000 + "x"])
def test_what_nests_too_deeply_is_said_to(text: str) -> None:
    with pytest.raises(ExpressionError, match="nests too deeply"):
        parse(text)


def test_a_computation_of_many_steps_is_refused() -> None:
    with pytest.raises(ExpressionError, match="it has more than 5000 operations"):
        parse(f"max({', '.join(f'x+{i}' for i in range(2500))})")


@pytest.mark.parametrize("count", [2, 3, 7, 100])
def test_the_least_of_many(count: int) -> None:
    """By halves; where several are the least, the slope is the mean of theirs."""
    texts = [f"{i + 1}*x" for i in range(count)]
    least, largest = functions(f"min({', '.join(texts)})", f"max({', '.join(texts)})", over=["x"]).jacobian(np.ones(1))
    assert (least[0], largest[0]) == (1.0, count)
