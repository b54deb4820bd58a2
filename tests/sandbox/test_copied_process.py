"""Work in a copy of the process: what it changes is changed nowhere else."""

from __future__ import annotations

import os
import signal

import pytest

from fmilin.errors import ModelCrashError, NumericalError
from fmilin.sandbox.copied_process import in_a_copy

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="a copy needs fork()")


def test_the_result_comes_back_and_the_change_does_not() -> None:
    numbers = [1]

    def work() -> tuple[int, list[int]]:
        numbers.append(2)
        return os.getpid(), numbers

    process, found = in_a_copy(work)
    assert process != os.getpid()
    assert found == [1, 2]
    assert numbers == [1]


def test_large_results_come_back_whole() -> None:
    assert in_a_copy(lambda: bytes(5_000_000)) == bytes(5_000_000)


def test_errors_come_back() -> None:
    def work() -> None:
        raise NumericalError("no step")

    with pytest.raises(NumericalError, match="no step"):
        in_a_copy(work)


def test_a_copy_that_crashes_is_an_error_here() -> None:
    with pytest.raises(ModelCrashError, match=r"was killed .*in a copy of the process"):
        in_a_copy(lambda: os.kill(os.getpid(), signal.SIGKILL))
