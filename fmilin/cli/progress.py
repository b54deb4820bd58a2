"""What takes its time says so on standard error; only where a person is watching."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import takewhile
from threading import Event, Thread, main_thread

from fmilin.cli.deadline import WAITING, stages
from fmilin.ground.sandbox.cage import pausing

PATIENCE = 2.0  # seconds after which it is said how long something has been running
_interrupted = Event()  # set while a bar is shown: the elapsed time stands in it


@contextmanager
def elapsed_time(what: str, patience: float = PATIENCE) -> Iterator[None]:
    """Say how long the block has been running, once it has for longer than ``patience`` seconds and shows no bar."""
    if not sys.stderr.isatty():
        yield
        return
    clock = _Clock(what, patience)
    with pausing(clock.stop, clock.go):
        clock.go()
        try:
            yield
        finally:
            clock.stop()


class _Clock:
    """A thread that tells the time since this was made; it can be stopped and go on."""

    def __init__(self, what: str, patience: float) -> None:
        self._what, self._patience, self._start = what, patience, time.monotonic()
        self._ended, self._thread = Event(), Thread()

    def go(self) -> None:
        """Tell it from now on."""
        self._ended.clear()
        arguments = (self._what, self._patience, self._start, self._ended)
        self._thread = Thread(target=_tell, args=arguments, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Tell it no more."""
        self._ended.set()
        self._thread.join(1.0)


def _tell(what: str, patience: float, start: float, ended: Event) -> None:
    shown = False
    wait = max(0.0, start + patience - time.monotonic())
    while not ended.wait(wait):
        wait = min(0.5, patience)
        if not _interrupted.is_set():
            inside = takewhile(lambda s: s != WAITING, stages(sys._current_frames().get(main_thread().ident or 0)))
            *_, stage = "", *inside  # the outermost one of this process
            # Back to the first column: whatever is written next takes the place of this.
            sys.stderr.write(f"\r\x1b[K{what}: {time.monotonic() - start:.0f} s{stage and f', {stage}'}\r")
            sys.stderr.flush()
            shown = True
    if shown:
        sys.stderr.write("\x1b[K")
        sys.stderr.flush()


@contextmanager
def progress_bar(what: str, start: float, stop: float, unit: str = "s") -> Iterator[Callable[[float], None]]:
    """Yield a function that is told how far things are between ``start`` and ``stop``; the remaining time is shown."""
    if not sys.stderr.isatty() or not stop > start:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(), TextColumn(f"{{task.completed:.4g}} of {{task.total:.4g}} {unit}"))
    _interrupted.set()
    try:
        with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task(what, total=stop - start)
            yield lambda t: progress.update(task, completed=t - start)
    finally:
        _interrupted.clear()
