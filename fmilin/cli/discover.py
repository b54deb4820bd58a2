"""``fmilin discover MODEL``: the constraints that nobody wrote down."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fmilin.cli.command import Command
from fmilin.cli.job_runner import JobRunner
from fmilin.cli.model_options import INTERFACE, running_options
from fmilin.cli.options import MODEL, TIME, json_option, new_file_option, number_option, settings_option
from fmilin.cli.request import at_point, request_of
from fmilin.errors import UsageError
from fmilin.support.interrupts import stoppable

if TYPE_CHECKING:
    from fmilin.discovery.result import Discovery
    from fmilin.model.interface import Model, OperatingPoint

MOST_LINES, LONGEST = 60, 300  # of what is told on the way


class _Discover(Command):
    """It takes none of the states' constraints as declared, and so may write the file beside the model."""

    reads_constraints = False


@click.command(cls=_Discover, examples=["fmilin discover supplied.fmu -o found.toml"])
@MODEL
@settings_option("Repeatable: a start value, parameter or input. States around this point are looked at.")
@TIME
@number_option("--excite", metavar="X", default=1.0, help="How far inputs are moved, in their nominal sizes.")
@INTERFACE
@new_file_option("-o", "--output", suffix=".toml", help="Where the constraints go, for --constraints of linearize.")
@json_option("What was found as one JSON document on standard output.")
@running_options
def command(model: str, excite: float, output: Path | None, *, as_json: bool, **given: Any) -> int:
    """Find the constraints that a model keeps and does not declare.

    Rates are asked for at random states; functions of the states are looked for that never change. What was found is
    verified at other states and written as a file.
    """
    if not excite > 0:
        raise UsageError(f"--excite {excite:g}: give a factor more than 0.")
    request = request_of(model, constraints=[], **given)

    def job(runner: JobRunner) -> None:
        from fmilin.report.result_tables import show_discovery

        discovery = _discovered(*at_point(request, runner), excite=excite)
        runner.restore_directory()
        if output is not None:
            runner.write_files({output: discovery.toml().encode()})
        if as_json:
            runner.print_json(discovery.document())
        elif output is None:
            runner.print_shown(show_discovery, discovery)
        runner.say_remarks(discovery.warnings)
        if output is not None:
            count = f"{len(discovery.findings)} constraint{'' if len(discovery.findings) == 1 else 's'}"
            runner.say(f"{output}: {count}, order {discovery.order} instead of {discovery.full_order}\n")
        runner.end_where_interrupted(discovery.warnings)

    return request.work(job)


def _discovered(model: Model, point: OperatingPoint, *, excite: float) -> Discovery:
    """Return what is found; each find is on standard error at once, as the model may crash later; long lists end."""
    from fmilin.discovery.procedure import discover

    lines = 0

    def tell(line: str) -> None:
        nonlocal lines
        lines += 1
        if lines <= MOST_LINES:
            sys.stderr.write(f"{line if len(line) <= LONGEST else line[:LONGEST] + ' ...'}\n")
            sys.stderr.flush()

    with stoppable() as stop:
        discovery = discover(model, point, excite=excite, progress=tell, stop=stop)
    if lines > MOST_LINES:
        sys.stderr.write(f"{lines - MOST_LINES} lines more of what was found and withdrawn: the result has the rest.\n")
    return discovery
