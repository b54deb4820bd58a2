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

from benchmarks.page import describe_making, write_tables
from benchmarks.peers.tasks import TASKS, Task
from benchmarks.peers.ways import TOOLS, Way
from benchmarks.processor_time import describe_load, measure_in_turns, median_ratio
from benchmarks.tables import Shown, recorded, show
from fmilin.signals import FloatArray

__all__ = ["main"]

ROUNDS = 5
SECONDS_TO_WARM_UP, MOST_CALLS = 2.0, 300
"""Calls that let compiled code take the place of slower code, as it does after many of a user's."""
COLUMNS = ("task", "peer", "warm", "peer's", "ratio", "start", "peer's", "ratio", "difference")
EXPLANATION = f"""\
Processor time per call, in turns in one process with one BLAS thread: medians of {ROUNDS} turns, and the median of the
ratios; above 1 fmilin takes longer. Warm: a model that is open and has been linearized before, up to {MOST_CALLS}
times, so that what compiles itself has done so. Start: the model is opened, linearized once and closed. Peers call an
FMU in their own process, fmilin in a sandbox, whose time is included. Difference: of the matrices that both give,
relative to the largest entry.
"""
PAGE = """# Speed beside other tools

{made}
{load}.

{explanation}
fmilin estimates the error of every entry, looks for events nearby, and checks that the model has not moved; a peer is
called as its documentation says and does none of these. {versions}.
"""


def main(arguments: Sequence[str] = ()) -> int:
    parser = ArgumentParser("python -m benchmarks peers", description="The work of other tools beside fmilin.")
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=", ".join(TASKS))
    parser.add_argument("--page", type=Path, nargs="?", const=Path("docs/peers.md"), help="write docs/peers.md too")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.tasks if name not in TASKS]
    if unknown:
        parser.error(f"there is no task '{unknown[0]}'. There are: {', '.join(TASKS)}.")
    shown: list[Shown] = []
    with tempfile.TemporaryDirectory(prefix="fmilin-bench-") as folder, recorded(shown):
        rows = []
        for name in options.tasks or TASKS:
            for size in TASKS[name].sizes:
                rows += _compare_task(TASKS[name], size, Path(folder))
                print(f"{name}, {size}", file=sys.stderr, flush=True)
        show("Beside other tools", COLUMNS, rows)
    versions = ", ".join(tool.describe() for tool in TOOLS.values())
    print(f"{EXPLANATION}\n{versions}. {describe_load()}.")
    if options.page:
        made = describe_making("python -m benchmarks peers --page")
        text = PAGE.format(made=made, load=describe_load(), explanation=EXPLANATION, versions=versions)
        write_tables(options.page, text, shown)
    return 0


def _compare_task(task: Task, size: int, folder: Path) -> list[list[str]]:
    """Return a row for each peer; one that is not installed gives a row that says so."""
    ours, *peers = task.ways
    rows = []
    for peer in peers:
        start = [f"{task.title}, {size:,} {task.unit}", f"{peer.tool.name} {peer.remark}".strip()]
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
