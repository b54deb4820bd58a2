"""Being asked to end: by a scheduler, a service manager, a terminal that closes. What was begun is cleaned up."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Terminated", "termination_raises"]


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
