"""Whatever a piece of work starts ends with it, with a word, and with the process that wanted it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import psutil
import pytest

from fmilin.sandbox import guard
from fmilin.sandbox.guard import Guard
from fmilin.sandbox.other_processes import run_program

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="guards need fork()")
only_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux hands orphans over")


def sleeper(mark: Path) -> NoReturn:
    mark.with_suffix(".new").write_text(str(os.getpid()))
    mark.with_suffix(".new").replace(mark)
    time.sleep(1000)
    os._exit(0)


def ended_by(number: signal.Signals) -> int:
    os.kill(os.getpid(), number)
    return 0


def orphan(mark: Path) -> int:
    """Leave a process in a session of its own whose parent has ended."""
    between = os.fork()
    if between == 0:
        os.setsid()
        if os.fork() == 0:
            sleeper(mark)
        os._exit(0)
    os.waitpid(between, 0)
    wait_for(mark.exists)
    return 7


def wait_for(happened: Callable[[], object]) -> None:
    until = time.monotonic() + 30
    while not happened():
        assert time.monotonic() < until
        time.sleep(0.01)


def has_ended(mark: Path) -> bool:
    wait_for(lambda: mark.exists() and mark.read_text())
    return not psutil.pid_exists(int(mark.read_text()))


def descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def test_the_status_of_the_work() -> None:
    before = descriptors()
    ending = Guard(lambda: 7).wait()
    assert (ending.status, ending.left) == (7 << 8, 0)
    ending = Guard(lambda: ended_by(signal.SIGUSR1)).wait()
    assert ending.status is not None
    assert os.WTERMSIG(ending.status) == signal.SIGUSR1
    assert descriptors() == before


@only_linux
def test_an_orphan_in_another_session_ends_with_the_work(tmp_path: Path) -> None:
    ending = Guard(lambda: orphan(tmp_path / "pid")).wait()
    assert (ending.status, ending.left) == (7 << 8, 1)
    assert has_ended(tmp_path / "pid")


def test_work_and_all_that_it_started_is_stopped(tmp_path: Path) -> None:
    def work() -> int:
        orphan(tmp_path / "orphan")
        sleeper(tmp_path / "worker")

    guard = Guard(work)
    wait_for((tmp_path / "worker").exists)
    assert guard.stop().status is None
    assert has_ended(tmp_path / "worker")
    if sys.platform.startswith("linux"):
        assert has_ended(tmp_path / "orphan")


def test_two_guards_do_not_hold_each_other(tmp_path: Path) -> None:
    first = Guard(lambda: sleeper(tmp_path / "first"))
    second = Guard(lambda: sleeper(tmp_path / "second"))
    wait_for(lambda: (tmp_path / "first").exists() and (tmp_path / "second").exists())
    assert first.stop().status is None
    assert has_ended(tmp_path / "first")
    assert not has_ended(tmp_path / "second")
    second.stop()


def test_an_interrupt_in_the_work_is_its_own() -> None:
    ending = Guard(lambda: ended_by(signal.SIGINT)).wait()
    assert ending.status is not None
    assert os.WTERMSIG(ending.status) == signal.SIGINT


def test_a_program_ends_with_a_killed_maker(tmp_path: Path) -> None:
    source = f"""
from pathlib import Path
from fmilin.sandbox.other_processes import run_program
run_program(["sh", "-c", "echo $$ > shell; sleep 1000 & echo $! > sleep; wait"], Path({str(tmp_path)!r}))
"""
    maker = subprocess.Popen([sys.executable, "-c", source])
    wait_for(lambda: (tmp_path / "sleep").exists() and (tmp_path / "sleep").read_text())
    maker.kill()
    maker.wait()
    for name in ("shell", "sleep"):
        wait_for(lambda name=name: has_ended(tmp_path / name))  # type: ignore[misc]


def test_what_a_program_prints_and_returns(tmp_path: Path) -> None:
    assert run_program(["sh", "-c", "echo out; echo err >&2; pwd; exit 3"], tmp_path) == (3, f"out\nerr\n{tmp_path}\n")
    assert run_program(["sh", "-c", "kill -9 $$"], tmp_path)[0] == -9
    with pytest.raises(FileNotFoundError):
        run_program(["no-such-program"], tmp_path)
    (tmp_path / "no-program").write_bytes(b"\0")
    (tmp_path / "no-program").chmod(0o755)
    with pytest.raises(OSError, match="Exec format error"):
        run_program([str(tmp_path / "no-program")], tmp_path)
    with pytest.raises(TimeoutError):
        run_program(["sleep", "1000"], tmp_path, seconds=0.1)


def test_an_interrupt_at_the_fork_makes_no_second_maker() -> None:
    source = """
import os, signal
from fmilin.sandbox import guard
def interrupted():
    pid = os.fork()
    if pid == 0:
        os.kill(os.getpid(), signal.SIGINT)
    return pid
guard.fork = guard._fork = interrupted
try:
    print(guard.Guard(lambda: 7).wait().status, flush=True)
except KeyboardInterrupt:
    print("a second maker", flush=True)
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == (f"{7 << 8}\n", "")


def test_an_interrupt_right_after_the_fork_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    maker, before = os.getpid(), descriptors()

    def forked() -> int:
        pid = os.fork()
        if os.getpid() == maker:
            wait_for((tmp_path / "pid").exists)
            signal.raise_signal(signal.SIGINT)
        return pid

    monkeypatch.setattr(guard, "fork", forked)
    ignored = signal.signal(signal.SIGINT, signal.default_int_handler)  # as in a background job of a shell
    try:
        with pytest.raises(KeyboardInterrupt):
            Guard(lambda: sleeper(tmp_path / "pid"))
    finally:
        signal.signal(signal.SIGINT, ignored)
    assert has_ended(tmp_path / "pid")
    assert descriptors() == before
