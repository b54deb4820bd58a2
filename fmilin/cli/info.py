"""``fmilin info MODEL``: what is in a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fmilin.cli import options
from fmilin.cli.job_runner import JobRunner, work
from fmilin.cli.opening import is_fmu

__all__ = ["command"]


def command(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="model.fmu, path/to/file.py:name or package.module:name")
    ],
    json: Annotated[bool, typer.Option("--json", help="The same as one JSON document on standard output.")] = False,
    unpack_limit: options.UnpackLimit = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> int:
    """Show version, interfaces, states, inputs, outputs, capabilities and constraints.

    The code of an FMU is not loaded.
    """
    opened_with = options.fmu(unpack_limit)

    def job(runner: JobRunner) -> None:
        from fmilin.report.summary import MOST_ROWS, print_summary, summary_of_fmu, summary_of_model

        if is_fmu(model):
            summary = summary_of_fmu(Path(model), None if json else MOST_ROWS, opened_with)
        else:
            import fmilin as fl

            summary = summary_of_model(runner.borrow(fl.load(model)))
        if json:
            from fmilin.export.json_file import text_of

            runner.results.write(text_of(summary.document()))
        else:
            print_summary(summary, runner.results)

    return work(job, isolate=False, debug=debug)
