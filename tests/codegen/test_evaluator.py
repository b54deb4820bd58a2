"""Graphs as functions of arrays: virtual machine and compiled C agree, at one point, at many, from many threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import casadi as ca
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fmilin.codegen.compiler import Compiler
from fmilin.codegen.graph_evaluator import MAX_DENSE_SIZE, Backend, Evaluator
from fmilin.errors import ModelError, UsageError
from fmilin.signals import FloatArray

X, P = ca.SX.sym("x", 4), ca.SX.sym("p", 2)
KINDS = ("casadi", "c")


def results() -> list[Any]:
    sparse = ca.SX(MAX_DENSE_SIZE, 2)
    sparse[3, 1], sparse[MAX_DENSE_SIZE - 1, 0] = ca.exp(X[0]), P[0] / X[1]
    kinked = ca.vertcat(ca.if_else(X[2] < X[3], ca.sqrt(X[2]), ca.fabs(X[0])), ca.sign(X[1]), ca.floor(3 * X[2]), 0.25)
    return [ca.mtimes(X, P.T), sparse, kinked, ca.SX(0, 3)]


def by_hand(x: FloatArray, p: FloatArray) -> list[FloatArray]:
    sparse = np.zeros((MAX_DENSE_SIZE, 2))
    sparse[3, 1], sparse[MAX_DENSE_SIZE - 1, 0] = np.exp(x[0]), p[0] / x[1]
    chosen = np.sqrt(x[2]) if x[2] < x[3] else abs(x[0])
    kinked = np.array([[chosen], [np.sign(x[1])], [np.floor(3 * x[2])], [0.25]])
    return [np.outer(x, p), sparse, kinked, np.zeros((0, 3))]


@pytest.mark.parametrize("kind", KINDS)
def test_matrices_at_a_point_have_their_entries_and_shapes(kind: Any) -> None:
    f = Evaluator([X, P], results(), Backend(kind))
    x, p = np.array([0.5, -0.7, 1.1, 2.0]), np.array([3.0, -2.0])
    for result, expected in zip(f(x, p), by_hand(x, p), strict=True):
        assert_array_equal(result, expected)
    assert f.kind == kind


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("points", [0, 1, 70])
def test_many_points_are_the_same_points(kind: Any, points: int) -> None:
    f = Evaluator([X, P], results(), Backend(kind))
    x, p = np.random.default_rng(1).normal(size=(points, 4)), np.array([3.0, -2.0])
    stacks = f.at_points(x, p)
    assert [stack.shape for stack in stacks] == [
        (points, 4, 2),
        (points, MAX_DENSE_SIZE, 2),
        (points, 4, 1),
        (points, 0, 3),
    ]
    for k in range(points):
        for stack, one in zip(stacks, f(x[k], p), strict=True):
            assert_array_equal(stack[k], one)


def test_the_numbers_of_a_call_are_the_callers() -> None:
    f = Evaluator([X], [2 * X])
    first = f(np.ones(4))[0]
    f(np.zeros(4))
    assert first[:, 0].tolist() == [2.0] * 4


@pytest.mark.parametrize("kind", KINDS)
def test_threads_do_not_mix_their_points(kind: Any) -> None:
    f = Evaluator([X], [X + 1.0], Backend(kind))

    def own(k: int) -> bool:
        return all((f(np.full(4, float(k)))[0] == k + 1).all() for _ in range(500))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(own, range(16)))


def test_the_compiler_is_called_when_the_work_outweighs_it() -> None:
    f = Evaluator([X], [ca.sin(X)])
    before = f(np.ones(4))[0]
    assert f.kind == "casadi"
    f._budget._remaining = 1.0
    f(np.ones(4))
    assert f.kind == "casadi"
    assert_array_equal(f(np.ones(4))[0], before)
    assert f.kind == "c"
    assert_array_equal(f.at_points(np.ones((3, 4)))[0][2], before)


def test_without_a_compiler_the_virtual_machine_goes_on() -> None:
    nothing = Compiler(("no-such-compiler",), use_cache=False)
    f = Evaluator([X], [ca.sin(X)], Backend("auto", nothing))
    f._budget._remaining = 0.0
    assert f(np.zeros(4))[0][:, 0].tolist() == [0.0] * 4
    assert f.kind == "casadi"
    with pytest.raises(ModelError, match="no-such-compiler"):
        Evaluator([X], [ca.sin(X)], Backend("c", nothing))


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(UsageError, match="backends are auto, c, casadi"):
        Backend("fortran")  # type: ignore[arg-type]


@pytest.mark.parametrize("points", [0, 1, 5])
def test_many_points_are_rows_of_one_array(points: int) -> None:
    many = Evaluator([X], [ca.vertcat(X[0] * X[1], X[2])])
    at = np.arange(4.0 * points).reshape(points, 4)
    result = many.at_points(at)[0][..., 0]
    assert result.shape == (points, 2)
    np.testing.assert_array_equal(result, np.column_stack((at[:, 0] * at[:, 1], at[:, 2])))
