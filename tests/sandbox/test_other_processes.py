"""A model used in a child process from Python: results and errors come back, crashes become errors.

Work in a copy of the process: what it changes is changed nowhere else.
"""

from __future__ import annotations

import os
import select
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin import Limits, isolated
from fmilin.errors import ModelCrashError, NumericalError
from fmilin.sandbox import other_processes
from fmilin.sandbox.guard import Guard
from fmilin.sandbox.other_processes import in_a_copy
from tests.fmus.make import build

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="another process needs fork()"),
    pytest.mark.usefixtures("no_dump_of_the_stack"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("isolated")
    for name in ("pendulum", "discards", "crashes", "hangs", "crashes_at_unload"):
        build(name, path)
    return path


def test_the_result_is_that_of_this_process(folder: Path) -> None:
    apart = isolated(partial(fl.load, folder / "pendulum.fmu"), fl.linearize)
    with fl.load(folder / "pendulum.fmu") as model:
        here = fl.linearize(model)
    np.testing.assert_array_equal(apart.A, here.A)
    assert apart.states.names == here.states.names


def test_a_result_larger_than_the_pipe(folder: Path) -> None:
    actual = isolated(partial(fl.load, folder / "pendulum.fmu"), lambda _: np.arange(1_000_000))
    np.testing.assert_array_equal(actual, np.arange(1_000_000))


def test_a_sweep_goes_on_after_a_crash(folder: Path) -> None:
    outcomes = []
    for name in ("pendulum", "crashes", "hangs", "crashes_at_unload", "pendulum"):
        try:
            actual = isolated(partial(fl.load, folder / f"{name}.fmu"), fl.linearize, Limits(seconds=2.0))
            outcomes.append(len(actual.full_states))
        except fl.ModelCrashError as error:
            outcomes.append("in fmi2" in str(error) or "from fmi2" in str(error))
    assert outcomes == [4, True, True, 2, 4]


class Nothing:
    def close(self) -> None:
        pass


def many(_: object, *, count: int, size: int) -> None:
    """Start processes that hold memory of their own, and wait for ever."""
    for _ in range(count):
        if os.fork() == 0:
            kept = b"1" * size
            time.sleep(1000)
            os._exit(len(kept) % 2)
    time.sleep(1000)


def test_processes_that_a_model_starts_count_and_so_does_their_memory() -> None:
    with pytest.raises(fl.ModelCrashError, match=r"took \d\.\d\d GiB of memory, more than the 0\.25 GiB") as caught:
        isolated(Nothing, partial(many, count=4, size=2**27), Limits(memory=2**28))
    assert "allow it with fl.Limits(memory=GIB * 2**30)." in str(caught.value)
    with pytest.raises(fl.ModelCrashError, match=r"started 1\d processes, more than the 10 it may have"):
        isolated(Nothing, partial(many, count=12, size=1), Limits(processes=10))


def test_from_a_thread() -> None:
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda n: isolated(Nothing, lambda _: n**2), range(6))) == [0, 1, 4, 9, 16, 25]


def test_errors_keep_their_kind_and_their_data(folder: Path) -> None:
    with pytest.raises(fl.UnknownNameError, match="Did you mean") as caught:
        isolated(partial(fl.load, folder / "pendulum.fmu"), lambda model: model.with_interface(outputs=["axx"]))
    assert "ax" in caught.value.suggestions
    with pytest.raises(ZeroDivisionError):
        isolated(partial(fl.load, folder / "pendulum.fmu"), lambda _: 1 / 0)


def test_a_result_that_cannot_be_sent(folder: Path) -> None:
    with pytest.raises(fl.UsageError, match="cannot be sent to the parent process"):
        isolated(partial(fl.load, folder / "pendulum.fmu"), lambda model: model)


def test_nothing_stays_behind(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    open_before = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 0
    for name in ("pendulum", "crashes"):
        for _ in range(3):
            try:
                isolated(partial(fl.load, folder / f"{name}.fmu"), fl.linearize)
            except fl.ModelCrashError:
                continue
    assert list(tmp_path.iterdir()) == []
    if open_before:
        assert len(list(Path("/proc/self/fd").iterdir())) == open_before


def test_the_result_comes_back_and_the_change_does_not() -> None:
    numbers = [1]

    def work() -> tuple[int, list[int]]:
        numbers.append(2)
        return os.getpid(), numbers

    process, actual = in_a_copy(work)
    assert process != os.getpid()
    assert actual == [1, 2]
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

    monkeypatch.setattr(other_processes, "fork", forked)
    monkeypatch.setattr(select, "select", interrupt)
    with pytest.raises(KeyboardInterrupt):
        in_a_copy(lambda: time.sleep(1000))
    with pytest.raises(ProcessLookupError):
        os.kill(copies[0], 0)
