"""``fmilin linearize MODEL``: a linear model at an operating point."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from fmilin.cli import linear_models, linear_options, model_options, options
from fmilin.cli.command import Command
from fmilin.cli.job_runner import JobRunner
from fmilin.cli.options import names_option, number_option, one_of, read_by
from fmilin.cli.request import Request, request_of
from fmilin.cli.spectrum import Formulated, compare, formulation_options, one, require_plain
from fmilin.errors import UsageError
from fmilin.formats import Writing, codec_for, listed
from fmilin.linearization.request import Request as LinearizationRequest
from fmilin.loading.request import is_fmu


@click.command(
    cls=Command,
    examples=[
        "fmilin linearize four_bar.fmu",
        "fmilin linearize four_bar.fmu --trim --fix phi=1.0 --free torque -o plant.mat",
        'fmilin linearize supplied.fmu --constraint "x^2 + y^2 - L^2"',
        "fmilin linearize loader.toml --independent lift.q,tilt.q",
    ],
)
@options.MODEL
@model_options.of_model("Treat all states as independent, as other tools do.")
@click.option("--discover", is_flag=True, help="Find constraints that the model does not declare, and use them.")
@click.option("--tangent-only", is_flag=True, help="Find the directions of motion from numbers, without constraints.")
@names_option("--independent", 'States to keep as coordinates, or expressions: "theta=atan2(x,-y)".')
@model_options.COORDINATES
@names_option("--inputs", "A choice and an order.")
@options.OUTPUTS
@names_option("--parameters", "Parameters by which A, B, C, D and the eigenvalues are differentiated.")
@options.settings_option("Repeatable: a start value, parameter or input.")
@options.TIME
@model_options.POINT
@click.option("--trim", is_flag=True, help="Find the equilibrium nearest to the point first.")
@model_options.trim_options
@number_option("--simulate-to", metavar="T", help="Let the nonlinear model run from the point to this time first.")
@click.option("--simulate-until", metavar="TEXT", help='Or until this holds: "x > 3"; "event": after the first one.')
@click.option(
    "--snapshots",
    "times",
    metavar="T1,T2,...",
    help=f"A family along one motion ({listed('family')}); of other formats FILE_tT1.mo, ...",
    callback=read_by(linear_models.snapshot_times),
)
@options.path_option(
    "--input", "table", metavar="FILE.csv", help="Inputs over time on the way to --snapshots, as for simulate."
)
@model_options.DERIVATIVES
@click.option(
    "--keep-inaccurate", is_flag=True, help="Return entries even where their estimated error is a tenth of their row."
)
@model_options.PROJECT
@click.option("--one-sided", type=one_of("left", "right"), help="Slopes on one side, at a kink or an event.")
@click.option("--hold-modes", is_flag=True, help="At an event: inside the present mode, as if it did not occur.")
@click.option(
    "--at-singularity", is_flag=True, help="At a singular configuration: over the enlarged set of velocities."
)
@model_options.INTERFACE
@linear_options.stepping_options
@linear_options.composition_options
@linear_options.cut_options
@linear_options.steps_options
@formulation_options
@options.outputs_of("linear model")
@linear_options.writing_options
@options.json_option("The linear model as one JSON document on standard output.")
def command(
    model: str,
    constrained: model_options.Constraints,
    times: tuple[float, ...],
    table: Path | None,
    stepped: linear_options.Stepped,
    coupled: linear_options.Coupled,
    cut: linear_options.Cut,
    steps: linear_options.Steps,
    formulated: Formulated,
    output: tuple[Path, ...],
    writing: Writing,
    *,
    as_json: bool,
    **given: Any,
) -> int:
    """Compute a linear model at an operating point, in independent coordinates.

    Without -o or --json a table is printed.
    """
    files = list(output) if times else options.checked_outputs(output)
    # Of the models that have equations, in files that carry them; one side of a kink has no descriptor system.
    shows_equations = not times and not is_fmu(model) and given.get("one_sided") is None
    request = request_of(
        model,
        constrained=constrained,
        constraints=_constraints(constrained, given),
        stepping=None if coupled.as_cosimulated else stepped.stepping(),
        descriptor=shows_equations and (as_json or any(codec_for(path, "linear model").is_complete for path in files)),
        **given,
    )
    chosen = formulated.chosen()
    how = coupled.request(stepped)
    if cut.wanted:
        cut.check(_beside_a_cut(request, times, chosen, how))
    _check_times(request, times, files, table, coupled.plot)
    conditioning = steps.conditioning()
    if chosen is not None:
        others = ["--snapshots"] if times else []
        others += ["--plot"] if coupled.plot is not None and chosen.formulation == "all" else []
        require_plain(request, chosen, others, wants_model=bool(files) or conditioning is not None)

    def job(runner: JobRunner) -> None:
        if how is not None:
            linear_models.linearize_cosimulation(request, how, files, runner, as_json=as_json)
            return
        if times:
            every = linear_models.linear_models(request, times, runner, table)
            every = linear_options.conditioned(every, conditioning)
            linear_models.deliver_each(every, times, files, runner, as_json=as_json, writing=writing)
            return
        if chosen is not None and chosen.formulation == "all":
            compare(request, chosen, runner, as_json=as_json)
            return
        spectrum = None
        if chosen is not None:
            spectrum, linear, at = one(request, chosen, runner)
        else:
            linear, at = linear_models.linear_model(request, runner, cut if cut.wanted else None)
        (linear,) = linear_options.conditioned([linear], conditioning)
        linear_models.deliver(linear, at, files, runner, as_json=as_json, writing=writing)
        if coupled.plot is not None:
            runner.draw(coupled.plot, linear.plot.eigenvalues(), "eigenvalues")
        if spectrum is not None and not files and not as_json:
            from fmilin.report.formulations import show_spectrum

            runner.print_shown(show_spectrum, spectrum)

    return request.work(job)


def _beside_a_cut(
    request: Request, times: Sequence[float], chosen: Formulated | None, how: object
) -> dict[str, object]:
    """Return what does not go with a cut wire, by option."""
    plain = LinearizationRequest()
    given = {
        f"--{f.name.replace('_', '-')}": getattr(request.how, f.name) != getattr(plain, f.name)
        for f in fields(plain)
        if f.name != "descriptor"
    }
    return given | {
        "--snapshots": times,
        "--formulation": chosen,
        "--as-cosimulated": how,
        "--tangent-only": request.tangent_only,
    }


def _check_times(
    request: Request, times: Sequence[float], files: Sequence[Path], table: Path | None, plot: Path | None
) -> None:
    """Make sure that the options go with ``--snapshots``."""
    if not times:
        if table is not None:
            raise UsageError("--input goes with --snapshots: it says what the inputs do on the way.")
        return
    carried = request.simulate_to is not None or request.simulate_until is not None
    if carried or not isinstance(request.how.derivatives, str) or request.how.at_singularity:
        raise UsageError(
            "--snapshots does not go with --simulate-to, --simulate-until, --one-sided or --at-singularity."
        )
    if plot is not None:
        raise UsageError("--plot draws one linear model, and --snapshots asks for several. Leave one of them out.")
    linear_models.check_files(files, times)


def _constraints(constrained: model_options.Constraints, more: dict[str, Any]) -> list[str] | None:
    """Return the constraints that are declared: none where they are to be found."""
    if not (more["discover"] or more["tangent_only"]):
        return constrained.expressions()
    option = "--discover" if more["discover"] else "--tangent-only"
    if more["discover"] and more["tangent_only"]:
        raise UsageError("--discover contradicts --tangent-only. Leave one of them out.")
    if constrained.constraint or constrained.constraints:
        raise UsageError(f"{option} contradicts --constraint and --constraints. Leave one of them out.")
    return []
