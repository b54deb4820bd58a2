"""``fmilin trim MODEL``: an equilibrium or a steady motion on the manifold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fmilin.cli.files import Command
from fmilin.cli.job_runner import JobRunner
from fmilin.cli.model_options import (
    PROJECT,
    Constraints,
    FileOptions,
    Running,
    TrimOptions,
    constraints_options,
    file_options,
    running_options,
    trim_options,
)
from fmilin.cli.options import MODEL, json_option, output_option, settings_option, time_option
from fmilin.cli.request import open_model, request_of
from fmilin.ground.errors import UsageError

if TYPE_CHECKING:
    from fmilin.model.interface import Model
    from fmilin.points.report import TrimmedPoint
    from fmilin.points.request import PointRequest


@click.command(
    cls=Command,
    examples=["fmilin trim four_bar.fmu -o point.json", "fmilin trim four_bar.fmu --fix phi=1.0 --free torque"],
)
@MODEL
@trim_options
@constraints_options("Treat all states as independent.")
@file_options
@settings_option("Repeatable: a parameter or input to hold, or a state to start from.")
@time_option()
@PROJECT
@output_option(
    "-o", "--output", metavar="FILE", multiple=True, help="Repeatable; the suffix picks the format: .toml .json"
)
@json_option("The point as one JSON document on standard output.")
@running_options
def command(
    model: str,
    trimming: TrimOptions,
    constrained: Constraints,
    opened: FileOptions,
    settings: dict[str, float],
    time: float | None,
    output: tuple[Path, ...],
    running: Running,
    *,
    project: bool,
    as_json: bool,
) -> int:
    """Find an equilibrium, or a steady motion, on the manifold.

    A table is printed; -o saves the point for --point
    of the other commands.
    """
    files = _checked_files(output, trimming)
    values = trimming.with_settings(settings)
    request = request_of(
        model, running, constrained, opened, settings=values, time=time, project=project, trim=trimming.request()
    )

    def job(runner: JobRunner) -> None:
        loaded = open_model(request, runner)
        points = _trimmed(loaded, request.point, trimming.guess or [{}])
        _deliver(loaded, points, files, runner, as_json=as_json)

    return running.work(job, model)


def _trimmed(model: Model, request: PointRequest, guesses: Sequence[Mapping[str, float]]) -> Sequence[TrimmedPoint]:
    """Return the points; states of ``--set`` are where every search starts, its inputs are held unless free."""
    from fmilin.points.procedure import search_each

    problem, start = request.trim_of(model)
    return search_each(model, problem, [start | dict(guess) for guess in guesses], anywhere=request.project)


def _checked_files(paths: Sequence[Path], trimming: TrimOptions) -> list[Path]:
    if not paths:
        return []
    if len(trimming.guess) > 1:
        raise UsageError("-o saves one point: give one --guess, or leave -o out to see what several lead to.")
    from fmilin.ground.files import check_writable
    from fmilin.model.point_files import check_point_file

    for path in paths:
        check_point_file(path)
        check_writable(path)
    return list(paths)


def _deliver(
    model: Model, points: Sequence[TrimmedPoint], files: Sequence[Path], runner: JobRunner, *, as_json: bool
) -> None:
    """Write the files; then JSON or, without files, the tables."""
    from fmilin.model.point_files import SavedPoint, dump_point

    runner.restore_directory()
    saved = [
        SavedPoint.of(model, point, point.report.rates, point.report.distance, point.report.said) for point in points
    ]
    runner.write_files({path: dump_point(saved[0], path) for path in files})
    if as_json:
        texts = [dump_point(point, "point.json").decode().rstrip() for point in saved]
        runner.results.write(texts[0] + "\n" if len(texts) == 1 else "[\n" + ",\n".join(texts) + "\n]\n")
    elif not files:
        from fmilin.output.report.result_tables import print_points

        print_points(model, points, runner.results)
    if files and not as_json:
        for remark in points[0].report.remarks:
            runner.say(f"{remark.heading}: {remark}\n")
        for path in files:
            runner.say(f"{path}: {points[0].report.summary}\n")
