"""``fmilin discover MODEL``: undeclared constraints."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fmilin.cli.command import Command
from fmilin.cli.derive import MODEL, OPTIONS, command_option, json_switch, new_file, options_of_commands, take, together
from fmilin.cli.job_runner import JobRunner
from fmilin.cli.linear_options import decorate_with_rejections
from fmilin.cli.model_options import FMU_OPTIONS, RUNNING, SOURCE_OPTIONS
from fmilin.cli.request import at_point, build_request
from fmilin.errors import UsageError
from fmilin.options import Loading
from fmilin.support.interrupts import stoppable
from fmilin.trimming.trim_request import PointRequest

if TYPE_CHECKING:
    from fmilin.discovery.discovery_result import Discovery
    from fmilin.model.interface import Model, OperatingPoint

MAX_LINES, MAX_LINE_CHARACTERS = 60, 300  # of progress messages


@options_of_commands
class DiscoverOptions:
    """How constraints are searched for, and where they go."""

    excite: float = command_option(
        1.0, "Amplitude of the inputs, in their nominal sizes.", OPTIONS, "number", metavar="X"
    )
    output: Path | None = new_file(
        "The constraints file to write, for --constraints of linearize.", (".toml",), flag="--output", short="-o"
    )
    as_json: bool = json_switch("The findings as one JSON document on standard output.")


class _Discover(Command):
    """It reads no declared constraints of the states, so it may write the file in the model's folder."""

    reads_constraints = False


@click.command(cls=_Discover, examples=["fmilin discover supplied.fmu -o found.toml"])
@MODEL
@take("search", DiscoverOptions)
@together(take("loading", Loading, only=("interface",)), SOURCE_OPTIONS, FMU_OPTIONS, RUNNING)
@take("point", PointRequest, only=("settings", "time"))
@decorate_with_rejections("discover")
def command(model: str, search: DiscoverOptions, loading: Loading, **request_options: Any) -> int:
    """Find the constraints that a model keeps and does not declare.

    Rates are evaluated at random states; functions of the states that never change are searched for. The result is
    verified at other states and written as a file.
    """
    excite, output = search.excite, search.output
    if not excite > 0:
        raise UsageError(f"--excite {excite:g}: give a factor more than 0.")
    request = build_request(model, loading=replace(loading, constraints=[]), **request_options)

    def job(runner: JobRunner) -> None:
        from fmilin.report.result_tables import show_discovery

        discovery = _discover(*at_point(request, runner), excite=excite)
        runner.restore_directory()
        if output is not None:
            runner.write_files({output: discovery.toml().encode()})
        if search.as_json:
            runner.print_json(discovery.document())
        elif output is None:
            runner.print_shown(show_discovery, discovery)
        runner.say_remarks(discovery.warnings)
        if output is not None:
            count = f"{len(discovery.findings)} constraint{'' if len(discovery.findings) == 1 else 's'}"
            runner.say(f"{output}: {count}, order {discovery.order} instead of {discovery.full_order}\n")
        runner.end_where_interrupted(discovery.warnings)

    return request.work(job)


def _discover(model: Model, point: OperatingPoint, *, excite: float) -> Discovery:
    """Return what is found; each find is on standard error at once, as the model may crash later; long lists end."""
    from fmilin.discovery.constraint_discovery import discover

    lines = 0

    def tell(line: str) -> None:
        nonlocal lines
        lines += 1
        if lines <= MAX_LINES:
            sys.stderr.write(f"{line if len(line) <= MAX_LINE_CHARACTERS else line[:MAX_LINE_CHARACTERS] + ' ...'}\n")
            sys.stderr.flush()

    with stoppable() as stop:
        discovery = discover(model, point, excite=excite, progress=tell, stop=stop)
    if lines > MAX_LINES:
        sys.stderr.write(
            f"{lines - MAX_LINES} more lines of findings and rejected candidates: the result has all of them.\n"
        )
    return discovery
