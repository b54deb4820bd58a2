"""A bar on standard error while something takes its time; only where a person is watching."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(what: str, start: float, stop: float, unit: str = "s") -> Iterator[Callable[[float], None]]:
    """Yield a function that is told how far things are between ``start`` and ``stop``."""
    if not sys.stderr.isatty() or not stop > start:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(), TextColumn(f"{{task.completed:.4g}} of {{task.total:.4g}} {unit}"))
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=stop - start)
        yield lambda t: progress.update(task, completed=t - start)
