"""Linear models at many operating points: the function that users call, and the order in which points are computed."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack, overload

from fmilin.errors import UsageError
from fmilin.families.continuation import ContinuationPoint
from fmilin.families.delayed_family import DelayedFamily
from fmilin.families.delayed_sweep import build_delay_grid, run_delay_sweep
from fmilin.families.family import LinearFamily
from fmilin.families.family_builder import FamilyBuilder
from fmilin.families.grid import Grid, build_grid
from fmilin.families.solver import PointSolver
from fmilin.families.sweep_plan import SweepExecutor, SweepPlan, SweepTask, TaskReport
from fmilin.fmi.client.restrictions import Limits, apply_limits, current_restrictions
from fmilin.linearization.request import Request
from fmilin.model.capabilities import HasParameterSignals, can_be_described
from fmilin.model.interface import Model
from fmilin.model.locks import no_model
from fmilin.options import Linearization, Loading
from fmilin.options.function_options import FamilyOptions, takes_linearization
from fmilin.signals import RealArray
from fmilin.support.kinds import kinds_checked
from fmilin.trimming.trim_request import PointRequest, TrimRequest


class Here(SweepExecutor):
    """Computes in this process, one task after the other."""

    def __init__(self, plan: SweepPlan) -> None:
        self._plan = plan
        self._solver = PointSolver(plan)
        self._solver.check()
        self._tasks: deque[SweepTask] = deque()
        if self._solver.base.batches:  # runs are shared with no other process: each costs a point that stands alone
            self.least_run = MAX_BATCH_RUN_POINTS
        self.joins_lines = self._solver.assembles_together

    def submit(self, task: SweepTask) -> None:
        """Take in a task."""
        self._tasks.append(task)

    def reports(self) -> Iterator[TaskReport]:
        """Compute the next task."""
        task, done = self._tasks.popleft(), 0
        for outcomes, predecessor in self._solver.solve(task.numbers, task.predecessor):
            done += len(outcomes)
            yield TaskReport(task, outcomes, predecessor, finished=done == len(task.numbers))

    def list_parameter_units(self) -> dict[str, str]:
        """Return the units of varied parameters, as far as the model states them."""
        base = self._solver.base
        described = base.describe_parameters() if isinstance(base, HasParameterSignals) else {}
        return {
            name: described[name].unit for name in self._plan.grid.axes if name in described and described[name].unit
        }

    def close(self) -> None:
        """Close the models that were opened."""
        self._solver.close()


# In which order the points of a sweep are computed, and who waits for whom. The grid is cut into runs along its last
# axis. Where each run starts is computed first, from the start of the run before it: then all runs can be computed side
# by side, each point from its neighbour, and the result does not depend on who computes what.

MIN_RUNS = 16  # runs that a large grid is cut into at least; a run is computed in batches where the source can
MAX_RUN_POINTS = 1024  # unless more points are worth a run
MAX_BATCH_RUN_POINTS = 8192  # in this process


def split_into_runs(
    grid: Grid, *, whole_lines: bool = False, joins_lines: bool = False, least: int = 32
) -> dict[int, tuple[int | None, tuple[int, ...]]]:
    """Return the runs of a grid: by their first point, the first point that it starts from, and the other points.

    ``whole_lines`` cuts no line along the last axis: a tangent basis turns a little less on many short ways than on
    a long one, and would jump where a run ends. With ``joins_lines`` a run goes on in the next line: its points do not
    start from each other.
    """
    length = grid.size if joins_lines and not whole_lines else grid.shape[-1]
    size = length if whole_lines else max(least, min(grid.size // MIN_RUNS, MAX_RUN_POINTS))
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
    plan: SweepPlan, engine: SweepExecutor, builder: FamilyBuilder, progress: Callable[[int, int], None] | None = None
) -> None:
    """Compute all missing points of a family; ``progress`` takes the number of points done and their total."""
    counter = _Progress(progress, int(builder.done.sum()), plan.grid.size)

    def is_done(number: int) -> bool:
        return bool(builder.done[number])

    whole_lines = plan.how.coordinates == "tangent"
    runs = split_into_runs(plan.grid, whole_lines=whole_lines, joins_lines=engine.joins_lines, least=engine.least_run)
    waiting: dict[int | None, list[int]] = {}
    for first, (before, _) in runs.items():
        waiting.setdefault(before, []).append(first)
    finished = {first for first, (_, run_numbers) in runs.items() if is_done(first) and all(map(is_done, run_numbers))}
    needed = _find_required_starts(runs, finished)
    starts: deque[tuple[int, ContinuationPoint | None]] = deque(
        (first, None) for first in waiting.get(None, []) if first in needed
    )
    rest: deque[SweepTask] = deque()
    pending = 0
    while starts or rest or pending:
        while pending < engine.capacity and (starts or rest):
            if starts:
                first, predecessor = starts.popleft()
                engine.submit(SweepTask((first,), predecessor, start=True))
            else:
                engine.submit(rest.popleft())
            pending += 1
        for report in engine.reports():
            fresh = builder.list_missing(report.outcomes)
            builder.add_all(fresh)
            counter.add(len(fresh))
            if not report.finished:
                continue
            pending -= 1
            if report.task.start:
                first = report.task.numbers[0]
                run_numbers = tuple(n for n in runs[first][1] if not is_done(n))
                if run_numbers:
                    rest.append(SweepTask(run_numbers, report.predecessor))
                starts.extend((n, report.predecessor) for n in waiting.get(first, []) if n in needed)


def _find_required_starts(runs: dict[int, tuple[int | None, tuple[int, ...]]], finished: set[int]) -> set[int]:
    """Return the starts that have to be computed (again): of unfinished runs, and those on the way to them."""
    needed: set[int] = set()
    for first in runs:
        at: int | None = first if first not in finished else None
        while at is not None and at not in needed:
            needed.add(at)
            at = runs[at][0]
    return needed


@overload
def sweep(
    source: Model | str | Path,
    vary: Mapping[str, Sequence[float] | RealArray],
    *,
    zipped: bool = False,
    trim: TrimRequest | bool | None = None,
    guess: Mapping[str, float] | None = None,
    settings: Mapping[str, float] | None = None,
    time: float | None = None,
    constraints: Sequence[str] | None = None,
    delays: None = None,
    loop_at: str | Sequence[str] = (),
    continuous: bool = False,
    jobs: int = 1,
    scheduler: str | None = None,
    limits: Limits | None = None,
    progress: Callable[[int, int], None] | None = None,
    linearization: Linearization | None = None,
    **options: Unpack[FamilyOptions],
) -> LinearFamily: ...
@overload
def sweep(
    source: Model | str | Path,
    vary: Mapping[str, Sequence[float] | RealArray] | None = None,
    *,
    zipped: bool = False,
    trim: TrimRequest | bool | None = None,
    guess: Mapping[str, float] | None = None,
    settings: Mapping[str, float] | None = None,
    time: float | None = None,
    constraints: Sequence[str] | None = None,
    delays: Mapping[str, Sequence[float] | RealArray],
    loop_at: str | Sequence[str] = (),
    continuous: bool = False,
    jobs: int = 1,
    scheduler: str | None = None,
    limits: Limits | None = None,
    progress: Callable[[int, int], None] | None = None,
    linearization: Linearization | None = None,
    **options: Unpack[FamilyOptions],
) -> DelayedFamily: ...
@kinds_checked
@takes_linearization
def sweep(  # noqa: PLR0913 - what trim and load take besides a linearization; all but two by keyword
    source: Model | str | Path,
    vary: Mapping[str, Sequence[float] | RealArray] | None = None,
    *,
    zipped: bool = False,
    trim: TrimRequest | bool | None = None,
    guess: Mapping[str, float] | None = None,
    settings: Mapping[str, float] | None = None,
    time: float | None = None,
    constraints: Sequence[str] | None = None,
    delays: Mapping[str, Sequence[float] | RealArray] | None = None,
    loop_at: str | Sequence[str] = (),
    continuous: bool = False,
    jobs: int = 1,
    scheduler: str | None = None,
    limits: Limits | None = None,
    progress: Callable[[int, int], None] | None = None,
    linearization: Linearization | None = None,
    **options: Unpack[FamilyOptions],
) -> LinearFamily | DelayedFamily:
    """Return linear models at all points of a grid, or at points that are listed; some or all of them may fail.

    A point that fails is marked with its reason and stops nothing. Raises UsageError or UnknownNameError when the
    request does not fit the model; ModelError when the model cannot be opened.

    Parameters
    ----------
    source : Model, str or Path
        A model, or what :func:`fmilin.load` takes. Of several processes each opens the model once.
    vary : mapping of str to sequence of float
        Values of states, inputs and parameters by name: every combination of them, in the order given, the last name
        fastest.
    zipped : bool
        Walk the lists together instead: the first values, the second values, ...
    trim : TrimRequest or True, optional
        Search for an equilibrium or a steady motion at every point, from its neighbour on; what varies is fixed.
    guess : mapping of str to float, optional
        Where the search of the first point starts.
    settings : mapping of str to float, optional
        States, inputs and parameters that are the same at all points.
    time : float, optional, in seconds
    constraints : sequence of str, optional
        As in :func:`fmilin.load`, of a source that is not a model yet.
    delays : mapping of str to sequence of float, optional
        Dead times in seconds, by the names that :func:`fmilin.linearize` takes, and by those of the delays that the
        model has; axes of the grid behind those of ``vary``. The result is a
        :class:`~fmilin.families.delayed_family.DelayedFamily`: rightmost eigenvalues, and the delays at which stability
        changes. ``{}`` where only the model itself has delays. It is computed in this process.
    loop_at : str or sequence of str
        Wires of a connected system: the family is that of the loop cut there (:func:`fmilin.loop_transfer`), and has
        ``margins()``.
    continuous : bool
        Of sampled members of it a continuous approximation, as of :func:`fmilin.loop_transfer`.
    jobs : int
        Processes on this machine; 1: here.
    scheduler : str, optional
        Address of a Dask cluster (``"tcp://host:8786"``), which the model file travels to.
    limits : Limits, optional
        What the code of an FMU may take and reach; paths are those of the machine that it runs on.
    progress : callable, optional
        Takes the number of points done and their total.
    linearization : Linearization, optional
        How each point is linearized; its options may be keywords instead. A choice of coordinates is kept along the
        grid or carried on without a jump. With ``parameters`` the family has ``family.derivatives["m"].A``.

    Examples
    --------
    >>> import fmilin as fl
    >>> from fmilin.systems import cartesian_pendulum
    >>> family = fl.sweep(cartesian_pendulum(length=1.0, gravity=4.0), {"x": [0.0, 0.6]})
    >>> family.shape, family.A.shape, bool(family.ok.all())
    ((2,), (2, 2, 2), True)
    """
    if not isinstance(source, Model | str | Path):
        raise no_model("sweep", source)
    request = TrimRequest() if trim is True else trim or None
    if delays is not None and (loop_at or continuous or jobs != 1 or scheduler is not None):
        raise UsageError(DELAYS_ALONE)
    plan = SweepPlan(
        source=source if isinstance(source, Model) else str(source),
        grid=build_grid(vary or {}, zipped=zipped)
        if delays is None
        else build_delay_grid(vary or {}, delays, zipped=zipped),
        load=Loading(constraints=constraints),
        point=PointRequest(settings=dict(settings or {}), time=time, trim=request, guess=dict(guess or {})),
        how=Request.of("sweep", linearization, options),
        loop_at=(loop_at,) if isinstance(loop_at, str) else tuple(loop_at),
        continuous=continuous,
    )
    if delays is not None:
        with apply_limits(limits):
            return run_delay_sweep(plan, tuple(delays), progress)
    builder = FamilyBuilder(plan.grid)
    with apply_limits(limits), choose_engine(plan, jobs=jobs, scheduler=scheduler) as engine:
        run(plan, engine, builder, progress)
        units = engine.list_parameter_units() if isinstance(engine, Here) else {}
    family = replace(builder.family(), parameter_units=units)
    if isinstance(source, Model) and can_be_described(source) and constraints is None and not plan.loop_at:
        return replace(family, described_by=source)
    return family


DELAYS_ALONE = (
    "A sweep of delays is computed in this process, of whole systems: leave loop_at=, continuous=, jobs= and "
    "scheduler= out. Loops with delays are linearized one by one (fl.loop_transfer)."
)


def choose_engine(plan: SweepPlan, *, jobs: int = 1, scheduler: str | None = None) -> SweepExecutor:
    """Return what computes the points: this process, several processes or a Dask cluster."""
    if jobs < 1:
        raise UsageError(f"jobs={jobs} is not possible. Give jobs=1 or more.")
    if scheduler is not None:
        from fmilin.families.cluster import Cluster

        return Cluster(plan, scheduler, current_restrictions())
    if jobs > 1:
        from fmilin.families.processes import Processes

        return Processes(plan, min(jobs, plan.grid.size), current_restrictions())
    return Here(plan)
