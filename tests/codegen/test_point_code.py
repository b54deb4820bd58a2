"""Rates and outputs at one point in one call of compiled code."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from fmilin.codegen.c_source_export import PointCode, PointValues
from fmilin.codegen.compiler import LOADING_SECONDS, Compiler, compiler_seconds
from fmilin.errors import ModelError
from fmilin.signals import FloatArray
from tests.codegen.test_functions import IMPLICIT, system, u1, x1, x2

P = IMPLICIT.system.parameter_values


def require_same(values: PointValues, point: tuple[float, FloatArray, FloatArray]) -> None:
    t, x, u = point
    expected = np.concatenate(IMPLICIT.values(t, x, u, P))
    result = values(t, x, u)
    assert result is not None
    np.testing.assert_allclose(result, expected, rtol=1e-13, atol=1e-13)


def random_points(count: int) -> list[tuple[float, FloatArray, FloatArray]]:
    random = np.random.default_rng(3)
    return [(float(random.uniform()), random.normal(size=2), random.normal(size=1)) for _ in range(count)]


def test_values_are_those_of_the_interpreted_equations() -> None:
    values = PointCode(IMPLICIT.system).compile()
    for point in random_points(20):
        require_same(values, point)


def test_a_result_stays_what_it_was_after_further_calls() -> None:
    values = PointCode(system([x2, u1 - x1]).system).compile()
    first = values(0.0, np.array([1.0, 2.0]), np.array([3.0]))
    values(0.0, np.array([4.0, 5.0]), np.array([6.0]))
    assert first is not None
    assert first.tolist() == [2.0, 2.0]


def test_threads_do_not_mix_their_points() -> None:
    values = PointCode(IMPLICIT.system).compile()
    points = random_points(200)
    one_by_one = [values(*point) for point in points]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda point: values(*point), points))
    np.testing.assert_array_equal(np.array(together), np.array(one_by_one))


@pytest.mark.parametrize(("entry", "is_answered"), [(1.0, True), (1e-3, True), (1e-9, False), (0.0, False)])
def test_a_matrix_close_to_singular_is_left_to_others(entry: float, is_answered: bool) -> None:
    made = system([x1, x2], matrix=[[1, 1], [1, 1 + x1]], right=[u1, x2])
    values = PointCode(made.system).compile()(0.0, np.array([entry, 1.0]), np.ones(1))
    assert (values is not None) == is_answered


def test_points_without_numbers_are_left_to_others() -> None:
    values = PointCode(IMPLICIT.system).compile()
    assert values(0.0, np.array([np.nan, 1.0]), np.ones(1)) is None
    require_same(values, random_points(1)[0])


def test_what_was_compiled_before_costs_its_loading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    code = PointCode(IMPLICIT.system)
    assert code.price > compiler_seconds(0)
    code.compile()
    assert PointCode(IMPLICIT.system).price == LOADING_SECONDS < compiler_seconds(0)
    assert PointCode(IMPLICIT.system, Compiler(flags=("-O2",))).price > LOADING_SECONDS
    assert PointCode(IMPLICIT.system, Compiler(use_cache=False)).price > LOADING_SECONDS
    assert PointCode(system([x2, -x1]).system).price > LOADING_SECONDS


def test_without_a_compiler_it_is_refused() -> None:
    code = PointCode(IMPLICIT.system, Compiler(("no-such-compiler",), use_cache=False))
    with pytest.raises(ModelError, match="no-such-compiler"):
        code.compile()
