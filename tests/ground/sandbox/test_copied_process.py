"""Work in a copy of the process: what it changes is changed nowhere else."""

from __future__ import annotations

import os
import select
import signal
import time
from contextlib import suppress

import pytest

from fmilin.ground.errors import ModelCrashError, NumericalError
from fmilin.ground.sandbox import copied_process
from fmilin.ground.sandbox.copied_process import in_a_copy
from fmilin.ground.sandbox.guard import Guard

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


@pytest.mark.parametrize("status", [0, 3])
def test_what_a_copy_leaves_running_is_not_waited_for(status: int) -> None:
    def leave() -> None:
        if os.fork() == 0:
            time.sleep(1000)
            os._exit(0)
        if status:
            os._exit(status)

    def work() -> int:  # the guard ends what was left
        if status:
            with pytest.raises(ModelCrashError, match="exit status 3"):
                in_a_copy(leave)
        else:
            in_a_copy(leave)
        return 7

    guard = Guard(work)
    until = time.monotonic() + 30
    while not select.select([guard], [], [], 1.0)[0]:
        if time.monotonic() > until:
            guard.stop()
    assert guard.wait().status == 7 << 8


def descriptors() -> set[int]:
    return {int(name) for name in os.listdir("/dev/fd")}  # noqa: PTH208 - the names are numbers


def test_what_foreign_code_writes_in_a_copy_is_not_its_result() -> None:
    def work() -> str:
        for descriptor in descriptors() - before:
            with suppress(OSError):
                os.write(descriptor, b"garbage")
        return "result"

    before = descriptors()
    assert in_a_copy(work) == "result"


def test_an_interrupted_wait_ends_the_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    copies: list[int] = []

    def forked() -> int:
        copies.append(os.fork())
        return copies[-1]

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(copied_process, "fork", forked)
    monkeypatch.setattr(select, "select", interrupt)
    with pytest.raises(KeyboardInterrupt):
        in_a_copy(lambda: time.sleep(1000))
    with pytest.raises(ProcessLookupError):
        os.kill(copies[0], 0)
