"""``fmilin verify MODEL LINEAR``: the linear model against the nonlinear one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fmilin.cli.files import Command
from fmilin.cli.job_runner import JobRunner
from fmilin.cli.model_options import (
    Constraints,
    FileOptions,
    Running,
    constraints_options,
    file_options,
    running_options,
)
from fmilin.cli.options import MODEL, json_option, number_option, picture_option
from fmilin.cli.progress import progress_bar
from fmilin.cli.request import open_beside, request_of
from fmilin.ground.errors import NumericalError

if TYPE_CHECKING:
    from fmilin.linear_model.verification import Verification


@click.command(cls=Command, examples=["fmilin verify four_bar.fmu plant.mat"])
@MODEL
@click.argument("linear", type=click.Path(path_type=Path))
@constraints_options("Treat all states as independent.")
@file_options
@number_option(
    "--horizon", metavar="T", help="How long to follow each response, in seconds; by default two slow periods."
)
@picture_option("Draw both responses of each channel.")
@json_option("The verdict as one JSON document on standard output.")
@running_options
def command(
    model: str,
    linear: Path,
    constrained: Constraints,
    opened: FileOptions,
    horizon: float | None,
    plot: Path | None,
    running: Running,
    *,
    as_json: bool,
) -> int:
    """Compare a linear model with the nonlinear one on the manifold, channel by channel.

    LINEAR is a linear model of MODEL: {linear_file}.
    Ends with status 5 when a channel is wrong to first order.
    """
    request = request_of(model, running, constrained, opened)

    def job(runner: JobRunner) -> None:
        from fmilin.linear_model.model import LinearModel
        from fmilin.motion.verifying.procedure import verify

        claimed = LinearModel.load(linear)
        loaded = open_beside(request, claimed, runner)
        with progress_bar("verifying", 0.0, 1.0, "") as progress:
            verification = verify(loaded, claimed, horizon=horizon, progress=progress)
        _deliver(verification, plot, runner, as_json=as_json)

    return running.work(job, model)


def _deliver(verification: Verification, plot: Path | None, runner: JobRunner, *, as_json: bool) -> None:
    """Draw, print, and then complain: a wrong linear model is a failure, after everything about it has been said."""
    runner.restore_directory()
    if plot is not None:
        from fmilin.output.report.verification import verification_picture

        runner.write_files({plot: verification_picture(verification, plot.suffix)})
        runner.say(f"{plot}: both responses of each channel, and how far each holds\n")
    if as_json:
        from fmilin.output.export.json_file import text_of

        runner.results.write(text_of(verification.to_document()))
    else:
        from fmilin.output.report.verification import print_verification

        print_verification(verification, runner.results)
    if not verification.passed:
        failed = [channel.label for channel in verification.failed]
        listed = "; ".join(failed[:3]) + (f"; and {len(failed) - 3} more" if len(failed) > 3 else "")
        raise NumericalError(
            f"The linear model is wrong to first order in {len(failed)} of {len(verification.channels)} channels: "
            f"{listed}. It belongs to another model, point or parameter value, or was linearized without the "
            "constraints."
        )
