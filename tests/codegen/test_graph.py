"""From sympy to a graph: values and slopes of every function, by the virtual machine and by compiled C."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np
import pytest
import sympy

from fmilin.codegen.expression_graph import Graph
from fmilin.codegen.graph_evaluator import Backend, Evaluator
from fmilin.errors import ModelError

x, y, z = sympy.symbols("x y z", real=True)
KINDS = ("casadi", "c")

SMOOTH = [
    sympy.sin(x) * y + z**2 / 3,
    sympy.sqrt(x) / (1 + sympy.exp(-y)),
    sympy.atan(y * z) - sympy.cosh(x) ** 3,
    sympy.tan(x) * sympy.log(2 + z) / sympy.pi,
    sympy.Rational(1, 3),
    sympy.coth(x) + sympy.sech(y) * sympy.csch(z) - sympy.acot(y) + sympy.asec(3 + x) * sympy.acsc(2 - y),
    sympy.acoth(2 + x) + sympy.asech(x / 2) * sympy.acsch(z) + sympy.erfc(x * y) - sympy.sinc(y),
]
KINKED = [
    sympy.Abs(y) * sympy.sign(z),
    sympy.Piecewise((x, y < 0), (z**3, True)),
    sympy.Max(x, y) + sympy.Min(x, y, z),
    sympy.atan2(y, x),
]
STEPS = [sympy.Heaviside(x - y), sympy.floor(3 * x), sympy.frac(5 * x), sympy.sinc(0 * x)]


def functions(expressions: list[Any], kind: Any) -> Evaluator:
    graph = Graph()
    s = graph.declare([x, y, z])
    column = graph.column(expressions)
    return Evaluator([s], [column, ca.sparsify(ca.jacobian(column, s))], Backend(kind))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("at", [[0.3, -0.7, 1.2], [0.9, 0.4, -0.6]])
def test_values_and_slopes(kind: str, at: list[float]) -> None:
    expressions = SMOOTH + KINKED
    values, slopes = functions(expressions, kind)(np.array(at))
    point = dict(zip((x, y, z), at, strict=True))
    np.testing.assert_allclose(values[:, 0], [float(e.subs(point)) for e in expressions], rtol=1e-13)
    expected: Any = [[float(e.diff(s).doit().subs(point).evalf(20)) for s in (x, y, z)] for e in expressions]
    np.testing.assert_allclose(slopes, expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("kind", KINDS)
def test_steps_have_no_slope(kind: str) -> None:
    values, slopes = functions(STEPS, kind)(np.array([0.9, 0.4, 1.0]))
    np.testing.assert_array_equal(values[:, 0], [1.0, 2.0, 0.5, 1.0])  # 5 * 0.9 is 4.5, rounded
    np.testing.assert_array_equal(slopes, [[0, 0, 0], [0, 0, 0], [5, 0, 0], [0, 0, 0]])


@pytest.mark.parametrize("kind", KINDS)
def test_outside_its_domain_a_function_is_not_a_number(kind: str) -> None:
    expressions = [sympy.log(x), sympy.asin(y), 1 / z, (-1 - x**2) ** sympy.Rational(1, 3), x * y]
    result = functions(expressions, kind)(np.array([-1.0, 2.0, 0.0]))[0][:, 0]
    assert np.isnan(result[[0, 1, 3]]).all()
    assert np.isinf(result[2])
    assert result[4] == -2.0


@pytest.mark.parametrize("kind", KINDS)
def test_the_case_that_does_not_hold_spoils_neither_value_nor_slope(kind: str) -> None:
    deep = sympy.Piecewise((sympy.sqrt(sympy.sin(x * y * z) + x) ** 3 * z, x > 0), (0, True))
    hertz = sympy.Piecewise((10 * (-x) ** sympy.Rational(3, 2), x < 0), (0, True)) * y + z
    values, slopes = functions([deep + y, hertz], kind)(np.array([-2.0, 0.1, 3.0]))
    np.testing.assert_allclose(values[:, 0], [0.1, 20 * np.sqrt(2) * 0.1 + 3], rtol=1e-14)
    np.testing.assert_allclose(slopes, [[0, 1, 0], [-15 * np.sqrt(2) * 0.1, 20 * np.sqrt(2), 1]], rtol=1e-14)
    assert functions([hertz], kind)(np.array([2.0, 0.1, 3.0]))[1].tolist() == [[0.0, 0.0, 1.0]]


def test_what_expressions_share_stands_once() -> None:
    e = sympy.sin(x)
    for _ in range(40):
        e = e * e + y
    graph = Graph()
    s = graph.declare([x, y, z])
    assert ca.Function("f", [s], [graph.node(e)]).n_instructions() < 100


def test_expressions_may_be_deeper_than_functions_can_call_each_other() -> None:
    e = x
    for _ in range(3000):
        e = sympy.Add(1, sympy.Mul(y, e, evaluate=False), evaluate=False)
    graph = Graph()
    s = graph.declare([x, y, z])
    assert float(ca.Function("f", [s], [graph.node(e)])([1.0, 0.5, 0.0])) == pytest.approx(2.0)


def test_zeros_are_no_entries_of_a_matrix() -> None:
    graph = Graph()
    graph.declare([x, y])
    result = graph.matrix({(0, 1): x, (1, 1): x - x, (1, 2): y}, (2, 3))
    assert result.shape == (2, 3)
    assert sorted(zip(*result.sparsity().get_triplet(), strict=True)) == [(0, 1), (1, 2)]


def test_a_condition_is_no_number() -> None:
    graph = Graph()
    graph.declare([x, y])
    with pytest.raises(ModelError, match="is not arithmetic"):
        graph.node(sympy.Lt(x, y))
