"""``fmilin trim MODEL``: an equilibrium or a steady motion on the manifold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fmilin.cli import model_options
from fmilin.cli.command import Command
from fmilin.cli.derive import FILES, MODEL, ValueReader, command_option, json_switch, options_of_commands, take
from fmilin.cli.job_runner import JobRunner
from fmilin.cli.linear_options import decorate_with_delay_rejection
from fmilin.cli.options import NewFile
from fmilin.cli.request import build_request, open_model
from fmilin.errors import UsageError
from fmilin.trimming.trim_request import PointRequest, TrimRequest

if TYPE_CHECKING:
    from fmilin.model.interface import Model
    from fmilin.trimming.trim_report import TrimmedPoint


@options_of_commands
class TrimOptions:
    """Where the point goes."""

    output: tuple[Path, ...] = command_option(
        (),
        "The suffix picks the format: .toml .json",
        FILES,
        "paths",
        flag="--output",
        short="-o",
        metavar="FILE",
        reading=ValueReader(NewFile((".toml", ".json")), is_repeatable=True),
    )
    as_json: bool = json_switch("The point as one JSON document on standard output.")


@click.command(
    cls=Command,
    examples=["fmilin trim four_bar.fmu -o point.json", "fmilin trim four_bar.fmu --fix phi=1.0 --free torque"],
)
@MODEL
@decorate_with_delay_rejection("Equilibria do not depend on delays.")
@model_options.TRIM_OPTIONS
@model_options.model_options(model_options.DiscoveryOptions)
@take("point", PointRequest, omit=("saved",), apart=("guess",), readings={"guess": model_options.GUESSES})
@take("results", TrimOptions)
def command(
    model: str,
    problem: TrimRequest,
    point: PointRequest,
    guess: Sequence[Mapping[str, float]],
    results: TrimOptions,
    **request_options: Any,
) -> int:
    """Find an equilibrium, or a steady motion, on the manifold.

    A table is printed; -o saves the point for --point of the other commands.
    """
    files = _check_files(results.output, guess)
    settings = model_options.add_fixed(point.settings, problem)
    request = build_request(model, point=replace(point, settings=settings, trim=problem), **request_options)

    def job(runner: JobRunner) -> None:
        from fmilin.trimming.trim_procedure import find_each

        loaded = open_model(request, runner)
        problem, start = request.point.build_trim(
            loaded
        )  # its states are where every search starts, its inputs are held
        guesses = [start | dict(values) for values in guess or [{}]]
        points = find_each(loaded, problem, guesses, anywhere=request.point.project)
        _deliver(loaded, points, files, runner, as_json=results.as_json)

    return request.work(job)


def _check_files(paths: Sequence[Path], guess: Sequence[Mapping[str, float]]) -> list[Path]:
    if not paths:
        return []
    if len(guess) > 1:
        raise UsageError("-o saves one point: give one --guess, or leave -o out to see the results of several.")
    from fmilin.model.model_files import check_point_file
    from fmilin.support.files import check_writable

    for path in paths:
        check_point_file(path)
        check_writable(path)
    return list(paths)


def _deliver(
    model: Model, points: Sequence[TrimmedPoint], files: Sequence[Path], runner: JobRunner, *, as_json: bool
) -> None:
    from fmilin.model.model_files import SavedPoint, dump_point

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
