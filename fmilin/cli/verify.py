"""``fmilin verify MODEL LINEAR``: the linear model against the nonlinear one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fmilin.cli.command import Command
from fmilin.cli.derive import MODEL, json_switch, new_file, options_of_commands, take
from fmilin.cli.job_runner import JobRunner
from fmilin.cli.linear_options import decorate_with_delay_rejection
from fmilin.cli.model_options import model_options
from fmilin.cli.request import build_request, open_compared_model, verify_linear_model
from fmilin.errors import NumericalError, join_first
from fmilin.formats import suffixes
from fmilin.options import VerificationOptions

if TYPE_CHECKING:
    from fmilin.linear_model.verification import Verification


@options_of_commands
class VerifyOptions:
    """The options for showing the comparison."""

    plot: Path | None = new_file("Draw both responses of each channel.", suffixes("picture"))
    as_json: bool = json_switch("The verdict as one JSON document on standard output.")


@click.command(cls=Command, examples=["fmilin verify four_bar.fmu plant.mat"])
@MODEL
@decorate_with_delay_rejection("The nonlinear model is integrated without delays. Verify the model without them.")
@click.argument("linear", type=click.Path(path_type=Path))
@model_options()
@take("comparison", VerificationOptions)
@take("results", VerifyOptions)
def command(
    model: str, linear: Path, comparison: VerificationOptions, results: VerifyOptions, **request_options: Any
) -> int:
    """Compare a linear model with the nonlinear one on the manifold, channel by channel.

    LINEAR is a linear model of MODEL: {linear_file}.
    Ends with status 5 when a channel is wrong to first order.
    """
    request = build_request(model, **request_options)

    def job(runner: JobRunner) -> None:
        from fmilin.linear_model.model import LinearModel

        claimed = LinearModel.load(linear)
        loaded = open_compared_model(request, claimed, runner)
        verification = verify_linear_model(claimed, loaded, comparison.horizon)
        _deliver(verification, results.plot, runner, as_json=results.as_json)

    return request.work(job)


def _deliver(verification: Verification, plot: Path | None, runner: JobRunner, *, as_json: bool) -> None:
    """Draw, print, and then complain: a wrong linear model is a failure, after everything about it has been said."""
    from fmilin.report.verification_report import show_verification, verification_figure

    runner.restore_directory()
    if plot is not None:
        what = "both responses of each channel, and the range of validity of each"
        runner.draw(plot, verification_figure(verification), what)
    if as_json:
        runner.print_json(verification.to_document())
    else:
        runner.print_shown(show_verification, verification)
    runner.end_where_interrupted(verification.remarks)
    if not verification.passed:
        failed = [channel.label for channel in verification.failed]
        listed = join_first(failed, 3, "; ")
        raise NumericalError(
            f"The linear model is wrong to first order in {len(failed)} of {len(verification.channels)} channels: "
            f"{listed}. It belongs to another model, point or parameter value, or was linearized without the "
            "constraints."
        )
