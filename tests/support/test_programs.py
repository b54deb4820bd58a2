"""Programs that are run to their end: what they print and return, and that nothing of them stays behind."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from fmilin.support.programs import run_program

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the programs are those of POSIX")


def wait_for(condition: Callable[[], object], seconds: float = 30.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def has_ended(file: Path) -> bool:
    try:
        return bool(psutil.Process(int(file.read_text())).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def test_what_a_program_prints_and_returns(tmp_path: Path) -> None:
    assert run_program(["sh", "-c", "echo out; echo err >&2; pwd; exit 3"], tmp_path) == (3, f"out\nerr\n{tmp_path}\n")
    assert run_program(["sh", "-c", "kill -9 $$"], tmp_path)[0] == -9
    assert run_program(["sh", "-c", "cat"], tmp_path) == (0, "")
    assert run_program(["/bin/sh", "-c", "echo $NAME$HOME"], tmp_path, environment={"NAME": "x"}) == (0, "x\n")


def test_a_program_that_cannot_be_started(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        run_program(["no-such-program"], tmp_path)
    (tmp_path / "no-program").write_bytes(b"\0")
    (tmp_path / "no-program").chmod(0o755)
    with pytest.raises(OSError, match="Exec format error"):
        run_program([str(tmp_path / "no-program")], tmp_path)


SCRIPT = "echo $$ > shell; sleep 1000 & echo $! > sleep; wait"


def test_a_program_that_takes_too_long_ends_with_what_it_has_started(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError):
        run_program(["sh", "-c", SCRIPT], tmp_path, seconds=1.0)
    assert (tmp_path / "sleep").read_text()
    for name in ("shell", "sleep"):
        wait_for(lambda name=name: has_ended(tmp_path / name))  # type: ignore[misc]


def test_a_program_ends_with_an_interrupt(tmp_path: Path) -> None:
    def interrupt() -> None:
        wait_for(lambda: (tmp_path / "sleep").exists() and (tmp_path / "sleep").read_text())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        run_program(["sh", "-c", SCRIPT], tmp_path)
    for name in ("shell", "sleep"):
        wait_for(lambda name=name: has_ended(tmp_path / name))  # type: ignore[misc]
