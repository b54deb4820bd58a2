"""``fmilin verify MODEL LINEAR``: the linear model against the nonlinear one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fmilin.cli import model_options, options
from fmilin.cli.command import Command
from fmilin.cli.job_runner import JobRunner
from fmilin.cli.request import open_beside, request_of, verified
from fmilin.errors import NumericalError

if TYPE_CHECKING:
    from fmilin.linear_model.verification import Verification


@click.command(cls=Command, examples=["fmilin verify four_bar.fmu plant.mat"])
@options.MODEL
@click.argument("linear", type=click.Path(path_type=Path))
@model_options.of_model("Treat all states as independent.")
@options.number_option(
    "--horizon", metavar="T", help="How long to follow each response, in seconds; by default two slow periods."
)
@options.picture_option("Draw both responses of each channel.")
@options.json_option("The verdict as one JSON document on standard output.")
def command(model: str, linear: Path, horizon: float | None, plot: Path | None, *, as_json: bool, **given: Any) -> int:
    """Compare a linear model with the nonlinear one on the manifold, channel by channel.

    LINEAR is a linear model of MODEL: {linear_file}.
    Ends with status 5 when a channel is wrong to first order.
    """
    request = request_of(model, **given)

    def job(runner: JobRunner) -> None:
        from fmilin.linear_model.model import LinearModel

        claimed = LinearModel.load(linear)
        loaded = open_beside(request, claimed, runner)
        _deliver(verified(claimed, loaded, horizon), plot, runner, as_json=as_json)

    return request.work(job)


def _deliver(verification: Verification, plot: Path | None, runner: JobRunner, *, as_json: bool) -> None:
    """Draw, print, and then complain: a wrong linear model is a failure, after everything about it has been said."""
    from fmilin.report.verification import show_verification, verification_figure

    runner.restore_directory()
    if plot is not None:
        what = "both responses of each channel, and how far each holds"
        runner.draw(plot, verification_figure(verification), what)
    if as_json:
        runner.print_json(verification.to_document())
    else:
        runner.print_shown(show_verification, verification)
    runner.end_where_interrupted(verification.remarks)
    if not verification.passed:
        failed = [channel.label for channel in verification.failed]
        listed = "; ".join(failed[:3]) + (f"; and {len(failed) - 3} more" if len(failed) > 3 else "")
        raise NumericalError(
            f"The linear model is wrong to first order in {len(failed)} of {len(verification.channels)} channels: "
            f"{listed}. It belongs to another model, point or parameter value, or was linearized without the "
            "constraints."
        )
