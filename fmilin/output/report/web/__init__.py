"""A report of a linear model or a family as one HTML file that needs nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fmilin.families.family import LinearFamily
from fmilin.families.periodic.chart import FloquetChart
from fmilin.families.periodic.model import PeriodicModel
from fmilin.ground.errors import UsageError
from fmilin.ground.files import check_writable, write_atomically
from fmilin.linear_model.model import LinearModel
from fmilin.output.formats import is_named_as
from fmilin.output.report.web.of_family import family_report
from fmilin.output.report.web.of_linear import linear_report
from fmilin.output.report.web.of_periodic import chart_report, periodic_report

if TYPE_CHECKING:
    from fmilin.linear_model.verification import Verification
    from fmilin.model.interface import Model


def report_html(
    result: LinearModel | LinearFamily | PeriodicModel | FloquetChart,
    verification: Verification | None = None,
    model: Model | None = None,
) -> str:
    """Return the report of a linear model, a family or a motion that repeats as the text of one HTML file."""
    if isinstance(result, PeriodicModel):
        return periodic_report(result)
    if isinstance(result, FloquetChart):
        return chart_report(result)
    if isinstance(result, LinearFamily):
        return family_report(result)
    return linear_report(result, verification, model)


def save_report(
    result: LinearModel | LinearFamily,
    path: str | Path,
    verification: Verification | None = None,
    model: Model | None = None,
) -> None:
    """Write the report."""
    if not is_named_as(path, "page"):
        raise UsageError(f"Cannot write a report to '{path}': it is a page, whose file ends in .html.")
    check_writable(path)
    write_atomically(path, report_html(result, verification, model).encode("utf-8"))
