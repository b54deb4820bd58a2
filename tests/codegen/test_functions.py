"""Symbolic systems as numbers: values, exact products, and what happens where there is no number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import sympy

from fmilin.codegen.system_functions import SystemFunctions
from fmilin.errors import NumericalError
from fmilin.model.equation_forms import SymbolicSystem
from fmilin.signals import Signals

x1, x2, u1, p1, w1, w2, t = sympy.symbols("x1 x2 u1 p1 w1 w2 t", real=True)
EMPTY = np.empty(0)


def system(
    derivatives: Sequence[Any], outputs: Sequence[Any] = (), *, matrix: Sequence[Any] = (), right: Sequence[Any] = ()
) -> SystemFunctions:
    states = (x1, x2)[: len(derivatives)]
    return SystemFunctions(
        SymbolicSystem(
            name="sample",
            time=t,
            states=states,
            inputs=(u1,),
            parameters={p1: 2.0},
            derivatives=tuple(map(sympy.sympify, derivatives)),
            outputs=tuple(map(sympy.sympify, outputs)),
            state_signals=Signals(map(str, states)),
            input_signals=Signals(["u1"]),
            output_signals=Signals([f"o{i}" for i in range(len(outputs))]),
            parameter_signals=Signals(["p1"]),
            unknowns=(w1, w2)[: len(right)],
            matrix={(i, j): sympy.sympify(e) for i, row in enumerate(matrix) for j, e in enumerate(row)},
            right_hand_side=tuple(map(sympy.sympify, right)),
        ).in_graph()
    )


EPS = float(np.finfo(np.float64).eps)
IMPLICIT = system(
    [x2 + w1 * x1, w2 * sympy.sin(x2) + t * u1],
    [w1 + w2**2, x1, u1 * p1],
    matrix=[[2 + x1**2, x2 * u1], [sympy.cos(x1), 3 * p1]],
    right=[x1 * u1 + t, sympy.exp(x2)],
)
POINT = (0.7, np.array([0.4, -0.9]), np.array([1.3]), np.array([2.0]))


def test_values_solve_the_linear_system_first() -> None:
    time, (a, b), (u,), (p,) = POINT
    W = np.array([[2 + a**2, b * u], [np.cos(a), 3 * p]])
    w = np.linalg.solve(W, [a * u + time, np.exp(b)])
    derivatives, outputs = IMPLICIT.values(*POINT)
    near = 16 * EPS * np.linalg.cond(W)
    sizes = np.abs([b, w[0] * a, w[1] * np.sin(b), time * u]).max()  # the sums cancel in part
    np.testing.assert_allclose(derivatives, [b + w[0] * a, w[1] * np.sin(b) + time * u], rtol=near, atol=near * sizes)
    np.testing.assert_allclose(outputs, [w[0] + w[1] ** 2, a, u * p], rtol=near)
    np.testing.assert_allclose(np.linalg.solve(*IMPLICIT.equations(*POINT)), w, rtol=near)


def test_products_agree_with_central_differences_along_every_direction() -> None:
    rng = np.random.default_rng(1)
    time, x, u, p = POINT
    dx, du = rng.normal(size=(2, 4)), rng.normal(size=(1, 4))
    h = 1e-5
    exact = IMPLICIT.products(POINT, dx, du)
    for k in range(4):
        ahead = IMPLICIT.values(time, x + h * dx[:, k], u + h * du[:, k], p)
        behind = IMPLICIT.values(time, x - h * dx[:, k], u - h * du[:, k], p)
        for slope, plus, minus in zip(exact, ahead, behind, strict=True):
            np.testing.assert_allclose(slope[:, k], (plus - minus) / (2 * h), rtol=1e-8, atol=1e-9)


def test_products_of_an_explicit_system_are_its_jacobian() -> None:
    explicit = system([x2 * u1, -p1 * sympy.sin(x1)], [x1 * x2])
    slopes, outputs = explicit.products(POINT, np.eye(2, 3), np.eye(1, 3, 2))
    a, b, u = 0.4, -0.9, 1.3
    np.testing.assert_allclose(slopes, [[0, u, b], [-2 * np.cos(a), 0, 0]], rtol=16 * EPS)  # two cosines of libm
    np.testing.assert_array_equal(outputs, [[b, a, 0]])


def test_no_directions_and_no_outputs_keep_their_shapes() -> None:
    slopes, outputs = system([x2, x1]).products(POINT, np.empty((2, 0)), np.empty((1, 0)))
    assert slopes.shape == (2, 0)
    assert outputs.shape == (0, 0)
    derivatives, outputs = system([], [u1]).values(0.0, EMPTY, np.array([3.0]), np.array([2.0]))
    assert derivatives.shape == (0,)
    assert outputs.tolist() == [3.0]


@pytest.mark.parametrize("undefined", [sympy.sqrt(x1), sympy.log(x1), x1 ** sympy.Rational(1, 3), sympy.asin(x1 - 2)])
def test_only_what_is_undefined_is_nan(undefined: Any) -> None:
    derivatives, outputs = system([undefined, x2], [2 * x2]).values(0.0, np.array([-1.0, 3.0]), np.zeros(1), np.ones(1))
    assert np.isnan(derivatives[0])
    assert derivatives[1] == 3.0
    assert outputs[0] == 6.0


def test_division_by_zero_is_infinite_and_raises_nothing() -> None:
    derivatives, _ = system([1 / x1, x2]).values(0.0, np.array([0.0, 3.0]), np.zeros(1), np.ones(1))
    assert np.isinf(derivatives[0])
    assert derivatives[1] == 3.0


def test_a_nan_in_the_matrix_passes_through() -> None:
    implicit = system([w1, x2], matrix=[[sympy.sqrt(x1)]], right=[x2])
    derivatives, _ = implicit.values(0.0, np.array([-1.0, 3.0]), np.zeros(1), np.ones(1))
    assert np.isnan(derivatives[0])
    assert derivatives[1] == 3.0


def test_slopes_at_kinks_are_those_beside_them() -> None:
    kinked = system([sympy.Abs(x1), sympy.Max(x1, 0) + sympy.Min(x2, 1)])
    left, _ = kinked.products((0.0, np.array([-2.0, 0.0]), np.zeros(1), np.ones(1)), np.eye(2), np.zeros((1, 2)))
    right, _ = kinked.products((0.0, np.array([2.0, 3.0]), np.zeros(1), np.ones(1)), np.eye(2), np.zeros((1, 2)))
    assert left.tolist() == [[-1, 0], [0, 1]]
    assert right.tolist() == [[1, 0], [1, 0]]


def test_numbers_keep_all_their_digits() -> None:
    number = 0.1 + 0.2
    derivatives, _ = system([sympy.Float(number, 17) * x1]).values(0.0, np.ones(1), np.zeros(1), np.ones(1))
    assert derivatives[0] == number


def test_a_singular_matrix_is_named_with_what_it_leaves_open() -> None:
    implicit = system([w1, w2], matrix=[[1, 0], [0, x1 - x2]], right=[x1, x2])
    with pytest.raises(NumericalError, match=r"'sample'.*time 4\.5.*leaves w2 undetermined") as caught:
        implicit.values(4.5, np.array([0.3, 0.3]), np.zeros(1), np.ones(1))
    assert caught.value.variable == "w2"
    assert caught.value.condition_number == np.inf
    with pytest.raises(NumericalError, match="singular"):
        implicit.products((4.5, np.array([0.3, 0.3]), np.zeros(1), np.ones(1)), np.eye(2), np.zeros((1, 2)))
