"""The request at every point of a sweep, and the engines that compute runs of points and report them."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from fmilin.errors import UsageError
from fmilin.families.continuation import ContinuationPoint
from fmilin.families.grid import Grid
from fmilin.families.rows import PointOutcome
from fmilin.linearization.request import Request
from fmilin.model.interface import Model
from fmilin.options import Loading
from fmilin.options.function_options import given_options, reject_without_meaning
from fmilin.trimming.trim_request import PointRequest


@dataclass(frozen=True)
class SweepPlan:
    """A sweep, but for who computes it."""

    source: str | Model  # as :func:`fmilin.load` takes it, or a model that is open already
    grid: Grid
    load: Loading = field(default_factory=Loading)
    point: PointRequest = field(default_factory=PointRequest)  # what is the same at all points
    how: Request = field(default_factory=Request)  # how each point is linearized
    loop_at: tuple[str, ...] = ()  # wires of a connected system: the linear models are those of the loop cut there
    continuous: bool = False  # of sampled members a continuous approximation

    def __post_init__(self) -> None:
        if self.continuous and not self.loop_at:
            raise UsageError("A continuous approximation needs a loop. Name a wire with loop_at=.")
        if self.loop_at:
            reject_without_meaning("loop_transfer", given_options(self.how))
        trim, guess = self.point.trim, self.point.guess
        for other, what in ((trim.fixed if trim else {}, "fixed"), (self.point.settings, "set")):
            if both := [name for name in self.grid.axes if name in other]:
                raise UsageError(f"'{both[0]}' is varied and {what} at the same time. Leave one of them out.")
        if trim and (both := [name for name in self.grid.axes if name in trim.free]):
            raise UsageError(f"'{both[0]}' is varied and free at the same time. Leave one of them out.")
        if both := [name for name in self.grid.axes if name in guess]:
            raise UsageError(f"'{both[0]}' is varied, so it needs no guess. Leave one of them out.")
        if trim is None and guess:
            name = next(iter(guess))
            raise UsageError(
                f"A guess of '{name}' is for trimmed points. Add trim=True, or set the value with "
                f"settings={{{name!r}: VALUE}}."
            )

    @property
    def is_file(self) -> bool:
        """Whether the source is a file that can be read here."""
        return isinstance(self.source, str) and Path(self.source).suffix != "" and Path(self.source).is_file()

    def request_point(self, values: Mapping[str, float]) -> PointRequest:
        """Return the request of the point with these values."""
        return replace(self.point, settings={**self.point.settings, **values})

    def identity(self) -> dict[str, Any]:
        """Return what an interrupted sweep must have in common with the one that goes on, as plain data."""
        source = str(self.source) if isinstance(self.source, str) else f"<{self.source.info.name}>"
        path = Path(source.rpartition(":")[0] if ".py:" in source else source)
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        rest = replace(self, source="", grid=Grid({}))
        return {
            "source": source,
            "content": content,
            "axes": {name: values.tolist() for name, values in self.grid.axes.items()},
            "zipped": self.grid.zipped,
            # The class was called Plan: folders of sweeps that were interrupted then have that name.
            "asked": repr(rest).replace(type(self).__name__, "Plan", 1),
        }


@dataclass(frozen=True, slots=True)
class SweepTask:
    """A run of points."""

    numbers: tuple[int, ...]  # each point starts from the one before it
    predecessor: ContinuationPoint | None  # what the first one starts from
    start: bool = False  # the start of a run, which others wait for
    is_repeated: bool = False  # a process was lost on it: points are computed singly, which shows at which one it ends


@dataclass(slots=True)
class TaskReport:
    """A report of an engine: some points of a task are done."""

    task: SweepTask
    outcomes: Sequence[PointOutcome] = ()
    predecessor: ContinuationPoint | None = None  # for the points after the task; of its last report
    finished: bool = True


class SweepExecutor(ABC):
    """Computes tasks, in any order."""

    capacity: int = 1  # how many tasks it wants to have at a time
    joins_lines: bool = False  # whether a run of points may go on in the next line of the grid
    least_run: int = 32  # points: few enough to be shared among processes, enough that messages cost nothing

    @abstractmethod
    def submit(self, task: SweepTask) -> None:
        """Take in a task."""

    @abstractmethod
    def reports(self) -> Iterator[TaskReport]:
        """Yield what is new, after waiting for it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:  # noqa: B027 - some hold nothing
        """Give back what the engine holds."""
