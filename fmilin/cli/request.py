"""What was asked for on the command line: the one thing that commands and their helpers pass on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fmilin.ground.errors import UsageError

if TYPE_CHECKING:
    from fmilin.cli.wishes import Wishes
    from fmilin.fmi.read.archive import FmuOptions
    from fmilin.model.stepping import Stepping

__all__ = ["Request", "refuse_points"]


@dataclass(frozen=True)
class Request:
    """Which model, where, and how it is to be linearized."""

    source: str  # the model: an FMU, ``path/to/file.py:name`` or ``package.module:name``
    settings: dict[str, float]  # states, inputs and parameters by name
    constraints: Sequence[str] | None = None  # None: those that come with the model; empty: none at all
    constraints_file: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)  # what its file is asked for; as for :func:`fmilin.load`
    independent: Sequence[str] | None = None
    coordinates: str = "partition"
    inputs: Sequence[str] | None = None
    outputs: Sequence[str] | None = None
    time: float | None = None
    derivatives: str = "auto"
    project: bool = False
    one_sided: Literal["left", "right"] | None = None
    at_singularity: bool = False
    point: Path | None = None
    trim: bool = False
    wishes: Wishes | None = None  # of the point that ``trim`` finds; inputs are held without any
    simulate_to: float | None = None
    interface: str | None = None
    stepping: Stepping | None = None
    fmu: FmuOptions | None = None
    descriptor: bool = False  # whether the descriptor system is wanted, too: where it goes into a file that carries one
    discover: bool = False  # whether constraints are looked for first, and used
    tangent_only: bool = False  # whether the tangent space is to be found from numbers alone, without constraints
    keep_inaccurate: bool = False  # whether a linear model is wanted whose entries cannot be told well

    def how(self) -> dict[str, Any]:
        """Return what one linearization and many along a motion are asked for alike."""
        asked = ("independent", "coordinates", "derivatives", "descriptor", "keep_inaccurate")
        return {name: getattr(self, name) for name in asked}


def refuse_points(source: str, request: Request, against: str | None, *, channels: bool = False) -> None:
    """Refuse what says where to linearize a model: a linear model stands where it was made.

    ``against``: the nonlinear model beside the file: parameters and constraints are for it. ``channels``: whether
    inputs and outputs may be chosen all the same.
    """
    given = {
        "--set": request.settings and against is None,
        "--point": request.point,
        "--trim": request.trim,
        "--time": request.time is not None,
        "--independent": request.independent,
        "--project": request.project,
        "--constraint": (request.constraints is not None or request.constraints_file) and against is None,
        "--inputs": request.inputs is not None and not channels,
        "--outputs": request.outputs is not None and not channels,
    }
    if wrong := [option for option, value in given.items() if value]:
        raise UsageError(
            f"{wrong[0]} is for a model that is linearized, and '{source}' holds the result. Leave it out."
        )
