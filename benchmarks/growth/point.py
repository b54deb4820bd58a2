"""One point of a curve in a process of its own: its processor time and the memory that it takes."""

from __future__ import annotations

import multiprocessing
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import psutil

from benchmarks.growth.paths import PATHS
from benchmarks.peers.ways import Way, shorten_error
from benchmarks.processor_time import ProcessorClock, peak_megabytes

__all__ = ["Point", "measure_point"]

REPEATED_BELOW = 0.5
"""Seconds of a first call below which the further call is repeated."""
REPETITIONS = 5
MAX_MEGABYTES = 8000.0
"""What takes more than this is ended: the machine has other work."""
SLOWEST = 20.0
"""How many times its processor time a process may take on a machine that is at work."""
GLANCE = 0.2
"""Seconds between checks of the memory of a process."""
LEAST_MEGABYTES = 1.0
"""Less than this is what a process takes by chance."""


@dataclass(frozen=True)
class Point:
    """Seconds of opening and the first call together, of a further call, and memory.

    ``added`` are the megabytes beyond those of the process when it had done the smallest size.
    """

    size: int
    first: float
    again: float
    megabytes: float
    added: float


def measure_point(name: str, tool: str, size: int, folder: Path, seconds: float) -> Point | str:
    """Measure a path as ``tool`` goes it, in a process that is ended after ``seconds`` of processor time.

    Return why there is no point instead of it.
    """
    end = time.monotonic() + SLOWEST * seconds
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=_measure, args=(sender, name, tool, size, folder))
    process.start()
    sender.close()
    try:
        while not receiver.poll(GLANCE):
            used, megabytes = _read_use(process.pid)
            if used > seconds or time.monotonic() > end:
                return f"not within {seconds:g} s"
            if megabytes > MAX_MEGABYTES:
                return f"more than {MAX_MEGABYTES:g} MB"
        answer: Point | str = receiver.recv()
    except EOFError:
        return "the process ended"
    else:
        return answer
    finally:
        process.kill()
        process.join()


def _read_use(process_id: int | None) -> tuple[float, float]:
    """Return the processor time of a process and its running children, and its resident megabytes."""
    try:
        process = psutil.Process(process_id)
        times = [each.cpu_times() for each in (process, *process.children(recursive=True))]
        used = sum(each.user + each.system for each in times)
        return float(used), float(process.memory_info().rss) / 2**20
    except psutil.Error:
        return 0.0, 0.0


def _measure(sender: Connection, name: str, tool: str, size: int, folder: Path) -> None:
    path = PATHS[name]
    (way,) = (way for way in path.ways if way.tool.name == tool)
    try:
        sender.send(_measure_here(way, size, path.first, folder))
    except Exception as error:  # noqa: BLE001 - what a peer cannot do is a line of the table
        sender.send(shorten_error(error))


def _measure_here(way: Way, size: int, smallest: int, folder: Path) -> Point:
    with way.open(smallest, folder) as call:
        call()  # what is imported late is imported here
    clock = ProcessorClock()
    before = peak_megabytes()
    begin = clock.seconds()
    with way.open(size, folder) as call:
        call()
        clock.look_for_children()
        first = clock.seconds() - begin
        repetitions = REPETITIONS if first < REPEATED_BELOW else 1
        begin = clock.seconds()
        for _ in range(repetitions):
            call()
        again = (clock.seconds() - begin) / repetitions
    megabytes = peak_megabytes()
    return Point(size, first, again, megabytes, max(megabytes - before, LEAST_MEGABYTES))
