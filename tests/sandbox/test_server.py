"""A child that answers messages, whatever foreign code does in it: one that goes wrong harms nobody else."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from fmilin import Limits
from fmilin.errors import ModelCrashError
from fmilin.sandbox import server as module
from fmilin.sandbox.server import Pipe, Server

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="servers need fork()")


def descriptors() -> list[str]:
    return sorted(os.listdir("/dev/fd"))  # noqa: PTH208 - the names are numbers


def echo(pipe: Pipe) -> None:
    pipe.send(pipe.receive())


def garbage(pipe: Pipe) -> None:
    for descriptor in range(3, 1024):
        with suppress(OSError):
            os.write(descriptor, b"garbage")
    pipe.send(pipe.receive())


def deafness(pipe: Pipe) -> None:
    os.closerange(0, 1024)
    pipe.send(pipe.receive())


@pytest.mark.parametrize("serve", [garbage, deafness])
def test_what_is_written_to_or_closed_is_not_the_answer(serve: Callable[[Pipe], None], tmp_path: Path) -> None:
    other = (tmp_path / "results").open("w")
    server = Server(serve, alone=True)
    server.pipe.send(bytes(200_000))
    assert server.pipe.receive() == bytes(200_000)
    server.close()
    other.close()
    assert (tmp_path / "results").read_text() == ""


def test_processes_are_counted(tmp_path: Path) -> None:
    def serve(pipe: Pipe) -> None:
        for _ in range(6):
            if os.fork() == 0:
                time.sleep(1000)
                os._exit(0)
        pipe.send("ready")
        pipe.receive()

    server = Server(serve, Limits(processes=5))
    assert server.pipe.receive() == "ready"
    with pytest.raises(ModelCrashError, match="started 6 processes, more than the 5 it may have"):
        server.check()
    server = Server(serve, Limits(processes=6))
    assert server.pipe.receive() == "ready"
    server.check()
    server.kill()


def test_ending_a_server_twice_closes_nobody_elses_descriptors() -> None:
    server = Server(echo)
    server.kill()
    ends = os.pipe()  # takes the numbers that have become free
    server.kill()
    for end in ends:
        os.close(end)


def test_one_that_talks_without_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    def serve(pipe: Pipe) -> None:
        while True:
            pipe.send("and so on")

    monkeypatch.setattr("fmilin.sandbox.isolation.UNLOADING_TIME", 0.2)
    talker = Server(serve)
    assert talker.pipe.receive() == "and so on"
    talker.close()
    with pytest.raises(ProcessLookupError):
        os.kill(talker.process, 0)


def test_one_that_does_not_start_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refused(work: object, **_: object) -> None:
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(module, "Guard", refused)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = descriptors()
    with pytest.raises(BlockingIOError):
        Server(echo)
    assert descriptors() == before
    assert list(tmp_path.iterdir()) == []
