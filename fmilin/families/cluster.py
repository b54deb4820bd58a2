"""Points computed by a Dask cluster: the model file travels there, and each worker opens it in a process of its own."""

from __future__ import annotations

import hashlib
import logging
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from fmilin.errors import FmilinError, ModelCrashError, ModelError, UsageError
from fmilin.families.continuation import ContinuationPoint
from fmilin.families.rows import PointOutcome
from fmilin.families.sweep_plan import SweepExecutor, SweepPlan, SweepTask, TaskReport
from fmilin.fmi.client.restrictions import Limits
from fmilin.support.files import is_file, write_file

if TYPE_CHECKING:
    from fmilin.families.processes import Processes

CONNECT = "10s"  # for a cluster to answer
CHECK_INTERVAL = 1.0  # seconds after which a wait for the workers checks whether the scheduler is still there
RUN_COUNT_PER_WORKER = 4
"""Of a source that is computed in batches: a run begins with a point alone, and is reported when it is complete."""
RETRIES = 3  # times that a task is given to another worker when one is lost on it


@dataclass(frozen=True)
class PackedPlan:
    """A plan and the files that it needs, for a machine that has neither."""

    plan: SweepPlan
    files: tuple[tuple[str, bytes], ...]  # the model's file first
    key: str  # the same for the same content
    limits: Limits | None = None  # of FMUs; paths are those of the machine that it works on

    @classmethod
    def of(cls, plan: SweepPlan, limits: Limits | None = None) -> PackedPlan:
        """Return a plan with its model's file, what declares its constraints next to it, and nothing else."""
        if not isinstance(plan.source, str):
            raise UsageError("A cluster needs the model's file: give its path instead of a loaded model.")
        path = _find_model_file(plan.source)
        paths = [] if path is None else [path, path.with_name(f"{path.stem}.fmilin.toml")]
        if plan.load.constraints_file is not None:
            paths.append(Path(plan.load.constraints_file))
        files = tuple((p.name, p.read_bytes()) for p in paths if is_file(p))
        digest = hashlib.sha256(repr((plan.identity(), limits)).encode())
        for name, content in files:
            digest.update(name.encode() + content)
        return cls(plan, files, digest.hexdigest()[:32], limits)

    def unpack(self, folder: Path) -> SweepPlan:
        """Return the plan with the files in ``folder``."""
        for name, content in self.files:
            write_file(folder / name, content)
        plan = self.plan
        assert isinstance(plan.source, str)  # noqa: S101 - of() has looked
        path = _find_model_file(plan.source)
        source = plan.source if path is None else f"{folder / path.name}{plan.source[len(str(path)) :]}"
        load = plan.load
        if load.constraints_file is not None:
            load = replace(load, constraints_file=str(folder / Path(load.constraints_file).name))
        return replace(plan, source=source, load=load)


def _find_model_file(source: str) -> Path | None:
    """Return the file in ``model.fmu``, ``file.py:name(...)`` or ``robot.urdf``; None for ``package.module:name``."""
    head = source[: source.index(".py:") + 3] if ".py:" in source else source
    path = Path(head)
    if path.is_file():
        return path
    if ":" in source and ".py:" not in source:
        return None
    raise UsageError(f"There is no file '{head}' that could be sent to the cluster.")


_open: dict[str, Any] = {}  # of this worker: the processes, a folder and a lock of each packed plan
_opening = threading.Lock()


def compute(packed: PackedPlan, task: SweepTask) -> tuple[list[Sequence[PointOutcome]], ContinuationPoint | None]:
    """Compute a task on a worker, in a process of its own that stays for the next task. Batches stay whole."""
    engine, lock = _open_on_worker(packed)
    blocks: list[Sequence[PointOutcome]] = []
    with lock:  # a worker with several threads has one process
        engine.submit(task)
        while True:
            for report in engine.reports():
                if len(report.outcomes):
                    blocks.append(report.outcomes)
                if report.finished:
                    return blocks, report.predecessor


def computes_batches(packed: PackedPlan) -> bool:
    """Return, on a worker, whether the source is computed in batches."""
    return _open_on_worker(packed)[0].least_run > SweepExecutor.least_run


def _open_on_worker(packed: PackedPlan) -> tuple[Processes, threading.Lock]:
    from fmilin.families.processes import Processes

    with _opening:
        if packed.key not in _open:
            folder = tempfile.TemporaryDirectory(prefix="fmilin-")
            try:
                engine = Processes(packed.unpack(Path(folder.name)), 1, packed.limits, program=True)
            except BaseException:
                folder.cleanup()
                raise
            _open[packed.key] = (engine, folder, threading.Lock())
        opened: Processes = _open[packed.key][0]
        lock: threading.Lock = _open[packed.key][2]
    return opened, lock


def _return_plan(packed: PackedPlan) -> PackedPlan:
    return packed


def forget(key: str) -> None:
    """End what a worker holds for a packed plan."""
    engine, folder, _ = _open.pop(key, (None, None, None))
    if engine is not None:
        engine.close()
        folder.cleanup()


class Cluster(SweepExecutor):
    """Hands tasks to the workers of a Dask cluster."""

    def __init__(self, plan: SweepPlan, address: str, limits: Limits | None = None) -> None:
        if find_spec("distributed") is None:
            raise UsageError(
                "A cluster needs the package distributed, which is not installed: pip install 'fmilin[families]', or "
                "use jobs= for processes on this machine."
            )
        import distributed

        Client: Any = distributed.Client

        self._packed = PackedPlan.of(plan, limits)
        try:
            # Raise ValueError for what is not an address: a client that fails over it prints a traceback when it goes.
            from distributed.comm.addressing import get_address_host_port

            if not address.startswith("inproc://"):
                get_address_host_port(address, strict=True)
            self._client: Any = Client(address, timeout=CONNECT, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            why = " ".join(str(error).split())[:120]
            raise UsageError(
                f"No Dask scheduler answers at '{address}' ({why}). Start one (dask scheduler, dask worker ADDRESS), "
                "or use jobs= for processes on this machine."
            ) from None
        # A task that returns the plan, not scattered data: when all workers that have it are lost it is made again.
        self._shipped = self._client.submit(_return_plan, self._packed, pure=False)
        self._tasks: dict[Any, SweepTask] = {}
        self._done: SimpleQueue[Any] = SimpleQueue()
        workers = max(1, sum(self._client.nthreads().values()))
        self.capacity = 4 * workers
        try:
            if self._computes_batches():
                self.least_run = max(self.least_run, -(-plan.grid.size // (RUN_COUNT_PER_WORKER * workers)))
        except BaseException:
            self.close()
            raise

    def _computes_batches(self) -> bool:
        """Ask a worker whether the source is computed in batches."""
        question = self._client.submit(computes_batches, self._shipped, pure=False, retries=RETRIES)
        question.add_done_callback(self._done.put)
        self._wait_for_finished_futures()
        try:
            return bool(question.result())
        except (UsageError, ModelError):
            raise
        except Exception:  # noqa: BLE001 - a worker that is lost: tasks say so
            return False

    def submit(self, task: SweepTask) -> None:
        """Take in a task."""
        future = self._client.submit(compute, self._shipped, task, pure=False, retries=RETRIES)
        self._tasks[future] = task
        future.add_done_callback(self._done.put)

    def reports(self) -> Iterator[TaskReport]:
        """Yield what the workers report, after waiting for it."""
        for future in self._wait_for_finished_futures():
            task = self._tasks.pop(future)
            try:
                blocks, predecessor = future.result()
            except FmilinError as error:
                if isinstance(error, UsageError | ModelError) and task.predecessor is None:
                    raise
                blocks, predecessor = [_make_failures(task, str(error))], task.predecessor
            except Exception as error:  # noqa: BLE001 - KilledWorker, and what else a cluster may raise
                why = f"The cluster lost its workers on this run of points: {error}"
                blocks, predecessor = [_make_failures(task, why)], task.predecessor
            for block in blocks:
                yield TaskReport(task, block, predecessor, finished=False)
            yield TaskReport(task, (), predecessor)

    def _wait_for_finished_futures(self) -> list[Any]:
        """Return the futures that are done, at least one; those of a scheduler that is gone never are, or cancelled."""
        while self._client.status == "running":
            try:
                batch = [self._done.get(timeout=CHECK_INTERVAL)]
            except Empty:
                continue
            while not self._done.empty():
                batch.append(self._done.get())
            if any(future.cancelled() for future in batch):
                break
            return batch
        raise ModelCrashError(
            "The connection to the Dask scheduler was lost. Start it again, or use jobs= for processes on this machine."
        )

    def close(self) -> None:
        """Let the workers go."""
        try:
            if self._client.status == "running":
                self._client.run(forget, self._packed.key, on_error="ignore")
            else:  # its attempts to connect again end here, with a traceback in a log
                for name in ("distributed.client", "distributed.utils"):
                    logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        finally:
            self._client.close()


def _make_failures(task: SweepTask, why: str) -> list[PointOutcome]:
    return [PointOutcome(n, " ".join(why.split()), kind="ModelCrashError") for n in task.numbers]
