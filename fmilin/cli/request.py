"""The request of the command line, with the model and the operating point that it describes."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import field, fields, replace
from typing import TYPE_CHECKING

import fmilin as fl
from fmilin.cli.derive import list_used_options
from fmilin.cli.duration import progress_bar
from fmilin.cli.job_runner import Job, JobRunner
from fmilin.cli.linear_options import FormulationChoices, combine_stepping
from fmilin.cli.model_options import (
    Carrying,
    DeclarationOptions,
    DiscoveryOptions,
    Running,
    Trimming,
    add_trim,
    source_options,
)
from fmilin.cli.translation import in_options
from fmilin.errors import UsageError
from fmilin.linearization.request import Request as LinearizationRequest
from fmilin.loading.source_kind import is_fmu
from fmilin.options import FmuOptions, Linearization, Loading, SourceOptions
from fmilin.support.dataclass import dataclass
from fmilin.support.interrupts import stoppable
from fmilin.trimming.trim_request import PointRequest, TrimRequest

if TYPE_CHECKING:
    from fmilin.linear_model.model import LinearModel
    from fmilin.linear_model.verification import Verification
    from fmilin.model.interface import Model, OperatingPoint
    from fmilin.options import Stepping


@dataclass(frozen=True)
class CommandRequest:
    """Which model, where, how it is to be linearized, and within which limits it runs."""

    source: str  # the model: an FMU, ``path/to/file.py:name`` or ``package.module:name``
    load: Loading = field(default_factory=Loading)
    point: PointRequest = field(default_factory=PointRequest)
    how: LinearizationRequest = field(default_factory=LinearizationRequest)
    simulate_to: float | None = None
    simulate_until: str | None = None  # a comparison that ends the motion, or "event"
    discover: bool = False  # whether constraints are searched for first, and used
    tangent_only: bool = False  # whether the tangent space is to be found from numbers alone, without constraints
    running: Running = field(default_factory=Running)
    used_options: tuple[str, ...] = ()  # the options on the command line that say how and where a model is linearized

    def work(self, job: Job) -> int:
        """Do ``job`` with the model, where it may run, and return the exit status."""
        return self.running.work(job)


def build_request(
    source: str,
    *,
    running: Running,
    loading: Loading | None = None,
    declaration: DeclarationOptions | None = None,
    opened: SourceOptions | None = None,
    fmu: FmuOptions | None = None,
    point: PointRequest | None = None,
    guess: Sequence[Mapping[str, float]] = (),
    trimming: Trimming | None = None,
    problem: TrimRequest | None = None,
    carrying: Carrying | None = None,
    how: Linearization | None = None,
    stepping: Stepping | None = None,
    order: str | None = None,
    formulation: str | None = None,
    choices: FormulationChoices | None = None,
) -> CommandRequest:
    """Return the request that the options of a command describe, by groups as the command took them."""
    loading = loading or Loading()
    point = point or PointRequest()
    how = how or Linearization()
    if problem is not None:
        point = add_trim(point, guess, problem, trim=trimming is not None and trimming.trim)
    if stepping is not None:
        how = replace(how, stepping=combine_stepping(stepping, order))
    if choices is not None:
        choices.check(formulation)
        if formulation is not None:
            # Checked with that of minimal coordinates where all of them are asked for.
            how = replace(how, formulation=choices.formulation("mcs" if formulation == "all" else formulation))
    if how.formulation is not None and (wrong := list_used_options("loading", "declaration")):
        raise UsageError(
            f"A formulation takes the model's own equations. --formulation and {wrong[0]} exclude each other: leave "
            "one of them out."
        )
    discover = isinstance(declaration, DiscoveryOptions) and declaration.discover
    if discover or (declaration is not None and declaration.declares_none):
        loading = replace(loading, constraints=[])
    return CommandRequest(
        source,
        replace(loading, fmu=fmu, options={} if opened is None else source_options(opened)),
        point,
        LinearizationRequest(**{f.name: getattr(how, f.name) for f in fields(how)}),
        simulate_to=None if carrying is None else carrying.simulate_to,
        simulate_until=None if carrying is None else carrying.simulate_until,
        discover=discover,
        tangent_only=declaration is not None and declaration.ignores_constraints,
        running=running,
        used_options=list_used_options(*SAY_WHERE_AND_HOW),
    )


SAY_WHERE_AND_HOW = (
    "point", "trimming", "problem", "carrying", "how", "stepping", "choices", "loading", "declaration",
)  # fmt: skip
"""The groups of options that say where and how a model is linearized."""

OF_A_MODEL_BESIDE = frozenset(("--set", "--constraint", "--constraints", "--no-constraints", "--interface"))
"""Options that hold for the nonlinear model that a linear one is compared with."""


def refuse_points(source: str, request: CommandRequest, against: str | None, *, channels: bool = False) -> None:
    """Reject what says where and how to linearize: a linear model has been made already (``channels`` may pass)."""
    allowed = set() if against is None else set(OF_A_MODEL_BESIDE)
    if channels:
        allowed |= {"--inputs", "--outputs"}
    if wrong := [option for option in request.used_options if option not in allowed]:
        raise UsageError(
            f"{wrong[0]} is for models to be linearized, and '{source}' contains a linear model. Leave it out."
        )


def open_model(request: CommandRequest, runner: JobRunner) -> Model:
    """Return the model of a request with a completed point, closed by ``runner``."""
    from fmilin.loading.load import load_request

    if request.load.interface is not None and not is_fmu(request.source):
        raise UsageError(f"--interface is for FMUs only, and '{request.source}' is not one. Leave it out.")
    model = runner.borrow(load_request(request.source, _load_request(request), request.point))
    return _with_discovered(model) if request.discover else model


def open_compared_model(request: CommandRequest, linear: LinearModel, runner: JobRunner) -> Model:
    """Return the model with the parameters and at the time that a linear model has, but for what is set."""
    settings = {**linear.point.parameters, **request.point.settings}
    return open_model(replace(request, point=PointRequest(settings=settings, time=linear.point.time)), runner)


def verify_linear_model(linear: LinearModel, model: Model, horizon: float | None) -> Verification:
    """Return the verification of a linear model against the nonlinear one."""
    from fmilin.verification.procedure import verify

    with stoppable() as stop, progress_bar("comparing responses", 0.0, 100.0, "%") as progress:
        return verify(model, linear, horizon=horizon, progress=lambda done: progress(100.0 * done), stop=stop)


def _with_discovered(model: Model) -> Model:
    """Return the model with the constraints that are found, and say which on standard error."""
    from fmilin.discovery.constraint_discovery import discover

    discovery = discover(model)
    for remark in discovery.warnings:
        sys.stderr.write(f"{remark.heading}: {in_options(str(remark))}\n")
    for finding in discovery.findings:
        sys.stderr.write(f"Found: {finding.expression} = 0 ({finding.level})\n")
    if not discovery.findings:
        sys.stderr.write("Found: no constraint; all states are treated as independent\n")
    return model.with_constraints(discovery.declared)


def _load_request(request: CommandRequest) -> Loading:
    """Return how the model is opened: for a discrete model an FMU's discrete-time numbers are wanted, too."""
    if request.how.stepping is None or not request.how.stepping.lifted:
        return request.load
    from fmilin.options import FmuOptions

    return replace(request.load, fmu=replace(request.load.fmu or FmuOptions(), sampled=True))


def complete_point(request: CommandRequest) -> CommandRequest:
    """Return the request with the file of its point read."""
    return replace(request, point=request.point.complete())


def at_point(request: CommandRequest, runner: JobRunner) -> tuple[Model, OperatingPoint]:
    """Return the model, and the point that the request describes: where its motion is at ``--simulate-to``.

    Warnings about an equilibrium go to standard error.
    """
    from fmilin.trimming.request_point import find_point

    request = complete_point(request)
    model = open_model(request, runner)
    point = find_point(model, request.point)
    if request.point.trim is not None:
        from fmilin.trimming.trim_report import TrimmedPoint

        for remark in point.report.remarks if isinstance(point, TrimmedPoint) else ():
            sys.stderr.write(f"{remark.heading}: {in_options(str(remark))}\n")
    if request.simulate_until is not None:
        import fmilin as fl

        *_, point = fl.snapshots(model, point, until=request.simulate_until, stop_time=request.simulate_to)
    elif request.simulate_to is not None:
        point = advance_to_time(model, point, request.simulate_to, request.how.stepping)
    return model, point


def advance_to_time(model: Model, point: OperatingPoint, to: float, stepping: Stepping | None = None) -> OperatingPoint:
    """Return where the model is at the time ``to`` when it starts from ``point``; a hybrid one is in its mode then."""
    if to < point.time:
        raise UsageError(f"--simulate-to {to:g}: the motion starts at {point.time:g} s. Give a later time.")
    from fmilin.model.stepping import Stepped

    if isinstance(model, Stepped):
        return model.advance(point, to, stepping.step if stepping is not None else None)
    with progress_bar(model.info.name, point.time, to) as progress:
        (reached,) = fl.snapshots(model, point, times=[to], progress=progress)
        return reached
