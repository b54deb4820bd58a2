"""``fmilin trim MODEL``: an equilibrium or a steady motion on the manifold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fmilin.cli import model_options, options
from fmilin.cli.command import Command
from fmilin.cli.job_runner import JobRunner
from fmilin.cli.request import open_model, request_of
from fmilin.errors import UsageError

if TYPE_CHECKING:
    from fmilin.model.interface import Model
    from fmilin.trimming.report import TrimmedPoint


@click.command(
    cls=Command,
    examples=["fmilin trim four_bar.fmu -o point.json", "fmilin trim four_bar.fmu --fix phi=1.0 --free torque"],
)
@options.MODEL
@model_options.trim_options
@model_options.of_model("Treat all states as independent.")
@options.settings_option("Repeatable: a parameter or input to hold, or a state to start from.")
@options.TIME
@model_options.PROJECT
@options.output_option(
    "-o", "--output", metavar="FILE", multiple=True, help="Repeatable; the suffix picks the format: .toml .json"
)
@options.json_option("The point as one JSON document on standard output.")
def command(
    model: str,
    trimming: model_options.TrimOptions,
    settings: dict[str, float],
    output: tuple[Path, ...],
    *,
    as_json: bool,
    **given: Any,
) -> int:
    """Find an equilibrium, or a steady motion, on the manifold.

    A table is printed; -o saves the point for --point of the other commands.
    """
    files = _checked_files(output, trimming)
    request = request_of(model, settings=trimming.with_settings(settings), trim=trimming.request(), **given)

    def job(runner: JobRunner) -> None:
        from fmilin.trimming.procedure import search_each

        loaded = open_model(request, runner)
        problem, start = request.point.trim_of(loaded)  # its states are where every search starts, its inputs are held
        guesses = [start | dict(guess) for guess in trimming.guess or [{}]]
        points = search_each(loaded, problem, guesses, anywhere=request.point.project)
        _deliver(loaded, points, files, runner, as_json=as_json)

    return request.work(job)


def _checked_files(paths: Sequence[Path], trimming: model_options.TrimOptions) -> list[Path]:
    if not paths:
        return []
    if len(trimming.guess) > 1:
        raise UsageError("-o saves one point: give one --guess, or leave -o out to see what several lead to.")
    from fmilin.model.files import check_point_file
    from fmilin.support.files import check_writable

    for path in paths:
        check_point_file(path)
        check_writable(path)
    return list(paths)


def _deliver(
    model: Model, points: Sequence[TrimmedPoint], files: Sequence[Path], runner: JobRunner, *, as_json: bool
) -> None:
    from fmilin.model.files import SavedPoint, dump_point

    runner.restore_directory()
    saved = [
        SavedPoint.of(model, point, point.report.rates, point.report.distance, point.report.said) for point in points
    ]
    runner.write_files({path: dump_point(saved[0], path) for path in files})
    if as_json:
        texts = [dump_point(point, "point.json").decode().rstrip() for point in saved]
        runner.results.write(texts[0] + "\n" if len(texts) == 1 else "[\n" + ",\n".join(texts) + "\n]\n")
    elif not files:
        from fmilin.report.result_tables import show_points

        runner.print_shown(show_points, points, name=model.info.name)
    if files and not as_json:
        runner.say_remarks(points[0].report.remarks)
        for path in files:
            runner.say(f"{path}: {points[0].report.summary}\n")
