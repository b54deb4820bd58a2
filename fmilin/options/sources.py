"""Options of sources: how models are opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fmilin.options.groups import COSIMULATION, FMU_PROCESS, MODEL, POINT
from fmilin.support.dataclass import dataclass
from fmilin.support.option import describe_in_docstring, option
from fmilin.tolerances import SOLVER_TOLERANCE

if TYPE_CHECKING:
    from fmilin.constraints.declared import Constraint

Value = float | int | bool | str | Sequence[float]


@describe_in_docstring
@dataclass(frozen=True, slots=True)
class FmuOptions:
    """How an FMU is opened."""

    most_bytes: float = option(
        default=4 * 2**30,
        help="Largest size of the unpacked files of an FMU; a quarter of it is for the model description.",
        group=FMU_PROCESS,
        kind="number",
        flag="--unpack-limit",
        metavar="GIB",
    )
    compile_sources: bool = option(
        default=False,
        help="Compile the C sources of an FMU that has no binary for this platform.",
        group=MODEL,
        kind="switch",
        flag="--compile",
    )
    sampled: bool = False  # discrete-time numbers are inputs and outputs, too
    discrete_states: Sequence[str] | None = option(
        default=None,
        help="Discrete-time numbers that are the states of a sampled model x[k+1] = f(x[k], u[k]); auto finds them.",
        group=COSIMULATION,
        kind="names",
    )
    sample_interval: float | None = option(
        default=None,
        help="Time between two samples of discrete states, if the FMU does not declare it.",
        group=COSIMULATION,
        kind="number",
        metavar="SECONDS",
    )
    solver_tolerance: float | None = option(
        default=SOLVER_TOLERANCE,
        help="Relative tolerance for the solver of a co-simulation FMU; 0 or None for its own.",
        group=COSIMULATION,
        kind="number",
        metavar="R",
    )

    def __post_init__(self) -> None:
        if self.solver_tolerance == 0:
            object.__setattr__(self, "solver_tolerance", None)


@describe_in_docstring
@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """Options of a file of an engine or a tool: the keys of ``options`` of :func:`fmilin.load`."""

    floating_base: bool = option(
        default=False, help="Let the root link of a URDF file move freely.", group=MODEL, kind="switch"
    )
    fix_joint: Sequence[str] | None = option(
        default=None, help="Joints of a URDF or SDFormat file that are held at zero.", group=MODEL, kind="names"
    )
    hold: Sequence[str] = option(
        default=(),
        help="A body, site, geom or marker that stays where it is at the point, as a foot on the ground.",
        group=MODEL,
        kind="texts",
        metavar="FOOT[:point|:flat|:center|:lowest]",
    )
    roll: Sequence[str] = option(
        default=(),
        help="A wheel of a robot that rolls on the ground; give its radius if the file has no cylinder for contacts.",
        group=MODEL,
        kind="texts",
        metavar="BODY[:RADIUS]",
    )
    keyframe: str | None = option(
        default=None, help="Start at this keyframe of an MJCF file.", group=MODEL, kind="text", metavar="NAME"
    )
    library: Sequence[str] = option(
        default=(),
        help="Folders with libraries of a Modelica model, in addition to those of MODELICAPATH.",
        group=MODEL,
        kind="texts",
        metavar="FOLDER",
    )
    friction_modes: Sequence[str] = option(
        default=(),
        help="A brake or clutch of a Modelica model that is locked, slides forward or backward, or is free.",
        group=MODEL,
        kind="texts",
        metavar="ELEMENT=locked|forward|backward|free",
    )


@describe_in_docstring
@dataclass(frozen=True, slots=True, kw_only=True)
class Loading:
    """How a model is opened: what :func:`fmilin.load` takes besides the source and the time."""

    constraints: Sequence[str | Constraint] | None = option(
        default=None,
        help="Expressions or variables that must be zero; those that come with the model by default.",
        group=MODEL,
        kind="texts",
        flag="--constraint",
    )
    constraints_file: str | Path | None = option(
        default=None,
        help="A file with constraints and recommended coordinates.",
        group=MODEL,
        kind="path",
        flag="--constraints",
        metavar="FILE.toml",
    )
    parameters: Mapping[str, Value] = option(
        default={}, help="Values of parameters.", group=POINT, kind="assignments", flag="--set"
    )
    interface: str | None = option(
        default=None,
        help="Of an FMU: model exchange (me) or co-simulation (cs); model exchange if it has both.",
        group=MODEL,
        kind="choice",
        choices=("me", "cs"),
    )
    fmu: FmuOptions | None = option(
        default=None, help="How an FMU is opened.", group=FMU_PROCESS, kind="nested", flag=None
    )
    options: Mapping[str, Any] = option(
        default={},
        help="Options of the reader of the file, see :class:`SourceOptions`.",
        group=MODEL,
        kind="nested",
        flag=None,
    )
