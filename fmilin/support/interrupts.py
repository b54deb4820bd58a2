"""Ctrl-C: one line and status 130, at any moment of the program.

A request to end raises KeyboardInterrupt, and is remembered: libraries swallow that, or make errors of it.
"""

import mmap
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn


class _EndRequest:
    number = 0  # the signal that asked this process to end; 0: none has
    shared = mmap.mmap(-1, 2)  # with the processes that work for this one: whether they can stop, and are asked to


def get_requested_signal() -> int:
    """Return the signal that has asked for the end of the work since it began; 0 when none has."""
    return _EndRequest.number


def forget() -> None:
    """Forget what was asked of an earlier command in this process."""
    _EndRequest.number, _EndRequest.shared[:] = 0, bytes(2)


@contextmanager
def stoppable() -> Iterator[Callable[[], bool]]:
    """Yield what says whether the work is to stop with what it has: the first SIGINT meanwhile asks for that."""
    _EndRequest.shared[:] = b"\1\0"
    try:
        yield lambda: bool(_EndRequest.shared[1])
    finally:
        _EndRequest.shared[0] = 0


def end_at_once(number: int, _: FrameType | None) -> NoReturn:
    """Say so, and end."""
    try:
        os.write(2, b"fmilin: interrupted.\n")
    finally:
        os._exit(128 + number)


def end_on_interrupt() -> None:
    """Let an interrupt end this process at once, if it is the program ``fmilin`` that is being imported."""
    name = os.path.basename(sys.argv[0]) if sys.argv else ""  # noqa: PTH119 - pathlib takes its time to be imported
    is_program = name == "-m" or os.path.splitext(name)[0] in ("fmilin", "fmilin-script")  # noqa: PTH122
    if is_program and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, end_at_once)


@contextmanager
def requests_raise() -> Iterator[None]:
    """Let SIGINT, SIGTERM and SIGHUP raise KeyboardInterrupt meanwhile, unless other code handles them."""

    def stop(number: int, _: FrameType | None) -> None:
        if number == signal.SIGINT and _EndRequest.shared[:] == b"\1\0":
            _EndRequest.shared[1] = 1
            os.write(2, b"fmilin: ending with what there is; Ctrl-C again ends at once.\n")
            return
        _EndRequest.number = number
        if number != signal.SIGINT:  # which a person repeats
            signal.signal(number, signal.SIG_IGN)  # cleaning up is not interrupted by the same request
        raise KeyboardInterrupt

    forget()
    before = {}
    try:
        for name in ("SIGTERM", "SIGHUP", "SIGINT"):
            number = getattr(signal, name, None)
            handler = signal.SIG_IGN if number is None else signal.getsignal(number)
            if number is not None and handler in (signal.SIG_DFL, signal.default_int_handler, end_at_once):
                before[number] = handler
                signal.signal(number, stop)
    except ValueError:  # not in the main thread
        before = {}
    hook = sys.unraisablehook
    sys.unraisablehook = lambda what: None if isinstance(what.exc_value, KeyboardInterrupt) else hook(what)
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)


end_on_interrupt()  # before anything else of the program is imported
