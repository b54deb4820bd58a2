"""``fmilin explain MODEL --input u --output y``: why a channel is zero."""

from dataclasses import asdict
from typing import Any

import click

import fmilin as fl
from fmilin.cli.command import Command
from fmilin.cli.job_runner import JobRunner
from fmilin.cli.model_options import of_model_options
from fmilin.cli.options import MODEL, json_option
from fmilin.cli.request import at_point, request_of
from fmilin.cli.translation import in_options
from fmilin.errors import UsageError


@click.command(cls=Command, examples=["fmilin explain valve.py:valve --input opening --output level"])
@MODEL
@click.option("--input", "input_", metavar="NAME", help="With --output: one channel; else all inputs and outputs.")
@click.option("--output", metavar="NAME", help="Any output of linearize.")
@json_option("The reasons as one JSON document on standard output.")
@of_model_options
def command(model: str, input_: str | None, output: str | None, *, as_json: bool, **given: Any) -> int:
    """Say why an input does not move an output: what to change, confirmed by changing it.

    Without --input and --output every input that moves nothing and every output that nothing moves is explained.
    """
    if (input_ is None) != (output is None):
        raise UsageError("A channel has two ends: give --input and --output, or neither.")
    request = request_of(model, **given)

    def job(runner: JobRunner) -> None:
        loaded, point = at_point(request, runner)
        if input_ is not None and output is not None:
            reasons: tuple[fl.Explanation, ...] = (fl.explain(loaded, point, input_, output),)
        else:
            reasons = fl.explain_zeros(loaded, point)
        if as_json:
            parts = [{**asdict(reason), "culprits": list(reason.culprits)} for reason in reasons]
            runner.print_json({"explanations": parts, "format": "fmilin-explanations/1"})
            return
        for reason in reasons:
            runner.results.write(f"{in_options(str(reason))}\n")
        if not reasons:
            runner.results.write("Every input moves an output, and every output is moved by an input.\n")

    return request.work(job)
