"""``fmilin info MODEL``: what is in a model."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

import fmilin as fl
from fmilin.cli.command import Command
from fmilin.cli.job_runner import JobRunner, work
from fmilin.cli.model_options import DEBUG, TIMEOUT, UNPACK_LIMIT, VERBOSE, FileOptions, Running, file_options
from fmilin.cli.options import MODEL, json_option
from fmilin.errors import UsageError
from fmilin.loading.request import is_fmu, is_system
from fmilin.sandbox.limits import Limits, sandbox_report


@click.command(
    cls=Command, examples=["fmilin info four_bar.fmu", "fmilin info loader.toml", "fmilin info four_bar.fmu --check"]
)
@MODEL
@json_option("The same as one JSON document on standard output.")
@click.option("--run", is_flag=True, help="Run the model, too: do its states depend on each other?")
@click.option("--check", is_flag=True, help="Of an FMU: list the rules of the standard that its description breaks.")
@file_options
@UNPACK_LIMIT
@VERBOSE
@DEBUG
def command(
    model: str,
    opened: FileOptions,
    *,
    as_json: bool,
    run: bool,
    check: bool,
    unpack_limit: float | None,
    verbose: bool,
    debug: bool,
) -> int:
    """Show version, interfaces, states, inputs, outputs, capabilities and constraints.

    The code of an FMU is not loaded, but with --run.
    """
    if check and not is_fmu(model):
        raise UsageError(f"--check reads the description of an FMU, which '{model}' is not.")
    opened_with = Running(unpack_limit=unpack_limit).fmu()
    options = opened.given()

    def job(runner: JobRunner) -> None:
        if is_system(model):
            from fmilin.report.summary import show_system_summary, summary_of_ssp

            _print(summary_of_ssp(Path(model), opened_with), show_system_summary, runner, as_json=as_json)
            return
        from fmilin.report.summary import MOST_ROWS, show_summary, summary_of_fmu, summary_of_model

        if is_fmu(model):
            summary = summary_of_fmu(Path(model), None if as_json else MOST_ROWS, opened_with, check=check)
        else:
            import fmilin as fl

            summary = summary_of_model(runner.borrow(fl.load(model, options=options)))
        _print(summary, show_summary, runner, as_json=as_json)
        if run:
            for line in _dependence(runner, model, options):
                runner.say(f"{line}\n")
        if verbose and is_fmu(model):
            from fmilin.fmi.read.archive import FmuFile

            for departure in FmuFile(Path(model), opened_with).departures():
                runner.say(f"fmilin: modelDescription.xml departs from the schema, {departure}\n")

    status = work(job, isolate=run and is_fmu(model), debug=debug, limits=Limits(TIMEOUT, None))
    if verbose:
        click.echo(sandbox_report(), err=True)
    return status


def _print(summary: Any, show: Callable[..., None], runner: JobRunner, *, as_json: bool) -> None:
    if as_json:
        runner.print_json(summary.document())
    else:
        runner.print_shown(show, summary)


def _dependence(runner: JobRunner, model: str, options: Mapping[str, Any]) -> Iterator[str]:
    """Say whether states that no constraint binds look as if one did."""
    opened = runner.borrow(fl.load(model, options=options))
    if len(opened.constraints):
        yield f"Dependence: declared, by {len(opened.constraints)} equations"
        return
    remarks = [w for w in fl.linearize(opened).warnings if w.kind == "dependent-states"]
    yield from (f"{remark.heading}: {remark}" for remark in remarks)
    if not remarks:
        yield "Dependence: none is seen at the start values"
