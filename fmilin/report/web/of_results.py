"""Pages of results that print a table: the same facts and tables, with their pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fmilin.design.estimation.consistency import Filtered
from fmilin.design.schedule_check import ScheduleReport
from fmilin.errors import UsageError
from fmilin.report.designs import show_filtered, show_schedule_report
from fmilin.report.report_page import Page
from fmilin.report.web import blocks
from fmilin.support.files import check_writable, write_atomically
from fmilin.support.table_repr import Sheet
from fmilin.support.tables import LabelledFact, ResultTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def list_blocks(show: Callable[[Sheet], None]) -> list[blocks.Block]:
    """Return what is printed on a sheet as the parts of a page: facts as one table, sentences as text."""
    page = Page()
    show(page)
    facts = [(item.word, item.text) for item in page.items if isinstance(item, LabelledFact)]
    sentences = [item for item in page.items if isinstance(item, str) and item.strip()]
    tables = [item for item in page.items if isinstance(item, ResultTable)]
    first: list[blocks.Block] = [blocks.table("", [], facts)] if facts else []
    return [*first, *([blocks.text(*sentences)] if sentences else []), *tables]


def save_result_page(
    path: str | Path,
    title: str,
    subtitle: str,
    show: Callable[[Sheet], None],
    pictures: Mapping[str, Callable[[], Figure]] | None = None,
) -> None:
    """Write what a result prints, and its pictures by caption, as one HTML file."""
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"Cannot write a report to '{path}': a report is a page, so its name must end in .html.")
    check_writable(path)
    sections = [blocks.Section("Results", list_blocks(show))]
    if pictures:
        drawn = [blocks.picture(caption, draw) for caption, draw in pictures.items()]
        sections.append(blocks.Section("Pictures", drawn))
    write_atomically(path, blocks.render_html(title, subtitle, sections).encode("utf-8"))


def save_schedule_report(report: ScheduleReport, path: str | Path) -> None:
    """Write whether the loops of a schedule are stable at its grid and between."""
    subtitle = f"{len(report.points)} points over {', '.join(report.over)}"
    save_result_page(path, "Schedule of gains", subtitle, lambda page: show_schedule_report(report, page))


def save_filtered(filtered: Filtered, path: str | Path) -> None:
    """Write the estimates of a filter, and whether its own idea of its errors is right."""
    subtitle = f"{len(filtered.times)} samples, {len(filtered.state_signals)} states"
    pictures = {"Estimates with two standard deviations, innovations and their size": filtered.plot}
    save_result_page(path, "Filter on recorded data", subtitle, lambda page: show_filtered(filtered, page), pictures)
