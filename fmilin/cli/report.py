"""``fmilin report FILE|MODEL -o FILE.html``: everything about a linear model or a family, as one page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fmilin.cli.command import Command
from fmilin.cli.job_runner import JobRunner
from fmilin.cli.model_options import of_model_options
from fmilin.cli.options import MODEL, names_option, new_file_option, number_option
from fmilin.cli.request import Request, at_point, open_beside, refuse_points, request_of, verified
from fmilin.errors import UsageError
from fmilin.formats import suffixes

if TYPE_CHECKING:
    from fmilin.families.family import LinearFamily
    from fmilin.linear_model.model import LinearModel
    from fmilin.model.interface import Model


@click.command(
    cls=Command,
    examples=[
        "fmilin report plant.mat -o report.html",
        "fmilin report plant.mat --against four_bar.fmu --horizon 2 -o report.html",
        "fmilin report family.nc -o family.html",
    ],
)
@MODEL
@new_file_option("-o", "--output", suffix=suffixes("page"), required=True, help="The page.")
@click.option("--against", metavar="MODEL", help="The nonlinear model: verifies the linear one beside it.")
@click.option("--verify", is_flag=True, help="Of a model: verify its linear model against it.")
@number_option("--horizon", metavar="T", help="How long responses are followed to verify, in seconds.")
@names_option("--inputs", "Of a model: a choice and an order.")
@names_option("--outputs", "Of a model: a choice and an order.")
@of_model_options
def command(model: str, output: Path, against: str | None, horizon: float | None, *, verify: bool, **given: Any) -> int:
    """Write everything about a linear model, a family or a motion that repeats as one HTML file.

    MODEL is a file of a linear model ({linear_files}, .fmu of one), of a family ({family_files}), of 'fmilin
    floquet', or what 'fmilin linearize' takes, which is linearized first. The page needs no network; its path is
    printed.
    """
    request = request_of(against or model, **given)
    if horizon is not None and against is None and not verify:
        raise UsageError("--horizon says how long to verify: add --against MODEL, or --verify where a model is given.")

    def job(runner: JobRunner) -> None:
        from fmilin.export.periodic_file import load_any
        from fmilin.families.family import LinearFamily
        from fmilin.report.web import report_html

        if (periodic := load_any(model)) is not None:
            if against is not None or verify:
                raise UsageError(f"'{model}' was saved by 'fmilin floquet': leave out --verify and --against.")
            refuse_points(model, request, against)
            runner.write_files({output: report_html(periodic).encode("utf-8")})
            runner.results.write(f"{output}\n")
            return
        result, plant = _result_of(model, request, runner, against)
        verification = None
        if against is not None or verify:
            if isinstance(result, LinearFamily):
                raise UsageError(
                    f"'{model}' is a family: its points are verified one by one, each from a file of its linear model. "
                    "Leave out --verify, --against and --horizon."
                )
            if plant is None:
                raise UsageError(f"'{model}' is a file, and --verify needs the model: give --against MODEL instead.")
            verification = verified(result, plant, horizon)
        runner.restore_directory()
        runner.write_files({output: report_html(result, verification, plant).encode("utf-8")})
        runner.results.write(f"{output}\n")
        runner.end_where_interrupted(verification.remarks if verification is not None else ())

    return request.work(job)


def _result_of(
    source: str, request: Request, runner: JobRunner, against: str | None
) -> tuple[LinearModel | LinearFamily, Model | None]:
    """Return what the report is about, and the nonlinear model where there is one."""
    from fmilin.export.files import load_result
    from fmilin.families.family import LinearFamily
    from fmilin.linearization.procedure import linearize_as

    result = load_result(source)
    if result is None:
        if against is not None:
            raise UsageError(
                f"--against goes with a file of a linear model, and '{source}' is a model itself: --verify verifies it."
            )
        model, point = at_point(request, runner)
        return linearize_as(model, point, request.how), model
    refuse_points(source, request, against)
    if against is None or isinstance(result, LinearFamily):
        return result, None
    return result, open_beside(request, result, runner)
