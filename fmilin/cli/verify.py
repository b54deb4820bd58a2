"""``fmilin verify MODEL LINEAR``: the linear model against the nonlinear one."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fmilin.cli import options
from fmilin.cli.job_runner import JobRunner, work
from fmilin.cli.opening import is_fmu, open_model
from fmilin.cli.request import Request
from fmilin.errors import NumericalError, UsageError

if TYPE_CHECKING:
    from fmilin.verifying.result import Verification

__all__ = ["command"]


def command(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="model.fmu, path/to/file.py:name or package.module:name")
    ],
    linear: Annotated[Path, typer.Argument(metavar="LINEAR", help="A linear model of it: .mat, .npz or .json")],
    constraint: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="Repeatable: an expression or a variable that must be zero."),
    ] = None,
    constraints: Annotated[Path | None, typer.Option(metavar="FILE.toml", help="The same from a file.")] = None,
    no_constraints: Annotated[bool, typer.Option("--no-constraints", help="Treat all states as independent.")] = False,
    horizon: Annotated[
        float | None,
        typer.Option(metavar="T", help="How long to follow each response, in seconds; by default two slow periods."),
    ] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE.png", help="Draw both responses of each channel.")] = None,
    json: Annotated[bool, typer.Option("--json", help="The verdict as one JSON document on standard output.")] = False,
    no_isolation: Annotated[
        bool, typer.Option("--no-isolation", help="Load the FMU in this process instead of a child.")
    ] = False,
    timeout: options.Timeout = options.TIMEOUT,
    memory: options.Memory = None,
    compile_sources: options.Compile = False,
    unpack_limit: options.UnpackLimit = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> int:
    """Compare a linear model with the nonlinear one on the manifold, channel by channel.

    Ends with status 5 when a channel is wrong to first order.
    """
    if no_constraints and (constraint or constraints):
        raise UsageError("--no-constraints contradicts --constraint and --constraints. Leave one of them out.")
    options.finite(horizon, "--horizon")
    _check_plot(plot)

    def job(runner: JobRunner) -> None:
        from fmilin.linear_model.model import LinearModel
        from fmilin.verifying.procedure import verify

        said = LinearModel.load(linear)
        request = Request(
            source=model,
            fmu=options.fmu(unpack_limit, compile_sources=compile_sources),
            settings=dict(said.point.parameters),
            constraints=[] if no_constraints else constraint or None,
            constraints_file=constraints,
            time=said.point.time,
        )
        loaded, _ = open_model(request, runner)
        found = verify(loaded, said, horizon=horizon, progress=_progress())
        _deliver(found, plot, runner, as_json=json)

    return work(
        job,
        isolate=is_fmu(model) and not no_isolation,
        debug=debug,
        limits=options.limits(timeout, memory),
    )


def _check_plot(plot: Path | None) -> None:
    if plot is None:
        return
    if plot.suffix.lower() != ".png":
        raise UsageError(f"Cannot draw '{plot}': a picture is a .png file.")
    from fmilin.export.atomic import check_writable

    check_writable(plot)


def _deliver(found: Verification, plot: Path | None, runner: JobRunner, *, as_json: bool) -> None:
    """Draw, print, and then complain: a wrong linear model is a failure, after everything about it has been said."""
    runner.come_home()
    if plot is not None:
        from fmilin.export.atomic import write_atomically
        from fmilin.report.verification_picture import verification_picture

        write_atomically(plot, verification_picture(found))
    if as_json:
        runner.results.write(json_module.dumps(found.to_document(), indent=2, allow_nan=False) + "\n")
    else:
        from fmilin.report.verification_table import print_verification

        print_verification(found, runner.results)
    runner.results.flush()
    if not found.passed:
        failed = [channel.label for channel in found.failed]
        listed = "; ".join(failed[:3]) + (f"; and {len(failed) - 3} more" if len(failed) > 3 else "")
        raise NumericalError(
            f"The linear model is wrong to first order in {len(failed)} of {len(found.channels)} channels: {listed}. "
            "It belongs to another model, point or parameter value, or was linearized without the constraints."
        )


def _progress() -> Callable[[float], None]:
    """Return what shows the fraction done on a terminal, and nothing elsewhere."""
    if not sys.stderr.isatty():
        return lambda _: None

    def show(done: float) -> None:
        text = f"\rverifying: {100 * done:3.0f} %" if done < 1 else "\r" + " " * 20 + "\r"
        sys.stderr.write(text)
        sys.stderr.flush()

    return show
