"""``fmilin trim MODEL``: an equilibrium or a steady motion on the manifold."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fmilin.cli.job_runner import JobRunner
from fmilin.cli.opening import open_model
from fmilin.cli.options import (
    MODEL,
    PROJECT,
    Constraints,
    Running,
    assignments,
    constraints_options,
    finite,
    json_option,
    names,
    path_option,
    running_options,
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
    fixed : mapping of str to float
        ``--fix``: states, inputs and parameters.
    free, steady : sequence of str
    bounds : mapping of str to (float, float)
    guesses : sequence of mapping
        One search each; empty: one search from where the model starts.
    """

    fixed: Mapping[str, float]
    free: Sequence[str] = ()
    steady: Sequence[str] = ()
    bounds: Mapping[str, tuple[float, float]] | None = None
    guesses: Sequence[Mapping[str, float]] = ()


@click.command()
@MODEL
@click.option(
    "--fix",
    metavar="NAME=VALUE",
    multiple=True,
    help="Repeatable: a state, input or parameter that keeps this value.",
)
@click.option("--free", metavar="A,B,...", help="Inputs and parameters to solve for; states are free.")
@click.option("--steady", metavar="A,B,...", help="States that may move: rolling, turning, cruising.")
@click.option(
    "--bound",
    metavar="NAME=LO:HI",
    multiple=True,
    help="Repeatable: bounds of a free quantity; one may be left out.",
)
@click.option(
    "--guess", metavar="A=VALUE,B=...", multiple=True, help="Where to start; repeat it to look for several points."
)
@constraints_options("Treat all states as independent.")
@click.option(
    "--set",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    help="Repeatable: a parameter or input to hold, or a state to start from.",
)
@click.option("--time", metavar="T", type=float, help="The point's time in seconds.")
@PROJECT
@path_option(
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
    fix: tuple[str, ...],
    free: str | None,
    steady: str | None,
    bound: tuple[str, ...],
    guess: tuple[str, ...],
    constrained: Constraints,
    settings: tuple[str, ...],
    time: float | None,
    output: tuple[Path, ...],
    running: Running,
    *,
    project: bool,
    as_json: bool,
) -> int:
    """Find an equilibrium, or a steady motion, on the manifold.

    MODEL is model.fmu, path/to/file.py:name or package.module:name. A table is printed; -o saves the point for --point
    of the other commands.
    """
    constraints = constrained.asked()
    wishes = Wishes(
        assignments(fix, "--fix"),
        names(free, "--free") or [],
        names(steady, "--steady") or [],
        _bounds(bound),
        [assignments(names(text, "--guess") or [], "--guess") for text in guess],
    )
    held = assignments(settings)
    if both := sorted(held.keys() & wishes.fixed.keys()):
        raise UsageError(f"'{both[0]}' has a value both in --set and in --fix. Leave one of them out.")
    files = _checked_files(output, wishes)
    request = Request(
        source=model,
        fmu=running.fmu(),
        settings=held | dict(wishes.fixed),
        constraints=constraints,
        constraints_file=constrained.constraints,
        time=finite(time, "--time"),
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
    guesses = [start | dict(guess) for guess in wishes.guesses or [{}]]
    return search_each(model, what, guesses, anywhere=request.project)


def _problem(
    model: Model, request: Request, wishes: Wishes, values: Mapping[str, float]
) -> tuple[TrimRequest, dict[str, float]]:
    """Return what is asked of the model, and the part of every guess that stands in ``--set``.

    Parameters have been taken care of when the model was loaded.
    """
    from fmilin.trimming.request import TrimRequest

    given = {name: value for name, value in values.items() if name not in wishes.fixed}
    start = {name: value for name, value in given.items() if model.states.has(name) or name in wishes.free}
    fixed = {name: value for name, value in values.items() if name not in start}
    return TrimRequest(fixed, wishes.steady, wishes.free, wishes.bounds or {}, request.time), start


def _bounds(texts: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return ``NAME=LO:HI`` as a pair by name; a missing side is infinite."""
    found: dict[str, tuple[float, float]] = {}
    for text in texts:
        name, equals, pair = text.rpartition("=")
        low, colon, high = pair.partition(":")
        if not (equals and colon and name.strip()):
            raise UsageError(f"--bound '{text}' is no NAME=LO:HI. Write for example --bound torque=-5:5.")
        name = name.strip().strip("`")
        if name in found:
            raise UsageError(f"--bound: '{name}' has bounds twice. Keep one pair.")
        sides = [assignments([f"side={s}"], "--bound")["side"] if s.strip() else None for s in (low, high)]
        found[name] = (
            -float("inf") if sides[0] is None else sides[0],
            float("inf") if sides[1] is None else sides[1],
        )
    return found


def _checked_files(paths: Sequence[Path], wishes: Wishes) -> list[Path]:
    if not paths:
        return []
    if len(wishes.guesses) > 1:
        raise UsageError("-o saves one point: give one --guess, or leave -o out to see what several lead to.")
    from fmilin.export.atomic import check_writable
    from fmilin.model.point_files import check_point_file

    for path in paths:
        check_point_file(path)
        check_writable(path)
    return list(paths)


def _deliver(
    model: Model, points: Sequence[TrimmedPoint], files: Sequence[Path], runner: JobRunner, *, as_json: bool
) -> None:
    """Write the files, all of them made before the first is written; then JSON or, without files, the tables."""
    from fmilin.export.atomic import write_atomically
    from fmilin.model.point_files import SavedPoint, dump_point

    runner.restore_directory()
    saved = [SavedPoint.of(model, point, point.report.rates) for point in points]
    contents = [dump_point(saved[0], path) for path in files]
    for path, content in zip(files, contents, strict=True):
        write_atomically(path, content)
    if as_json:
        texts = [dump_point(point, "point.json").decode().rstrip() for point in saved]
        runner.results.write(texts[0] + "\n" if len(texts) == 1 else "[\n" + ",\n".join(texts) + "\n]\n")
    elif not files:
        from fmilin.report.point_table import print_points

        print_points(model, points, runner.results)
    if files and not as_json:
        for remark in points[0].report.remarks:
            sys.stderr.write(f"Warning: {remark}\n")
        for path in files:
            sys.stderr.write(f"{path}: {points[0].report.summary}\n")
