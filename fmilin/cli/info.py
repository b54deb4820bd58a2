"""``fmilin info MODEL``: what is in a model."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

import fmilin as fl
from fmilin.cli.command import Command
from fmilin.cli.derive import MODEL, OPTIONS, json_switch, options_of_commands, switch, take
from fmilin.cli.job_runner import JobRunner, work
from fmilin.cli.model_options import SOURCE_OPTIONS, UNPACK_LIMIT, Running, source_options
from fmilin.errors import UsageError
from fmilin.loading.source_kind import is_fmu, is_system
from fmilin.options import FmuOptions, SourceOptions


@options_of_commands
class InfoOptions:
    """The options of ``info``."""

    as_json: bool = json_switch("The same as one JSON document on standard output.")
    run: bool = switch("Also run the model to test whether its states depend on each other.", OPTIONS)
    start: bool = switch(
        "Show which start values of a Modelica model or FMU are kept, which are moved, and why.", OPTIONS
    )
    check: bool = switch("Of an FMU: list the rules of the standard that its description violates.", OPTIONS)


@click.command(
    cls=Command, examples=["fmilin info four_bar.fmu", "fmilin info loader.toml", "fmilin info four_bar.fmu --check"]
)
@MODEL
@take("options", InfoOptions)
@SOURCE_OPTIONS
@take("fmu", FmuOptions, only=("most_bytes",), readings={"most_bytes": UNPACK_LIMIT})
@take("running", Running)
def command(model: str, options: InfoOptions, opened: SourceOptions, fmu: FmuOptions, running: Running) -> int:
    """Show version, interfaces, states, inputs, outputs, capabilities and constraints.

    The code of an FMU is not loaded, but with --run and --start.
    """
    if options.check and not is_fmu(model):
        raise UsageError(f"--check reads the description of an FMU, which '{model}' is not.")
    if options.start and is_system(model):
        raise UsageError(f"--start reads the start values of one model, and '{model}' connects several.")
    for_the_reader = source_options(opened)

    def job(runner: JobRunner) -> None:
        if is_system(model):
            from fmilin.report.summary import show_system_summary, summary_of_ssp

            _print(summary_of_ssp(Path(model), fmu), show_system_summary, runner, as_json=options.as_json)
            return
        _print_model(runner, model, options, fmu, for_the_reader)
        if options.run:
            for line in _dependence(runner, model, for_the_reader):
                runner.say(f"{line}\n")
        if running.verbose and is_fmu(model):
            from fmilin.fmi.read.archive import FmuFile

            for departure in FmuFile(Path(model), fmu).departures():
                runner.say(f"fmilin: modelDescription.xml departs from the schema, {departure}\n")

    status = work(job, debug=running.debug, limits=running.limits())
    if running.verbose:
        from fmilin.fmi.host.build import describe_host

        click.echo(fl.sandbox_report(), err=True)
        click.echo(f"The program that loads FMUs is {describe_host()}.", err=True)
    return status


def _print_model(
    runner: JobRunner, model: str, options: InfoOptions, fmu: FmuOptions, for_the_reader: Mapping[str, Any]
) -> None:
    """Print the summary of one model."""
    from fmilin.report.summary import MAX_ROWS, read_start, show_summary, summary_of_fmu, summary_of_model

    loaded = None if is_fmu(model) and not options.start else runner.borrow(fl.load(model, options=for_the_reader))
    if loaded is None or is_fmu(model):
        summary = summary_of_fmu(Path(model), None if options.as_json else MAX_ROWS, fmu, check=options.check)
    else:
        summary = summary_of_model(loaded)
    if loaded is not None and options.start:
        summary = replace(summary, start_values=read_start(loaded))
    _print(summary, show_summary, runner, as_json=options.as_json)


def _print(summary: Any, show: Callable[..., None], runner: JobRunner, *, as_json: bool) -> None:
    if as_json:
        runner.print_json(summary.document())
    else:
        runner.print_shown(show, summary)


def _dependence(runner: JobRunner, model: str, options: Mapping[str, Any]) -> Iterator[str]:
    """Say whether states that no constraint binds seem as if one did."""
    opened = runner.borrow(fl.load(model, options=options))
    if len(opened.constraints):
        yield f"Dependence: declared, by {len(opened.constraints)} equations"
        return
    remarks = [w for w in fl.linearize(opened).warnings if w.kind == "dependent-states"]
    yield from (f"{remark.heading}: {remark}" for remark in remarks)
    if not remarks:
        yield "Dependence: none found at the start values"
