"""``fmilin linearize MODEL``: a linear model at an operating point."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fmilin.cli.composition import Coupled, composition_options, linearize_cosimulation
from fmilin.cli.conditioning import Steps, conditioned, steps_options
from fmilin.cli.file_options import FileOptions, file_options
from fmilin.cli.files import Command
from fmilin.cli.fmus import Written, writing_options
from fmilin.cli.formulations import Formulated, compare, formulation_options, one, require_plain
from fmilin.cli.job_runner import JobRunner
from fmilin.cli.options import (
    MODEL,
    POINT,
    PROJECT,
    Constraints,
    Running,
    checked_outputs,
    constraints_options,
    is_fmu,
    json_option,
    names_option,
    number_option,
    one_of,
    outputs_of,
    outputs_option,
    path_option,
    read_by,
    running_options,
    settings_option,
    time_option,
)
from fmilin.cli.request import Request
from fmilin.cli.snapshots import check_files, deliver_each, linear_models, snapshot_times
from fmilin.cli.stepping import Stepped, stepping_options
from fmilin.cli.wishes import WISHES, Wishes
from fmilin.ground.errors import UsageError
from fmilin.output.formats import format_of, listed

if TYPE_CHECKING:
    from fmilin.linear_model.model import LinearModel
    from fmilin.model.interface import OperatingPoint
    from fmilin.output.formats import Writing

__all__ = ["command", "deliver", "linear_model"]


@click.command(
    cls=Command,
    examples=[
        "fmilin linearize four_bar.fmu",
        "fmilin linearize four_bar.fmu --trim --fix phi=1.0 --free torque -o plant.mat",
        'fmilin linearize supplied.fmu --constraint "x^2 + y^2 - L^2"',
        "fmilin linearize loader.toml --independent lift.q,tilt.q",
    ],
)
@MODEL
@constraints_options("Treat all states as independent, as other tools do.")
@file_options
@click.option("--discover", is_flag=True, help="Find constraints that the model does not declare, and use them.")
@click.option("--tangent-only", is_flag=True, help="Find the directions of motion from numbers, without constraints.")
@names_option("--independent", 'States to keep as coordinates, or expressions: "theta=atan2(x,-y)".')
@click.option(
    "--coordinates",
    type=one_of("partition", "tangent"),
    default="partition",
    help="How coordinates are chosen when none are named.",
)
@names_option("--inputs", "A choice and an order.")
@outputs_option()
@settings_option("Repeatable: a start value, parameter or input.")
@time_option()
@POINT
@click.option("--trim", is_flag=True, help="Find the equilibrium nearest to the point first.")
@WISHES
@number_option("--simulate-to", metavar="T", help="Let the nonlinear model run from the point to this time first.")
@click.option(
    "--snapshots",
    "times",
    metavar="T1,T2,...",
    help=f"A family along one motion ({listed('family')}); of other formats FILE_tT1.mo, ...",
    callback=read_by(snapshot_times),
)
@path_option(
    "--input", "table", metavar="FILE.csv", help="Inputs over time on the way to --snapshots, as for simulate."
)
@click.option(
    "--derivatives",
    type=one_of("auto", "exact", "differences"),
    default="auto",
    help="Exact directional derivatives, or differences on the manifold.",
)
@click.option(
    "--keep-inaccurate", is_flag=True, help="Return entries even where their estimated error is a tenth of their row."
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
@composition_options
@steps_options
@formulation_options
@outputs_of("linear model")
@writing_options
@json_option("The linear model as one JSON document on standard output.")
@running_options
def command(
    model: str,
    wishes: Wishes,
    constrained: Constraints,
    opened: FileOptions,
    times: tuple[float, ...],
    table: Path | None,
    stepped: Stepped,
    coupled: Coupled,
    steps: Steps,
    formulated: Formulated,
    output: tuple[Path, ...],
    written: Written,
    running: Running,
    *,
    as_json: bool,
    **asked: Any,
) -> int:
    """Compute a linear model at an operating point, in independent coordinates.

    Without -o or --json a table is printed.
    """
    files = list(output) if times else checked_outputs(output)
    writing = written.asked()
    wishes.require_trim(trim=asked["trim"])
    asked["settings"] = wishes.beside(asked["settings"])
    request = Request(
        source=model,
        fmu=running.fmu(),
        constraints=_constraints(constrained, asked),
        constraints_file=constrained.constraints,
        options=opened.asked(),
        wishes=wishes,
        stepping=None if coupled.as_cosimulated else stepped.asked(),
        descriptor=not is_fmu(model)
        and not times
        and (as_json or any(format_of(path, "linear model").complete for path in files)),
        **asked,  # the options that are called like its fields
    )
    chosen = formulated.asked()
    how = coupled.asked(stepped)
    _check_times(request, times, files, table, coupled.plot)
    conditioning = steps.asked()
    if chosen is not None:
        others = ["--snapshots"] if times else []
        others += ["--plot"] if coupled.plot is not None and chosen.formulation == "all" else []
        require_plain(request, chosen, others, wants_model=bool(files) or conditioning is not None)

    def job(runner: JobRunner) -> None:
        if how is not None:
            linearize_cosimulation(request, how, files, runner, as_json=as_json)
            return
        if times:
            models = conditioned(linear_models(request, times, runner, table), conditioning)
            deliver_each(models, times, files, runner, as_json=as_json, writing=writing)
            return
        if chosen is not None and chosen.formulation == "all":
            compare(request, chosen, runner, as_json=as_json)
            return
        spectrum = None
        if chosen is not None:
            spectrum, linear, at = one(request, chosen, runner)
        else:
            linear, at = linear_model(request, runner)
        (linear,) = conditioned([linear], conditioning)
        deliver(linear, at, files, runner, as_json=as_json, writing=writing)
        if coupled.plot is not None:
            draw(linear, coupled.plot, runner)
        if spectrum is not None and not files and not as_json:
            from fmilin.output.report.formulations import print_spectrum

            print_spectrum(spectrum, runner.results)

    return running.work(job, model)


def _is_complete(path: Path) -> bool:
    """Whether everything about a linear model goes into a file, its descriptor system included."""
    return format_of(path, "linear model").complete


def _check_times(
    request: Request, times: Sequence[float], files: Sequence[Path], table: Path | None, plot: Path | None
) -> None:
    """Make sure that the options go with ``--snapshots``."""
    if not times:
        if table is not None:
            raise UsageError("--input goes with --snapshots: it says what the inputs do on the way.")
        return
    if request.simulate_to is not None or request.one_sided is not None or request.at_singularity:
        raise UsageError("--snapshots does not go with --simulate-to, --one-sided or --at-singularity.")
    if plot is not None:
        raise UsageError("--plot draws one linear model, and --snapshots asks for several. Leave one of them out.")
    check_files(files, times)


def _constraints(constrained: Constraints, asked: dict[str, Any]) -> list[str] | None:
    """Return the constraints that are declared: none where they are to be found."""
    if not (asked["discover"] or asked["tangent_only"]):
        return constrained.asked()
    option = "--discover" if asked["discover"] else "--tangent-only"
    if asked["discover"] and asked["tangent_only"]:
        raise UsageError("--discover contradicts --tangent-only. Leave one of them out.")
    if constrained.constraint or constrained.constraints:
        raise UsageError(f"{option} contradicts --constraint and --constraints. Leave one of them out.")
    return []


def linear_model(request: Request, runner: JobRunner) -> tuple[LinearModel, OperatingPoint]:
    """Load, assemble the point, linearize."""
    import fmilin as fl
    from fmilin.cli.points import at_point

    model, point = at_point(request, runner)
    if request.tangent_only:
        from fmilin.discovery.tangent import linearize_on_tangent

        named = {n: getattr(request, n) for n in ("independent", "inputs", "outputs", "derivatives")}
        return linearize_on_tangent(model, point, **named), point
    linear = fl.linearize(
        model,
        point,
        inputs=request.inputs,
        outputs=request.outputs,
        one_sided=request.one_sided,
        at_singularity=request.at_singularity,
        stepping=request.stepping,
        **request.how(),
    )
    return linear, point


def draw(linear: LinearModel, path: Path, runner: JobRunner) -> None:
    """Draw the eigenvalues."""
    from fmilin.output.report.figures import rendered

    runner.write_files({path: rendered(linear.plot.eigenvalues(), path.suffix)})
    runner.say(f"{path}: eigenvalues\n")


def deliver(
    linear: LinearModel,
    point: OperatingPoint,
    files: Sequence[Path],
    runner: JobRunner,
    *,
    as_json: bool = False,
    writing: Writing | None = None,
) -> None:
    """Write the files; then JSON or, without files, the table."""
    from fmilin.output.export.files import dumps

    runner.restore_directory()
    runner.write_files({path: dumps(linear, path, writing) for path in files})
    if as_json:
        runner.results.write(dumps(linear, "results.json").decode("ascii"))
    elif not files:
        from fmilin.output.report.table import print_table

        print_table(linear, runner.results, adjusted=point.adjusted)
    if files and not as_json:
        for remark in linear.warnings:
            runner.say(f"{'Note' if remark.is_information else 'Warning'}: {remark}\n")
        order = f"{len(linear.states)} independent states out of {len(linear.full_states)}"
        for path in files:
            runner.say(f"{path}: {order}\n")
