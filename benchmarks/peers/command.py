"""The command: every task by fmilin and by a peer in turns, with ratios and the difference of their numbers."""

from __future__ import annotations

import statistics
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from benchmarks.page import describe_making, write_tables
from benchmarks.peers.tasks import TASKS, Task
from benchmarks.peers.ways import TOOLS, Way, shorten_error
from benchmarks.processor_time import describe_load, measure_in_turns, median_ratio
from benchmarks.tables import Shown, recorded, show
from fmilin.signals import FloatArray

__all__ = ["main"]

ROUNDS = 5
SECONDS_TO_WARM_UP, MAX_CALLS = 1.5, 200
"""Calls that let compiled code take the place of slower code, as it does after many of a user's."""
COLUMNS = ("task", "warm", "start", "peer", "warm", "ratio", "start", "ratio", "difference")
EXPLANATION = f"""\
Processor time per call in ms, in turns in one process with one BLAS thread: medians of {ROUNDS} turns, and the median
of the ratios; above 1 fmilin takes longer. Warm: an open model after up to {MAX_CALLS} linearizations, so that all is
compiled. Start: the model is opened, linearized once and closed. Peers call an FMU in their own process, fmilin in a
sandbox, whose time is included. Difference: of both results, relative to the largest entry.
"""
PAGE = """# Speed beside other tools

{made}
{load}.

{explanation}
fmilin estimates the error of every entry, looks for events nearby and checks that the model has not moved; the peers,
called as documented, do not. {versions}.
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
    """Measure all ways in turns; return a row for each peer, which says why where there are no figures."""
    ours, *peers = task.ways
    failures = {peer.tool.name: f"not installed: {peer.tool.install}" for peer in peers if not peer.tool.is_installed}
    calls: dict[str, Callable[[], Any]] = {}
    matrices: dict[str, FloatArray] = {}
    with ExitStack() as opened:
        for way in task.ways:
            if way.tool.name in failures:
                continue
            try:
                call = opened.enter_context(way.open(size, folder))
                matrices[way.tool.name] = way.matrix(call())
                calls[way.tool.name] = call
            except Exception as error:  # what a peer cannot do is a line of the table
                if way is ours:
                    raise
                failures[way.tool.name] = shorten_error(error)
        _warm_up(calls[ours.tool.name])
        warm = measure_in_turns(calls, rounds=ROUNDS)
    from_start = {
        way.tool.name: partial(_open_and_call, way, size, folder) for way in task.ways if way.tool.name in calls
    }
    start = measure_in_turns(from_start, rounds=ROUNDS, least_seconds=0.0)
    rows = []
    for peer in peers:
        name = peer.tool.name
        heads = [f"{task.title}, {size:,} {task.unit}", *(_write(times[ours.tool.name]) for times in (warm, start))]
        heads.append(f"{name} {peer.remark}".strip())
        if name in failures:
            rows.append([*heads, failures[name], *[""] * (len(COLUMNS) - len(heads) - 1)])
            continue
        figures = [
            figure
            for times in (warm, start)
            for figure in (_write(times[name]), f"{median_ratio(times[ours.tool.name], times[name]):.3g}")
        ]
        rows.append([*heads, *figures, _write_difference(matrices[ours.tool.name], matrices[name])])
    return rows


def _open_and_call(way: Way, size: int, folder: Path) -> None:
    with way.open(size, folder) as call:
        call()


def _warm_up(call: Callable[[], Any]) -> None:
    begin = process_time()
    for _ in range(MAX_CALLS):
        call()
        if process_time() - begin > SECONDS_TO_WARM_UP:
            return


def _write(times: Sequence[float]) -> str:
    return f"{1e3 * statistics.median(times):.3g}"


def _write_difference(ours: FloatArray, theirs: FloatArray) -> str:
    if ours.shape != theirs.shape:
        return f"shapes {ours.shape}, {theirs.shape}"
    return f"{np.abs(ours - theirs).max(initial=0.0) / np.abs(ours).max(initial=1e-300):.0e}"
