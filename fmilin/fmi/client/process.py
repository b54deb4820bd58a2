"""The process in which the code of one FMU runs, from its start to its end.

Each message has its own time limit. A process that crashes, does not answer, or answers anything but what is expected
is ended, and a :class:`~fmilin.errors.ModelCrashError` says so. The arena and the programs outlive it.
"""

from __future__ import annotations

import itertools
import os
import select
import signal
import struct
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from fmilin.errors import ModelCrashError, ModelError, escape_controls
from fmilin.fmi.client.arena import Arena
from fmilin.fmi.client.printed_lines import PrintedLines
from fmilin.fmi.client.programs import MESSAGE, Instruction, Program
from fmilin.fmi.client.restrictions import UNRESTRICTED
from fmilin.fmi.host.build import host_program
from fmilin.fmi.sandbox_report import read_sandbox_report, warn_of_missing_protections

PROTOCOL_VERSION = 2
STARTING_TIME = 30.0  # seconds that the process may take to be ready
ENDING_TIME = 10.0  # seconds that the library may take to be unloaded

_ANSWER = struct.Struct("=IiIIQII")
_RECORD = struct.Struct("=iHH")
_OPEN, _DEFINE, _RUN, _EXECUTE, _QUIT = 1, 2, 3, 4, 5
_MOST_BYTES = 1 << 18  # of an answer
_MOST_PROGRAMS = 65536
_NEARLY_ALL = 0.8  # of the memory that a process may take: it may have crashed for want of more
_PIPE = 4096  # bytes that are read at a time

MALFORMED, NOT_LOADED, NO_FUNCTION, NO_INSTANCE, NO_MEMORY, STOPPED, TOO_LONG = range(-1, -8, -1)
"""What the host answers beside the statuses of FMI: ``enum host_status`` of ``protocol.h``."""


class Failure(NamedTuple):
    """Where a program ended that did not run to its end."""

    status: int
    instruction: int
    repetition: int
    program: tuple[Instruction, ...]

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.program[self.instruction].name if self.instruction < len(self.program) else "the call"


TakeRecord = Callable[[int, str, str], None]
"""(status, category, text) -> nothing: takes a message of the FMU."""


class HostProcess:
    """A host, ready to load an FMU.

    Parameters
    ----------
    arena
        The memory that it shares with this process.
    source
        The name of the FMU, for messages.
    take_record
        Takes each message of the FMU.
    options
        The limits, as options of ``host/sandbox.h``.
    environment
        The variables that the FMU sees.
    seconds
        The time that each message may take; None for no limit.
    """

    def __init__(
        self,
        arena: Arena,
        source: str,
        take_record: TakeRecord,
        *,
        options: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        seconds: float | None = 120.0,
    ) -> None:
        self.arena = arena
        self.seconds = seconds
        self.running_name = "its start"  # what runs or ran last, for error messages
        self.running: tuple[Instruction, ...] = ()
        self._memory = _memory_limit(options, arena)
        self._source = source
        self._take_record = take_record
        self._printed = PrintedLines(source)
        self._sequence = 0
        self._free_numbers: list[int] = []
        self._next_numbers = itertools.count()
        self._failure: ModelCrashError | None = None
        self._process, self._requests, self._answers, output, self._client_end = _start(
            arena, options, environment or {}
        )
        self._output = output
        self._owner = os.getpid()
        self._end = weakref.finalize(
            self, _end_process, self._process, (self._requests, self._answers, output, self._client_end), self._owner
        )
        self._poll = select.poll()
        self._poll.register(self._answers, select.POLLIN)
        self._poll.register(output, select.POLLIN)
        self._answered = [(self._answers, select.POLLIN)]
        status, *_, content = self._receive(STARTING_TIME)
        if status != PROTOCOL_VERSION:
            raise self._fail(f"is spoken to by a host of another version ({status} instead of {PROTOCOL_VERSION})")
        self.sandbox_report = content.decode("ascii", "replace")
        if UNRESTRICTED not in options:
            try:
                warn_of_missing_protections(read_sandbox_report(self.sandbox_report))
            except ValueError:
                raise self._fail("is spoken to by a host of another version") from None

    @property
    def is_alive(self) -> bool:
        """Whether it can be asked: not by a process that was forked from this one."""
        return self._failure is None and self._end.alive and os.getpid() == self._owner

    @property
    def process_id(self) -> int:
        """The number of the process that was started; the FMU's code may run in a child of it."""
        return self._process.pid

    def open_library(self, path: Path, version: int, *, stepped: bool, prefix: str = "") -> str:
        """Load a library; return the reason where it cannot be loaded, else nothing."""
        content = os.fsencode(path) + b"\0" + prefix.encode() + b"\0"
        self.running_name = "the loading of the library"
        self._send(MESSAGE.pack(_OPEN, len(content), version, int(stepped), 0) + content)
        status, _, _, records = self._receive(self.seconds)
        if status == 0:
            return ""
        texts = [text for _, _, text in self._split(records)]
        return " ".join(texts) or f"The host answers with status {status}."

    def run(self, program: Program, count: int = 1, first: int = 0) -> Failure | None:
        """Run a program's repetitions from ``first`` on; return where it ended if that was not the end."""
        if program.known_to is not self:
            failure = self._define(program)
            if failure is not None:
                return failure
        self.running = program.instructions
        if count == 1 and not first:
            self._send(program.request)
        else:
            self._send(MESSAGE.pack(_RUN, 0, program.number, first, count))
        return self._outcome()

    def execute(self, instructions: Iterable[Instruction]) -> Failure | None:
        """Run instructions once; return where they ended if that was not their end."""
        self.running = tuple(instructions)
        content = b"".join(i.record for i in self.running)
        self._send(MESSAGE.pack(_EXECUTE, len(content), 0, 0, 0) + content)
        return self._outcome()

    def close(self) -> None:
        """Let the library be unloaded and end the process. Idempotent.

        Raises
        ------
        ModelCrashError
            When the library crashes or hangs while it is unloaded.
        """
        if not self.is_alive:
            self._end()
            return
        self.running_name, self.running = "the unloading of the library", ()
        seconds = ENDING_TIME if self.seconds is None else min(ENDING_TIME, self.seconds)
        with suppress(OSError):
            os.write(self._requests, MESSAGE.pack(_QUIT, 0, 0, 0, 0))
        try:
            status, _ = _wait_for_process(self._process, seconds) if self._wait_for_end(seconds) else (None, 0)
            if status is not None:
                if status:
                    raise self._fail(f"{describe_end(status)} while it was unloaded")
            else:
                raise self._fail(f"was not unloaded within {seconds:g} s and was stopped")
        finally:
            self._printed.log(at_end=True)
            self._end()

    def kill(self) -> None:
        """End the process at once. Idempotent."""
        self._end()

    def _define(self, program: Program) -> Failure | None:
        number = self._free_numbers.pop() if self._free_numbers else next(self._next_numbers)
        if number >= _MOST_PROGRAMS:
            raise ModelError(f"'{self._source}' is asked for more than {_MOST_PROGRAMS} different things at a time.")
        content = program.content
        self.running = program.instructions
        self._send(MESSAGE.pack(_DEFINE, len(content), number, 0, 0) + content)
        failure = self._outcome()
        if failure is not None:
            self._free_numbers.append(number)
            return failure
        weakref.finalize(program, self._free_numbers.append, number).atexit = False
        program.known_to, program.number = self, number
        program.request = MESSAGE.pack(_RUN, 0, number, 0, 1)
        return None

    def _outcome(self) -> Failure | None:
        """Return where the present program ended, None at its end."""
        status, instruction, repetition, records = self._receive(self.seconds)
        if records:
            for record in self._split(records):
                self._take_record(*record)
        return Failure(status, instruction, repetition, self.running) if status else None

    def _send(self, message: bytes) -> None:
        if self._failure is not None:
            raise self._failure
        try:
            sent = os.write(self._requests, message)
            if sent != len(message):
                self._send_rest(memoryview(message)[sent:])
        except BlockingIOError:
            self._send_rest(memoryview(message))
        except OSError:  # it has ended; the answer will say how
            pass

    def _send_rest(self, message: memoryview) -> None:
        """Send more than the pipe takes at once."""
        deadline = None if self.seconds is None else time.monotonic() + self.seconds
        while message:
            seconds = None if deadline is None else deadline - time.monotonic()
            if seconds is not None and seconds <= 0:
                raise self._fail(self._describe_hang(self.seconds))
            _, writable, _ = select.select([], [self._requests], [], seconds)
            if writable:
                try:
                    message = message[os.write(self._requests, message) :]
                except BlockingIOError:
                    continue
                except OSError:
                    return

    def _receive(self, seconds: float | None) -> tuple[int, int, int, bytes]:
        """Return status, instruction, repetition and further bytes of the next answer."""
        try:
            data = self._read(seconds, seconds)
            if len(data) < _ANSWER.size:
                data = self._read_rest(data, _ANSWER.size, seconds)
            sequence, status, instruction, size, repetition, dropped, _ = _ANSWER.unpack_from(data)
            if size and size <= _MOST_BYTES and len(data) < _ANSWER.size + size:
                data = self._read_rest(data, _ANSWER.size + size, seconds)
        except ModelCrashError:
            raise
        except BaseException:  # the user interrupts: the answer that is still to come would be taken for another
            self._fail("was interrupted")
            raise
        if sequence != self._sequence or len(data) != _ANSWER.size + size:
            raise self._fail("wrote among the answers of its host")
        self._sequence = (sequence + 1) & 0xFFFFFFFF
        if dropped:
            self._take_record(0, "host", f"({dropped} earlier messages are not shown)")
        return status, instruction, repetition, data[_ANSWER.size :]

    def _read_rest(self, data: bytes, size: int, seconds: float | None) -> bytes:
        deadline = None if seconds is None else time.monotonic() + seconds
        while len(data) < size:
            data += self._read(None if deadline is None else deadline - time.monotonic(), seconds)
        return data

    def _read(self, seconds: float | None, limit: float | None) -> bytes:
        """Return some bytes of an answer; take what the FMU prints meanwhile."""
        deadline = None
        while True:
            ready = self._poll.poll(None if seconds is None else max(0.0, 1000 * seconds))
            if ready == self._answered:
                data = self._take_answer()
                if data is not None:
                    return data
            if not ready or (seconds is not None and seconds <= 0):  # one that never stops printing is always ready
                raise self._fail(self._describe_hang(limit))
            if seconds is not None:
                now = time.monotonic()
                deadline = now + seconds if deadline is None else deadline
                seconds = deadline - now
            for descriptor, _ in ready:
                if descriptor == self._output and not self._take_output():
                    self._poll.unregister(self._output)  # closed by the FMU
            self._printed.log()
            if ready != self._answered and any(descriptor == self._answers for descriptor, _ in ready):
                data = self._take_answer()
                if data is not None:
                    return data

    def _take_answer(self) -> bytes | None:
        """Return bytes of an answer; None where the FMU, which can read from the pipe, too, was faster."""
        try:
            data = os.read(self._answers, _PIPE)
        except BlockingIOError:
            return None
        if not data:
            raise self._describe_death()
        return data

    def _take_output(self) -> bool:
        """Take what was printed; False at the end of it."""
        try:
            content = os.read(self._output, _PIPE)
        except BlockingIOError:
            return True
        self._printed.feed(content)
        return bool(content)

    def _split(self, content: bytes) -> list[tuple[int, str, str]]:
        """Return (status, category, text) of each log record."""
        records = []
        while content:
            if len(content) < _RECORD.size:
                raise self._fail("wrote among the answers of its host")
            status, *sizes = _RECORD.unpack_from(content)
            begin, middle, end = _RECORD.size, _RECORD.size + sizes[0], _RECORD.size + sum(sizes)
            if end > len(content):
                raise self._fail("wrote among the answers of its host")
            parts = (content[begin:middle], content[middle:end])
            category, text = (escape_controls(part.decode("utf-8", "replace"), "\n\t") for part in parts)
            records.append((status, category, text))
            content = content[end:]
        return records

    def _where(self) -> str:
        """Return the function that runs, or ran last."""
        instruction, _, running = self.arena.progress()
        if running and instruction < len(self.running):
            return self.running[instruction].name
        return self.running[-1].name if self.running else self.running_name

    def _describe_hang(self, limit: float | None) -> str:
        return (
            f"did not return from {self._where()} within {limit:g} s and was stopped. If it only needs more time, give "
            "it more with fl.Limits(seconds=SECONDS)"
        )

    def _describe_death(self) -> ModelCrashError:
        where = self._where()
        self._wait_for_end(1.0)
        status, memory = _wait_for_process(self._process, ENDING_TIME)
        if status is None:
            return self._fail(f"closed the connection to its host in {where}")
        how = f"{describe_end(status)} in {where}"
        if self._memory is not None and memory > _NEARLY_ALL * self._memory:
            how += (
                f". It had nearly all of the {self._memory / 2**30:.2f} GiB of memory that it may take: give it more "
                "with fl.Limits(memory=GIB * 2**30)"
            )
        return self._fail(how)

    def _wait_for_end(self, seconds: float) -> bool:
        """Take what is printed until all is closed; False if that does not happen in this time."""
        deadline = time.monotonic() + seconds
        open_ones = {self._answers, self._output}
        while open_ones:
            remaining = max(0.0, deadline - time.monotonic())
            readable, _, _ = select.select(list(open_ones), [], [], remaining)
            if not readable or not remaining:
                return self._process.poll() is not None
            for descriptor in readable:
                is_open = self._take_output() if descriptor == self._output else self._drop_answer()
                if not is_open:
                    open_ones.discard(descriptor)
        return True

    def _drop_answer(self) -> bool:
        """Read past an answer that comes too late; False at the end."""
        try:
            return bool(os.read(self._answers, _PIPE))
        except BlockingIOError:
            return True

    def _fail(self, how: str) -> ModelCrashError:
        """Return the error that the process ends with, and end it."""
        said = escape_controls(" ".join(self.arena.last_text().split())) if self.running else ""
        words = f' It said last: "{said}".' if said else ""
        words += f' It printed last: "{self._printed.recent}".' if self._printed.recent else ""
        self._printed.log(at_end=True)
        self._end()
        self._failure = ModelCrashError(
            f"The model '{self._source}' {how}.{words} This is the FMU's own code, which ran in a separate process: "
            "ask its maker, or export it again with another tool version, FMI version or solver."
        )
        return self._failure


_Started = tuple[subprocess.Popen[bytes], int, int, int, int]


def _start(arena: Arena, options: Sequence[str], environment: Mapping[str, str]) -> _Started:
    """Start a host; return it, then its pipes: requests, answers, what is printed, and one that shows our end."""
    program = host_program()
    pairs = [os.pipe() for _ in range(4)]
    (requests, our_requests), (our_answers, answers), (our_output, output), (alive, our_end) = pairs
    kept = (requests, answers, alive)
    command = [str(program), str(requests), str(answers), str(arena.descriptor), str(arena.size)]
    for descriptor in (requests, answers):
        command += ["--keep-descriptor", str(descriptor)]
    command += ["--client-descriptor", str(alive), *options]
    try:
        process = subprocess.Popen(  # noqa: S603 - our own program, no shell
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=(*kept, arena.descriptor),
            start_new_session=True,
            env=dict(environment),
            cwd="/",
        )
    except OSError as error:
        for descriptor in (our_requests, our_answers, our_output, our_end):
            os.close(descriptor)
        raise ModelError(
            f"The program that loads FMUs, '{program}', cannot be started: {error.strerror or error}. Install fmilin "
            "again, or let the environment variable FMILIN_HOST name another build of it."
        ) from None
    finally:
        for descriptor in (*kept, output):
            os.close(descriptor)
    os.set_blocking(our_requests, False)
    os.set_blocking(our_answers, False)
    os.set_blocking(our_output, False)
    return process, our_requests, our_answers, our_output, our_end


def _end_process(process: subprocess.Popen[bytes], descriptors: Iterable[int], owner: int) -> None:
    """End a process, if it has not ended and belongs to this one, not to that which this was forked from."""
    is_ours = os.getpid() == owner
    if is_ours:
        process.kill()
    for descriptor in descriptors:
        os.close(descriptor)
    if is_ours:
        process.wait()


def _memory_limit(options: Sequence[str], arena: Arena) -> int | None:
    """Return how many bytes the process may take besides those of the arena; None for no limit."""
    values = [int(value) for option, value in pairwise(options) if option == "--memory"]
    return values[-1] - arena.size if values else None


def _wait_for_process(process: subprocess.Popen[bytes], seconds: float) -> tuple[int | None, int]:
    """Return how a process ended, None if it has not in this time; and the most bytes of memory that it had."""
    if sys.platform == "win32" or process.returncode is not None:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(seconds), 0
        return None, 0
    until = time.monotonic() + seconds
    while True:
        ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        if ended:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        if time.monotonic() > until:
            return None, 0
        time.sleep(0.001)


def describe_end(status: int) -> str:
    """Return what became of a model, as the end of a sentence that begins with it."""
    if status >= 0:
        return f"ended the whole process by itself (exit status {status})"
    if status == -signal.SIGKILL:
        return "was killed (SIGKILL; the usual reason is that memory ran out)"
    try:
        name = f"{signal.Signals(-status).name}: {(signal.strsignal(-status) or '').lower()}"
    except ValueError:
        name = f"signal {-status}"
    if status == -signal.SIGFPE:
        name += "; it switched floating-point traps on, or divided integers by zero"
    return f"crashed ({name})"
