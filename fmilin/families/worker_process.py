"""Processes of ours that compute for this one and answer messages.

Messages are pickles: both ends are ours. No code of an FMU runs in these processes; each has hosts for its FMUs, and
their answers are numbers.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, NoReturn

from fmilin.errors import ModelCrashError
from fmilin.fmi.client.endings import describe_end
from fmilin.support.other_python import python_with_imports
from fmilin.support.waiting import wait_for_readable

ENDING_TIME = 10.0  # seconds that a process may take to close its models
_HEADER = 8  # bytes of a message's length
_END = None  # the message after which there is none


class Pipe:
    """Messages in and out."""

    def __init__(self, read_end: int, write_end: int) -> None:
        self.read_end, self.write_end = read_end, write_end
        self._received = bytearray()

    def send(self, message: object) -> None:
        """Send a message; OSError when the other process has ended."""
        content = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
        rest = memoryview(len(content).to_bytes(_HEADER, "little") + content)
        while rest:
            rest = rest[os.write(self.write_end, rest) :]

    def take(self) -> None:
        """Take in what has come, after waiting for something; EOFError at the end."""
        content = os.read(self.read_end, 1 << 20)
        if not content:
            raise EOFError
        self._received += content

    def messages(self) -> Iterator[Any]:
        """Yield the messages that are complete."""
        while len(self._received) >= _HEADER:
            end = _HEADER + int.from_bytes(self._received[:_HEADER], "little")
            if len(self._received) < end:
                return
            with memoryview(self._received) as received, received[_HEADER:end] as content:
                message = pickle.loads(content)  # noqa: S301 - written by a process of ours, see above
            del self._received[:end]
            yield message

    def close(self) -> None:
        """Close both ends, once: their numbers may be others' afterwards."""
        ends, self.read_end, self.write_end = (self.read_end, self.write_end), -1, -1
        for end in ends:
            if end >= 0:
                with suppress(OSError):
                    os.close(end)


class MakersPipe:
    """The end of a worker: it waits for messages in a thread, and ends this process when its maker has ended."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._messages: SimpleQueue[Any] = SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def send(self, message: object) -> None:
        """Send a message."""
        self._pipe.send(message)

    def receive(self) -> Any:
        """Return the next message, after waiting for it; EOFError when there will be none."""
        message = self._messages.get()
        if message is _END:
            raise EOFError
        return message

    def _listen(self) -> None:
        with suppress(EOFError, OSError):
            while True:
                for message in self._pipe.messages():
                    self._messages.put(message)
                    if message is _END:
                        return
                self._pipe.take()
        os._exit(1)


Serve = Callable[[MakersPipe], None]
"""The function of a worker: it returns when the pipe has no more messages."""


class WorkerProcess:
    """A process that serves: forked, or with ``serve`` None a Python that runs ``main`` of ``processes``."""

    def __init__(self, serve: Serve | None, first: object = None, siblings: Iterable[WorkerProcess] = ()) -> None:
        self._program: subprocess.Popen[bytes] | None = None
        self._status: int | None = None  # how it ended, as of subprocess
        self.pipe = Pipe(-1, -1)
        if serve is None:
            self._start(first)
        else:
            self._fork(serve, [self, *siblings])

    def _start(self, first: object) -> None:
        command = python_with_imports("from fmilin.families.processes import main; main()")
        self._program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603 - ours
        assert self._program.stdin is not None  # noqa: S101 - asked for
        assert self._program.stdout is not None  # noqa: S101
        self.process_id = self._program.pid
        self.pipe = Pipe(os.dup(self._program.stdout.fileno()), os.dup(self._program.stdin.fileno()))
        self._program.stdin.close()
        self._program.stdout.close()
        with suppress(BrokenPipeError):  # one that has ended already shows when its end of the pipe is read
            self.pipe.send(first)

    def _fork(self, serve: Serve, ours: Iterable[WorkerProcess]) -> None:
        requests, answers = os.pipe(), os.pipe()
        self.pipe = Pipe(answers[0], requests[1])
        with warnings.catch_warnings():
            # Newer Pythons warn that threads of this process, as those of linear algebra, do not exist in the child.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.process_id = os.fork()
        if not self.process_id:
            _serve_and_end(serve, Pipe(requests[0], answers[1]), ours)
        os.close(requests[0])
        os.close(answers[1])

    def describe_crash(self) -> ModelCrashError:
        """Return how the process ended, which has ended."""
        return ModelCrashError(f"The process that computed points {describe_end(self._wait())}.")

    def kill(self) -> None:
        """End the process at once. Idempotent."""
        if self._status is None:
            with suppress(ProcessLookupError):
                os.kill(self.process_id, signal.SIGTERM if os.name == "nt" else signal.SIGKILL)
            self._wait()
        self.pipe.close()

    def close(self) -> None:
        """Let the process close its models and end; one that does not is ended."""
        until = time.monotonic() + ENDING_TIME
        with suppress(OSError, EOFError):
            self.pipe.send(_END)
            while wait_for_readable([self.pipe.read_end], max(0.0, until - time.monotonic())):
                self.pipe.take()
                if time.monotonic() > until:
                    break
        self.kill()

    def _wait(self) -> int:
        if self._status is None:
            if self._program is not None:
                self._status = self._program.wait()
            else:
                self._status = 0  # of a process that ignores its children's ends
                with suppress(ChildProcessError):
                    self._status = os.waitstatus_to_exitcode(os.waitpid(self.process_id, 0)[1])
        return self._status


def _serve_and_end(serve: Serve, pipe: Pipe, siblings: Iterable[WorkerProcess]) -> NoReturn:
    """Serve in a process that has been forked, and end it: nothing that the other process holds is given back."""
    status = 1
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN if number == signal.SIGINT else signal.SIG_DFL)
        for other in siblings:
            other.pipe.close()
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(2, 1)  # what code prints must not mix with results
        with suppress(EOFError, BrokenPipeError):
            serve(MakersPipe(pipe))
        status = 0
    finally:
        os._exit(status)


def serve_standard_streams() -> MakersPipe:
    """Return the pipe of a worker that was started as a program; its standard output becomes standard error."""
    pipe = Pipe(os.dup(0), os.dup(1))
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return MakersPipe(pipe)
