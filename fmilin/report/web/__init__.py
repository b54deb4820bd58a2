"""A report of a linear model, a family or a motion that repeats as one HTML file that needs nothing else."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from fmilin.errors import UsageError
from fmilin.families.family import LinearFamily
from fmilin.formats import Writing, matches_suffix, require_codec
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.verification import Verification
from fmilin.model.interface import Model
from fmilin.periodic.chart import FloquetChart
from fmilin.periodic.periodic_model import PeriodicModel
from fmilin.report import periodic as motions
from fmilin.report.web.blocks import Section, number, picture, render_html, table, text
from fmilin.report.web.of_family import family_report
from fmilin.report.web.of_linear import linear_report
from fmilin.support.files import check_writable


def periodic_report(periodic: PeriodicModel) -> str:
    """Return the report of a periodic model as one HTML file."""
    floquet, P = periodic.floquet(), len(periodic.states)
    why = {k: name for name, k in floquet.unit.items()}
    rows = [
        [number(k + 1), *map(number, (mu.real, mu.imag, abs(mu), s.real, s.imag, floquet.frequencies[k])),
         number(int(floquet.largest_harmonics[k])), why.get(k, "")]
        for k, (mu, s) in enumerate(zip(floquet.multipliers, floquet.exponents, strict=True))
    ]  # fmt: skip
    heads = ["Mode", "Multiplier, real", "imaginary", "size", "Exponent [1/s], real", "imaginary", "Seen at [rad/s]",
             "Harmonic", "Symmetry"]  # fmt: skip
    accuracy = ", ".join(f"{name} {value:.2g}" for name, value in floquet.accuracy.items())
    closing = f"Accuracy: {accuracy}; the motion closes to {periodic.closure:.2g} of the sizes of the states."
    verdict = f"{floquet.verdict[:1].upper()}{floquet.verdict[1:]}."
    sections = [
        Section("Stability", [text(verdict, alarm=floquet.stable is not True),
                              text(closing),
                              table("Multipliers of a period", heads, rows)]),
        Section("Pictures", [picture("Multipliers", partial(motions.multiplier_figure, floquet)),
                             picture("Modes over the period", partial(motions.floquet_mode_figure, floquet))]),
        Section("Remarks", [text(*(remark.message for remark in periodic.remarks))] if periodic.remarks else []),
    ]  # fmt: skip
    subtitle = f"period {periodic.period:.9g} s, {P} independent states, {len(periodic.A)} phases"
    return render_html(periodic.info.name or "periodic motion", subtitle, sections)


def chart_report(chart: FloquetChart) -> str:
    """Return the report of a chart as one HTML file."""
    drawn = motions.campbell_figure if len(chart.axes) == 1 else motions.stability_figure
    axes = list(chart.axes.values())
    rows = [
        [*(number(float(axis[k])) for axis, k in zip(axes, i, strict=True)), number(float(chart.period[i])),
         number(float(chart.margin[i]), alarm=bool(chart.unstable[i])), str(chart.reasons[i])]
        for i in np.ndindex(chart.ok.shape)
    ]  # fmt: skip
    heads = [*chart.axes, "Period [s]", "Growth [1/s]", "Points without a result"]
    sections = [Section("Picture", [picture("Stability", partial(drawn, chart))]),
                Section("Points", [table("Multipliers' growth over the grid", heads, rows)])]  # fmt: skip
    return render_html(
        chart.name or "chart", f"{int(chart.stable.sum())} of {chart.ok.size} points are stable", sections
    )


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


@dataclass(frozen=True)
class Report:
    """A result, and what a page compares it with."""

    result: LinearModel | LinearFamily | PeriodicModel | FloquetChart
    verification: Verification | None = None
    model: Model | None = None


def save_report(
    result: LinearModel | LinearFamily,
    path: str | Path,
    *,
    verification: Verification | None = None,
    model: Model | None = None,
) -> None:
    """Write the report."""
    if not matches_suffix(path, "page"):
        raise UsageError(f"Cannot write a report to '{path}': a report is a page, so its name must end in .html.")
    check_writable(path)
    require_codec(path, "page").write(Report(result, verification, model), Path(path), Writing())
