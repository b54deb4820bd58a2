"""An audit as a table: the stated number, that of the second method, and whether they agree."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fmilin.report.facts import print_fact, print_rows
from fmilin.report.numbers import shorten_name
from fmilin.support.table_repr import Sheet

if TYPE_CHECKING:
    from fmilin.auditing.audit_result import Audit


def show_audit(audit: Audit, page: Sheet) -> None:
    """Print a row for each quantity, the disagreeing ones first, and what was not checked."""
    count = len(audit.rows)
    wrong = [row for row in audit.rows if not row.agrees]
    verdict = f"{len(wrong)} of {count} quantities disagree" if wrong else f"all {count} quantities agree"
    print_fact(page, "Audit", [f"{audit.kind} {shorten_name(audit.name)}".rstrip(), verdict])
    rows = []
    for row in [*wrong, *(row for row in audit.rows if row.agrees)]:
        verdict = "yes" if row.agrees else "NO"
        numbers = [_write(row.stated), _write(row.second_way), f"{row.difference:.1e}"]
        rows.append([row.quantity, *numbers, verdict, row.method])
    if rows:
        heads = ("Quantity", "Stated", "Second", "Differ", "Agree", "Second way")
        print_rows(page, heads, rows, columns="frrrLf")
    if audit.unchecked:
        page.print()
    for text in audit.unchecked:
        print_fact(page, "Unchecked", text)


def save_audit(audit: Audit, path: str | Path) -> None:
    """Write the table as one HTML file."""
    from fmilin.report.web.of_results import save_result_page

    agreeing = sum(row.agrees for row in audit.rows)
    subtitle = f"{agreeing} of {len(audit.rows)} quantities agree with their second method"
    save_result_page(path, f"Audit of the {audit.kind} {audit.name}", subtitle, lambda page: show_audit(audit, page))


def _write(value: complex) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, complex):
        return f"{value.real:.4g}{value.imag:+.4g}j"
    return f"{value:.5g}"
