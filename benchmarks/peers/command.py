"""The command: every task by fmilin and by a peer in turns, with ratios and the difference of their numbers."""

from __future__ import annotations

import statistics
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from benchmarks.peers.tasks import TASKS, Task
from benchmarks.peers.ways import TOOLS, Way
from benchmarks.processor_time import describe_machine, measure_in_turns, median_ratio
from benchmarks.tables import show
from fmilin.signals import FloatArray

__all__ = ["main"]

COLUMNS = ("task", "size", "peer", "fmilin", "peer's", "ratio", "from the start", "peer's", "ratio", "difference")
ROUNDS = 5
SECONDS_TO_WARM_UP, MOST_CALLS = 2.0, 300
"""Calls that let compiled code take the place of slower code, as it does after many of a user's."""


def main(arguments: Sequence[str] = ()) -> int:
    parser = ArgumentParser("python -m benchmarks peers", description="The work of other tools beside fmilin.")
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=", ".join(TASKS))
    options = parser.parse_args(arguments)
    unknown = [name for name in options.tasks if name not in TASKS]
    if unknown:
        parser.error(f"there is no task '{unknown[0]}'. There are: {', '.join(TASKS)}.")
    rows = []
    with tempfile.TemporaryDirectory(prefix="fmilin-bench-") as folder:
        for name in options.tasks or TASKS:
            for size in TASKS[name].sizes:
                for row in _compare_task(TASKS[name], size, Path(folder)):
                    rows.append(row)
                    print("  ".join(row), file=sys.stderr, flush=True)
    missing = [f"{tool.name} is not installed: {tool.install}." for tool in TOOLS.values() if not tool.is_installed]
    show(
        "Beside other tools",
        COLUMNS,
        rows,
        "Processor time per call, in turns in one process, one BLAS thread: medians, and the median of the ratios; "
        f"above 1 fmilin takes longer. Warm: of a model that is open and was linearized before, up to {MOST_CALLS} "
        "times, so that what compiles itself is compiled. From the start: the model is opened, linearized once and "
        "closed. Peers call an FMU in their own process, fmilin in a sandbox. Difference: of the matrices that both "
        f"give, relative to the largest entry. {describe_machine()}. {' '.join(missing)}",
    )
    return 0


def _compare_task(task: Task, size: int, folder: Path) -> list[list[str]]:
    """Return a row for each peer; one that is not installed gives a row that says so."""
    ours, *peers = task.ways
    rows = []
    for peer in peers:
        start = [task.title, f"{size:,} {task.unit}", f"{peer.tool.name} {peer.remark}".strip()]
        if peer.tool.is_installed:
            try:
                rows.append([*start, *_compare(ours, peer, size, folder)])
            except Exception as error:  # noqa: BLE001 - what a peer cannot do is a line of the table
                rows.append([*start, f"{type(error).__name__}: {error}".splitlines()[0][:90], *[""] * 6])
        else:
            rows.append([*start, f"not installed: {peer.tool.install}", *[""] * 6])
    return rows


def _compare(ours: Way, peer: Way, size: int, folder: Path) -> list[str]:
    with ours.open(size, folder) as our_call, peer.open(size, folder) as their_call:
        difference = _difference(ours.matrix(our_call()), peer.matrix(their_call()))
        _warm_up(our_call)
        warm = measure_in_turns({"ours": our_call, "theirs": their_call}, rounds=ROUNDS)
    whole = {"ours": _from_the_start(ours, size, folder), "theirs": _from_the_start(peer, size, folder)}
    cold = measure_in_turns(whole, rounds=ROUNDS)
    return [*_write(warm), *_write(cold), difference]


def _from_the_start(way: Way, size: int, folder: Path) -> Callable[[], None]:
    def run() -> None:
        with way.open(size, folder) as call:
            call()

    return run


def _warm_up(call: Callable[[], Any]) -> None:
    begin = process_time()
    for _ in range(MOST_CALLS):
        call()
        if process_time() - begin > SECONDS_TO_WARM_UP:
            return


def _write(seconds: dict[str, list[float]]) -> list[str]:
    ours, theirs = seconds["ours"], seconds["theirs"]
    medians = [f"{1e3 * statistics.median(times):.3g} ms" for times in (ours, theirs)]
    return [*medians, f"{median_ratio(ours, theirs):.2f}"]


def _difference(ours: FloatArray, theirs: FloatArray) -> str:
    if ours.shape != theirs.shape:
        return f"shapes {ours.shape}, {theirs.shape}"
    return f"{np.abs(ours - theirs).max(initial=0.0) / np.abs(ours).max(initial=1e-300):.0e}"
