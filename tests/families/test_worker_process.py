"""Processes of ours that answer messages end when they are told to, and with the process that started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from fmilin.families import worker_process
from fmilin.families.worker_process import MakersPipe, WorkerProcess

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="workers that are forked need fork()"),
    pytest.mark.usefixtures("no_dump_of_the_stack"),
]


def echo(pipe: MakersPipe) -> None:
    while True:
        pipe.send(pipe.receive())


def receive(worker: WorkerProcess) -> object:
    while True:
        for message in worker.pipe.messages():
            return message
        worker.pipe.take()


def test_messages_larger_than_a_pipe_come_back_whole() -> None:
    worker = WorkerProcess(echo)
    worker.pipe.send(bytes(300_000))
    assert receive(worker) == bytes(300_000)
    worker.close()
    assert not psutil.pid_exists(worker.process_id)


def test_what_is_printed_is_no_message() -> None:
    def talk(pipe: MakersPipe) -> None:
        os.write(1, b"words")
        pipe.send("an answer")
        pipe.receive()

    worker = WorkerProcess(talk)
    assert receive(worker) == "an answer"
    worker.close()


def test_a_worker_that_crashes_says_how() -> None:
    def crash(pipe: MakersPipe) -> None:
        pipe.receive()
        os.kill(os.getpid(), signal.SIGSEGV)

    worker = WorkerProcess(crash)
    worker.pipe.send("go on")
    with pytest.raises(EOFError):
        receive(worker)
    assert str(worker.describe_crash()).startswith("The process that computed points crashed (SIGSEGV")
    worker.kill()


def test_ending_a_worker_twice_closes_no_descriptors_of_others() -> None:
    worker = WorkerProcess(echo)
    worker.kill()
    ends = os.pipe()  # takes the numbers that have become free
    worker.kill()
    for end in ends:
        os.close(end)


def test_a_worker_that_sends_without_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    def serve(pipe: MakersPipe) -> None:
        while True:
            pipe.send("and so on")

    monkeypatch.setattr(worker_process, "ENDING_TIME", 0.2)
    worker = WorkerProcess(serve)
    assert receive(worker) == "and so on"
    worker.close()
    assert not psutil.pid_exists(worker.process_id)


def test_workers_end_with_a_killed_maker_even_while_they_compute(tmp_path: Path) -> None:
    source = f"""
import os, time
from pathlib import Path
from fmilin.families.worker_process import WorkerProcess

def compute(pipe):
    Path({str(tmp_path)!r}, str(os.getpid())).touch()
    while True:
        pass

workers = [WorkerProcess(compute), WorkerProcess(compute)]
time.sleep(100)
"""
    maker = subprocess.Popen([sys.executable, "-c", source])
    until = time.monotonic() + 30
    while len(list(tmp_path.iterdir())) < 2:
        assert time.monotonic() < until
        time.sleep(0.02)
    maker.kill()
    maker.wait()
    for file in tmp_path.iterdir():
        while psutil.pid_exists(int(file.name)) and psutil.Process(int(file.name)).status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < until
            time.sleep(0.02)
