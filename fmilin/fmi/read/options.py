"""What an FMU may do on its way in, beside what the model description says."""

from __future__ import annotations

from dataclasses import dataclass

from fmilin.ground.tolerances import SOLVER_TOLERANCE

__all__ = ["FmuOptions"]

GIB = 2**30


@dataclass(frozen=True, slots=True)
class FmuOptions:
    """How an FMU is opened."""

    # that its files may take when they are unpacked; the model description alone a quarter of it
    most_bytes: float = 4 * GIB
    # whether C sources inside may be compiled with this machine's compiler when there is no binary for it
    compile_sources: bool = False
    # whether discrete-time numbers are inputs and outputs, too: for the discrete model over a base period
    sampled: bool = False
    # where the instances of its code live that are made one after the other: in one loaded library; in one each; or a
    # single one, of which a copy of the process is made for every run. The command line begins with the first, or the
    # second where the FMU says that it can be instantiated only once, and goes on when that crashes
    instances: str = "shared"
    # relative tolerance that the solver inside a co-simulation FMU is asked for; None: its own
    solver_tolerance: float | None = SOLVER_TOLERANCE
