"""A child process that answers one pickled message after the other, for as long as the code that it runs lives."""

from __future__ import annotations

import os
import pickle
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from fmilin.errors import ModelCrashError
from fmilin.sandbox import cage, isolation, watchdog
from fmilin.sandbox.guard import Guard
from fmilin.sandbox.limits import Limits, say_what_is_missing
from fmilin.sandbox.watchdog import close_all_but, high, read_nothing
from fmilin.support.files import new_folder
from fmilin.support.other_python import python_with_imports

_HEADER = 8
_ROUND = 0.2  # seconds between two looks at a child, at least
_END = None  # the message after which there is nothing more: an end of the pipe may live on in another process


class Pipe:
    """Messages in and out."""

    def __init__(self, read_end: int, write_end: int) -> None:
        self.read_end, self.write_end = read_end, write_end
        self._received = bytearray()

    def send(self, message: object) -> None:
        """Send a message; OSError when nobody listens."""
        content = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
        rest = memoryview(len(content).to_bytes(_HEADER, "little") + content)
        while rest:
            rest = rest[os.write(self.write_end, rest) :]

    def receive(self) -> Any:
        """Wait for a message; EOFError when there will be none."""
        while True:
            for message in self.messages():
                if message is _END:
                    raise EOFError
                return message
            self.hear()

    def hear(self) -> None:
        """Take in what there is; EOFError at the end."""
        word = os.read(self.read_end, 1 << 20)
        if not word:
            raise EOFError
        self._received += word

    def messages(self) -> Iterable[Any]:
        """Yield the messages that are complete."""
        while len(self._received) >= _HEADER:
            end = _HEADER + int.from_bytes(self._received[:_HEADER], "little")
            if len(self._received) < end:
                return
            content = bytes(self._received[_HEADER:end])
            del self._received[:end]
            yield pickle.loads(content)  # noqa: S301 - written by our own child, or by our parent

    def close(self) -> None:
        """Close both ends, once: their numbers may be others' afterwards."""
        ends, self.read_end, self.write_end = (self.read_end, self.write_end), -1, -1
        for end in ends:
            if end >= 0:
                with suppress(OSError):
                    os.close(end)


class _HiddenPipe(Pipe):
    """The child's side of two named pipes, open only while it sends or waits: foreign code finds no descriptor."""

    def __init__(self, asks: Path, answers: Path) -> None:
        super().__init__(-1, -1)
        self._asks, self._answers = asks, answers

    def send(self, message: object) -> None:
        self.write_end = high(os.open(self._answers, os.O_WRONLY))
        try:
            super().send(message)
        finally:
            self.close()

    def receive(self) -> Any:
        self.read_end = high(os.open(self._asks, os.O_RDONLY))
        try:
            return super().receive()
        finally:
            self.close()


def _named_pipe(path: Path) -> tuple[int, int]:
    """Make a named pipe and return its ends."""
    os.mkfifo(path, 0o600)
    read_end = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # does not wait for a writer
    try:
        write_end = os.open(path, os.O_WRONLY)
    except BaseException:
        os.close(read_end)
        raise
    os.set_blocking(read_end, True)
    return read_end, write_end


Serve = Callable[[Pipe], None]  # what the child does: it returns when the pipe says that there is nothing more


class Server:
    """A child process, forked or started as a program; ``alone`` closes all it inherits but the standard streams."""

    def __init__(
        self,
        serve: Serve | None,
        limits: Limits | None = None,
        *,
        others: Iterable[Server] = (),
        first: object = None,
        alone: bool = False,
    ) -> None:
        limits = limits or Limits()
        say_what_is_missing(limits)
        self._limits = limits
        self._seconds, self._processes = limits.seconds, limits.processes
        self._memory = isolation.free_memory() if limits.memory is None else limits.memory
        self._scratch = new_folder()
        self._note: watchdog.Note | None = None
        self._program: subprocess.Popen[bytes] | None = None
        self._guard: Guard | None = None
        self.pipe = Pipe(-1, -1)
        try:
            if serve is None:
                self._start(first)
            else:
                self._split(serve, list(others), alone=alone)
        except BaseException:
            self.kill()
            raise

    def _start(self, first: object) -> None:
        command = python_with_imports("from fmilin.families.processes import main; main()")
        environment = {**os.environ, "TMPDIR": str(self._scratch)}
        self._program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)  # noqa: S603
        assert self._program.stdin is not None  # noqa: S101 - asked for
        assert self._program.stdout is not None  # noqa: S101
        self.process = self._program.pid
        self.pipe = Pipe(self._program.stdout.fileno(), self._program.stdin.fileno())
        with suppress(BrokenPipeError):  # one that has ended already is found when its end of the pipe is read
            self.pipe.send(first)

    def _split(self, serve: Serve, others: list[Server], *, alone: bool) -> None:
        note = self._note = watchdog.Note()
        isolation.flush()
        scratch = self._scratch / "scratch"
        scratch.mkdir(mode=0o700)
        paths = [self._scratch / os.urandom(16).hex() for _ in range(2)]
        caged = cage.Cage(self._limits, scratch, paths) if alone and self._limits.caged else None

        def work() -> int:
            for pipe in (self.pipe, childs, *(other.pipe for other in others)):
                pipe.close()
            if alone:
                close_all_but()
            cage.prepare(caged)
            read_nothing()
            os.dup2(2, 1)  # what C code prints must not mix with results
            watchdog.write_to(note)
            isolation.leave_no_core()
            os.environ["TMPDIR"] = tempfile.tempdir = str(scratch)
            with suppress(EOFError, BrokenPipeError):
                serve(_HiddenPipe(*paths))
            return 0

        childs = Pipe(-1, -1)  # the guard keeps these open
        try:
            childs.read_end, self.pipe.write_end = _named_pipe(paths[0])
            self.pipe.read_end, childs.write_end = _named_pipe(paths[1])
            self._guard = Guard(work, apart=caged is not None)
        finally:
            childs.close()
        self.process = self._guard.pid

    def check(self) -> None:
        """Stop a child that takes more than it may; a program does that with the child that it has."""
        if self._program is not None and isolation.can_isolate():
            return
        seconds = None if self._note is None else self._note.seconds
        if self._seconds is not None and seconds is not None and seconds > self._seconds:
            where = self._where("from")
            self.kill()
            raise ModelCrashError(f"The model did not return{where} within {self._seconds:g} s and was stopped.")
        processes = isolation.descendants(self.process)[0 if self._guard is None else self._guard.processes :]
        started = len(processes) - 1 if self._guard else len(processes)
        if started > self._processes:
            where = self._where("in")
            self.kill()
            raise ModelCrashError(
                f"The model started {started} processes, more than the {self._processes} it may have, and was "
                f"stopped{where}."
            )
        if self._program is not None:
            with suppress(psutil.Error):  # it has ended: that is found when its end of the pipe is read
                processes.append(psutil.Process(self.process))
        used = isolation.memory_of(processes)
        if used > self._memory:
            self.kill()
            raise ModelCrashError(
                f"The model took {used / 2**30:.2f} GiB of memory, more than the {self._memory / 2**30:.2f} GiB it may "
                "have, and was stopped."
            )

    def crash(self) -> ModelCrashError:
        """Return how the child ended, which has ended."""
        where = self._where("in")
        if self._program is not None:
            status = self._program.wait()
            how = f"ended with exit status {status}" if status >= 0 else f"was killed by signal {-status}"
            return ModelCrashError(f"The model {how}.")
        assert self._guard is not None  # noqa: S101 - it is one or the other
        ending = self._guard.wait()
        words = "" if self._note is None else " / ".join(line for line in self._note.last_lines() if line)
        return ModelCrashError(
            f"The model {isolation.how_it_ended(ending)}{where}." + (f' It said last: "{words}".' if words else "")
        )

    def _where(self, word: str) -> str:
        function = "" if self._note is None else self._note.read()
        return f" {word} {function}" if function else ""

    def kill(self) -> None:
        """End the child at once."""
        if self._program is not None:
            self._program.kill()
            self._program.wait()
            for stream in (self._program.stdin, self._program.stdout):
                with suppress(OSError):
                    if stream is not None:
                        stream.close()
        else:
            if self._guard is not None:
                self._guard.stop()
            self.pipe.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def close(self) -> None:
        """Ask the child to end, which closes its model; one that does not is ended."""
        until = time.monotonic() + isolation.UNLOADING_TIME
        with suppress(OSError, EOFError):
            self.pipe.send(_END)
            while select.select([self.pipe.read_end], [], [], max(0.0, until - time.monotonic()))[0]:
                self.pipe.hear()
                if time.monotonic() > until:  # it talks without end
                    break
        self.kill()


def relay(maker: Pipe, server: Server) -> None:
    """Hand on what a maker asks and a child answers until one of them ends; raise how the child did, or was stopped."""
    ends = [maker.read_end, server.pipe.read_end]
    next_check = time.monotonic() + _ROUND
    try:
        while True:
            readable = select.select(ends, [], [], _ROUND)[0]
            if maker.read_end in readable:
                maker.hear()
                for message in maker.messages():
                    if message is _END:
                        server.close()
                        return
                    server.pipe.send(message)
            if server.pipe.read_end in readable:
                try:
                    server.pipe.hear()
                except (EOFError, OSError):
                    raise server.crash() from None
                for message in server.pipe.messages():
                    maker.send(message)
            if time.monotonic() > next_check:
                server.check()
                next_check = time.monotonic() + _ROUND
    finally:
        server.kill()


def serve_standard_streams() -> Pipe:
    """Return the pipe of a child that was started as a program; its standard output becomes standard error."""
    read_end, write_end = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return Pipe(read_end, write_end)
