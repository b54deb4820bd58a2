"""The layers of the cage one by one: tables against headers, what is missing, guards that do not answer."""

from __future__ import annotations

import logging
import os
import platform
import re
import signal
import sys
import time
from pathlib import Path

import pytest

from fmilin import Limits, sandbox_report
from fmilin.errors import ModelError
from fmilin.sandbox import cage, guard, kernel, landlock, limits, seccomp
from fmilin.sandbox.guard import Guard

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the cage is made of Linux's means")
HEADERS = (
    Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),  # x86-64
    Path("/usr/include/asm-generic/unistd.h"),  # aarch64, and all that is new since 2011
)
NEWEST = 450
"""The last number in headers of Linux 6.1, the oldest that a machine for tests may have."""


def numbers_in(header: Path) -> dict[str, int]:
    text = header.read_text()
    numbers = {name: int(number) for name, number in re.findall(r"#define __NR_(\w+)\s+(\d+)", text)}
    numbers |= {name: int(number) for name, number in re.findall(r"#define __NR3264_(\w+)\s+(\d+)", text)}
    return numbers


@pytest.mark.parametrize("column", [0, 1], ids=["x86-64", "aarch64"])
def test_numbers_of_system_calls_are_those_of_the_headers(column: int) -> None:
    if not HEADERS[column].exists():
        pytest.skip(f"{HEADERS[column]} is not installed")
    there = numbers_in(HEADERS[column])
    tables = {**seccomp.FORBIDDEN, **seccomp.UNKNOWN, **seccomp.NETWORK, **seccomp.LOOKED_AT}
    assert len(tables) == sum(map(len, (seccomp.FORBIDDEN, seccomp.UNKNOWN, seccomp.NETWORK, seccomp.LOOKED_AT)))
    for name, pair in tables.items():
        if pair[column] <= NEWEST:
            assert there.get(name, -1) == pair[column], name


def test_later_numbers_are_the_same_on_all_machines() -> None:
    for table in (seccomp.FORBIDDEN, seccomp.UNKNOWN):
        for name, (first, second) in table.items():
            assert first == second or max(first, second) < 424, name


@pytest.mark.skipif(not seccomp.is_there(), reason="needs seccomp")
def test_jumps_of_the_filter_stay_inside_and_it_is_short_enough() -> None:
    for network in (False, True):
        for only_pid in (None, 7):
            steps = seccomp.program(network=network, only_pid=only_pid)
            assert len(steps) < 4096
            for i, (operation, if_true, if_false, _) in enumerate(steps):
                if operation & 7 == 5:  # a jump
                    assert i + 1 + max(if_true, if_false) < len(steps)


def in_a_guard(work: object, *, apart: bool = False) -> int | None:
    """Return the exit status of some work."""
    status = Guard(work, apart=apart).wait().status  # type: ignore[arg-type]
    return None if status is None else os.waitstatus_to_exitcode(status)


def closed(folder: Path, **allowed: object) -> None:
    cage.prepare(cage.Cage(Limits(**allowed), folder))  # type: ignore[arg-type]
    cage.close()


def refused(number: type[OSError], act: object) -> bool:
    try:
        act()  # type: ignore[operator]
    except number:
        return True
    return False


@pytest.mark.skipif(not landlock.version(), reason="needs Landlock")
@pytest.mark.parametrize("filtered", [True, False], ids=["both", "Landlock alone"])
def test_files_are_refused_without_the_other_layer(
    filtered: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = tmp_path / "own", tmp_path / "other"
    own.mkdir()
    other.write_text("")

    def work() -> int:
        closed(own)
        (own / "new").write_text("mine")
        return 7 if refused(PermissionError, other.read_text) and refused(PermissionError, (own / "../x").touch) else 1

    if not filtered:
        monkeypatch.setattr(seccomp, "is_there", lambda: False)
    assert in_a_guard(work) == 7


@pytest.mark.skipif(not seccomp.is_there(), reason="needs seccomp")
def test_signals_are_refused_without_landlock_and_namespaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "version", lambda: 0)

    def work() -> int:
        closed(tmp_path)
        signal.signal(signal.SIGUSR1, lambda *_: None)
        os.kill(os.getpid(), signal.SIGUSR1)
        signal.raise_signal(signal.SIGUSR1)
        return 7 if refused(PermissionError, lambda: os.kill(os.getppid(), 0)) else 1

    assert in_a_guard(work) == 7


def test_a_layer_that_fails_is_an_error_and_no_silent_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(landlock, "version", lambda: 1)
    monkeypatch.setattr(landlock, "restrict", fails)

    def work() -> int:
        try:
            closed(tmp_path)
        except ModelError as error:
            return 7 if "was not loaded" in str(error) and "fl.Limits(caged=False)" in str(error) else 1
        return 2

    assert in_a_guard(work) == 7


def test_threads_of_linear_algebra_end_before_the_cage_closes(tmp_path: Path) -> None:
    import numpy as np

    def work() -> int:
        np.linalg.solve(np.eye(300), np.ones(300))
        closed(tmp_path)
        return len(list(Path("/proc/self/task").iterdir()))

    assert in_a_guard(work) == 1


def test_a_world_apart_has_its_own_numbers_and_the_work_is_its_second_process() -> None:
    if in_a_guard(kernel.is_apart, apart=True) != 1:
        pytest.skip("namespaces of users are not allowed here")
    assert in_a_guard(os.getpid, apart=True) == 2


def test_a_world_apart_without_proc_of_its_own_ends_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that hides parts of /proc: the numbers there are then those of other processes."""
    monkeypatch.setattr(kernel, "settle", lambda _: setattr(kernel._World, "proc_is_own", False))

    def work() -> int:
        if os.fork() == 0:
            os.setsid()
            time.sleep(1000)
        return 7

    begin = time.monotonic()
    assert in_a_guard(work, apart=True) == 7
    assert time.monotonic() - begin < guard._PATIENCE


def test_a_guard_that_was_stopped_is_ended_with_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "_GUARD_PATIENCE", 0.2)

    def forever() -> int:
        while True:
            time.sleep(1000)

    one = Guard(forever)
    time.sleep(0.2)
    os.kill(one.pid, signal.SIGSTOP)
    begin = time.monotonic()
    assert one.stop().status is None
    assert time.monotonic() - begin < 60  # not for ever


def test_what_is_missing_is_said_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(landlock, "version", lambda: 0)
    monkeypatch.setattr(seccomp, "is_there", lambda: False)
    monkeypatch.setattr(limits._Said, "once", False)
    with caplog.at_level(logging.WARNING, "fmilin"):
        limits.say_what_is_missing(Limits(caged=False))
        assert caplog.messages == []
        for _ in range(3):
            limits.say_what_is_missing(Limits())
    assert len(caplog.messages) == 1
    assert "cannot keep it from files (no Landlock) and from network and other processes" in caplog.messages[0]


@pytest.mark.parametrize(
    ("version", "filters", "missing"),
    [
        (0, True, ("reading", "writing")),
        (2, True, ("writing",)),
        (7, False, ("network", "kernel")),
        (0, False, ("reading", "writing", "network", "memory", "kernel")),
    ],
)
def test_the_report_names_what_is_missing(
    version: int, filters: bool, missing: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landlock, "version", lambda: version)
    monkeypatch.setattr(seccomp, "is_there", lambda: filters)
    monkeypatch.setattr(limits, "_worlds", lambda: (True, True))
    told = sandbox_report()
    assert told.missing == missing
    assert str(told).count("NOT HELD") == len(missing)


def test_the_report_of_another_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(landlock, "version", lambda: 0)
    monkeypatch.setattr(seccomp, "is_there", lambda: False)
    assert len(sandbox_report().missing) == 9
    assert sandbox_report()["limits"].holds


def test_machines_whose_numbers_are_not_known_have_no_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel.machine.cache_clear()
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    try:
        assert (landlock.version(), seccomp.is_there()) == (0, False)
    finally:
        kernel.machine.cache_clear()
