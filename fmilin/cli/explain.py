"""``fmilin explain MODEL --input u --output y``: why a channel is zero."""

from dataclasses import asdict
from typing import Any

import click

import fmilin as fl
from fmilin.cli.command import Command
from fmilin.cli.derive import MODEL, OPTIONS, command_option, json_switch, options_of_commands, take
from fmilin.cli.job_runner import JobRunner
from fmilin.cli.linear_options import linearization_options
from fmilin.cli.model_options import POINT_OPTIONS, Carrying, DiscoveryOptions, model_options
from fmilin.cli.request import at_point, build_request
from fmilin.cli.translation import in_options
from fmilin.errors import UsageError


@options_of_commands
class ExplainOptions:
    """The options of ``explain``."""

    input: str | None = command_option(
        None, "With --output: one channel; else all inputs and outputs.", OPTIONS, "text", metavar="NAME"
    )
    output: str | None = command_option(None, "Any output of linearize.", OPTIONS, "text", metavar="NAME")
    as_json: bool = json_switch("The reasons as one JSON document on standard output.")


@click.command(cls=Command, examples=["fmilin explain valve.py:valve --input opening --output level"])
@MODEL
@take("channel", ExplainOptions)
@model_options(DiscoveryOptions)
@POINT_OPTIONS
@take("carrying", Carrying)
@linearization_options("explain")
def command(model: str, channel: ExplainOptions, **request_options: Any) -> int:
    """Say why an input does not move an output: what to change, confirmed by changing it.

    Of a channel that is not zero, say what its zeros do to every controller.
    Without --input and --output every input that moves nothing and every output that nothing moves is explained.
    """
    if (channel.input is None) != (channel.output is None):
        raise UsageError("A channel has an input and an output: give both --input and --output, or neither.")
    request = build_request(model, **request_options)

    def job(runner: JobRunner) -> None:
        loaded, point = at_point(request, runner)
        if channel.input is not None and channel.output is not None:
            reasons: tuple[fl.Explanation, ...] = (
                fl.explain(loaded, point, channel.input, channel.output, linearization=request.how),
            )
        else:
            reasons = fl.explain_zeros(loaded, point, linearization=request.how)
        if channel.as_json:
            parts = [_plain(reason) for reason in reasons]
            runner.print_json({"explanations": parts, "format": "fmilin-explanations/1"})
            return
        for reason in reasons:
            runner.results.write(f"{in_options(str(reason))}\n")
        if not reasons:
            runner.results.write("Every input affects an output, and every output depends on an input.\n")

    return request.work(job)


def _plain(reason: fl.Explanation) -> dict[str, Any]:
    zeros = [[zero.real, zero.imag] for zero in reason.zeros]
    return {**asdict(reason), "culprits": list(reason.culprits), "zeros": zeros}
