"""How much a search may cost that is not needed for the answer: explanations of failures, and further starts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

WAITING = 5.0  # times the limit that may pass altogether: other processes compute, too, and models may run in others
_deadlines: ContextVar[tuple[float, float]] = ContextVar("deadlines", default=(float("inf"), float("inf")))


class OutOfTimeError(Exception):
    """The time for an explanation is over. Not an error of fmilin: searches that go on after those must end here."""


@contextmanager
def limit_time(seconds: float) -> Iterator[None]:
    """End with :class:`OutOfTimeError` at the first evaluation after so many seconds of computing in this thread."""
    token = _deadlines.set((time.thread_time() + seconds, time.monotonic() + WAITING * seconds))
    try:
        yield
    finally:
        _deadlines.reset(token)


def require_time() -> None:
    """Raise :class:`OutOfTimeError` where the time is over."""
    computing, waiting = _deadlines.get()
    if time.thread_time() > computing or time.monotonic() > waiting:
        raise OutOfTimeError
