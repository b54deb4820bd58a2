"""``fmilin linearize MODEL``: a linear model at an operating point."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fmilin.cli import formulations, options
from fmilin.cli.conditioning import (
    BalanceOption,
    DiscretizeOption,
    KeepOption,
    MinimalOption,
    ModalOption,
    ReduceOption,
    SampleTimeOption,
    conditioned,
    conditioning,
)
from fmilin.cli.formulations import BasisOption, FormulationOption, PenaltyOption, SpuriousOption
from fmilin.cli.job_runner import JobRunner, work
from fmilin.cli.opening import is_fmu, open_model
from fmilin.cli.request import Request
from fmilin.cli.snapshots import carried, deliver_each, file_at, linear_models, snapshot_times
from fmilin.cli.stepping import Interface, Way, stepping_of
from fmilin.errors import UsageError
from fmilin.export.registry import carries_descriptor

if TYPE_CHECKING:
    from fmilin.linear_model.model import LinearModel
    from fmilin.model.interface import OperatingPoint

__all__ = ["command", "deliver", "linear_model"]


class Coordinates(StrEnum):
    """How independent coordinates are chosen when none are named."""

    PARTITION = "partition"
    TANGENT = "tangent"


class Side(StrEnum):
    """Which side of a kink or event the slopes belong to."""

    LEFT = "left"
    RIGHT = "right"


class Derivatives(StrEnum):
    """How slopes are measured."""

    AUTO = "auto"
    EXACT = "exact"
    DIFFERENCES = "differences"


def command(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="model.fmu, path/to/file.py:name or package.module:name")
    ],
    constraint: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="Repeatable: an expression or a variable that must be zero."),
    ] = None,
    constraints: Annotated[Path | None, typer.Option(metavar="FILE.toml", help="The same from a file.")] = None,
    no_constraints: Annotated[
        bool, typer.Option("--no-constraints", help="Treat all states as independent, as other tools do.")
    ] = False,
    independent: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help='States to keep as coordinates, or expressions: "theta=atan2(x,-y)".'),
    ] = None,
    coordinates: Annotated[
        Coordinates, typer.Option(help="How coordinates are chosen when none are named.")
    ] = Coordinates.PARTITION,
    inputs: Annotated[str | None, typer.Option(metavar="A,B,...", help="A choice and an order.")] = None,
    outputs: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="A choice and an order; der(x) and any continuous variable may be one."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Repeatable: a start value, parameter or input."),
    ] = None,
    time: Annotated[float | None, typer.Option(metavar="T", help="The point's time in seconds.")] = None,
    point: Annotated[
        Path | None, typer.Option("--point", metavar="FILE", help="A point that 'fmilin trim -o' saved: .toml .json")
    ] = None,
    trim: Annotated[bool, typer.Option("--trim", help="Find the equilibrium nearest to the point first.")] = False,
    simulate_to: Annotated[
        float | None, typer.Option(metavar="T", help="Let the nonlinear model run from the point to this time first.")
    ] = None,
    snapshots: Annotated[
        str | None, typer.Option(metavar="T1,T2,...", help="One linear model per time of one motion; FILE_tT1.mat, ...")
    ] = None,
    derivatives: Annotated[
        Derivatives, typer.Option(help="Exact directional derivatives, or differences on the manifold.")
    ] = Derivatives.AUTO,
    project: Annotated[
        bool, typer.Option("--project", help="Start from the nearest point that satisfies the constraints.")
    ] = False,
    one_sided: Annotated[
        Side | None, typer.Option("--one-sided", help="Slopes on one side, at a kink or an event.")
    ] = None,
    at_singularity: Annotated[
        bool, typer.Option("--at-singularity", help="At a singular configuration: over the enlarged set of velocities.")
    ] = False,
    interface: Annotated[
        Interface | None,
        typer.Option(help="Of an FMU: model exchange or co-simulation; model exchange where it has both."),
    ] = None,
    way: Annotated[
        Way, typer.Option(help="Of a co-simulation FMU: how the linear model is made; the first that works.")
    ] = Way.AUTO,
    step: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Of a co-simulation FMU: the communication step.")
    ] = None,
    lifted: Annotated[
        bool, typer.Option("--lifted", help="The discrete model over one step, the base period of a sampled model.")
    ] = False,
    order: Annotated[
        int | None, typer.Option(metavar="N", help="Of an identified model; chosen from singular values otherwise.")
    ] = None,
    minimal: MinimalOption = False,
    keep_frequencies: KeepOption = None,
    reduce: ReduceOption = None,
    discretize: DiscretizeOption = None,
    sample_time: SampleTimeOption = None,
    modal: ModalOption = False,
    balance: BalanceOption = None,
    formulation: FormulationOption = None,
    basis: BasisOption = None,
    spurious: SpuriousOption = None,
    penalty: PenaltyOption = None,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Repeatable; the suffix picks the format: .mat .npz .json .fmu .m .mo .tex .txt, dslin.mat (Dymola).",
        ),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="The linear model as one JSON document on standard output.")
    ] = False,
    no_isolation: Annotated[
        bool, typer.Option("--no-isolation", help="Load the FMU in this process instead of a child.")
    ] = False,
    timeout: options.Timeout = options.TIMEOUT,
    memory: options.Memory = None,
    compile_sources: options.Compile = False,
    unpack_limit: options.UnpackLimit = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> int:
    """Compute a linear model at an operating point, in independent coordinates.

    Without -o or --json a table is printed.
    """
    files = options.checked_outputs(output or [])
    if no_constraints and (constraint or constraints):
        raise UsageError("--no-constraints contradicts --constraint and --constraints. Leave one of them out.")
    request = Request(
        source=model,
        fmu=options.fmu(unpack_limit, compile_sources=compile_sources),
        settings=options.assignments(settings or []),
        constraints=[] if no_constraints else constraint or None,
        constraints_file=constraints,
        independent=options.names(independent, "--independent"),
        coordinates=coordinates.value,
        inputs=options.names(inputs, "--inputs"),
        outputs=options.names(outputs, "--outputs"),
        time=options.finite(time, "--time"),
        derivatives=derivatives.value,
        project=project,
        one_sided=None if one_sided is None else one_sided.value,
        at_singularity=at_singularity,
        point=point,
        trim=trim,
        simulate_to=options.finite(simulate_to, "--simulate-to"),
        interface=None if interface is None else interface.value,
        stepping=stepping_of(way, step, order, lifted=lifted),
        descriptor=not is_fmu(model) and (json or any(map(carries_descriptor, files))),
    )
    times = snapshot_times(snapshots)
    chosen = formulations.checked(formulation, basis, spurious, penalty)
    if times:
        if simulate_to is not None or one_sided is not None or at_singularity:
            raise UsageError("--snapshots does not go with --simulate-to, --one-sided or --at-singularity.")
        options.checked_outputs([file_at(path, t) for path in files for t in times])
    steps = conditioning(
        minimal=minimal,
        keep=keep_frequencies,
        reduce=reduce,
        hold=discretize,
        sample_time=sample_time,
        modal=modal,
        balance=balance,
    )
    if chosen is not None:
        others = ["--snapshots"] if times else []
        formulations.require_plain(request, chosen, others, wants_model=bool(files) or steps is not None)

    def job(runner: JobRunner) -> None:
        if times:
            models = conditioned(linear_models(request, times, runner), steps)
            deliver_each(models, times, files, runner, as_json=json)
            return
        if chosen is not None and chosen.form is formulations.Form.ALL:
            formulations.compare(request, chosen, runner, as_json=json)
            return
        spectrum = None
        if chosen is not None:
            spectrum, linear, point = formulations.one(request, chosen, runner)
        else:
            linear, point = linear_model(request, runner)
        (linear,) = conditioned([linear], steps)
        deliver(linear, point, files, runner, as_json=json)
        if spectrum is not None and not files and not json:
            formulations.add_spectrum(spectrum, runner)

    return work(
        job,
        isolate=is_fmu(model) and not no_isolation,
        debug=debug,
        limits=options.limits(timeout, memory),
    )


def linear_model(request: Request, runner: JobRunner) -> tuple[LinearModel, OperatingPoint]:
    """Load, assemble the point, linearize."""
    import fmilin as fl
    from fmilin.cli.points import assembled, with_saved_point

    request, saved = with_saved_point(request)
    model, values = open_model(request, runner)
    point = assembled(model, values, request, saved)
    if request.simulate_to is not None:
        point = carried(model, point, request.simulate_to, request.stepping)
    linear = fl.linearize(
        model,
        point,
        independent=request.independent,
        inputs=request.inputs,
        outputs=request.outputs,
        coordinates=request.coordinates,
        derivatives=request.derivatives,
        one_sided=request.one_sided,
        at_singularity=request.at_singularity,
        stepping=request.stepping,
        descriptor=request.descriptor,
    )
    return linear, point


def deliver(
    linear: LinearModel, point: OperatingPoint, files: Sequence[Path], runner: JobRunner, *, as_json: bool = False
) -> None:
    """Write the files, all of them made before the first is written; then JSON or, without files, the table."""
    from fmilin.export.atomic import write_atomically
    from fmilin.export.registry import dumps

    runner.come_home()
    contents = [dumps(linear, path) for path in files]
    for path, content in zip(files, contents, strict=True):
        write_atomically(path, content)
    if as_json:
        runner.results.write(dumps(linear, "results.json").decode("ascii"))
    elif not files:
        from fmilin.report.table import print_table

        print_table(linear, runner.results, adjusted=point.adjusted)
    if files and not as_json:
        for warning in linear.warnings:
            sys.stderr.write(f"{'Note' if warning.is_information else 'Warning'}: {warning}\n")
        order = f"{len(linear.states)} independent states out of {len(linear.full_states)}"
        for path in files:
            sys.stderr.write(f"{path}: {order}\n")
