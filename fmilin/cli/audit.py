"""``fmilin audit FILE|MODEL``: every number of a result by a second method."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fmilin.cli.command import Command
from fmilin.cli.derive import MODEL, OPTIONS, command_option, json_switch, new_file, options_of_commands, take
from fmilin.cli.job_runner import JobRunner
from fmilin.cli.linear_options import linearization_options
from fmilin.cli.model_options import POINT_OPTIONS, Carrying, DiscoveryOptions, model_options
from fmilin.cli.request import CommandRequest, at_point, build_request, open_compared_model, refuse_points
from fmilin.errors import NumericalError, UsageError, join_first
from fmilin.formats import suffixes

if TYPE_CHECKING:
    from fmilin.auditing.audit_result import Audit


@options_of_commands
class AuditOptions:
    """The options of ``audit``: the nonlinear model to compare with, and the form of the output."""

    against: str | None = command_option(
        None,
        "The nonlinear model that a file of a linear model was made from.",
        OPTIONS,
        "text",
        metavar="MODEL",
    )
    output: Path | None = new_file("A page with the table.", suffixes("page"), flag="--output", short="-o")
    as_json: bool = json_switch("The audit as one JSON document on standard output.")


@click.command(
    cls=Command,
    examples=[
        "fmilin audit plant.mat",
        "fmilin audit plant.json --against four_bar.fmu",
        'fmilin audit "fmilin.systems:four_bar" --trim --json',
    ],
)
@MODEL
@take("options", AuditOptions)
@model_options(DiscoveryOptions)
@POINT_OPTIONS
@take("carrying", Carrying)
@linearization_options("audit")
def command(model: str, options: AuditOptions, **request_options: Any) -> int:
    """Compare every number of a result with a second, independent computation.

    MODEL is a file of a linear model ({linear_files}, .fmu of one), of a family ({family_files}), of 'fmilin
    floquet', or what 'fmilin linearize' takes, which is linearized first, at an equilibrium with --trim.
    Ends with status 5 when a number disagrees.
    """
    against = options.against
    request = build_request(against or model, **request_options)

    def job(runner: JobRunner) -> None:
        audits = _audit_source(model, request, runner, against)
        _deliver(audits, options.output, runner, as_json=options.as_json)

    return request.work(job)


def _audit_source(source: str, request: CommandRequest, runner: JobRunner, against: str | None) -> list[Audit]:
    """Return the audits of what a file holds, or of the point and the linear model of a model."""
    from fmilin.auditing.audit_procedure import audit
    from fmilin.auditing.file_audit import audit_stored_spectra
    from fmilin.export.files import load_result
    from fmilin.export.periodic_record import load_any
    from fmilin.families.family import LinearFamily
    from fmilin.linearization.linearize import linearize_request
    from fmilin.trimming.trim_report import TrimmedPoint

    if (periodic := load_any(source)) is not None:
        refuse_points(source, request, against)
        return [audit(periodic)]
    result = load_result(source)
    if result is not None:
        refuse_points(source, request, against)
        stored = audit_stored_spectra(source, result)
        if against is None:
            return [stored, audit(result)]
        first = next(linear for _, linear in result.good()) if isinstance(result, LinearFamily) else result
        return [stored, audit(result, model=open_compared_model(request, first, runner))]
    if against is not None:
        raise UsageError(f"--against is for a file of a linear model, and '{source}' is a model. Leave it out.")
    model, point = at_point(request, runner)
    linear = linearize_request(model, point, request.how)
    audits = [audit(linear, model=model)]
    if isinstance(point, TrimmedPoint):
        audits.insert(0, audit(point, model=model))
    return audits


def _deliver(audits: list[Audit], output: Path | None, runner: JobRunner, *, as_json: bool) -> None:
    """Print the audit, and fail where a number disagrees."""
    from fmilin.auditing.audit_result import Audit
    from fmilin.auditing.audit_table import show_audit

    last = audits[-1]
    rows = tuple(row for each in audits for row in each.rows)
    unchecked = tuple(text for each in audits for text in each.unchecked)
    audit = Audit(last.kind, last.name, rows, unchecked)
    runner.restore_directory()
    if output is not None:
        audit.save(output)
        runner.say(f"{output}: {len(rows)} quantities with their second method\n")
    if as_json:
        runner.print_json(audit.to_dict())
    elif output is None:
        runner.print_shown(show_audit, audit)
    if not audit.ok:
        wrong = audit.disagreeing
        first = join_first((row.quantity for row in wrong), 3, "; ")
        raise NumericalError(
            f"{len(wrong)} of {len(rows)} numbers disagree with their second method: {first}. The table lists the "
            "differences: trust neither number before you know the cause."
        )
