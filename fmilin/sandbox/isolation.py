"""Work in a child process that may crash, hang, end itself or take all memory: the parent lives on and says so."""

from __future__ import annotations

import os
import select
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fmilin.errors import ModelCrashError
from fmilin.sandbox import cage, watchdog
from fmilin.sandbox.guard import Ending, Guard
from fmilin.sandbox.limits import Limits, say_what_is_missing
from fmilin.sandbox.watchdog import ChannelError, NamedPipe, read_nothing
from fmilin.support.files import temporary_folder

if TYPE_CHECKING:
    import psutil

UNLOADING_TIME = 10.0  # seconds that a model may take to be unloaded after the answer is out
_ROUND = 0.05  # seconds between two looks at the child
_FIRST_CHECK = 0.3  # seconds after the start: before that Python itself is loaded
_SHARE = 20  # a look at all descendants may take one part in so many of the time
Work = Callable[[Callable[[bytes], None]], int]
"""What the child does: it is given a function that delivers the answer, and returns its exit status."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came out of the child."""

    content: bytes  # what it delivered
    remark: str = ""  # what went wrong after that; empty when nothing did


def can_isolate() -> bool:
    """Whether this system can split a process in two."""
    return hasattr(os, "fork")


def in_a_child(work: Work, limits: Limits | None = None, readable: Sequence[Path] = ()) -> Answer:
    """Do ``work`` in a forked child with a folder of its own, which may read ``readable``; return its answer."""
    limits = limits or Limits()
    say_what_is_missing(limits)
    note = watchdog.Note()
    with temporary_folder() as folder:  # of the child, removed here even when the child cannot
        scratch = folder / "scratch"
        scratch.mkdir(mode=0o700)
        flush()
        channel = NamedPipe(folder)
        try:
            caged = cage.Cage(limits, scratch, [channel.path], readable) if limits.caged else None
            guard = Guard(lambda: _be_the_child(work, channel, note, scratch, caged), apart=limits.caged)
            try:
                return _Watch(guard, channel, note, limits).answer()
            except BaseException:
                guard.stop()  # nothing of ours outlives this command, even when a person or a scheduler stops it
                raise
        finally:
            channel.close()


def _be_the_child(work: Work, channel: NamedPipe, note: watchdog.Note, scratch: Path, caged: cage.Cage | None) -> int:
    """Do the work and return the exit status."""
    own = os.getpid()
    cage.prepare(caged)
    channel.close()
    watchdog.write_to(note)
    read_nothing()
    leave_no_core()
    tempfile.tempdir = os.environ["TMPDIR"] = str(scratch)

    def deliver(content: bytes) -> None:
        watchdog.only_here(own)
        channel.send(content)

    status = work(deliver)
    flush()
    return status


def leave_no_core() -> None:
    """Write no memory image into the user's directory when the model crashes."""
    import resource

    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


class _Watch:
    """The parent's view of its child."""

    def __init__(self, guard: Guard, channel: NamedPipe, note: watchdog.Note, limits: Limits) -> None:
        self._guard, self._channel, self._note, self._limits = guard, channel, note, limits
        self._memory = limits.memory
        self._next_check = self._next_weighing = time.monotonic() + _FIRST_CHECK

    def answer(self) -> Answer:
        """Wait for the answer and for the child's end."""
        content = self._content()
        if content is None:
            ending = self._guard.wait()
            raise self._error(how_it_ended(ending) + self._where("in", "after"), "Nothing was written.")
        seconds = min(UNLOADING_TIME, self._limits.seconds or UNLOADING_TIME)
        readable, _, _ = select.select([self._guard], [], [], seconds)
        ending = self._guard.wait() if readable else self._guard.stop()
        remarks = []
        if not readable:
            remarks.append(f"the model was not unloaded within {seconds:g} s and was stopped; the results are whole.")
        elif ending.status is not None and os.WIFSIGNALED(ending.status):
            name = _signal_name(ending.status)
            remarks.append(f"the model crashed while it was unloaded ({name}); the results are whole.")
        if ending.left:
            processes = "a process" if ending.left == 1 else f"{ending.left} processes"
            remarks.append(f"the model left {processes} running, which fmilin stopped; the results are whole.")
        return Answer(content, " ".join(remarks))

    def _content(self) -> bytes | None:
        """Take in the child's answer; None when everything has ended without one."""
        while True:
            readable, _, _ = select.select([self._channel.fileno(), self._guard.fileno()], [], [], _ROUND)
            ended = self._guard.fileno() in readable
            try:
                content = self._channel.receive()
            except ChannelError:
                raise self._error("wrote among the results of fmilin", "They are lost; nothing was written.") from None
            if content is not None or ended:
                return content
            if not readable:
                self._check_limits()

    def _check_limits(self) -> None:
        limit, seconds = self._limits.seconds, self._note.seconds
        if limit is not None and seconds is not None and seconds > limit:
            raise self._error(
                f"did not return{self._where('from', 'from')} within {limit:g} s and was stopped",
                "Nothing was written. If it only needs more time, give it more with fl.Limits(seconds=SECONDS).",
            )
        now = time.monotonic()
        if now < self._next_check:
            return
        processes = descendants(self._guard.pid)[self._guard.processes :]
        self._next_check = now + _SHARE * (time.monotonic() - now)
        started = len(processes) - 1
        if started > self._limits.processes:
            raise self._error(
                f"started {started} processes, more than the {self._limits.processes} it may have, and was "
                f"stopped{self._where('in', 'after')}",
                "Nothing was written. If it really needs as many, allow it with fl.Limits(processes=COUNT).",
            )
        if now >= self._next_weighing:
            begin = time.monotonic()
            self._check_memory(memory_of(processes))
            self._next_weighing = now + _SHARE * (time.monotonic() - begin)

    def _check_memory(self, used: int) -> None:
        if self._memory is None:
            self._memory = used + free_memory()
        if used > self._memory:
            raise self._error(
                f"took {used / 2**30:.2f} GiB of memory, more than the {self._memory / 2**30:.2f} GiB it may have, and "
                f"was stopped{self._where('in', 'after')}",
                "Nothing was written. If it really needs more, allow it with fl.Limits(memory=GIB * 2**30).",
            )

    def _where(self, running: str, returned: str) -> str:
        """Say which function of the model runs, or ran last."""
        function = self._note.read()
        return f" {returned if self._note.seconds is None else running} {function}" if function else ""

    def _error(self, how: str, consequence: str) -> ModelCrashError:
        lines = [line for line in self._note.last_lines() if line]
        words = f' The model said last: "{" / ".join(lines)}".' if lines else ""
        error = ModelCrashError(
            f"The model {how}. {consequence}{words} This is the FMU's own code, which ran in a separate process: "
            f"ask its maker, or export it again with another tool version, FMI version or solver."
        )
        error.at_another_instance = self._note.another_instance
        return error


def how_it_ended(ending: Ending) -> str:
    """Return what became of a model, as the end of a sentence that begins with it."""
    ended = ending.status
    if ended is None:
        return "was stopped from outside"
    if not os.WIFSIGNALED(ended):
        return f"ended the whole process by itself (exit status {os.waitstatus_to_exitcode(ended)})"
    if os.WTERMSIG(ended) == signal.SIGKILL:
        return "was killed (SIGKILL; the usual reason is that memory ran out)"
    if os.WTERMSIG(ended) == signal.SIGFPE:
        return f"crashed ({_signal_name(ended)}; it switched floating-point traps on, or divided integers by zero)"
    return f"crashed ({_signal_name(ended)})"


def _signal_name(ended: int) -> str:
    number = os.WTERMSIG(ended)
    try:
        return f"{signal.Signals(number).name}: {(signal.strsignal(number) or '').lower()}"
    except ValueError:
        return f"signal {number}"


def descendants(guard: int) -> list[psutil.Process]:
    """Return all that descends from a guard, first its own process where it stands apart, then the child."""
    import psutil

    try:
        return list(psutil.Process(guard).children(recursive=True))
    except psutil.Error:  # it has ended
        return []


def memory_of(processes: Sequence[psutil.Process]) -> int:
    """Return how many bytes processes hold; what several hold is shared out among them, where the system can tell."""
    import psutil

    used = 0
    for process in processes:
        with suppress(psutil.Error, OSError):
            if len(processes) == 1:
                return int(process.memory_info().rss)
            full = process.memory_full_info()
            used += getattr(full, "pss", full.uss)
    return used


def free_memory() -> float:
    """Return how many bytes may be taken so that the machine stays usable."""
    import psutil

    return 0.9 * float(psutil.virtual_memory().available)


def flush() -> None:
    """Send what this process has printed on its way: a copy would send it again."""
    with suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.flush()
