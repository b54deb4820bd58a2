"""The same run many times with other parameters: statistics as a table, bands over time as a picture."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fmilin.errors import FmilinError, ModelCrashError, NumericalError, UsageError
from fmilin.signals import FloatArray, as_numbers
from fmilin.simulation.trajectory import Trajectory
from fmilin.support.implemented_in import implemented_in
from fmilin.support.kinds import kinds_checked
from fmilin.support.stopped_processes import INTERVAL, PATIENCE_SECONDS, StopWatch
from fmilin.support.table_repr import Sheet, TableRepr

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TIMES = 200  # at which courses are kept
# measures, times, courses, turns of signals that wrap, units of signals
_Run = tuple[FloatArray, FloatArray, FloatArray, list[float], list[str]]
Spread = tuple[float, float] | Sequence[float] | Callable[[np.random.Generator], float]


@dataclass(frozen=True, eq=False, repr=False)
class MonteCarlo(TableRepr):
    """What :func:`monte_carlo` saw."""

    _attributes = ".samples, .measures, .courses, .plot()"

    samples: dict[str, FloatArray]  #: the parameters, shape (runs,)
    measures: dict[str, FloatArray]  #: shape (runs,); NaN where a run failed
    times: FloatArray  #: shape (200,), in seconds
    #: shape (runs, 200); the signals that were kept; outputs that wrap go on beyond half a turn, from where the first
    #: run starts
    courses: dict[str, FloatArray]
    failures: dict[str, int]  #: why runs failed, and how many
    units: Mapping[str, str] = field(default_factory=dict)  #: of the signals that were kept

    @implemented_in("fmilin.report.designs:show_monte_carlo")
    def _print_table(self, page: Sheet) -> None: ...

    @implemented_in("fmilin.report.designs:monte_carlo_figure")
    def plot(self) -> Figure:
        """Return the medians of the courses and the bands between their 5th and 95th percentiles."""
        ...


@kinds_checked
def monte_carlo(
    run: Callable[[dict[str, float], int], Trajectory],
    parameters: Mapping[str, Spread],
    *,
    runs: int = 100,
    measures: Mapping[str, Callable[[Trajectory], float]] | None = None,
    signals: Sequence[str] = (),
    seed: int = 0,
    jobs: int = 1,
) -> MonteCarlo:
    """Return statistics of a closed loop, or of any motion, with parameters drawn by chance.

    Raises UsageError when nothing is to be measured or kept, or functions cannot be sent to processes; NumericalError
    when every run fails.

    Parameters
    ----------
    run : callable
        From the parameters, by name, and the number of the run (a seed for its noise) to a trajectory.
    parameters : mapping of str to spread
        ``(low, high)``: uniform between; a longer sequence: one of its values; a function of a random generator.
    runs : int
    measures : mapping of str to callable
        From a trajectory to a number.
    signals : sequence of str
        Signals with stored courses.
    seed : int
    jobs : int
        Processes; ``run`` and ``measures`` are then functions of a module.
    """
    if jobs < 1 or seed < 0:
        raise UsageError(
            f"jobs={jobs}, seed={seed}: jobs must be a whole number of 1 or more, and seed one of 0 or more."
        )
    if runs < 1 or not (measures or signals):
        raise UsageError("A Monte Carlo study needs at least one run, and measures= or signals= to record in each.")
    rng = np.random.default_rng(seed)
    drawn = [{name: _draw(name, spread, rng) for name, spread in parameters.items()} for _ in range(runs)]
    one = partial(_one, run, dict(measures or {}), tuple(signals))
    if jobs == 1:
        results = [one(values, k) for k, values in enumerate(drawn)]
    else:
        try:
            results = _run_in_processes(one, drawn, jobs)
        except (AttributeError, TypeError) as error:  # what pickle says of lambdas and functions in functions
            raise UsageError(
                f"The runs cannot be sent to processes: {error}. Use functions of a module, or jobs=1."
            ) from None
    good = [f for f in results if not isinstance(f, str)]
    failures = Counter(f for f in results if isinstance(f, str))
    if not good:
        raise NumericalError(f"All {runs} runs of the study failed. The first: {results[0]}")
    nothing = np.full(len(measures or {}), np.nan), good[0][1], np.full((len(signals), TIMES), np.nan), *good[0][3:]
    rows = [nothing if isinstance(f, str) else f for f in results]
    courses = {name: np.array([row[2][i] for row in rows]) for i, name in enumerate(signals)}
    turns = dict(zip(signals, good[0][3], strict=True))
    return MonteCarlo(
        {name: np.array([d[name] for d in drawn]) for name in parameters},
        {name: np.array([row[0][i] for row in rows]) for i, name in enumerate(measures or {})},
        good[0][1],
        {name: _align_turns(course, turns[name]) for name, course in courses.items()},
        dict(failures),
        dict(zip(signals, good[0][4], strict=True)),
    )


def _run_in_processes(
    one: Callable[[dict[str, float], int], _Run | str], drawn: Sequence[dict[str, float]], jobs: int
) -> list[_Run | str]:
    """Return the results of all runs. Raises ModelCrashError if a process ends, or is stopped, before its run does."""
    earlier_children = multiprocessing.active_children()
    stop_watch = StopWatch()
    is_stopped = False
    try:
        with ProcessPoolExecutor(jobs) as pool:
            pending = runs = [pool.submit(one, values, number) for number, values in enumerate(drawn)]
            while pending:
                pending = list(wait(pending, INTERVAL).not_done)
                workers = {
                    child.pid: child for child in multiprocessing.active_children() if child not in earlier_children
                }
                for number in stop_watch.find(pid for pid in workers if pid is not None):
                    is_stopped = True
                    workers[number].kill()  # the others end, too, and the runs get a BrokenProcessPool
            return [run.result() for run in runs]
    except BrokenProcessPool:
        how = (
            f"was stopped (SIGSTOP) for more than {PATIENCE_SECONDS:g} s and was ended"
            if is_stopped
            else "ended too early"
        )
        raise ModelCrashError(
            f"A process of the Monte Carlo study {how}. Run it again, with jobs=1 if a run ends the process by itself."
        ) from None


def _one(
    run: Callable[[dict[str, float], int], Trajectory],
    measures: Mapping[str, Callable[[Trajectory], float]],
    signals: Sequence[str],
    values: dict[str, float],
    number: int,
) -> _Run | str:
    """Return measures, times, courses and the turns of signals that wrap (0 without) of a run, or why it failed."""
    try:
        ran = run(values, number)
    except FmilinError as error:
        return str(error)
    times = np.linspace(ran.times[0], ran.times[-1], TIMES)
    turns = [_find_turn(ran, name) for name in signals]
    unwrapped = [np.unwrap(ran[n], period=turn) if turn else ran[n] for n, turn in zip(signals, turns, strict=True)]
    courses = np.array([np.interp(times, ran.times, values) for values in unwrapped]).reshape(-1, TIMES)
    return (
        np.array([float(measure(ran)) for measure in measures.values()]),
        times,
        courses,
        turns,
        [_find_unit(ran, name) for name in signals],
    )


def _find_unit(ran: Trajectory, name: str) -> str:
    groups = (ran.output_signals, ran.state_signals, ran.input_signals)
    return next((group[group.index_of(name)].unit for group in groups if group.has(name)), "")


def _find_turn(ran: Trajectory, name: str) -> float:
    """Return the turn of a signal that wraps, else 0."""
    if ran.state_signals.has(name) or not ran.output_signals.has(name):
        return 0.0
    return ran.output_signals[ran.output_signals.index_of(name)].turn or 0.0


def _align_turns(courses: FloatArray, turn: float) -> FloatArray:
    """Return courses (runs, TIMES) of an angle shifted by whole turns, so that all start near the first one."""
    starts = courses[np.isfinite(courses[:, 0]), 0]
    if not turn or not len(starts):
        return courses
    first = starts[0]
    return np.asarray(courses - turn * np.round((courses[:, :1] - first) / turn))


def _draw(name: str, spread: Any, rng: np.random.Generator) -> float:
    if callable(spread):
        return float(as_numbers(spread(rng), f"'{name}'"))
    values = as_numbers(spread, f"The spread of '{name}'")
    if (
        values.ndim != 1
        or not len(values)
        or not np.isfinite(values).all()
        or (len(values) == 2 and np.diff(values) < 0)
    ):
        raise UsageError(
            f"The spread of '{name}' is {spread!r}: give (low, high), a longer list of values, or a function of a "
            "random generator."
        )
    return float(rng.uniform(*values)) if len(values) == 2 else float(rng.choice(values))
