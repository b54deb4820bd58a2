"""What is compared: a task, its sizes, and the ways to do it, the first one that of fmilin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.peers import chains, equations, families, functions
from benchmarks.peers.fmus import FmuKind, ways_of_fmu
from benchmarks.peers.ways import Way

__all__ = ["TASKS", "Task"]


@dataclass(frozen=True)
class Task:
    """What is asked for."""

    title: str
    unit: str
    sizes: Sequence[int]
    ways: Sequence[Way]


def _fmu(*, directional: bool, declared: bool) -> Task:
    kind = FmuKind(directional, declared)
    return Task(kind.title, "states", (20, 200), ways_of_fmu(kind))


TASKS: dict[str, Task] = {
    "fmu_plain": _fmu(directional=False, declared=False),
    "fmu_declared": _fmu(directional=False, declared=True),
    "fmu_directional": _fmu(directional=True, declared=False),
    "fmu_both": _fmu(directional=True, declared=True),
    "sweep_fmu": Task("sweep of an FMU, 20 states", "points", (200,), families.WAYS_OF_SWEEP_OF_FMU),
    "open_chain": Task("chain of bodies, open", "links", (6, 30), chains.WAYS_OF_OPEN_CHAIN),
    "closed_chain": Task("chain of bodies, closed by a loop", "links", (8, 16), chains.WAYS_OF_CLOSED_CHAIN),
    "sweep_mechanism": Task("sweep of a chain, 6 links", "points", (512,), families.WAYS_OF_SWEEP_OF_MECHANISM),
    "dae": Task("DAE, network of conductors", "nodes", (64, 400), equations.WAYS_OF_DAE),
    "connected": Task("connected systems", "members", (5, 40), equations.WAYS_OF_CONNECTED),
    "operating_point": Task("operating point, Python function", "states", (4, 20), functions.WAYS_OF_OPERATING_POINT),
    "black_box": Task("Python function by differences", "states", (12, 60), functions.WAYS_OF_BLACK_BOX),
}
