"""Work in a child process that may crash, hang, end itself or take all memory: the parent lives on and says so.

The child reports through a pipe, as soon as its answer is certain and before anything foreign is unloaded. One
that ends without an answer was ended by the model's code; one that stays too long in a single foreign
call, or takes too much memory, is stopped.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn

from fmilin.errors import ModelCrashError
from fmilin.sandbox import watchdog

__all__ = ["Answer", "Limits", "Work", "can_isolate", "in_a_child"]

UNLOADING_TIME = 10.0
"""Seconds that a model may take to be unloaded after the answer is out."""
_ROUND = 0.05  # seconds between two looks at the child
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_HEADER = 8  # bytes that hold the length of the answer

Work = Callable[[Callable[[bytes], None]], int]
"""What the child does: it is given a function that delivers the answer, and returns its exit status."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What foreign code may take.

    Parameters
    ----------
    seconds : float or None
        For every single call of a function of the model, its loading included; None: for ever.
    memory : float or None
        Bytes of the whole child process, where the system tells them (Linux). None: nine tenths of what is free when
        the child starts, so that the machine stays usable.
    """

    seconds: float | None = 120.0
    memory: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What came out of the child.

    Parameters
    ----------
    content : bytes
        What it delivered.
    remark : str
        What went wrong after that; empty when nothing did.
    """

    content: bytes
    remark: str = ""


def can_isolate() -> bool:
    """Whether this system can split a process in two."""
    return hasattr(os, "fork")


def in_a_child(work: Work, limits: Limits | None = None) -> Answer:
    """Do ``work`` in a forked child and return its answer.

    Parameters
    ----------
    work : callable
        Runs in the child, with a directory of its own for temporary files.
    limits : Limits, optional

    Raises
    ------
    ModelCrashError
        When the child ends without an answer, or was stopped: with the function of the model that was running and
        what the model said last.
    """
    limits = limits or Limits()
    note = watchdog.listen()
    scratch = tempfile.mkdtemp(prefix="fmilin-")  # of the child, removed here even when the child cannot
    _flush()
    read_end, write_end = os.pipe()
    parent = os.getpid()
    try:
        with _termination() as terminable:
            child = _fork()
            if child == 0:
                os.close(read_end)
                _be_the_child(work, write_end, scratch, parent)
            os.close(write_end)
            try:
                terminable()
                return _Watch(child, read_end, note, limits).answer()
            except BaseException:
                _kill(child)  # nothing of ours outlives this command, even when a person or a scheduler stops it
                raise
    finally:
        os.close(read_end)
        shutil.rmtree(scratch, ignore_errors=True)


def _fork() -> int:
    with warnings.catch_warnings():
        # Newer Pythons warn that threads of the parent (those of a linear algebra library) do not exist in the child.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _be_the_child(work: Work, write_end: int, scratch: str, parent: int) -> NoReturn:
    """Do the work and end without the parent's clean-up."""
    status = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        _end_with(parent)
        _leave_no_core()
        os.environ["TMPDIR"] = tempfile.tempdir = scratch
        status = work(lambda content: _send(write_end, content))
        _flush()
    finally:
        os._exit(status)


def _send(write_end: int, content: bytes) -> None:
    rest = len(content).to_bytes(_HEADER, "little") + content
    while rest:
        rest = rest[os.write(write_end, rest) :]


def _end_with(parent: int) -> None:
    """See to it that the child does not outlive its parent, even one that is killed; where the system can (Linux)."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:  # it ended before it was said
        os._exit(1)


def _leave_no_core() -> None:
    """Write no memory image into the user's directory when the model crashes."""
    import resource

    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


class _Watch:
    """The parent's view of its child."""

    def __init__(self, child: int, read_end: int, note: watchdog.Note, limits: Limits) -> None:
        self._child, self._read_end, self._note = child, read_end, note
        self._seconds = limits.seconds
        self._memory = _free_memory() if limits.memory is None else limits.memory
        self._heard = b""

    def answer(self) -> Answer:
        """Wait for the answer and for the child's end."""
        if not self._hear():
            _, ended = os.waitpid(self._child, 0)
            raise self._error(_how(ended) + self._where("in", "after"), "Nothing was written.")
        seconds = min(UNLOADING_TIME, self._seconds or UNLOADING_TIME)
        readable, _, _ = select.select([self._read_end], [], [], seconds)
        if not readable:
            os.kill(self._child, signal.SIGKILL)
        _, ended = os.waitpid(self._child, 0)
        remark = ""
        if not readable:
            remark = f"the model was not unloaded within {seconds:g} s and was stopped; the results are whole."
        elif os.WIFSIGNALED(ended):
            remark = f"the model crashed while it was unloaded ({_signal_name(ended)}); the results are whole."
        return Answer(self._heard[_HEADER:], remark)

    def _hear(self) -> bool:
        """Take in the child's answer; return whether it is complete.

        The end of the pipe is not enough to know that the child has ended: a process that the model
        started may hold it open.
        """
        while True:
            readable, _, _ = select.select([self._read_end], [], [], _ROUND)
            if readable:
                word = os.read(self._read_end, 1 << 20)
                self._heard += word
                if not word or self._is_complete:
                    return self._is_complete
                continue
            state = os.waitid(os.P_PID, self._child, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if state is not None and not select.select([self._read_end], [], [], 0)[0]:
                return False
            if state is None:
                self._check_limits()

    @property
    def _is_complete(self) -> bool:
        heard = self._heard
        return len(heard) >= _HEADER and len(heard) - _HEADER >= int.from_bytes(heard[:_HEADER], "little")

    def _check_limits(self) -> None:
        seconds = self._note.seconds
        if self._seconds is not None and seconds is not None and seconds > self._seconds:
            _kill(self._child)
            raise self._error(
                f"did not return{self._where('from', 'from')} within {self._seconds:g} s and was stopped",
                "Nothing was written. If it only needs more time, give it more with --timeout SECONDS.",
            )
        used = _memory_of(self._child)
        if self._memory is not None and used is not None and used > self._memory:
            _kill(self._child)
            raise self._error(
                f"took {used / 2**30:.2f} GiB of memory, more than the {self._memory / 2**30:.2f} GiB it may have, and "
                f"was stopped{self._where('in', 'after')}",
                "Nothing was written. If it really needs more, allow it with --memory GIB.",
            )

    def _where(self, running: str, returned: str) -> str:
        """Say which function of the model runs, or ran last."""
        function = self._note.read()
        return f" {returned if self._note.seconds is None else running} {function}" if function else ""

    def _error(self, how: str, consequence: str) -> ModelCrashError:
        lines = [line for line in self._note.last_lines() if line]
        said = f' The model said last: "{" / ".join(lines)}".' if lines else ""
        return ModelCrashError(
            f"The model {how}. {consequence}{said} This is the FMU's own code, which ran in a separate process: "
            f"ask its maker, or export it again with another tool version, FMI version or solver."
        )


def _how(ended: int) -> str:
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


def _memory_of(process: int) -> int | None:
    """Return how many bytes of memory a process holds, None where the system does not tell."""
    try:
        with open(f"/proc/{process}/statm", "rb") as file:  # noqa: PTH123 - twenty times a second
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


def _free_memory() -> float | None:
    try:
        with open("/proc/meminfo", "rb") as file:  # noqa: PTH123 - as above
            lines = dict(line.split(b":", 1) for line in file if b":" in line)
        return 0.9 * 1024 * int(lines[b"MemAvailable"].split()[0])
    except (OSError, ValueError, KeyError):
        return None


def _flush() -> None:
    with suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.flush()


def _kill(child: int) -> None:
    with suppress(ProcessLookupError, ChildProcessError):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@contextmanager
def _termination() -> Iterator[Callable[[], None]]:
    """Hold SIGTERM back until the yielded function is called; from then on it raises SystemExit."""

    def stop(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = None
    with suppress(ValueError):  # not in the main thread
        before = signal.signal(signal.SIGTERM, stop)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        yield lambda: _restore(mask)
    finally:
        _restore(mask)
        if before is not None:
            signal.signal(signal.SIGTERM, before)


def _restore(mask: set[int] | set[signal.Signals]) -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
