"""Code for several points at a time against one point at a time."""

from __future__ import annotations

import platform
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np
import pytest

from fmilin.adapters import ImplicitSystem
from fmilin.codegen import vectorized as module
from fmilin.codegen.compiler import Compiler
from fmilin.codegen.graph_evaluator import Backend
from fmilin.codegen.implicit import Guess
from fmilin.codegen.system_functions import StackFunctions
from fmilin.codegen.vectorized import VectorizedSource, vector_flags
from fmilin.codegen.vectorized_code import Reduction
from fmilin.errors import ModelError
from fmilin.signals import FloatArray, Signals

pytestmark = pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")


def system(W: Any = None, r: Any = None) -> tuple[ImplicitSystem, Any]:
    """Return a system with two states, an input, a parameter, and unknowns as many as W has rows; and its symbols."""
    t, x, u, p = (ca.SX.sym(*of) for of in (("t", 1), ("x", 2), ("u", 1), ("p", 1)))
    matrix = ca.SX(0, 0) if W is None else ca.sparsify(W(t, x, u, p))
    w = ca.SX.sym("w", matrix.size1())
    right = ca.SX(0, 1) if r is None else r(t, x, u, p)
    none = Signals(())
    made = ImplicitSystem(
        name="sample",
        time=t,
        states=x,
        inputs=u,
        parameters=p,
        unknowns=w,
        unknown_names=tuple(f"w{i}" for i in range(w.numel())),
        matrix=matrix,
        right_hand_side=right,
        derivatives=ca.SX(0, 1),
        outputs=ca.SX(0, 1),
        state_signals=none,
        input_signals=none,
        output_signals=none,
        parameter_signals=none,
        parameter_values=np.array([2.0]),
    )
    return made, (t, x, u, p, w)


def bordered() -> tuple[ImplicitSystem, Any]:
    """A mass matrix bordered by a constraint."""
    return system(
        lambda t, x, u, p: ca.vertcat(
            ca.horzcat(2 + x[0] ** 2, ca.sin(x[1]), ca.cos(x[0])),
            ca.horzcat(ca.sin(x[1]), 3 + p, u),
            ca.horzcat(ca.cos(x[0]), u, 0),
        ),
        lambda t, x, u, p: ca.vertcat(x[1] * t, u - x[0], x[0] * x[1]),
    )


def points(k: int) -> tuple[float, FloatArray, FloatArray, FloatArray]:
    random = np.random.default_rng(k)
    return 0.3, random.uniform(0.2, 0.9, (k, 2)), random.uniform(0.2, 0.9, (k, 1)), random.uniform(1, 2, (k, 1))


def agree(made: ImplicitSystem, quantities: Any, k: int, *, threads: int = 1) -> StackFunctions:
    compiled, interpreted = (StackFunctions(made, quantities, Backend(kind)) for kind in ("c", "casadi"))
    assert (compiled.kind, interpreted.kind) == ("c", "casadi")
    for mine, theirs in zip(compiled(*points(k), threads=threads), interpreted(*points(k)), strict=True):
        assert mine.shape == theirs.shape
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-13)
    return compiled


@pytest.mark.parametrize("k", [1, 3, 8, 21])
def test_accelerations_and_what_follows_from_them(k: int) -> None:
    made, (t, x, u, p, w) = bordered()
    agree(made, ca.vertcat(w, x[1], 3.0, w[0] * x[0] + t * u, p), k, threads=min(k, 2))


@pytest.mark.parametrize("k", [1, 8, 21])
def test_quantities_alone_are_those_that_come_with_slopes(k: int) -> None:
    made, (t, x, u, p, w) = bordered()
    stacks = agree(made, ca.vertcat(w, ca.sin(x[1]) * w[0], w[0] * x[0] + t * u, p), k)
    alone = stacks.values(*points(k))
    assert alone is not None
    z, good = alone
    assert good.all()
    assert z.tobytes() == stacks(*points(k))[0].tobytes()


def test_unknowns_that_vanish_are_good_at_the_rounding_of_the_others() -> None:
    """At rest accelerations are what rounding leaves of zero: no backward error row by row is small there."""
    made, (_, x, u, _, w) = bordered()
    made = replace(made, right_hand_side=1e3 * ca.vertcat(ca.cos(x[0]), u, 0))
    t, states, inputs, parameters = points(64)
    s = np.hstack((np.full((64, 1), t), states, inputs, parameters))
    z, _, good = VectorizedSource(made, w, Compiler()).compile()(s)
    assert good.all()
    np.testing.assert_allclose(z, np.tile([0.0, 0.0, 1e3], (64, 1)), atol=1e-12)


def test_all_functions() -> None:
    made, (t, x, u, _, _) = system()
    a, b = x[0], x[1]
    values = [getattr(ca, name)(a) for name in ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh")]
    values += [
        getattr(ca, name)(b) for name in ("exp", "log", "sqrt", "fabs", "floor", "ceil", "erf", "asinh", "atanh")
    ]
    values += [
        ca.acosh(1 + a),
        ca.atanh(b),
        ca.expm1(a),
        ca.log1p(b),
        ca.atan2(a, b),
        a**b,
        a**2.5,
        ca.fmin(a, b),
        ca.fmax(u, b),
    ]
    values += [ca.hypot(a, b), ca.fmod(a, b), ca.remainder(b, a), ca.copysign(a, -b), -a, 1 / a, 2 * b, t]
    agree(made, ca.vertcat(*values), 11)


def test_different_ways_at_different_points() -> None:
    made, (_, x, u, _, _) = system()
    chosen = ca.if_else(ca.logic_and(x[0] < x[1], u > 0.5), x[0] ** 2, ca.sign(x[1] - 0.5) * x[1])
    agree(made, ca.vertcat(chosen), 30)


def test_more_columns_than_are_solved_for_at_a_time() -> None:
    t, x = ca.SX.sym("t"), ca.SX.sym("x", 40)
    w, none = ca.SX.sym("w", 2), ca.SX(0, 1)
    made = replace(
        bordered()[0],
        time=t,
        states=x,
        inputs=none,
        parameters=none,
        unknowns=w,
        matrix=ca.diag(ca.vertcat(2 + x[0], 3)),
        right_hand_side=ca.vertcat(ca.sumsqr(x), ca.sum1(ca.sin(x))),
    )
    X = np.random.default_rng(0).uniform(0.1, 0.9, (9, 40))
    nothing = np.zeros((9, 0))
    z, slopes = StackFunctions(made, w, Backend("c"))(0.0, X, nothing, nothing)
    np.testing.assert_allclose(z[:, 0], (X**2).sum(1) / (2 + X[:, 0]), rtol=1e-14)
    np.testing.assert_allclose(slopes[:, 1], np.cos(X) / 3, rtol=1e-14)
    np.testing.assert_allclose(slopes[:, 0, 1:], 2 * X[:, 1:] / (2 + X[:, :1]), rtol=1e-14)


def test_a_pivot_that_vanishes_is_interchanged_at_its_point_alone() -> None:
    made, (_, _, _, _, w) = system(
        lambda t, x, u, p: ca.vertcat(ca.horzcat(x[0] - 0.5, 1), ca.horzcat(1, x[1])),
        lambda t, x, u, p: ca.vertcat(u, p),
    )
    x = np.array([[0.5, 0.3], [0.7, 0.3], [0.5 + 1e-17, 0.9]])
    s = np.column_stack((np.zeros(3), x, np.full(3, 0.4), np.full(3, 2.0)))
    z, slopes, good = VectorizedSource(made, w, Compiler()).compile()(s)
    assert good.all()
    for point, result, slope in zip(x, z, slopes, strict=True):
        W = [[point[0] - 0.5, 1], [1, point[1]]]
        np.testing.assert_allclose(result, np.linalg.solve(W, [0.4, 2.0]), rtol=1e-14)
        np.testing.assert_allclose(slope[:, 0], np.linalg.solve(W, [-result[0], 0.0]), rtol=1e-13)
        np.testing.assert_allclose(slope[:, 2], np.linalg.solve(W, [1.0, 0.0]), rtol=1e-13, atol=1e-15)


def test_small_pivots_are_refined_or_interchanged() -> None:
    made, (_, _, _, _, w) = system(
        lambda t, x, u, p: ca.vertcat(ca.horzcat(x[0], 1, 1), ca.horzcat(1, 1, 0.5), ca.horzcat(1, 0.5, 3)),
        lambda t, x, u, p: ca.vertcat(1, 2, p),
    )
    pivots = np.array([1e-4, 1e-8, 1e-10, 1e-11, 1e-14])  # without interchanges 1e-11 leaves 2e-12 of w
    s = np.column_stack((np.zeros(5), pivots, np.zeros((5, 2)), np.full(5, 0.7)))
    z, slopes, good = VectorizedSource(made, w, Compiler()).compile()(s)
    assert good.all()
    for pivot, result, slope in zip(pivots, z, slopes, strict=True):
        W = np.array([[pivot, 1, 1], [1, 1, 0.5], [1, 0.5, 3]])
        np.testing.assert_allclose(result, np.linalg.solve(W, [1, 2, 0.7]), rtol=1e-12)
        np.testing.assert_allclose(slope[:, 0], np.linalg.solve(W, [-result[0], 0, 0]), rtol=1e-11)


@pytest.mark.parametrize("gap", [0.5, 1e-9])
@pytest.mark.parametrize("k", [1, 8, 21])
def test_a_matrix_that_is_not_symmetric_is_factorized_at_each_point(gap: float, k: int) -> None:
    made, (t, x, u, p, w) = system(
        lambda t, x, u, p: ca.vertcat(ca.horzcat(u, 2 + x[0]), ca.horzcat(3, u + gap * x[1])),
        lambda t, x, u, p: ca.vertcat(u * x[1], p),
    )
    agree(made, ca.vertcat(w, w[0] * x[1] + t * u, p), k, threads=min(k, 2))


def test_a_singular_matrix_that_is_not_symmetric_leaves_the_point_to_lapack() -> None:
    made, (_, _, _, _, w) = system(
        lambda t, x, u, p: ca.vertcat(ca.horzcat(x[0], 2), ca.horzcat(1, x[1])),
        lambda t, x, u, p: ca.vertcat(u, p),
    )
    x = np.array([[2.0, 1.0], [2.0, 1.0 + 1e-13], [3.0, 1.0], [np.nan, 1.0]])
    s = np.column_stack((np.zeros(4), x, np.full(4, 0.4), np.full(4, 2.0)))
    z, _, good = VectorizedSource(made, w, Compiler()).compile()(s)
    assert good.tolist() == [False, False, True, False]
    np.testing.assert_allclose(z[2], np.linalg.solve([[3.0, 2.0], [1.0, 1.0]], [0.4, 2.0]), rtol=1e-15)


def test_unknowns_of_nonlinear_equations_are_found_by_iteration_at_each_point() -> None:
    """w0 + w1 exp(w0) = x0 and w1 - u w0 = x1, from w = 0."""
    made, (_, x, u, p, w) = system(lambda *_: ca.SX.eye(2), lambda *_: ca.SX(2, 1))
    residual = ca.vertcat(w[0] + w[1] * ca.exp(w[0]) - x[0], w[1] - u * w[0] - x[1])
    nothing = np.zeros(2)
    guess = Guess(nothing, np.ones(2), 0.0, np.zeros(2), np.zeros(1), np.ones(1))
    made = replace(made, matrix=ca.jacobian(residual, w), right_hand_side=-residual, guess=guess)
    compiled = agree(made, ca.vertcat(w, w[0] * x[1] + p), 21)
    z, _ = compiled(*points(21))
    _, states, inputs, _ = points(21)
    np.testing.assert_allclose(z[:, 0] + z[:, 1] * np.exp(z[:, 0]), states[:, 0], rtol=1e-14)
    np.testing.assert_allclose(z[:, 1] - inputs[:, 0] * z[:, 0], states[:, 1], rtol=1e-13, atol=1e-15)


def test_what_is_not_for_it_is_rejected_and_interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_DENSE_UNKNOWNS", 1)
    made, (_, _, _, _, w) = system(
        lambda t, x, u, p: ca.vertcat(ca.horzcat(2 + x[0], x[1]), ca.horzcat(0.1, 3)),
        lambda t, x, u, p: ca.vertcat(u, p),
    )
    with pytest.raises(ModelError, match="a matrix that is not symmetric"):
        VectorizedSource(made, w, Compiler())
    stacks = StackFunctions(made, w)
    assert not stacks.compile()
    assert stacks.kind == "casadi"
    z, _ = stacks(*points(4))
    assert np.isfinite(z).all()


def test_compiled_when_so_many_points_were_asked_for_that_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    made, (_, _, _, _, w) = bordered()
    stacks = StackFunctions(made, w)
    first, _ = stacks(*points(5))
    assert stacks.kind == "casadi"
    monkeypatch.setattr(stacks._budget, "_remaining", 3.0)
    again, _ = stacks(*points(5))
    assert stacks.kind == "c"
    np.testing.assert_allclose(again, first, rtol=1e-13)


def test_without_a_compiler_things_are_interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    made, (_, _, _, _, w) = bordered()
    stacks = StackFunctions(made, w)
    assert not stacks.compile()
    assert stacks(*points(3))[0].shape == (3, 3)


@pytest.mark.parametrize(("flags", "width"), [("fpu sse2", 2), ("sse2 avx2 fma", 4), ("avx2 avx512f", 8)])
def test_the_width_is_that_of_the_processor(monkeypatch: pytest.MonkeyPatch, flags: str, width: int) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(module, "_processor_flags", lambda: set(flags.split()))
    vector_flags.cache_clear()
    try:
        assert vector_flags()[0] == width
    finally:
        vector_flags.cache_clear()


def test_every_width_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    made, (_, x, _, _, w) = bordered()
    quantities = ca.vertcat(w, ca.sin(x[0]) * w[1])
    widest = StackFunctions(made, quantities, Backend("c"))(*points(9))
    for width in (1, 2):
        monkeypatch.setattr(module, "vector_flags", lambda width=width: (width, ()))
        for mine, theirs in zip(StackFunctions(made, quantities, Backend("c"))(*points(9)), widest, strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("k", [1, 8, 21])
def test_states_that_invariants_determine_are_reached_from_guesses(k: int) -> None:
    """x0^2 + x1^2 = p^2: x1 for x0."""
    made, (_, x, _, p, w) = bordered()
    quantities = ca.vertcat(w, ca.sumsqr(x) - p**2)
    stacks = StackFunctions(made, quantities, Backend("c"), invariants=1)
    reduction = Reduction(states=2, outputs=1, invariants=1, independent=(0,), dependent=(1,), rows=(0,))
    t, states, inputs, parameters = points(k)
    states[0, 0] = 5.0  # beyond the circle
    answer = stacks.reach((t, states, inputs, parameters), reduction, np.ones((k, 2)), 1e-9, 12)
    assert answer is not None
    reached, good = answer
    assert good.tolist() == [False] + [True] * (k - 1)
    expected = np.sqrt(parameters[1:, 0] ** 2 - states[1:, 0] ** 2)
    np.testing.assert_allclose(reached[1:, 1], expected, rtol=1e-15)
    np.testing.assert_array_equal(reached[:, 0], states[:, 0])


def test_derivatives_along_kept_states_are_those_of_an_elimination() -> None:
    """Rates (w0, w1), an output w2, and x0^2 + x1^2 = p^2 with x1 kept."""
    made, (_, x, _, p, w) = bordered()
    quantities = ca.vertcat(w, ca.sumsqr(x) - p**2)
    stacks = StackFunctions(made, quantities, Backend("c"), invariants=1)
    reduction = Reduction(states=2, outputs=1, invariants=1, independent=(1,), dependent=(0,), rows=(0,))
    some = points(21)
    answer = stacks.along(some, reduction, 1.0)
    assert answer is not None
    z, slopes = stacks(*some)
    steepness = -slopes[:, 3, 1] / slopes[:, 3, 0]
    np.testing.assert_array_equal(answer.z, z)
    np.testing.assert_array_equal(answer.gradient, slopes[:, 3:, :2])
    np.testing.assert_allclose(answer.T[..., 0], np.column_stack((steepness, np.ones(21))), rtol=1e-15)
    expected = slopes[:, :3, 1] + slopes[:, :3, 0] * steepness[:, None]
    np.testing.assert_allclose(answer.rates[..., 0], expected[:, :2], rtol=1e-13)
    np.testing.assert_allclose(answer.outputs[..., 0], expected[:, 2:], rtol=1e-13)
    np.testing.assert_array_equal(answer.rates[..., 1], slopes[:, :2, 2])
    assert answer.doubtful is not None
    assert answer.doubtful.tolist() == (np.abs(steepness) > 1.0).tolist()
