"""The output of functions on a sheet, collected for an interpreter's answer or a notebook: plain text, or HTML."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate, groupby

from fmilin.report.terminal import render_lines
from fmilin.support.encodings import replace_unencodable
from fmilin.support.table_repr import Item, Sheet
from fmilin.support.tables import LabelledFact, ResultTable

MAX_LINES = 40  # of a representation, its hint included
LEAST_ROWS = 2  # of a table that is cut
_MORE = re.compile(r"and (\d+) more")

Show = Callable[[Sheet], None]


class Page:
    """Keeps the items that are printed on it."""

    def __init__(self) -> None:
        self.items: list[Item] = []

    def print(self, item: Item = "", /) -> None:
        """Add a line, a fact or a table."""
        self.items.append(item)


@dataclass(frozen=True)
class _PageExcerpt:
    """The part of the items that fits on a page: its items, their lines, and whether something was omitted."""

    items: list[Item]
    lines: list[str]
    is_shortened: bool


def as_text(show: Show, more: str = "") -> str:
    """Return what ``show`` prints on 80 columns, at most 40 lines; ``more`` says where all of it is, if it is cut.

    Characters that standard output cannot encode (cp1252 on Windows has no box-drawing lines) are replaced, so that
    ``print(result)`` works on every console.
    """
    cut = _cut(show)
    hint = [f"More: {more}"] if more and cut.is_shortened else []
    text = "\n".join([*cut.lines[: MAX_LINES - 1], *hint])
    return replace_unencodable(text, getattr(sys.stdout, "encoding", None))


def as_html(show: Show, more: str = "") -> str:
    """Return the same content as :func:`as_text` as HTML tables, everything from the model escaped."""
    cut = _cut(show)
    parts = list(_list_html(cut.items))
    if more and cut.is_shortened:
        parts.append(f"<p><em>More: {escape(more)}</em></p>")
    return f'<div class="fmilin">{"".join(parts)}</div>'


def _cut(show: Show) -> _PageExcerpt:
    """Return what fits into 40 lines: rows of the longest tables go first, then what comes last."""
    page = Page()
    show(page)
    while page.items and page.items[-1] == "":
        page.items.pop()
    rows = {i: min(len(item.texts()), MAX_LINES) for i, item in enumerate(page.items) if isinstance(item, ResultTable)}
    least = {i: min(LEAST_ROWS, count) for i, count in rows.items()}
    while True:
        items = [_with_rows(item, rows[i]) if i in rows else item for i, item in enumerate(page.items)]
        lines = [render_lines(item) for item in items]
        excess = sum(map(len, lines)) - (MAX_LINES - 1)
        if excess <= 0 or rows == least:
            break
        for _ in range(excess):
            longest = max(rows, key=lambda i: rows[i])
            rows[longest] = max(rows[longest] - 1, least[longest])
    begin_within = min(1 + sum(end < MAX_LINES - 1 for end in accumulate(map(len, lines))), len(lines))
    every_line = [line for each in lines for line in each]
    is_cut = begin_within < len(items) or any(a is not b for a, b in zip(items, page.items, strict=True))
    return _PageExcerpt(items[:begin_within], every_line, is_cut or any(map(_MORE.search, every_line)))


def _with_rows(item: Item, count: int) -> Item:
    """Return a table with so many rows, and one that counts the others."""
    return item.cut(count) if isinstance(item, ResultTable) and count < len(item.texts()) else item


def _list_html(items: Sequence[Item]) -> Iterator[str]:
    """Yield tables and paragraphs; facts that follow each other are one table."""
    for _, group in groupby(items, key=type):
        alike = list(group)
        if facts := [item for item in alike if isinstance(item, LabelledFact)]:
            yield _facts_html(facts)
        yield from (_table_html(item) for item in alike if isinstance(item, ResultTable))
        yield from (f"<p>{escape(item)}</p>" for item in alike if isinstance(item, str) and item)


def _facts_html(facts: Sequence[LabelledFact]) -> str:
    """Return facts as a table; one without a word continues below the one before."""
    rows: list[tuple[str, list[str]]] = []
    for fact in facts:
        if fact.word or not rows:
            rows.append((fact.word, []))
        rows[-1][1].append(fact.text)
    style = ' style="text-align:left;vertical-align:top"'
    body = (
        f"<tr><th{style}>{escape(word)}</th><td{style}>{'<br>'.join(map(escape, texts))}</td></tr>"
        for word, texts in rows
    )
    return f"<table><tbody>{''.join(body)}</tbody></table>"


def _table_html(table: ResultTable) -> str:
    styles = [f' style="text-align:{column.align}"' for column in table.columns]
    heads = "".join(f"<th{style}>{escape(c.head)}</th>" for c, style in zip(table.columns, styles, strict=True))
    rows = (
        "".join(f"<td{style}>{escape(text)}</td>" for text, style in zip(texts, styles, strict=True))
        for texts in table.texts()
    )
    body = "".join(f"<tr>{cells}</tr>" for cells in rows)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
