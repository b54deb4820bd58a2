"""Options of operating points: by values, by a search for an equilibrium, many at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fmilin.options.groups import LOOPS, POINT, PROCESSES
from fmilin.support.dataclass import dataclass
from fmilin.support.option import describe_in_docstring, option

if TYPE_CHECKING:
    from fmilin.model.model_files import SavedPoint


@describe_in_docstring
@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """An operating point, by values."""

    settings: Mapping[str, float] = option(
        default={}, help="Values of states, inputs and parameters.", group=POINT, kind="assignments", flag="--set"
    )
    time: float | None = option(
        default=None,
        help="The time of the point in seconds; the model's own start by default.",
        group=POINT,
        kind="number",
        metavar="T",
    )
    project: bool = option(
        default=False, help="Start from the nearest point that satisfies the constraints.", group=POINT, kind="switch"
    )
    saved: Path | SavedPoint | None = option(
        default=None, help="A point that 'fmilin trim -o' saved: .toml .json", group=POINT, kind="path", flag="--point"
    )
    guess: Mapping[str, float] = option(
        default={},
        help="Where the search for an equilibrium starts.",
        group=POINT,
        kind="special",
        metavar="A=VALUE,B=...",
    )


@describe_in_docstring
@dataclass(frozen=True)
class Trim:
    """Which equilibrium or steady motion is sought: what :func:`fmilin.trim` takes besides the model and the guess."""

    fixed: Mapping[str, float] = option(
        default={},
        help="Values to be kept or reached: of states, inputs, parameters, outputs, any variable or der(STATE).",
        group=POINT,
        kind="assignment lists",
        flag="--fix",
    )
    steady: Sequence[str] = option(
        default=(), help="States that may move: rolling, turning, cruising.", group=POINT, kind="names"
    )
    free: Sequence[str] = option(
        default=(), help="Inputs and parameters to solve for; states are free.", group=POINT, kind="names"
    )
    bounds: Mapping[str, tuple[float, float]] = option(
        default={},
        help="Bounds of free quantities and of variables; one side may be left out.",
        group=POINT,
        kind="special",
        flag="--bound",
        metavar="NAME=LO:HI",
    )
    time: float | None = option(
        default=None, help="The time of the point in seconds.", group=POINT, kind="number", metavar="T"
    )
    minimize: str | None = option(
        default=None,
        help="An expression to be minimized if degrees of freedom are left.",
        group=POINT,
        kind="text",
        metavar="EXPRESSION",
    )
    near: Mapping[str, float] = option(
        default={}, help="Values to be approached as closely as possible.", group=POINT, kind="assignment lists"
    )
    stable: bool = option(default=False, help="Search for a stable equilibrium.", group=POINT, kind="switch")


@describe_in_docstring
@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """At which points a model is linearized, and where: what :func:`fmilin.sweep` takes besides other options."""

    vary: Mapping[str, Sequence[float]] = option(
        default={},
        help="Values of states, inputs and parameters: all combinations, in the order given, the last name fastest.",
        group=POINT,
        kind="special",
        metavar="NAME=FROM:TO:COUNT|[v1,...]",
    )
    delays: Mapping[str, Sequence[float]] = option(
        default={},
        help="Dead times in seconds of inputs, outputs, wires and delays of the model: the rightmost eigenvalues over "
        "them, and where stability changes.",
        group=POINT,
        kind="special",
        flag="--delay",
        metavar="NAME=FROM:TO:COUNT|[v1,...]",
    )
    zipped: bool = option(
        default=False,
        help="Take the values together instead of combining them.",
        group=POINT,
        kind="switch",
        flag="--zip",
    )
    loop_at: str | Sequence[str] = option(
        default=(), help="Of a system: the loop cut at these wires, with its margins.", group=LOOPS, kind="names"
    )
    continuous: bool = option(
        default=False,
        help="Of loops: a continuous approximation of sampled members by Tustin's rule.",
        group=LOOPS,
        kind="switch",
    )
    jobs: int = option(default=1, help="Processes on this machine.", group=PROCESSES, kind="integer")
    scheduler: str | None = option(
        default=None, help="A Dask cluster, as in tcp://host:8786.", group=PROCESSES, kind="text", metavar="ADDRESS"
    )
