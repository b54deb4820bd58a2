"""In which order the points of a sweep are computed, and who waits for whom.

The grid is cut into runs along its last axis. Where each run starts is computed first, from the start of the run before
it: then all runs can be computed side by side, each point from its neighbour, and the result does not depend on who
computes what.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from fmilin.families.continuation import SolvedPoint
from fmilin.families.engine import Engine, Task
from fmilin.families.family_builder import FamilyBuilder
from fmilin.families.grid import Grid
from fmilin.families.plan import Plan

RUNS = 16  # runs that a large grid is cut into at least; a run is computed in batches where the source can

LONGEST_RUN = 1024


def runs_of(grid: Grid, *, whole_lines: bool = False, least: int = 32) -> dict[int, tuple[int | None, tuple[int, ...]]]:
    """Return the runs of a grid: by their first point, the first point that it starts from, and the other points.

    ``whole_lines`` cuts no line along the last axis: a tangent basis turns a little less on many short ways than on
    a long one, and would jump where a run ends.
    """
    length = grid.shape[-1]
    size = length if whole_lines else min(max(least, grid.size // RUNS), LONGEST_RUN)
    runs: dict[int, tuple[int | None, tuple[int, ...]]] = {}
    for line in range(0, grid.size, length):
        for begin in range(0, length, size):
            first = line + begin
            before = first - size if begin else grid.before(first)
            runs[first] = (before, tuple(range(first + 1, line + min(begin + size, length))))
    return runs


class _Progress:
    """Tells how many points are done, ten times a second at most."""

    def __init__(self, tell: Callable[[int, int], None] | None, done: int, total: int) -> None:
        self._tell, self._done, self._total, self._last = tell, done, total, 0.0

    def add(self, count: int) -> None:
        """Count points that are done."""
        self._done += count
        now = time.monotonic()
        if self._tell is not None and (now - self._last > 0.1 or self._done == self._total):
            self._last = now
            self._tell(self._done, self._total)


def run(
    plan: Plan,
    engine: Engine,
    builder: FamilyBuilder,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Compute all points of the plan that a family lacks; ``progress`` is told how many it has, and of how many."""
    counter = _Progress(progress, int(builder.done.sum()), plan.grid.size)

    def done(number: int) -> bool:
        return bool(builder.done[number])

    runs = runs_of(plan.grid, whole_lines=plan.how.coordinates == "tangent", least=engine.least_run)
    waiting: dict[int | None, list[int]] = {}
    for first, (before, _) in runs.items():
        waiting.setdefault(before, []).append(first)
    finished = {first for first, (_, others) in runs.items() if done(first) and all(map(done, others))}
    needed = _needed(runs, finished)
    starts: deque[tuple[int, SolvedPoint | None]] = deque(
        (first, None) for first in waiting.get(None, []) if first in needed
    )
    rest: deque[Task] = deque()
    pending = 0
    while starts or rest or pending:
        while pending < engine.capacity and (starts or rest):
            if starts:
                first, predecessor = starts.popleft()
                engine.submit(Task((first,), predecessor, start=True))
            else:
                engine.submit(rest.popleft())
            pending += 1
        for report in engine.reports():
            fresh = [o for o in report.outcomes if not done(o.number)]
            builder.add_all(fresh)
            counter.add(len(fresh))
            if not report.finished:
                continue
            pending -= 1
            if report.task.start:
                first = report.task.numbers[0]
                others = tuple(n for n in runs[first][1] if not done(n))
                if others:
                    rest.append(Task(others, report.predecessor))
                starts.extend((n, report.predecessor) for n in waiting.get(first, []) if n in needed)


def _needed(runs: dict[int, tuple[int | None, tuple[int, ...]]], finished: set[int]) -> set[int]:
    """Return the starts that have to be computed (again): of unfinished runs, and those on the way to them."""
    needed: set[int] = set()
    for first in runs:
        at: int | None = first if first not in finished else None
        while at is not None and at not in needed:
            needed.add(at)
            at = runs[at][0]
    return needed
