"""The process in which the code of one FMU runs, from its start to its end.

Each message has its own time limit. A process that crashes, does not answer, or answers anything but what is expected
is ended, and a :class:`~fmilin.errors.ModelCrashError` says so. The arena and the programs outlive it.
"""

from __future__ import annotations

import itertools
import os
import struct
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, NoReturn

from fmilin.errors import ModelCrashError, ModelError, escape_controls
from fmilin.fmi.client.arena import Arena
from fmilin.fmi.client.endings import describe_end
from fmilin.fmi.client.host_programs import MESSAGE, Instruction, Program
from fmilin.fmi.client.printed_lines import PrintedLines
from fmilin.fmi.client.restrictions import UNRESTRICTED
from fmilin.fmi.client.wine import SANDBOX_MISSING_STATUS, Wine, to_windows_path, without_sandbox
from fmilin.fmi.host.build import host_program
from fmilin.fmi.sandbox_protections import read_sandbox_report, warn_of_missing_protections

if sys.platform == "win32":
    from fmilin.fmi.client.pipes_windows import WindowsPipes as HostPipes
else:
    from fmilin.fmi.client.pipes_posix import PosixPipes as HostPipes

PROTOCOL_VERSION = 3
STARTING_TIME = 30.0  # seconds that the process may take to be ready
ENDING_TIME = 10.0  # seconds that the library may take to be unloaded
CLOCK_ROUNDS = 8  # how often within the limit of a call is looked whether the host has come to another one

_ANSWER = struct.Struct("=IiIIQII")
_RECORD = struct.Struct("=iHH")
_OPEN_MESSAGE, _DEFINE_MESSAGE, _RUN_MESSAGE, _EXECUTE_MESSAGE, _QUIT_MESSAGE, _COPY_HOST_MESSAGE = 1, 2, 3, 4, 5, 6
_MAKE_COPY_CODE, _RETURN_TO_COPY_CODE, _DROP_COPY_CODE = 0, 1, 2
_MAX_BYTES = 1 << 18  # of an answer
_MAX_PROGRAMS = 65536
_MEMORY_EXHAUSTION_FRACTION = 0.8  # of the memory that a process may take: it may have crashed for want of more

MALFORMED, NOT_LOADED, NO_FUNCTION, NO_INSTANCE, NO_MEMORY, STOPPED, TOO_LONG, NOT_COPIED, CRASHED = range(-1, -10, -1)
"""Statuses of the host itself, in addition to those of FMI: ``enum host_status`` of ``protocol.h``."""


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
    wine
        Runs ``program``, which is for Windows.
    program
        The host, by default that for this machine.
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
        wine: Wine | None = None,
        program: Path | None = None,
    ) -> None:
        self.arena = arena
        self.seconds = seconds
        self.running_name = "its start"  # what runs or ran last, for error messages
        self.running: tuple[Instruction, ...] = ()
        self._last_repetition = 0  # the end of the repetitions that run or ran last
        self._memory = _memory_limit(options, arena, "--memory")
        self._memory_of_copy = _memory_limit(options, arena, "--copies")
        self._source = source
        self._take_record = take_record
        self._printed = PrintedLines(source)
        self._sequence = 0
        self._free_numbers: list[int] = []
        self._next_numbers = itertools.count()
        self._failure: ModelCrashError | None = None
        self._new_to_copy: weakref.WeakSet[Program] = weakref.WeakSet()  # what the copy of the host has not taken
        self._before_copy = object()  # what those belong to that have a number, but not in the present host
        self._wine = wine
        program = program or host_program()
        try:
            self._pipes = HostPipes(program, arena, options, environment or {}, self._printed, wine)
        except OSError as error:
            raise ModelError(
                f"The program that loads FMUs, '{program}', cannot be started: {error.strerror or error}. Install "
                "fmilin again, or let the environment variable FMILIN_HOST name another build of it."
            ) from None
        try:
            status, *_, content = self._receive(STARTING_TIME)
        except ModelCrashError:
            if wine is not None and self._pipes.wait(0.0)[0] == SANDBOX_MISSING_STATUS:
                raise without_sandbox(source) from None
            raise
        if status != PROTOCOL_VERSION:
            raise self._fail(f"runs in a host of another version ({status} instead of {PROTOCOL_VERSION})")
        self.sandbox_report = (content if wine is None else self._pipes.take_report()).decode("ascii", "replace")
        if UNRESTRICTED not in options:
            try:
                warn_of_missing_protections(read_sandbox_report(self.sandbox_report))
            except ValueError:
                raise self._fail("runs in a host of another version") from None

    @property
    def is_alive(self) -> bool:
        """Whether it can be asked: not by a process that was forked from this one."""
        return self._failure is None and self._pipes.are_open

    @property
    def process_id(self) -> int:
        """The number of the process that was started; the FMU's code may run in a child of it."""
        return self._pipes.process_id

    def open_library(self, path: Path, version: int, *, stepped: bool, prefix: str = "") -> str:
        """Load a library; return the reason where it cannot be loaded, else nothing."""
        name = os.fsencode(path) if self._wine is None else to_windows_path(path).encode()
        content = name + b"\0" + prefix.encode() + b"\0"
        self.running_name = "the loading of the library"
        self._send(MESSAGE.pack(_OPEN_MESSAGE, len(content), version, int(stepped), 0) + content)
        status, _, _, records = self._receive(self.seconds)
        if status == 0:
            return ""
        texts = [text for _, _, text in self._split(records)]
        return " ".join(texts) or f"The host returned the status {status}."

    def run(self, program: Program, count: int = 1, first: int = 0) -> Failure | None:
        """Run a program's repetitions from ``first`` on; return where it ended if that was not the end."""
        if program.known_to is not self:
            failure = self._define(program)
            if failure is not None:
                return failure
        self.running, self._last_repetition = program.instructions, first + count
        if count == 1 and not first:
            self._send(program.request)
        else:
            self._send(MESSAGE.pack(_RUN_MESSAGE, 0, program.number, first, count))
        return self._outcome()

    def execute(self, instructions: Iterable[Instruction]) -> Failure | None:
        """Run instructions once; return where they ended if that was not their end."""
        self.running, self._last_repetition = tuple(instructions), 1
        content = b"".join(i.record for i in self.running)
        self._send(MESSAGE.pack(_EXECUTE_MESSAGE, len(content), 0, 0, 0) + content)
        return self._outcome()

    def make_copy(self) -> bool:
        """Let the host make a copy of itself, to which it can return; return whether it does."""
        self._new_to_copy.clear()
        is_made = self._ask_about_copy(_MAKE_COPY_CODE, "the copying of its process")
        if is_made and self._memory_of_copy is not None:
            self._memory = self._memory_of_copy
        return is_made

    def return_to_copy(self) -> bool:
        """Let the copy of the host go on in its place; return False where there is none any more."""
        if not self._ask_about_copy(_RETURN_TO_COPY_CODE, "the return to a copy of its process"):
            return False
        for program in self._new_to_copy:
            program.known_to = self._before_copy
        self._new_to_copy.clear()
        return True

    def drop_copy(self) -> None:
        """End the copy of the host, if there is one."""
        self._new_to_copy.clear()
        self._ask_about_copy(_DROP_COPY_CODE, "the end of a copy of its process")

    def _ask_about_copy(self, request: int, name: str) -> bool:
        self.running_name, self.running = name, ()
        self._send(MESSAGE.pack(_COPY_HOST_MESSAGE, 0, request, 0, 0))
        failure = self._outcome()
        if failure is not None and failure.status != NOT_COPIED:
            raise self._fail("does not support requests for copies")
        return failure is None

    def close(self) -> None:
        """Let the library be unloaded and end the process. Idempotent.

        Raises
        ------
        ModelCrashError
            When the library crashes or hangs while it is unloaded.
        """
        if not self.is_alive:
            self._pipes.end()
            return
        self.running_name, self.running = "the unloading of the library", ()
        seconds = ENDING_TIME if self.seconds is None else min(ENDING_TIME, self.seconds)
        self._pipes.send(MESSAGE.pack(_QUIT_MESSAGE, 0, 0, 0, 0), seconds)
        try:
            status = self._pipes.wait(seconds)[0] if self._pipes.read_to_end(seconds) else None
            if status is None:
                raise self._fail(f"was not unloaded within {seconds:g} s and was stopped")
            if status:
                raise self._fail(f"{describe_end(status)} while it was unloaded")
        finally:
            self._printed.log(at_end=True)
            self._pipes.end()

    def kill(self) -> None:
        """End the process at once. Idempotent."""
        self._pipes.end()

    def _define(self, program: Program) -> Failure | None:
        is_new = program.known_to is not self._before_copy
        if not is_new:
            number = program.number
        elif self._free_numbers:
            number = self._free_numbers.pop()
        else:
            number = next(self._next_numbers)
        if number >= _MAX_PROGRAMS:
            raise ModelError(f"'{self._source}' received more than {_MAX_PROGRAMS} different requests at a time.")
        content = program.content
        self.running = program.instructions
        self._send(MESSAGE.pack(_DEFINE_MESSAGE, len(content), number, 0, 0) + content)
        failure = self._outcome()
        if failure is not None:
            if is_new:
                self._free_numbers.append(number)
            return failure
        if is_new:
            weakref.finalize(program, self._free_numbers.append, number).atexit = False
        self._new_to_copy.add(program)
        program.known_to, program.number = self, number
        program.request = MESSAGE.pack(_RUN_MESSAGE, 0, number, 0, 1)
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
        if not self._pipes.send(message, self.seconds):
            raise self._fail(self._describe_hang(self.seconds))

    def _receive(self, seconds: float | None) -> tuple[int, int, int, bytes]:
        """Return status, instruction, repetition and further bytes of the next answer."""
        try:
            data = self._await_answer(seconds)
            if not data:
                self._report_silence(data, seconds)
            if len(data) < _ANSWER.size:
                data = self._read_rest(data, _ANSWER.size, seconds)
            sequence, status, instruction, size, repetition, dropped, _ = _ANSWER.unpack_from(data)
            if size and size <= _MAX_BYTES and len(data) < _ANSWER.size + size:
                data = self._read_rest(data, _ANSWER.size + size, seconds)
        except ModelCrashError:
            raise
        except BaseException:  # the user interrupts: the answer that is still to come would be taken for another
            self._fail("was interrupted")
            raise
        if sequence != self._sequence or len(data) != _ANSWER.size + size:
            raise self._fail("wrote into the output of its host")
        self._sequence = (sequence + 1) & 0xFFFFFFFF
        if status == CRASHED:  # under wine, in place of an exit status
            raise self._describe_death(repetition & 0xFFFFFFFF)
        if dropped:
            self._take_record(0, "host", f"({dropped} earlier messages are omitted)")
        return status, instruction, repetition, data[_ANSWER.size :]

    def _await_answer(self, limit: float | None) -> bytes | None:
        """Return the first bytes of an answer, none at the end of all, None where a call takes longer than its limit.

        The limit is that of one call: it begins anew whenever the host has come to another call of the program. An FMU
        can forge where the host is, but not more calls than the program has.
        """
        if limit is None:
            return self._pipes.read(None)
        call, begun = (0, 0), time.monotonic()
        while True:
            data = self._pipes.read(limit / CLOCK_ROUNDS)
            if data is not None:
                return data
            instruction, repetition, is_running = self.arena.progress()
            is_possible = instruction < len(self.running) and repetition < self._last_repetition
            if is_running and is_possible and (repetition, instruction) > call:
                call, begun = (repetition, instruction), time.monotonic()
            elif time.monotonic() - begun >= limit:
                return None

    def _read_rest(self, data: bytes, size: int, seconds: float | None) -> bytes:
        deadline = None if seconds is None else time.monotonic() + seconds
        while len(data) < size:
            more = self._pipes.read(None if deadline is None else deadline - time.monotonic())
            if not more:
                self._report_silence(more, seconds)
            data += more
        return data

    def _report_silence(self, data: bytes | None, limit: float | None) -> NoReturn:
        """Raise the error for an answer that does not come: None in time, no bytes since the process has ended."""
        raise self._describe_death() if data is not None else self._fail(self._describe_hang(limit))

    def _split(self, content: bytes) -> list[tuple[int, str, str]]:
        """Return (status, category, text) of each log record."""
        records = []
        while content:
            if len(content) < _RECORD.size:
                raise self._fail("wrote into the output of its host")
            status, *sizes = _RECORD.unpack_from(content)
            begin, middle, end = _RECORD.size, _RECORD.size + sizes[0], _RECORD.size + sum(sizes)
            if end > len(content):
                raise self._fail("wrote into the output of its host")
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

    def _describe_death(self, code: int | None = None) -> ModelCrashError:
        """Return the error for the end of the process; ``code``: of an exception that its exit status does not tell."""
        where = self._where()
        self._pipes.read_to_end(1.0)
        status, memory = self._pipes.wait(ENDING_TIME)
        if status is None:
            return self._fail(f"closed the connection to its host in {where}")
        how = f"{describe_end(status if code is None else code)} in {where}"
        if self._memory is not None and memory > _MEMORY_EXHAUSTION_FRACTION * self._memory:
            how += (
                f". It used nearly all of its memory limit of {self._memory / 2**30:.2f} GiB: raise it with "
                "fl.Limits(memory=GIB * 2**30)"
            )
        return self._fail(how)

    def _fail(self, how: str) -> ModelCrashError:
        """Return the error that the process ends with, and end it."""
        last_output = escape_controls(" ".join(self.arena.last_text().split())) if self.running else ""
        words = f' Its last message: "{last_output}".' if last_output else ""
        words += f' Its last output: "{self._printed.recent}".' if self._printed.recent else ""
        self._printed.log(at_end=True)
        self._pipes.end()
        self._failure = ModelCrashError(
            f"The model '{self._source}' {how}.{words} The error is in the FMU's own code, which ran in a separate "
            "process: ask its author, or export it again with another tool version, FMI version or solver."
        )
        return self._failure


def _memory_limit(options: Sequence[str], arena: Arena, name: str) -> int | None:
    """Return how many bytes the process may take besides those of the arena; None for no limit."""
    values = [int(value) for option, value in pairwise(options) if option == name]
    return values[-1] - arena.size if values else None
