"""The processor time and the memory of this process and its children, those that still run included.

FMUs run in processes of their own, which live as long as their model: their time counts as well.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

if sys.platform != "win32":
    import resource

__all__ = ["ProcessorClock", "describe_load", "measure_in_turns", "median_ratio", "peak_megabytes"]

KIBIBYTES_PER_UNIT = 1 / 1024 if sys.platform == "darwin" else 1.0
"""``ru_maxrss`` is in bytes on macOS."""


class ProcessorClock:
    """Processor time of this process, of its children that have ended, and of those that run now.

    Children that start later are not counted before they end, unless :meth:`look_for_children` is called again.
    """

    def __init__(self) -> None:
        self.children: list[psutil.Process] = []
        self.look_for_children()

    def look_for_children(self) -> None:
        self.children = psutil.Process().children(recursive=True)

    def seconds(self) -> float:
        return time.process_time() + _seconds_of_ended_children() + sum(map(_measure_seconds, self.children))


def measure_in_turns(
    calls: Mapping[str, Callable[[], Any]], *, rounds: int = 7, least_seconds: float = 0.02
) -> dict[str, list[float]]:
    """Return seconds of processor time per call, one for each round; in a round all have their turn.

    A turn is as many calls as take ``least_seconds``.
    """
    counts: dict[str, int] = {}
    for name, call in calls.items():
        call()
        clock = ProcessorClock()
        begin = clock.seconds()
        call()
        counts[name] = max(1, round(least_seconds / max(clock.seconds() - begin, 1e-7)))
    clock = ProcessorClock()
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            begin = clock.seconds()
            for _ in range(counts[name]):
                call()
            seconds[name].append((clock.seconds() - begin) / counts[name])
    return seconds


def median_ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the median of the ratios of turns that followed each other."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def peak_megabytes() -> float:
    """Return the peak resident memory of this process and, except on Windows, of the largest of its ended children."""
    if sys.platform == "win32":
        return float(psutil.Process().memory_info().peak_wset) / 2**20
    kibibytes = sum(resource.getrusage(of).ru_maxrss for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return kibibytes * KIBIBYTES_PER_UNIT / 1024


def _seconds_of_ended_children() -> float:
    """Return their processor time; 0 on Windows, which does not tell."""
    if sys.platform == "win32":
        return 0.0
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


def _measure_seconds(process: psutil.Process) -> float:
    """Return the processor time of a process that runs, to the nanosecond where Linux tells it; 0 of an ended one."""
    schedule = Path("/proc", str(process.pid), "schedstat")
    try:
        if schedule.exists():
            return int(schedule.read_text("ascii").split()[0]) / 1e9
        times = process.cpu_times()
    except (OSError, psutil.Error):
        return 0.0
    return float(times.user + times.system)


def describe_load() -> str:
    """Return how busy the machine is."""
    if not hasattr(os, "getloadavg"):
        return "Load unknown"
    return "Load average " + ", ".join(f"{value:.1f}" for value in os.getloadavg())
