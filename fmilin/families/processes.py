"""Points computed by processes on this machine: each opens the model once, and is replaced when it ends too early.

The code of an FMU runs in a host of each process. A process itself ends when an engine of an adapter, or other compiled
code, ends it.
"""

import logging
import os
import pickle
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import TracebackType

from fmilin.errors import FmilinError, ModelCrashError, ModelError, UsageError
from fmilin.families.continuation import ContinuationPoint
from fmilin.families.rows import PointOutcome, list_numbers
from fmilin.families.solver import PointSolver
from fmilin.families.sweep_plan import SweepExecutor, SweepPlan, SweepTask, TaskReport
from fmilin.families.worker_process import MakersPipe, WorkerProcess, serve_standard_streams
from fmilin.fmi.client.restrictions import Limits, apply_limits
from fmilin.support.stopped_processes import PATIENCE_SECONDS, StopWatch
from fmilin.support.waiting import wait_for_readable

logger = logging.getLogger("fmilin.fmu")
MESSAGE = 0.1  # seconds of work between two messages of a process
WAIT_SECONDS = 0.05  # seconds to wait for messages, until those are looked after that have nothing to do
MAX_FAILED_STARTS = 3  # how often in a row a process may end before it begins a point, until no other is started
RUN_COUNT_PER_JOB = 2
"""Of a source that is computed in batches: a point that starts a run stands alone, and costs dozens."""


class _LineSender(logging.Handler):
    """Sends what FMUs print and log to the process that has started this one."""

    def __init__(self, pipe: MakersPipe) -> None:
        super().__init__()
        self._pipe = pipe

    def emit(self, record: logging.LogRecord) -> None:
        """Send a line."""
        with suppress(OSError):
            self._pipe.send(("printed", record.levelno, record.getMessage()))


def make_server(plan: SweepPlan, limits: Limits | None = None) -> Callable[[MakersPipe], None]:
    """Return what a child does: open the model, say so, and compute one task after the other."""

    def serve(pipe: MakersPipe) -> None:
        logger.handlers, logger.propagate = [_LineSender(pipe)], False
        with apply_limits(limits):
            open_and_compute(pipe)

    def open_and_compute(pipe: MakersPipe) -> None:
        try:
            solver = PointSolver(plan)
            solver.check()
        except Exception as error:  # noqa: BLE001 - raised again in the parent
            pipe.send(("refused", _sendable(error)))
            return
        pipe.send(("ready", solver.base.batches))
        try:
            while True:
                _compute(pipe, solver, pipe.receive())
        except EOFError:
            solver.close()

    return serve


def _compute(pipe: MakersPipe, solver: PointSolver, task: SweepTask) -> None:
    def solve() -> Iterator[tuple[Sequence[PointOutcome], ContinuationPoint | None]]:
        if not task.is_repeated:
            pipe.send(("begin", task.numbers[-1]))  # points of batches begin together
            yield from solver.solve(task.numbers, task.predecessor)
            return
        previous = task.predecessor
        for number in task.numbers:
            pipe.send(("begin", number))
            for outcomes, solved in solver.solve([number], previous):
                previous = solved
                yield outcomes, solved

    blocks: list[Sequence[PointOutcome]] = []
    predecessor, last = task.predecessor, time.monotonic()
    for outcomes, predecessor in solve():
        blocks.append(outcomes)
        if time.monotonic() - last > MESSAGE:
            pipe.send(("some", blocks, predecessor))
            blocks, last = [], time.monotonic()
    pipe.send(("end", blocks, predecessor))


def _sendable(error: Exception) -> Exception:
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    except Exception:  # noqa: BLE001 - pickle raises all kinds
        return (ModelError if isinstance(error, FmilinError) else RuntimeError)(str(error))
    return error


def main() -> None:
    """Serve over the standard streams: what a child does that is started as a program."""
    pipe = serve_standard_streams()
    with suppress(EOFError, BrokenPipeError):
        plan, limits = pipe.receive()
        make_server(plan, limits)(pipe)


@dataclass(eq=False, slots=True)
class _Worker:
    """A child and what it works on."""

    server: WorkerProcess
    task: SweepTask | None = None
    remaining: list[int] = field(default_factory=list)  # numbers of the task that are not reported yet
    begun: int | None = None
    predecessor: ContinuationPoint | None = None
    ready: bool = False


class Processes(SweepExecutor):
    """Computes tasks in child processes, started as programs where this process has threads, else forked."""

    def __init__(self, plan: SweepPlan, jobs: int, limits: Limits | None = None, *, program: bool = False) -> None:
        self._plan, self._limits = plan, limits
        self._program = program or not hasattr(os, "fork")
        if self._program and not isinstance(plan.source, str):
            raise UsageError("Other processes need the model's file: give its path instead of a loaded model.")
        self.capacity, self._jobs = 2 * jobs, jobs
        self._tasks: deque[SweepTask] = deque()
        self._failures, self._opened = 0, False
        self._broken: ModelCrashError | None = None
        self._workers: list[_Worker] = []
        self._stop_watch = StopWatch()
        try:
            for _ in range(jobs):
                self._workers.append(self._start_worker())
            while not any(w.ready for w in self._workers):
                for _ in self._round():
                    pass
                if self._broken is not None:
                    raise self._broken  # noqa: TRY301
        except BaseException:
            self._end()
            raise

    def submit(self, task: SweepTask) -> None:
        """Take in a task."""
        self._tasks.append(task)

    def reports(self) -> Iterator[TaskReport]:
        """Yield what the children report, after waiting for it."""
        while True:
            reports = list(self._round())
            if reports:
                yield from reports
                return
            if self._broken is not None and not any(w.task for w in self._workers):
                yield from self._report_failures()
                return

    def close(self) -> None:
        """End the children, which close their models."""
        for worker in self._workers:
            if worker.task is None and worker.ready:
                worker.server.close()
        self._end()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            self._end()
        self.close()

    def _end(self) -> None:
        for worker in self._workers:
            worker.server.kill()
        self._workers = []

    def _round(self) -> Iterator[TaskReport]:
        """Give work to those that have none, and take what they report."""
        for worker in self._workers:
            if worker.ready and worker.task is None and self._tasks:
                worker.task = task = self._tasks.popleft()
                worker.remaining, worker.begun, worker.predecessor = list(task.numbers), None, task.predecessor
                with suppress(OSError):  # one that has ended is found when its end of the pipe is read
                    worker.server.pipe.send(task)
        ends = {w.server.pipe.read_end: w for w in self._workers}
        for end in wait_for_readable(list(ends), WAIT_SECONDS):
            yield from self._receive(ends[end])
        yield from self._end_stopped()

    def _end_stopped(self) -> Iterator[TaskReport]:
        """End processes that were stopped: they would never answer."""
        stopped = self._stop_watch.find(worker.server.process_id for worker in self._workers)
        for worker in [worker for worker in self._workers if worker.server.process_id in stopped]:
            worker.server.kill()
            why = f"A process of the sweep was stopped (SIGSTOP) for more than {PATIENCE_SECONDS:g} s and was ended."
            yield from self._replace_worker(worker, ModelCrashError(why))

    def _receive(self, worker: _Worker) -> Iterator[TaskReport]:
        try:
            worker.server.pipe.take()
        except (EOFError, OSError):
            error = worker.server.describe_crash()
            worker.server.kill()
            yield from self._replace_worker(worker, error)
            return
        for kind, *content in worker.server.pipe.messages():
            match kind:
                case "ready":
                    self._opened = worker.ready = True
                    if content[0]:
                        self.least_run = max(
                            self.least_run, -(-self._plan.grid.size // (RUN_COUNT_PER_JOB * self._jobs))
                        )
                case "refused" if not self._opened:
                    raise content[0]
                case "refused":  # another process could open the model before
                    worker.server.kill()
                    yield from self._replace_worker(worker, ModelCrashError(str(content[0])))
                    return
                case "printed":
                    logger.log(content[0], "%s", content[1])
                case "begin":
                    worker.begun = content[0]
                case _:
                    yield from self._take_outcomes(worker, *content, finished=kind == "end")

    def _take_outcomes(
        self,
        worker: _Worker,
        blocks: list[Sequence[PointOutcome]],
        predecessor: ContinuationPoint | None,
        *,
        finished: bool,
    ) -> Iterator[TaskReport]:
        task = worker.task
        assert task is not None  # noqa: S101 - it has answered
        reported = {number for block in blocks for number in list_numbers(block)}
        worker.remaining = [n for n in worker.remaining if n not in reported]
        worker.predecessor = predecessor
        self._failures = 0
        if finished:
            worker.task = None
        for block in blocks:
            yield TaskReport(task, block, predecessor, finished=False)
        if finished:
            yield TaskReport(task, (), predecessor)

    def _replace_worker(self, worker: _Worker, error: ModelCrashError) -> Iterator[TaskReport]:
        """Mark the point that a child died of, or have it searched for, and have another one do the rest."""
        self._workers.remove(worker)
        task = worker.task
        if not worker.ready or (task is not None and worker.begun is None):  # nothing would come of the next, either
            self._failures += 1
        if self._failures < MAX_FAILED_STARTS:
            self._workers.append(self._start_worker())
        elif not self._workers:
            self._broken = error
        if task is None:
            return
        if worker.begun is not None and len(worker.remaining) > 1 and not task.is_repeated:
            remaining = tuple(worker.remaining)  # it may have ended at any of them: those of a batch begin together
            self._tasks.appendleft(replace(task, numbers=remaining, predecessor=worker.predecessor, is_repeated=True))
            return
        if worker.begun in worker.remaining:
            outcome = PointOutcome(worker.begun, str(error), kind="ModelCrashError")
            worker.remaining.remove(worker.begun)
            yield TaskReport(task, [outcome], worker.predecessor, finished=not worker.remaining)
        elif not worker.remaining:
            yield TaskReport(task, [], worker.predecessor)
        if worker.remaining:
            self._tasks.appendleft(replace(task, numbers=tuple(worker.remaining), predecessor=worker.predecessor))

    def _report_failures(self) -> Iterator[TaskReport]:
        while self._tasks:
            task = self._tasks.popleft()
            why = f"The model can no longer be opened: {self._broken}"
            yield TaskReport(
                task, [PointOutcome(n, why, kind="ModelCrashError") for n in task.numbers], task.predecessor
            )

    def _start_worker(self) -> _Worker:
        if self._program:
            return _Worker(WorkerProcess(None, first=(self._plan, self._limits)))
        serve = make_server(self._plan, self._limits)
        return _Worker(WorkerProcess(serve, siblings=[w.server for w in self._workers]))
