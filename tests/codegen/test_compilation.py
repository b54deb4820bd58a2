"""The rule by which code is compiled: work against price."""

from __future__ import annotations

import pytest

from fmilin.codegen.compiler import (
    COMPILE_SECONDS_PER_INSTRUCTION,
    COMPILER_START_SECONDS,
    TRACE_SECONDS_PER_PAIR,
    TRACE_START_SECONDS,
    CompilationBudget,
    compiler_seconds,
)


def test_a_long_computation_is_announced_by_its_number_of_points() -> None:
    assert not CompilationBudget.of_graph(1000).count_toward_compilation(10_000)
    assert CompilationBudget.of_graph(1000).count_toward_compilation(1_000_000)
    budget = CompilationBudget.of_graph(10_000)
    assert [budget.count_toward_compilation(30_000) for _ in range(3)] == [False, True, True]


def test_few_instructions_need_more_points_for_the_same_compiler() -> None:
    assert not CompilationBudget.of_graph(10).count_toward_compilation(1_000_000)
    assert CompilationBudget.of_graph(10_000).count_toward_compilation(1_000_000)


def test_work_is_counted_until_it_has_taken_as_long_as_the_price() -> None:
    budget = CompilationBudget(0.5, 2.0)
    assert [budget.count_toward_compilation(1) for _ in range(6)] == [False, False, False, False, True, True]


def test_what_is_certain_to_come_counts_once_as_long_as_it_has_not_come() -> None:
    budget = CompilationBudget(0.5, 2.0)
    assert [budget.count_toward_compilation(0, ahead=4) for _ in range(3)] == [False, False, False]
    assert budget.count_toward_compilation(1, ahead=4)
    assert not budget.count_toward_compilation(0)


def test_a_price_that_turns_out_higher_takes_more_work() -> None:
    budget = CompilationBudget(0.5, 2.0)
    assert budget.count_toward_compilation(5)
    budget.add(1.0)
    assert [budget.count_toward_compilation(1) for _ in range(2)] == [False, True]


def test_writing_down_equations_grows_with_the_square_of_the_states() -> None:
    start = round(TRACE_START_SECONDS / TRACE_SECONDS_PER_PAIR)
    small, large = (CompilationBudget.of_equations(TRACE_SECONDS_PER_PAIR, states) for states in (3, 6))
    assert (small.count_toward_compilation(start + 8), small.count_toward_compilation(2)) == (False, True)
    assert (large.count_toward_compilation(start + 35), large.count_toward_compilation(2)) == (False, True)


def test_a_compiler_takes_its_time_even_for_nothing() -> None:
    assert compiler_seconds(0) == pytest.approx(COMPILER_START_SECONDS + COMPILE_SECONDS_PER_INSTRUCTION)
    assert compiler_seconds(1000) == pytest.approx(COMPILER_START_SECONDS + 1000 * COMPILE_SECONDS_PER_INSTRUCTION)
