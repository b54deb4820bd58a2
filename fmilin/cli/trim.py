"""``fmilin trim MODEL``: an equilibrium or a steady motion on the manifold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fmilin.cli.file_options import FileOptions, file_options
from fmilin.cli.files import Command
from fmilin.cli.job_runner import JobRunner
from fmilin.cli.opening import open_model
from fmilin.cli.options import (
    MODEL,
    PROJECT,
    Constraints,
    Running,
    assignments,
    constraints_options,
    grouped,
    json_option,
    names,
    names_option,
    output_option,
    read_by,
    running_options,
    settings_option,
    time_option,
)
from fmilin.cli.request import Request
from fmilin.errors import UsageError

if TYPE_CHECKING:
    from fmilin.model.interface import Model
    from fmilin.trimming.request import TrimRequest
    from fmilin.trimming.result import TrimmedPoint

__all__ = ["Wishes", "command"]


@dataclass(frozen=True)
class Wishes:
    """What stands on the command line about the point that is looked for.

    Parameters
    ----------
    fix : mapping of str to float
        States, inputs and parameters.
    free, steady : sequence of str or None
    bound : mapping of str to (float, float)
    guess : sequence of mapping
        One search each; empty: one search from where the model starts.
    """

    fix: Mapping[str, float]
    free: Sequence[str] | None
    steady: Sequence[str] | None
    bound: Mapping[str, tuple[float, float]]
    guess: Sequence[Mapping[str, float]]


def _bounds(texts: Sequence[str], option: str) -> dict[str, tuple[float, float]]:
    """Return ``NAME=LO:HI`` as a pair by name; a missing side is infinite."""
    found: dict[str, tuple[float, float]] = {}
    for text in texts:
        name, equals, pair = text.rpartition("=")
        low, colon, high = pair.partition(":")
        if not (equals and colon and name.strip()):
            raise UsageError(f"{option} '{text}' is no NAME=LO:HI. Write for example {option} torque=-5:5.")
        name = name.strip().strip("`")
        if name in found:
            raise UsageError(f"{option}: '{name}' has bounds twice. Keep one pair.")
        sides = [assignments([f"side={s}"], option)["side"] if s.strip() else None for s in (low, high)]
        found[name] = (
            -float("inf") if sides[0] is None else sides[0],
            float("inf") if sides[1] is None else sides[1],
        )
    return found


def _guesses(texts: Sequence[str], option: str) -> list[dict[str, float]]:
    return [assignments(names(text, option) or [], option) for text in texts]


WISHES = grouped(
    "wishes",
    Wishes,
    click.option(
        "--fix",
        metavar="NAME=VALUE",
        multiple=True,
        help="Repeatable: a state, input or parameter that keeps this value.",
        callback=read_by(assignments),
    ),
    names_option("--free", "Inputs and parameters to solve for; states are free."),
    names_option("--steady", "States that may move: rolling, turning, cruising."),
    click.option(
        "--bound",
        metavar="NAME=LO:HI",
        multiple=True,
        help="Repeatable: bounds of a free quantity; one may be left out.",
        callback=read_by(_bounds),
    ),
    click.option(
        "--guess",
        metavar="A=VALUE,B=...",
        multiple=True,
        help="Where to start; repeat it to look for several points.",
        callback=read_by(_guesses),
    ),
)


@click.command(
    cls=Command,
    examples=[
        "fmilin trim four_bar.fmu -o point.json",
        "fmilin trim four_bar.fmu --fix phi=1.0 --free torque",
    ],
)
@MODEL
@WISHES
@constraints_options("Treat all states as independent.")
@file_options
@settings_option("Repeatable: a parameter or input to hold, or a state to start from.")
@time_option()
@PROJECT
@output_option(
    "-o",
    "--output",
    metavar="FILE",
    multiple=True,
    help="Repeatable; the suffix picks the format: .toml .json",
)
@json_option("The point as one JSON document on standard output.")
@running_options
def command(
    model: str,
    wishes: Wishes,
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
    constraints = constrained.asked()
    if both := sorted(settings.keys() & wishes.fix.keys()):
        raise UsageError(f"'{both[0]}' has a value both in --set and in --fix. Leave one of them out.")
    files = _checked_files(output, wishes)
    request = Request(
        source=model,
        fmu=running.fmu(),
        settings=settings | dict(wishes.fix),
        constraints=constraints,
        constraints_file=constrained.constraints,
        options=opened.asked(),
        time=time,
        project=project,
    )

    def job(runner: JobRunner) -> None:
        loaded, values = open_model(request, runner)
        points = _found(loaded, request, wishes, values)
        _deliver(loaded, points, files, runner, as_json=as_json)

    return running.work(job, model)


def _found(model: Model, request: Request, wishes: Wishes, values: Mapping[str, float]) -> Sequence[TrimmedPoint]:
    """Return the points; states of ``--set`` are where every search starts, its inputs are held unless free."""
    from fmilin.trimming.procedure import search_each

    what, start = _problem(model, request, wishes, values)
    guesses = [start | dict(guess) for guess in wishes.guess or [{}]]
    return search_each(model, what, guesses, anywhere=request.project)


def _problem(
    model: Model, request: Request, wishes: Wishes, values: Mapping[str, float]
) -> tuple[TrimRequest, dict[str, float]]:
    """Return what is asked of the model, and the part of every guess that stands in ``--set``.

    Parameters have been taken care of when the model was loaded.
    """
    from fmilin.trimming.request import TrimRequest

    given = {name: value for name, value in values.items() if name not in wishes.fix}
    start = {name: value for name, value in given.items() if model.states.has(name) or name in (wishes.free or ())}
    fixed = {name: value for name, value in values.items() if name not in start}
    return TrimRequest(fixed, wishes.steady or (), wishes.free or (), wishes.bound, request.time), start


def _checked_files(paths: Sequence[Path], wishes: Wishes) -> list[Path]:
    if not paths:
        return []
    if len(wishes.guess) > 1:
        raise UsageError("-o saves one point: give one --guess, or leave -o out to see what several lead to.")
    from fmilin.atomic import check_writable
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
    saved = [SavedPoint.of(model, point, point.report.rates) for point in points]
    runner.write_files({path: dump_point(saved[0], path) for path in files})
    if as_json:
        texts = [dump_point(point, "point.json").decode().rstrip() for point in saved]
        runner.results.write(texts[0] + "\n" if len(texts) == 1 else "[\n" + ",\n".join(texts) + "\n]\n")
    elif not files:
        from fmilin.report.point_table import print_points

        print_points(model, points, runner.results)
    if files and not as_json:
        for remark in points[0].report.remarks:
            runner.say(f"Warning: {remark}\n")
        for path in files:
            runner.say(f"{path}: {points[0].report.summary}\n")
