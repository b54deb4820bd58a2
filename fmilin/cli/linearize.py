"""``fmilin linearize MODEL``: a linear model at an operating point."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from fmilin.cli.conditioning import Steps, conditioned, steps_options
from fmilin.cli.formulations import Formulated, add_spectrum, compare, formulation_options, one, require_plain
from fmilin.cli.job_runner import JobRunner
from fmilin.cli.opening import open_model
from fmilin.cli.options import (
    MODEL,
    POINT,
    PROJECT,
    SETTINGS,
    Constraints,
    Running,
    assignments,
    checked_outputs,
    constraints_options,
    files_option,
    finite,
    is_fmu,
    json_option,
    names,
    one_of,
    outputs_option,
    running_options,
)
from fmilin.cli.request import Request
from fmilin.cli.snapshots import carried, deliver_each, file_at, linear_models, snapshot_times
from fmilin.cli.stepping import Stepped, stepping_options
from fmilin.errors import UsageError
from fmilin.export.registry import carries_descriptor

if TYPE_CHECKING:
    from fmilin.linear_model.model import LinearModel
    from fmilin.model.interface import OperatingPoint

__all__ = ["command", "deliver", "linear_model"]


@click.command()
@MODEL
@constraints_options("Treat all states as independent, as other tools do.")
@click.option(
    "--independent",
    metavar="A,B,...",
    help='States to keep as coordinates, or expressions: "theta=atan2(x,-y)".',
)
@click.option(
    "--coordinates",
    type=one_of("partition", "tangent"),
    default="partition",
    help="How coordinates are chosen when none are named.",
)
@click.option("--inputs", metavar="A,B,...", help="A choice and an order.")
@outputs_option()
@SETTINGS
@click.option("--time", metavar="T", type=float, help="The point's time in seconds.")
@POINT
@click.option("--trim", is_flag=True, help="Find the equilibrium nearest to the point first.")
@click.option(
    "--simulate-to", metavar="T", type=float, help="Let the nonlinear model run from the point to this time first."
)
@click.option("--snapshots", metavar="T1,T2,...", help="One linear model per time of one motion; FILE_tT1.mat, ...")
@click.option(
    "--derivatives",
    type=one_of("auto", "exact", "differences"),
    default="auto",
    help="Exact directional derivatives, or differences on the manifold.",
)
@PROJECT
@click.option("--one-sided", type=one_of("left", "right"), help="Slopes on one side, at a kink or an event.")
@click.option(
    "--at-singularity", is_flag=True, help="At a singular configuration: over the enlarged set of velocities."
)
@click.option(
    "--interface",
    type=one_of("me", "cs"),
    help="Of an FMU: model exchange or co-simulation; model exchange where it has both.",
)
@stepping_options
@steps_options
@formulation_options
@files_option()
@json_option("The linear model as one JSON document on standard output.")
@running_options
def command(
    model: str,
    constrained: Constraints,
    independent: str | None,
    coordinates: str,
    inputs: str | None,
    outputs: str | None,
    settings: tuple[str, ...],
    time: float | None,
    point: Path | None,
    simulate_to: float | None,
    snapshots: str | None,
    derivatives: str,
    one_sided: Literal["left", "right"] | None,
    interface: str | None,
    stepped: Stepped,
    steps: Steps,
    formulated: Formulated,
    output: tuple[Path, ...],
    running: Running,
    *,
    trim: bool,
    project: bool,
    at_singularity: bool,
    as_json: bool,
) -> int:
    """Compute a linear model at an operating point, in independent coordinates.

    MODEL is model.fmu, path/to/file.py:name or package.module:name. Without -o or --json a table is printed.
    """
    files = checked_outputs(output)
    request = Request(
        source=model,
        fmu=running.fmu(),
        constraints=constrained.asked(),
        constraints_file=constrained.constraints,
        settings=assignments(settings),
        independent=names(independent, "--independent"),
        coordinates=coordinates,
        inputs=names(inputs, "--inputs"),
        outputs=names(outputs, "--outputs"),
        time=finite(time, "--time"),
        derivatives=derivatives,
        project=project,
        one_sided=one_sided,
        at_singularity=at_singularity,
        point=point,
        trim=trim,
        simulate_to=finite(simulate_to, "--simulate-to"),
        interface=interface,
        stepping=stepped.asked(),
        descriptor=not is_fmu(model) and (as_json or any(map(carries_descriptor, files))),
    )
    times = snapshot_times(snapshots)
    chosen = formulated.asked()
    if times:
        if simulate_to is not None or one_sided is not None or at_singularity:
            raise UsageError("--snapshots does not go with --simulate-to, --one-sided or --at-singularity.")
        checked_outputs([file_at(path, t) for path in files for t in times])
    conditioning = steps.asked()
    if chosen is not None:
        others = ["--snapshots"] if times else []
        require_plain(request, chosen, others, wants_model=bool(files) or conditioning is not None)

    def job(runner: JobRunner) -> None:
        if times:
            models = conditioned(linear_models(request, times, runner), conditioning)
            deliver_each(models, times, files, runner, as_json=as_json)
            return
        if chosen is not None and chosen.form == "all":
            compare(request, chosen, runner, as_json=as_json)
            return
        spectrum = None
        if chosen is not None:
            spectrum, linear, at = one(request, chosen, runner)
        else:
            linear, at = linear_model(request, runner)
        (linear,) = conditioned([linear], conditioning)
        deliver(linear, at, files, runner, as_json=as_json)
        if spectrum is not None and not files and not as_json:
            add_spectrum(spectrum, runner)

    return running.work(job, model)


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

    runner.restore_directory()
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
