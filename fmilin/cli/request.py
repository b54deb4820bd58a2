"""What was asked for on the command line: the one thing that commands and their helpers pass on.

From what was asked on the command line to an open model and the values of its states and inputs.

The operating point that the command line describes: assembled, read from a file, or solved for.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fmilin.cli.job_runner import JobRunner
from fmilin.cli.model_options import is_fmu, is_system
from fmilin.cli.progress import progress_bar
from fmilin.ground.errors import UsageError

if TYPE_CHECKING:
    from fmilin.cli.model_options import Constraints, FileOptions, OfModel, Running, TrimOptions
    from fmilin.fmi.read.archive import FmuOptions
    from fmilin.model.interface import Model, OperatingPoint
    from fmilin.model.point_files import SavedPoint
    from fmilin.model.stepping import Stepping


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
    trimming: TrimOptions | None = None  # of the point that ``trim`` finds; inputs are held without any
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
        shared = ("independent", "coordinates", "derivatives", "descriptor", "keep_inaccurate")
        return {name: getattr(self, name) for name in shared}


def request_of(
    source: str,
    running: Running,
    constrained: Constraints | None = None,
    opened: FileOptions | None = None,
    **more: Any,
) -> Request:
    """Return what the groups of options about a model ask for; ``more`` are fields of the request."""
    if constrained is not None:
        more = {"constraints": constrained.expressions(), "constraints_file": constrained.constraints} | more
    if opened is not None:
        more["options"] = opened.given()
    return Request(source=source, fmu=running.fmu(), **more)


def request_for(source: str, of_model: OfModel, **channels: Any) -> Request:
    """Return the request of a model that is linearized before something is shown of it."""
    options = dict(vars(of_model)) | channels
    return request_of(source, *(options.pop(name) for name in ("running", "constrained", "opened")), **options)


def refuse_points(source: str, request: Request, against: str | None, *, channels: bool = False) -> None:
    """Refuse what says where to linearize: a linear model stands where it was made (``channels`` may pass)."""
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


def open_model(request: Request, runner: JobRunner) -> tuple[Model, dict[str, float]]:
    """Return the model, closed by ``runner``, and settings of its point; an FMU takes the others before it begins."""
    from fmilin.loading.load import LoadRequest, load_as
    from fmilin.model.point_files import load_point

    fmu = is_fmu(request.source)
    if request.interface is not None and not fmu:
        raise UsageError(f"--interface is for FMUs, and '{request.source}' is none. Leave it out.")
    wanted = LoadRequest(
        constraints=request.constraints,
        constraints_file=request.constraints_file,
        settings=request.settings,
        time=request.time if fmu or is_system(request.source) else None,
        interface=request.interface,
        fmu=_fmu_options(request, runner),
        options=request.options,
        saved=load_point(request.point) if request.point is not None and request.options.get("hold") else None,
    )
    model = runner.borrow(load_as(request.source, wanted))
    if request.discover:
        model = _with_discovered(model)
    return model, {n: v for n, v in request.settings.items() if model.states.has(n) or model.inputs.has(n)}


def _with_discovered(model: Model) -> Model:
    """Return the model with the constraints that are found, and say which on standard error."""
    from fmilin.discovery.procedure import discover

    discovery = discover(model)
    for remark in discovery.warnings:
        sys.stderr.write(f"Warning: {remark}\n")
    for finding in discovery.findings:
        sys.stderr.write(f"Found: {finding.expression} = 0 ({finding.level})\n")
    if not discovery.findings:
        sys.stderr.write("Found: no constraint; all states are treated as independent\n")
    return model.with_constraints(discovery.declared)


def _fmu_options(request: Request, runner: JobRunner) -> FmuOptions | None:
    """Return how the FMU is opened: for a discrete model its discrete-time numbers are wanted, too."""
    lifted = request.stepping is not None and request.stepping.lifted
    if not lifted and runner.instances == "shared":
        return request.fmu
    from fmilin.fmi.read.archive import FmuOptions

    return replace(request.fmu or FmuOptions(), sampled=lifted, instances=runner.instances)


def with_saved_point(request: Request) -> tuple[Request, SavedPoint | None]:
    """Return the request with parameters and time of its ``--point``, the command line's first, and that point."""
    if request.point is None:
        return request, None
    from fmilin.model.point_files import load_point

    saved = load_point(request.point)
    settings = {**saved.parameters, **request.settings}
    time = saved.time if request.time is None else request.time
    return replace(request, settings=settings, time=time), saved


def at_point(request: Request, runner: JobRunner) -> tuple[Model, OperatingPoint]:
    """Return the model, and the point that the request describes: where its motion is at ``--simulate-to``."""
    request, saved = with_saved_point(request)
    model, values = open_model(request, runner)
    point = assembled(model, values, request, saved)
    return model, point if request.simulate_to is None else carried(model, point, request.simulate_to, request.stepping)


def carried(model: Model, point: OperatingPoint, to: float, stepping: Stepping | None = None) -> OperatingPoint:
    """Return where the model is at the time ``to`` when it starts from ``point``; a hybrid one is in its mode then."""
    import fmilin as fl

    if to < point.time:
        raise UsageError(f"--simulate-to {to:g}: the motion starts at {point.time:g} s, and time does not go back.")
    from fmilin.model.stepping import Stepped

    if isinstance(model, Stepped):
        return model.advance(point, to, stepping.step if stepping is not None else None)
    with progress_bar(model.info.name, point.time, to) as progress:
        (reached,) = fl.snapshots(model, point, times=[to], progress=progress)
        return reached


def assembled(
    model: Model, values: Mapping[str, float], request: Request, saved: SavedPoint | None = None
) -> OperatingPoint:
    """Return the point: by ``values`` of ``--set``, or ``saved`` of ``--point``, from which ``--trim`` starts."""
    if request.trim:
        return _nearest(model, values, request, saved)
    if saved is None:
        from fmilin.manifold.operating_points import operating_point

        return operating_point(model, values, time=request.time, project=request.project)
    if states := [name for name in values if model.states.has(name)]:
        raise UsageError(
            f"--set {states[0]} contradicts --point, which has all states. Leave one of them out, or add --trim to "
            "start from there."
        )
    point = saved.on(model)
    for name, value in values.items():
        point.inputs[model.inputs.index_of(name, "an input of the model")] = value
    return point if request.time is None else replace(point, time=request.time)


def _nearest(model: Model, values: Mapping[str, float], request: Request, saved: SavedPoint | None) -> OperatingPoint:
    """Return the equilibrium nearest to the point, inputs held; what is remarkable about it goes to standard error."""
    from fmilin.points.procedure import search
    from fmilin.points.request import TrimRequest

    start = {**saved.states, **saved.inputs, **values} if saved is not None else dict(values)
    if request.trimming is not None:
        what, guess = request.trimming.of(model, start, request.time)
        guess = guess | dict(request.trimming.guess[0] if request.trimming.guess else {})
    else:
        held = {name: value for name, value in start.items() if model.inputs.has(name)}
        what, guess = TrimRequest(held, time=request.time), {n: v for n, v in start.items() if n not in held}
    trimmed = search(model, what, guess, anywhere=request.project)
    for remark in trimmed.report.remarks:
        sys.stderr.write(f"Warning: {remark}\n")
    return trimmed
