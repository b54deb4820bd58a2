"""The paths through the package with a cost that grows with a size, and comparable ones of peers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers import chains, equations, families
from benchmarks.peers.fmus import FmuKind, ways_of_fmu
from benchmarks.peers.ways import Way

__all__ = ["PATHS", "GrowingPath"]


@dataclass(frozen=True)
class GrowingPath:
    """A path, what its size counts, and the ways to go it, the first one that of fmilin."""

    title: str
    unit: str
    first: int
    ways: Sequence[Way]
    factor: int = 2
    """From one size to the next."""
    prepare: Callable[[int, Path], object] | None = None
    """Makes files that take no part in what is measured."""


def _fmu(*, directional: bool, declared: bool) -> GrowingPath:
    kind = FmuKind(directional, declared)
    return GrowingPath(kind.title, "states", 20, ways_of_fmu(kind), prepare=kind.case)


PATHS: dict[str, GrowingPath] = {
    "fmu_plain": _fmu(directional=False, declared=False),
    "fmu_declared": _fmu(directional=False, declared=True),
    "fmu_directional": _fmu(directional=True, declared=False),
    "fmu_both": _fmu(directional=True, declared=True),
    "open_chain": GrowingPath("chain of bodies, open", "links", 4, chains.WAYS_OF_OPEN_CHAIN),
    "closed_chain": GrowingPath("chain of bodies, closed by a loop", "links", 8, chains.WAYS_OF_CLOSED_CHAIN),
    "dae": GrowingPath("DAE, network of conductors", "nodes", 64, equations.WAYS_OF_DAE, factor=4),
    "connected": GrowingPath("connected systems", "members", 5, equations.WAYS_OF_CONNECTED),
    "connected_fmus": GrowingPath("connected FMUs", "members", 5, equations.WAYS_OF_CONNECTED_FMUS),
    "sweep_fmu": GrowingPath("sweep of an FMU, 20 states", "points", 64, families.WAYS_OF_SWEEP_OF_FMU),
    "sweep_mechanism": GrowingPath("sweep of a mechanism, 6 links", "points", 64, families.WAYS_OF_SWEEP_OF_MECHANISM),
    "discovery": GrowingPath("discovery of constraints, four-bars", "loops", 1, families.WAYS_OF_DISCOVERY),
    "orbit": GrowingPath("periodic orbit, driven masses", "masses", 4, families.WAYS_OF_ORBIT),
}
