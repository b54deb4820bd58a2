"""Who computes the points of a sweep: an engine takes runs of points behind a solved point and reports on them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from fmilin.families.continuation import SolvedPoint
from fmilin.families.plan import Plan
from fmilin.families.rows import Outcome
from fmilin.families.solver import Solver
from fmilin.ground.signals import FloatArray


@dataclass(frozen=True, slots=True)
class Task:
    """A run of points."""

    numbers: tuple[int, ...]  # each point starts from the one before it
    predecessor: SolvedPoint | None  # what the first one starts from
    start: bool = False  # the start of a run, which others wait for


@dataclass(slots=True)
class Report:
    """What an engine says: some points of a task are done."""

    task: Task
    outcomes: list[Outcome] = field(default_factory=list)
    predecessor: SolvedPoint | None = None  # for the points after the task; of its last report
    finished: bool = True


class Engine(ABC):
    """Computes tasks, in any order."""

    capacity: int = 1  # how many tasks it wants to have at a time
    least_run: int = 32  # points: few enough to be shared among processes, enough that messages cost nothing

    @abstractmethod
    def submit(self, task: Task) -> None:
        """Take in a task."""

    @abstractmethod
    def reports(self) -> Iterator[Report]:
        """Yield what is new, after waiting for it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:  # noqa: B027 - some hold nothing
        """Give back what the engine holds."""


class Here(Engine):
    """Computes in this process, one task after the other; ``table``: where rows of the family are written to."""

    def __init__(self, plan: Plan, table: Callable[[int], FloatArray] | None = None) -> None:
        self._solver = Solver(plan, table)
        self._solver.check()
        self._tasks: deque[Task] = deque()
        if self._solver.base.batches:  # nobody to share with: a stack is the quicker the more points it has
            self.least_run = 1024

    def submit(self, task: Task) -> None:
        """Take in a task."""
        self._tasks.append(task)

    def reports(self) -> Iterator[Report]:
        """Compute the next task."""
        task = self._tasks.popleft()
        for outcomes, predecessor in self._solver.solve(task.numbers, task.predecessor):
            yield Report(task, outcomes, predecessor, finished=outcomes[-1].number == task.numbers[-1])

    def close(self) -> None:
        """Close the models that were opened."""
        self._solver.close()
