"""Processes that fmilin waits for and that were stopped (SIGSTOP): they would never answer."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from contextlib import suppress

PATIENCE_SECONDS = 10.0  # seconds for which a process may be stopped, as by Ctrl-Z, which stops fmilin along with it
INTERVAL = 1.0  # seconds between two checks, which read the states of all processes of the machine


class StopWatch:
    """Finds those among processes that have been stopped for longer than :data:`PATIENCE_SECONDS`.

    A process that waits for a stopped one counts, too.
    """

    def __init__(self) -> None:
        self._since: dict[int, float] = {}
        self._next_look = 0.0

    def find(self, processes: Iterable[int]) -> set[int]:
        """Return the numbers of those that are stopped, or of which a descendant is; often called, it rarely looks."""
        now = time.monotonic()
        if now < self._next_look:
            return set()
        self._next_look = now + INTERVAL
        stopped = {number for number in processes if _is_stopped(number)}
        self._since = {number: self._since.get(number, now) for number in stopped}
        return {number for number, since in self._since.items() if now - since > PATIENCE_SECONDS}


def _is_stopped(number: int) -> bool:
    if sys.platform == "win32":  # no signal stops a process there
        return False
    import psutil

    with suppress(psutil.Error):
        process = psutil.Process(number)
        return any(each.status() == psutil.STATUS_STOPPED for each in (process, *process.children(recursive=True)))
    return False  # it has ended
