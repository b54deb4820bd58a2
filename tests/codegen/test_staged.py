"""Stages of a program as functions: C, NumPy and complex steps give the same numbers."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import sympy

from fmilin import ModelError, UsageError
from fmilin.codegen.compiler import Compiler
from fmilin.codegen.program import Program
from fmilin.codegen.python_writer import PythonFunction
from fmilin.codegen.staged import FEW, Backend, leaf_names, staged
from fmilin.derivatives.complex_step import ComplexStep, is_analytic

x, y, z = sympy.symbols("x y z", real=True)

SMOOTH = [
    sympy.sin(x) * y + z**2 / 3,
    sympy.sqrt(x) / (1 + sympy.exp(-y)),
    sympy.atan(y * z) - sympy.cosh(x) ** 3,
    sympy.tan(x) * sympy.log(2 + z),
    sympy.Rational(1, 3),
]
KINKED = [
    sympy.Abs(y) * sympy.sign(z),
    sympy.Piecewise((x, y < 0), (z**3, True)),
    sympy.Max(x, y) + sympy.Min(x, y, z),
    sympy.atan2(y, x),
    sympy.Heaviside(x - y),
    sympy.floor(3 * x),
]


def program_of(expressions: list[sympy.Expr]) -> tuple[Program, list[sympy.Expr], list[sympy.Expr]]:
    program = Program(leaf_names([x, y, z]))
    values = [program.add(e) for e in expressions]
    gradients = program.gradients(values, [x, y, z])
    return program, values, [row.get(j, sympy.S.Zero) for row in gradients for j in range(3)]


@pytest.mark.parametrize("kind", ["c", "numpy"])
def test_values_and_gradients(kind: str) -> None:
    expressions = SMOOTH + KINKED
    program, values, gradients = program_of(expressions)
    stages = staged(program, {"values": values, "gradients": gradients}, Backend(kind))  # type: ignore[arg-type]
    assert stages.kind == kind
    for at in ([0.3, -0.7, 1.2], [0.9, 0.4, -0.6]):
        visit = stages.visit()
        visit.leaves[0] = at
        point = dict(zip((x, y, z), at, strict=True))
        np.testing.assert_allclose(visit.run("values")[0], [float(e.subs(point)) for e in expressions], rtol=1e-13)
        expected = [float(e.diff(s).doit().subs(point).evalf(20)) for e in expressions[:8] for s in (x, y, z)]
        np.testing.assert_allclose(visit.run("gradients")[0, :24], expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("kind", ["c", "numpy"])
def test_a_later_stage_may_wait_for_numbers_from_outside(kind: str) -> None:
    program = Program(leaf_names([x, y, z]))
    first, second = program.add(sympy.sin(x)), program.add(sympy.sin(x) * y)
    stages = staged(program, {"first": [first], "second": [second]}, Backend(kind))  # type: ignore[arg-type]
    one, other = stages.visit(), stages.visit()
    one.leaves[0], other.leaves[0] = [1.0, 0.0, 0.0], [2.0, 0.0, 0.0]
    assert one.run("first")[0, 0] == np.sin(1.0)
    assert other.run("first")[0, 0] == np.sin(2.0)
    one.leaves[0, 1] = 3.0
    assert one.run("second")[0, 0] == np.sin(1.0) * 3.0


@pytest.mark.parametrize("kind", ["c", "numpy"])
def test_outside_its_domain_a_function_is_not_a_number(kind: str) -> None:
    program, values, _ = program_of([sympy.log(x), sympy.asin(y), 1 / z, (-1 - x**2) ** sympy.Rational(1, 3), x * y])
    visit = staged(program, {"values": values}, Backend(kind)).visit()  # type: ignore[arg-type]
    visit.leaves[0] = [-1.0, 2.0, 0.0]
    found = visit.run("values")[0]
    assert np.isnan(found[[0, 1, 3]]).all()
    assert np.isinf(found[2])
    assert found[4] == -2.0


def test_few_statements_start_no_compiler_and_many_do() -> None:
    program, values, _ = program_of(SMOOTH)
    assert staged(program, {"values": values}, Backend()).kind == "numpy"
    many = [sympy.sin(k * x) for k in range(1, FEW + 2)]
    program, values, _ = program_of(many)
    assert staged(program, {"values": values}, Backend()).kind == "c"


def test_without_a_compiler_numpy_steps_in(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    program, values, _ = program_of([sympy.sin(k * x) for k in range(1, FEW + 2)])
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    with caplog.at_level(logging.INFO):
        stages = staged(program, {"values": values}, Backend())
    assert stages.kind == "numpy"
    assert "No C compiler was found" in caplog.text
    assert isinstance(ComplexStep(program, values, [0], Backend())._function, type(None))
    with pytest.raises(ModelError, match="No C compiler"):
        staged(program, {"values": values}, Backend("c"))
    with pytest.raises(ModelError, match="cannot be started"):
        staged(program, {"values": values}, Backend("c", Compiler(("no-such-compiler",), use_cache=False)))


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(UsageError, match="'gpu' computes nothing"):
        Backend("gpu")  # type: ignore[arg-type]


def test_nothing_to_compute() -> None:
    for kind in ("c", "numpy"):
        visit = staged(Program({}), {"values": []}, Backend(kind)).visit()
        assert visit.run("values").shape == (1, 0)


@pytest.mark.parametrize("kind", ["c", "numpy"])
def test_complex_steps_are_exact(kind: str) -> None:
    program, values, gradients = program_of(SMOOTH)
    leaves = np.array([0.3, -0.7, 1.2])
    expected = PythonFunction(program, gradients)(leaves).reshape(-1, 3)
    found = ComplexStep(program, values, [0, 1, 2], Backend(kind))(leaves)  # type: ignore[arg-type]
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    some = ComplexStep(program, values, [2], Backend(kind))(leaves)  # type: ignore[arg-type]
    np.testing.assert_allclose(some, expected[:, 2:], rtol=1e-13)


def test_only_analytic_programs_take_complex_steps() -> None:
    program, values, _ = program_of(SMOOTH)
    assert is_analytic(program, values)
    for expression in KINKED:
        program, values, _ = program_of([expression])
        assert not is_analytic(program, values)


@pytest.mark.parametrize("kind", ["c", "numpy"])
def test_many_points_are_computed_at_once(kind: str) -> None:
    program, values, gradients = program_of(SMOOTH + KINKED)
    points = np.random.default_rng(3).uniform(0.1, 1.0, (6, 3))
    stages = staged(program, {"values": values, "gradients": gradients}, Backend(kind))  # type: ignore[arg-type]
    together = stages.visit(6)
    together.leaves[:] = points
    found = np.hstack([together.run("values"), together.run("gradients")])
    for row, point in zip(found, points, strict=True):
        alone = stages.visit()
        alone.leaves[0] = point
        np.testing.assert_allclose(row, np.hstack([alone.run("values"), alone.run("gradients")])[0], rtol=1e-14)
