"""The linear model as plain text: the table that the terminal shows, and the matrices under their names."""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np

from fmilin.linear_model.model import LinearModel
from fmilin.output.export.document import to_document
from fmilin.output.export.matrices import Sheet, sheets, short
from fmilin.output.report.numbers import shortened
from fmilin.output.report.table import print_table

__all__ = ["dumps"]

_WIDTH = 100


def dumps(linear: LinearModel) -> bytes:
    """Return the file's content: a report for people, with six digits, which nothing reads back."""
    to_document(linear)  # refuses what no file should carry
    stream = io.StringIO()
    print_table(linear, stream)
    law = "y' = f0 + A (y - y0) + B (u - u0)"
    if linear.sample_time > 0:
        law = f"y[k+1] = y0 + f0 + A (y[k] - y0) + B (u[k] - u0), every {linear.sample_time:g} s"
    follows = " + T_u (u - u0)" if linear.T_u.any() else ""
    lines = ["", law, "out = g0 + C (y - y0) + D (u - u0)", f"x - x0 = T (y - y0){follows}", ""]
    if len(linear.states):
        at_point = np.column_stack((linear.y0, linear.f0))
        lines += [*_table(Sheet("", at_point, linear.states.names, ("y0", "f0"))), ""]
    for sheet in sheets(linear):
        lines += [*_table(sheet), ""]
    return (stream.getvalue() + "\n".join(lines)).encode("utf-8")


def _table(sheet: Sheet) -> Iterator[str]:
    """Yield the lines of a matrix; one that is too wide goes on below."""
    names = [_plain(name) for name in sheet.rows]
    head = max(len(sheet.letter), *map(len, names))
    columns = [[_plain(name), *(short(v) for v in sheet.matrix[:, j].tolist())] for j, name in enumerate(sheet.columns)]
    at = 0
    while at < len(columns):
        widths: list[int] = []
        for column in columns[at:]:
            widths.append(max(map(len, column)))
            if len(widths) > 1 and head + sum(widths) + 2 * len(widths) > _WIDTH:
                widths.pop()
                break
        part = columns[at : at + len(widths)]
        for i, name in enumerate([sheet.letter, *names]):
            cells = (column[i].rjust(width) for column, width in zip(part, widths, strict=True))
            yield f"{name.ljust(head)}  {'  '.join(cells)}".rstrip()
        at += len(widths)
        if at < len(columns):
            yield ""


def _plain(name: str) -> str:
    return " ".join(shortened(name).split()) or "(no name)"
