"""``fmilin info MODEL``: what is in a model."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from fmilin.cli.job_runner import JobRunner, work
from fmilin.cli.options import DEBUG, MODEL, UNPACK_LIMIT, VERBOSE, fmu, is_fmu, json_option

__all__ = ["command"]


@click.command()
@MODEL
@json_option("The same as one JSON document on standard output.")
@UNPACK_LIMIT
@VERBOSE
@DEBUG
def command(model: str, *, as_json: bool, unpack_limit: float | None, verbose: bool, debug: bool) -> int:
    """Show version, interfaces, states, inputs, outputs, capabilities and constraints.

    MODEL is model.fmu, path/to/file.py:name or package.module:name. The code of an FMU is not loaded.
    """
    opened_with = fmu(unpack_limit)

    def job(runner: JobRunner) -> None:
        from fmilin.report.summary import MOST_ROWS, print_summary, summary_of_fmu, summary_of_model

        if is_fmu(model):
            summary = summary_of_fmu(Path(model), None if as_json else MOST_ROWS, opened_with)
        else:
            import fmilin as fl

            summary = summary_of_model(runner.borrow(fl.load(model)))
        if as_json:
            from fmilin.export.json_file import text_of

            runner.results.write(text_of(summary.document()))
        else:
            print_summary(summary, runner.results)
        if verbose and is_fmu(model):
            from fmilin.fmi.read.archive import FmuFile

            for departure in FmuFile(Path(model), opened_with).departures():
                sys.stderr.write(f"fmilin: modelDescription.xml departs from the schema, {departure}\n")

    return work(job, isolate=False, debug=debug)
