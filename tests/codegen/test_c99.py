"""Generated C: its values and derivatives against sympy, its linear solver against its limits."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy
from numpy.testing import assert_allclose, assert_array_equal

from fmilin.codegen import statements
from fmilin.codegen.c_source_export import generate
from fmilin.codegen.statements import c_string
from fmilin.errors import ModelError
from fmilin.model.equation_forms import SymbolicSystem
from fmilin.signals import FloatArray
from tests.codegen.native import Native, system_of

a, b, c, t, u, k = sympy.symbols("a b c t u k", real=True)
w1, w2, w3 = sympy.symbols("w1 w2 w3", real=True)


def pendulum() -> SymbolicSystem:
    """A pendulum in Cartesian coordinates: W = [[M, G'], [G, 0]], Spencer (thesis) eq. (2.3)."""
    x, y, vx, vy, F, m, g, L = sympy.symbols("x y vx vy F m g L", real=True)
    ax, ay, multiplier = sympy.symbols("ax ay lambda", real=True)
    return system_of(
        {x: vx, y: vy, vx: ax, vy: ay},
        {"tension": multiplier * sympy.sqrt(x**2 + y**2), "gap": (x**2 + y**2 - L**2) / 2, "force": F * sympy.cos(t)},
        inputs=[F],
        parameters={m: 2.0, g: 9.81, L: 1.5},
        solve=((ax, ay, multiplier), [[m, 0, x], [0, m, y], [x, y, 0]], [F + t, -m * g, -(vx**2) - vy**2]),
        time=t,
    )


POINT = (0.3, [0.9, -1.2, 0.4, 0.3], [1.7], [2.0, 9.81, 1.5])


def exact(system: SymbolicSystem, point: tuple[Any, ...]) -> tuple[FloatArray, FloatArray]:
    """Return z and dz/ds by eliminating w in symbols: no implicit differentiation."""
    time, x, u_, p = point
    s = [*system.states, *system.inputs, system.time, *system.parameters]
    values = dict(zip(s, [*x, *u_, time, *p], strict=True))
    k = len(system.unknowns)
    W = sympy.Matrix(k, k, lambda i, j: system.matrix.get((i, j), 0))
    w = W.LUsolve(sympy.Matrix(system.right_hand_side)) if system.unknowns else []
    eliminated = dict(zip(system.unknowns, w, strict=True))
    z = sympy.Matrix([e.subs(eliminated) for e in (*system.derivatives, *system.outputs)])
    return (
        np.array(z.subs(values).evalf(30).tolist(), dtype=float).ravel(),
        np.array(z.jacobian(s).subs(values).evalf(30).tolist(), dtype=float),
    )


def test_values_and_derivatives_are_those_of_the_eliminated_system(tmp_path: Path) -> None:
    system = pendulum()
    native = Native(system, tmp_path)
    z, jacobian = exact(system, POINT)
    assert_allclose(native.at(*POINT), z, rtol=1e-14)
    assert_allclose(native.jacobian(), jacobian, rtol=1e-13, atol=1e-14)


def test_adjoint_derivatives_are_the_transpose(tmp_path: Path) -> None:
    native = Native(pendulum(), tmp_path)
    native.at(*POINT)
    forward = native.jacobian()
    backward = np.array([native.adjoint(row) for row in np.eye(native.nz)])
    assert_allclose(backward, forward, rtol=1e-14, atol=1e-15)


def test_a_direction_is_the_sum_of_its_columns(tmp_path: Path) -> None:
    native = Native(pendulum(), tmp_path)
    native.at(*POINT)
    direction = np.linspace(-1, 2, native.ns)
    assert_allclose(native.product(direction), native.jacobian() @ direction, rtol=1e-14)


EXPRESSIONS = [
    sympy.sin(a) + sympy.cos(a * b) - sympy.tan(b),
    sympy.asin(a / 3) * sympy.acos(b / 4) + sympy.atan(a),
    sympy.atan2(a, b),
    sympy.sinh(a) - sympy.cosh(b) * sympy.tanh(a * b),
    sympy.exp(a / b) + sympy.log(a + b),
    sympy.sqrt(a) * sympy.sqrt(a + b) ** 3,
    a**4 + b**7 - a ** (-2) * b ** (-3) + a ** (-6),
    a ** sympy.Rational(-3, 2) + b ** sympy.Rational(1, 3) + b ** sympy.Rational(-5, 4) + a**2.5,
    a**b,
    sympy.Abs(a - b) * sympy.sign(a - b),
    sympy.Max(a, b) + sympy.Min(a**2, b**2, a * b),
    sympy.Heaviside(a - b) * a + sympy.Heaviside(b - a) * b,
    sympy.Piecewise((a**2, a < b), (a * b, True)) + sympy.Piecewise((b, a > 10), (a**3, sympy.And(a > 0, b > 0))),
    sympy.pi * a / 3 + b / sympy.pi + sympy.E * b - sympy.sqrt(2) * a * b + sympy.Rational(1, 7),
    10**12 * a - sympy.Float("1.2345678901234567") * b + sympy.Rational(10**20, 3) * a / 10**20,
    1 / (1 + a**2 + b**2) - (a - b) / (a + b) ** 2,
    sympy.erf(a) + sympy.asinh(b) + sympy.cot(a) * sympy.sec(b),
    (a + b) * (a + b) * sympy.sin(a + b) ** 2,
]


@pytest.mark.parametrize("point", [(0.7, 1.3), (2.1, 0.4)])
def test_every_function_has_its_value_and_derivative(tmp_path: Path, point: tuple[float, float]) -> None:
    system = system_of({a: 0, b: 0}, {f"o{i}": e for i, e in enumerate(EXPRESSIONS)})
    native = Native(system, tmp_path)
    at = {a: sympy.Float(point[0], 30), b: sympy.Float(point[1], 30)}
    z = native.at(0.0, point)[2:]
    jacobian = native.jacobian()[2:, :2]
    for i, e in enumerate(EXPRESSIONS):
        assert_allclose(z[i], float(e.subs(at).evalf(30)), rtol=2e-15, err_msg=str(e))
        slopes = [e.diff(s).subs(at).evalf(30) for s in (a, b)]
        assert_allclose(jacobian[i], [float(s) for s in slopes], rtol=1e-14, atol=1e-15, err_msg=str(e))


STEPS = [
    (sympy.floor(3 * a) * b + sympy.ceiling(b) * a, 2 * 1.3 + 2 * 0.7, (2.0, 2.0)),
    (sympy.Mod(b, a) * 2, 1.2, (-2.0, 2.0)),
    (sympy.Mod(-b, a), 0.1, (2.0, -1.0)),
    (sympy.Heaviside(a - sympy.Rational(7, 10)) * b, 0.65, (0.0, 0.5)),
]


def test_between_jumps_steps_are_constant(tmp_path: Path) -> None:
    native = Native(system_of({a: 0, b: 0}, {f"o{i}": e for i, (e, _, _) in enumerate(STEPS)}), tmp_path)
    z, jacobian = native.at(0.0, [0.7, 1.3])[2:], native.jacobian()[2:, :2]
    for i, (e, value, slopes) in enumerate(STEPS):
        assert_allclose(z[i], value, rtol=1e-14, err_msg=str(e))
        assert_allclose(jacobian[i], slopes, rtol=1e-14, err_msg=str(e))


def test_a_case_without_a_value_is_not_a_number(tmp_path: Path) -> None:
    native = Native(system_of({a: sympy.Piecewise((a, a > 0))}), tmp_path)
    assert native.at(0.0, [2.0]).tolist() == [2.0]
    assert np.isnan(native.at(0.0, [-1.0])).all()


def test_names_that_are_no_c_identifiers_do_no_harm(tmp_path: Path) -> None:
    odd = [sympy.Symbol(name) for name in ("q[1]", "double", "c0", "m->x[0]", "lambda", "größe")]
    native = Native(system_of({s: odd[i - 1] * (i + 1) for i, s in enumerate(odd)}), tmp_path)
    assert_array_equal(native.at(0.0, [1, 2, 3, 4, 5, 6]), [6, 2, 6, 12, 20, 30])


def test_symbols_with_different_assumptions_are_different(tmp_path: Path) -> None:
    plain, positive = sympy.Symbol("q"), sympy.Symbol("q", positive=True)
    system = replace(system_of({a: 0, b: 0}), states=(plain, positive), derivatives=(positive, -plain))
    assert_array_equal(Native(system, tmp_path).at(0.0, [3.0, 4.0]), [4.0, -3.0])


def test_start_values_and_parameters_are_exact(tmp_path: Path) -> None:
    starts = {a: 0.1 + 0.2, b: 1e-300, c: -1e22}
    system = system_of({a: k, b: 0, c: 0}, parameters={k: np.pi}, starts=starts)
    native = Native(system, tmp_path)
    x, inputs, p = np.zeros(3), np.zeros(1), np.zeros(1)
    native._library.starts(native._model, *(v.ctypes.data_as(ctypes.c_void_p) for v in (x, inputs, p)))
    assert x.tolist() == list(starts.values())
    assert p.tolist() == [np.pi]


def test_a_singular_system_is_an_outcome_with_a_name(tmp_path: Path) -> None:
    system = system_of({a: w1, b: w2}, solve=((w1, w2), [[1, 0], [0, a]], [1, 1]))
    native = Native(system, tmp_path)
    native.at(0.0, [0.0, 0.0])
    assert (native.outcome, native.culprit()) == (1, "w2")
    assert_array_equal(native.at(0.0, [0.5, 0.0]), [1.0, 2.0])
    assert native.outcome == 0


def test_a_matrix_of_numerical_rank_one_is_singular(tmp_path: Path) -> None:
    rows = [[a, a / 3], [a / 7, a / 21]]
    native = Native(system_of({a: w1, b: w2}, solve=((w1, w2), rows, [1, 1])), tmp_path)
    for value in (1.0, 0.1, 1e-30, 1e30):
        native.at(0.0, [value, 0.0])
        assert native.outcome == 1, value


def test_a_matrix_with_a_nan_is_an_outcome(tmp_path: Path) -> None:
    native = Native(system_of({a: w1}, solve=((w1,), [[sympy.sqrt(a)]], [1])), tmp_path)
    native.at(0.0, [-1.0])
    assert native.outcome == 2
    native.product([1.0, 0.0])
    assert native.outcome == 2


def test_a_right_hand_side_that_is_nan_passes_through(tmp_path: Path) -> None:
    native = Native(system_of({a: w1, b: a}, solve=((w1,), [[2]], [sympy.log(a)])), tmp_path)
    z = native.at(0.0, [-1.0, 0.0])
    assert native.outcome == 0
    assert np.isnan(z[0])
    assert z[1] == -1.0


@pytest.mark.parametrize(("rows", "columns"), [(1e150, 1.0), (1.0, 1e-150), (1e-12, 1e12)])
def test_the_solution_does_not_care_for_units(tmp_path: Path, rows: float, columns: float) -> None:
    W = [[2, 1, 0], [1, a, 1], [0, 1, 3]]
    r = [1, 2, 3]
    scaled = [[x * [1, rows, 1][i] * [1, 1, columns][j] for j, x in enumerate(row)] for i, row in enumerate(W)]
    right = [r[0], r[1] * rows, r[2]]
    native = Native(system_of({a: w1, b: w2, c: w3}, solve=((w1, w2, w3), scaled, right)), tmp_path)
    z = native.at(0.0, [4.0, 0.0, 0.0])
    plain = np.array([[2.0, 1, 0], [1, 4, 1], [0, 1, 3]])
    want = np.linalg.solve(plain, r)
    assert native.outcome == 0
    assert_allclose(z, want / [1, 1, columns], rtol=16 * float(np.finfo(np.float64).eps) * np.linalg.cond(plain))


def test_a_full_random_system_needs_its_row_interchanges(tmp_path: Path) -> None:
    random = np.random.default_rng(7)
    n = 12
    W: FloatArray = random.normal(size=(n, n))
    np.fill_diagonal(W, 0.0)
    r: FloatArray = random.normal(size=n)
    x = sympy.symbols(f"x:{n}", real=True)
    w = sympy.symbols(f"w:{n}", real=True)
    system = system_of(dict(zip(x, w, strict=True)), solve=(w, [[e + x[0] * 0 for e in row] for row in W], r.tolist()))
    native = Native(system, tmp_path)
    assert_allclose(native.at(0.0, np.zeros(n)), np.linalg.solve(W, r), rtol=1e-12)


def chain(n: int) -> SymbolicSystem:
    """A chain of n masses with rods between neighbours: W is banded after reordering."""
    x = sympy.symbols(f"x:{n}", real=True)
    v = sympy.symbols(f"v:{n}", real=True)
    acceleration = sympy.symbols(f"a:{n}", real=True)
    multipliers = sympy.symbols(f"l:{n - 1}", real=True)
    G = sympy.zeros(n - 1, n)
    for i in range(n - 1):
        G[i, i], G[i, i + 1] = x[i], -x[i + 1]
    W = sympy.Matrix(sympy.BlockMatrix([[sympy.eye(n) * k, G.T], [G, sympy.zeros(n - 1)]]))
    right = [*(-sympy.sin(s) for s in x), *(v[i + 1] ** 2 - v[i] ** 2 for i in range(n - 1))]
    rates = dict(zip(x, v, strict=True)) | dict(zip(v, acceleration, strict=True))
    return system_of(rates, parameters={k: 2.0}, solve=((*acceleration, *multipliers), W, right))


def test_code_and_band_grow_with_the_model_not_with_its_square() -> None:
    small, large = (generate(chain(n).in_graph()).sources for n in (20, 40))
    assert len(large["equations.c"]) < 2.2 * len(small["equations.c"])
    assert "#define BAND_LOWER 2\n" in large["equations.h"]
    assert f"#define N_E_MOTION {40 + 4 * 39}\n" in large["equations.h"]  # one per mass, x and v twice per rod


def test_pieces_of_any_length_give_the_same_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system = chain(6)
    x = np.linspace(0.3, 1.4, 12)
    whole = Native(system, tmp_path)
    z, jacobian = whole.at(0.0, x, p=[2.0]), whole.jacobian()
    monkeypatch.setattr(statements, "MAX_STATEMENTS_PER_FUNCTION", 3)
    (tmp_path / "pieces").mkdir()
    pieces = Native(system, tmp_path / "pieces")
    assert "equations_motion_5" in pieces.code.sources["equations.c"]
    assert_array_equal(pieces.at(0.0, x, p=[2.0]), z)
    assert_array_equal(pieces.jacobian(), jacobian)


def test_without_derivatives_the_values_are_the_same(tmp_path: Path) -> None:
    plain = Native(pendulum(), tmp_path, derivatives=False)
    assert "equations_motion" not in plain.code.sources["equations.c"]
    assert_allclose(plain.at(*POINT), exact(pendulum(), POINT)[0], rtol=1e-14)


def test_watched_quantities_have_values_and_no_derivatives(tmp_path: Path) -> None:
    native = Native(system_of({a: b, b: -a}, {"o": a * b}), tmp_path, watched=[a + b])
    assert native.at(0.0, [2.0, 3.0]).tolist() == [3.0, -2.0, 6.0, 5.0]
    assert native.jacobian()[3].tolist() == [0.0, 0.0, 0.0]


def test_no_states_no_inputs_no_outputs(tmp_path: Path) -> None:
    assert Native(system_of({}), tmp_path, flags=("-Werror",)).at(0.0, []).size == 0


def test_dependencies_go_through_the_linear_system() -> None:
    system = system_of(
        {a: w1, b: w2 * c, c: t},
        {"free": w1 + k, "constant": 3},
        inputs=[u],
        parameters={k: 1.0},
        solve=((w1, w2), [[k, 0], [a, 1]], [u, b]),
        time=t,
    )
    known = (a, b, c, u, t, k)
    depends = generate(system.in_graph()).depends
    assert [{known[i] for i in row} for row in depends] == [{k, u}, {k, u, a, b, c}, {t}, {k, u}, set()]


def text_of_code() -> str:
    return "".join("".join(generate(s.in_graph()).sources.values()) for s in (chain(9), pendulum()))


def test_the_code_does_not_depend_on_the_process() -> None:
    script = "from tests.codegen.test_c99 import text_of_code; print(text_of_code(), end='')"
    environment = {"PYTHONHASHSEED": "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"}
    other = subprocess.run(
        [sys.executable, "-c", script], cwd=Path(__file__).parents[2], env=environment, capture_output=True, check=True
    )
    assert other.stdout.decode() == text_of_code()


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (a + sympy.Symbol("stranger"), "symbol 'stranger' appears"),
        (sympy.Function("f")(a), "is not arithmetic of plain symbols"),
        (sympy.Derivative(sympy.Function("f")(a), a), "is not arithmetic of plain symbols"),
        (a * sympy.I, "'I' in the equations is not a real number"),
        (a + sympy.zoo * b, "is not a real number"),
        (sympy.besselj(0, a), "no C code for the function 'besselj'"),
        (sympy.And(a > 0, b > 0), "is not arithmetic of plain symbols"),
    ],
)
def test_what_cannot_be_printed_is_refused(expression: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message.replace("(", r"\(")):
        generate(system_of({a: b, b: a}, {"o": expression}).in_graph())


def test_an_unknown_inside_the_linear_system_is_refused() -> None:
    system = system_of({a: w1}, solve=((w1,), [[1]], [w1**2]))
    with pytest.raises(ModelError, match="contains an unknown"):
        generate(system.in_graph())


def test_a_start_value_that_is_no_number_is_refused() -> None:
    with pytest.raises(ModelError, match="infinite or not a number"):
        generate(system_of({a: 0}, starts={a: np.inf}).in_graph())


def test_strings_in_c_survive_any_character() -> None:
    assert c_string('a"b\\c??/\nä') == r'"a\042b\134c\077\077/\012\303\244"'
