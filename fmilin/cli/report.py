"""``fmilin report FILE|MODEL -o FILE.html``: everything about a linear model or a family, as one page."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fmilin.cli import model_options
from fmilin.cli.command import Command
from fmilin.cli.derive import MODEL, OPTIONS, command_option, options_of_commands, require_file, switch, take
from fmilin.cli.job_runner import JobRunner
from fmilin.cli.linear_options import linearization_options
from fmilin.cli.request import (
    CommandRequest,
    at_point,
    build_request,
    open_compared_model,
    refuse_points,
    verify_linear_model,
)
from fmilin.errors import UsageError
from fmilin.formats import Writing, require_codec, suffixes
from fmilin.options import VerificationOptions

if TYPE_CHECKING:
    from fmilin.families.family import LinearFamily
    from fmilin.linear_model.model import LinearModel
    from fmilin.model.interface import Model


@options_of_commands
class ReportOptions:
    """The options of ``report``: the contents of the page."""

    output: Path = field(metadata=require_file("The page.", suffixes("page")))
    against: str | None = command_option(
        None, "The nonlinear model, against which the linear one is verified.", OPTIONS, "text", metavar="MODEL"
    )
    verify: bool = switch("Of a model: verify its linear model against the model itself.", OPTIONS)


@click.command(
    cls=Command,
    examples=[
        "fmilin report plant.mat -o report.html",
        "fmilin report plant.mat --against four_bar.fmu --horizon 2 -o report.html",
        "fmilin report family.nc -o family.html",
    ],
)
@MODEL
@take("page", ReportOptions)
@take("comparison", VerificationOptions)
@model_options.model_options(model_options.DiscoveryOptions)
@model_options.POINT_OPTIONS
@take("carrying", model_options.Carrying)
@linearization_options("report")
def command(model: str, page: ReportOptions, comparison: VerificationOptions, **request_options: Any) -> int:
    """Write everything about a linear model, a family or a motion that repeats as one HTML file.

    MODEL is a file of a linear model ({linear_files}, .fmu of one), of a family ({family_files}), of 'fmilin
    floquet', or what 'fmilin linearize' takes, which is linearized first. The page needs no network; its path is
    printed.
    """
    output, against, verify, horizon = page.output, page.against, page.verify, comparison.horizon
    request = build_request(against or model, **request_options)
    if horizon is not None and against is None and not verify:
        raise UsageError(
            "--horizon is the duration of a verification: add --against MODEL, or --verify if a model is given."
        )

    def job(runner: JobRunner) -> None:
        from fmilin.export.periodic_record import load_any
        from fmilin.families.family import LinearFamily
        from fmilin.report.web import Report

        if (periodic := load_any(model)) is not None:
            if against is not None or verify:
                raise UsageError(f"'{model}' was saved by 'fmilin floquet': leave out --verify and --against.")
            refuse_points(model, request, against)
            runner.write_files({output: require_codec(output, "page").dumps(Report(periodic), Writing())})
            runner.results.write(f"{output}\n")
            return
        result, plant = _load_result(model, request, runner, against)
        verification = None
        if against is not None or verify:
            if isinstance(result, LinearFamily):
                raise UsageError(
                    f"'{model}' is a family: its points are verified one by one, each from a file of its linear model. "
                    "Leave out --verify, --against and --horizon."
                )
            if plant is None:
                raise UsageError(f"'{model}' is a file, and --verify needs the model: give --against MODEL instead.")
            verification = verify_linear_model(result, plant, horizon)
        runner.restore_directory()
        runner.write_files(
            {output: require_codec(output, "page").dumps(Report(result, verification, plant), Writing())}
        )
        runner.results.write(f"{output}\n")
        runner.end_where_interrupted(verification.remarks if verification is not None else ())

    return request.work(job)


def _load_result(
    source: str, request: CommandRequest, runner: JobRunner, against: str | None
) -> tuple[LinearModel | LinearFamily, Model | None]:
    """Return what the report is about, and the nonlinear model where there is one."""
    from fmilin.export.files import load_result
    from fmilin.families.family import LinearFamily
    from fmilin.linearization.linearize import linearize_request

    result = load_result(source)
    if result is None:
        if against is not None:
            raise UsageError(
                f"--against needs the file of a linear model, and '{source}' is a model itself. Use --verify."
            )
        model, point = at_point(request, runner)
        return linearize_request(model, point, request.how), model
    refuse_points(source, request, against)
    if against is None or isinstance(result, LinearFamily):
        return result, None
    return result, open_compared_model(request, result, runner)
