"""Standard output and standard error while foreign code runs that may print to them, close them or write elsewhere.

Being asked to end: by a scheduler, a service manager, a terminal that closes. What was begun is cleaned up.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TextIO

from fmilin.ground.sandbox.channel import close_all_but, high


class Results(io.StringIO):
    """Text for standard output, which is laid out for a terminal when it goes to one."""

    def __init__(self, *, to_terminal: bool = False) -> None:
        super().__init__()
        self._to_terminal = to_terminal

    def isatty(self) -> bool:
        """Whether it goes to a terminal."""
        return self._to_terminal


def open_missing() -> None:
    """Open streams that the user has closed (``>&-``) to nowhere, so that no other file gets their numbers."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 - for good


def columns() -> int:
    """Return how wide the terminal is that standard output goes to; 0 when it goes elsewhere."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except (OSError, ValueError, AttributeError):
        return 0


class OwnStderr(io.TextIOBase):
    """Standard error on a descriptor that foreign code does not know; what does not get through is kept."""

    encoding = "utf-8"

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.unheard: list[str] = []

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._descriptor

    def isatty(self) -> bool:
        """Whether somebody watches."""
        return os.isatty(self._descriptor)

    def writable(self) -> bool:
        """Whether it can be written: it can."""
        return True

    def write(self, text: str) -> int:
        """Write at once, or keep what cannot be written."""
        rest = text.encode("utf-8", "replace")
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError:
            self.unheard.append(rest.decode("utf-8", "replace"))
        return len(text)


def leave_parents_streams(printed: int) -> OwnStderr:
    """Keep no descriptor of the parent but standard error and ``printed``, where goes what C code prints."""
    close_all_but({printed})
    os.dup2(printed, 1)
    os.close(printed)
    try:
        os.fstat(2)
    except OSError:  # standard error is closed
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    stderr = OwnStderr(high(os.dup(2)))
    sys.stdout = sys.stderr = stderr
    return stderr


def silence(stream: TextIO) -> None:
    """Point ``stream`` to nowhere: nobody reads it, and the interpreter would complain at its end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def stdout_for_results() -> Iterator[TextIO]:
    """Yield a stream to the real standard output, while descriptor 1 (where C code prints) means standard error."""
    try:
        is_real = sys.stdout.fileno() == 1 and sys.stderr.fileno() == 2
    except (OSError, ValueError, AttributeError):
        is_real = False
    if not is_real:
        yield sys.stdout  # a notebook, or a test that captures
        return
    sys.stdout.flush()
    real, python_stdout = os.dup(1), sys.stdout
    os.dup2(2, 1)
    results = os.fdopen(os.dup(real), "w", encoding=sys.stdout.encoding, errors="replace")
    sys.stdout = sys.stderr
    try:
        yield results
    finally:
        with suppress(OSError):
            results.close()
        flush_c_streams()
        os.dup2(real, 1)
        os.close(real)
        sys.stdout = python_stdout


def flush_c_streams() -> None:
    """Let what C code has printed so far go where it was meant to go."""
    if os.name == "posix" and "ctypes" in sys.modules:
        import ctypes

        ctypes.CDLL(None).fflush(None)


class Terminated(KeyboardInterrupt):
    """A signal asks the process to end; like an interrupt, nothing but the end of the program handles it."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


@contextmanager
def termination_raises() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise :class:`Terminated` meanwhile, where nobody else has taken care of them."""

    def stop(number: int, _: FrameType | None) -> None:
        signal.signal(number, signal.SIG_IGN)  # cleaning up is not interrupted by the same request
        raise Terminated(number)

    taken = []
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        try:
            if number is not None and signal.getsignal(number) == signal.SIG_DFL:
                signal.signal(number, stop)
                taken.append(number)
        except ValueError:  # not in the main thread
            break
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)
