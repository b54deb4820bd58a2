"""What is printed on a terminal, collected for an interpreter's answer or a notebook: plain text, or tables of HTML."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from itertools import accumulate, groupby
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fmilin.support.encodings import replace_unencodable
from fmilin.support.table_repr import Item, Sheet

MOST_LINES = 40  # of a representation, its hint included
WIDTH = 80
UNBROKEN = 1_000_000  # columns of a page of HTML: there the browser breaks lines
LEAST_ROWS = 2  # of a table that is cut
_MORE = re.compile(r"and (\d+) more")


class Page:
    """Keeps what functions of this package print on a console; ``width`` in columns."""

    def __init__(self, width: int = WIDTH) -> None:
        self.width = width
        self.items: list[Item] = []

    def print(self, item: Item = "") -> None:
        """Add an item; a text that :func:`fmilin.report.table.fact` made is a word and what is said about it."""
        self.items.append(item)


class Terminal(Console):
    """A console for a program, which may word sentences in its own way: it names its options, not Python keywords."""

    def __init__(self, wording: Callable[[str], str], **options: Any) -> None:
        super().__init__(**options)
        self.wording = wording

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as any console; sentences in this program's words."""
        super().print(*(self.wording(item) if isinstance(item, str) else item for item in objects), **options)


Show = Callable[[Sheet], None]  # prints something on a page, the same items whatever its width


@dataclass(frozen=True)
class _Cut:
    """How much of a page fits: the rows of each table by its position, how many items, and their lines."""

    rows: dict[int, int]
    items: int
    lines: list[str]


def as_text(show: Show, more: str = "") -> str:
    """Return what ``show`` prints on 80 columns, at most 40 lines; ``more`` says where all of it is, if it is cut.

    Characters that standard output cannot encode (cp1252 on Windows has no box-drawing lines) are replaced, so that
    ``print(result)`` works on every console.
    """
    page = _page(show, WIDTH)
    cut = _fitting(page)
    hint = [f"More: {more}"] if more and _is_shortened(cut, page) else []
    text = "\n".join([*cut.lines[: MOST_LINES - 1], *hint])
    return replace_unencodable(text, getattr(sys.stdout, "encoding", None))


def as_html(show: Show, more: str = "") -> str:
    """Return the same content as :func:`as_text` as HTML tables, everything from the model escaped."""
    narrow, wide = _page(show, WIDTH), _page(show, UNBROKEN)
    cut = _fitting(narrow)
    parts = list(_html(_cut_items(wide, cut.rows)[: cut.items]))
    if more and _is_shortened(cut, narrow):
        parts.append(f"<p><em>More: {escape(more)}</em></p>")
    return f'<div class="fmilin">{"".join(parts)}</div>'


def _page(show: Show, width: int) -> Page:
    page = Page(width)
    show(page)
    while page.items and page.items[-1] == "":
        page.items.pop()
    return page


def _is_shortened(cut: _Cut, page: Page) -> bool:
    """Whether something was left out, here or by whoever printed a list."""
    shown = zip(page.items, _cut_items(page, cut.rows), strict=True)
    return cut.items < len(page.items) or any(map(_MORE.search, cut.lines)) or any(a is not b for a, b in shown)


def _fitting(page: Page) -> _Cut:
    """Return what fits on a page of 40 lines: rows of the longest tables go first, then what comes last."""
    rows = {i: min(item.row_count, MOST_LINES) for i, item in enumerate(page.items) if isinstance(item, Table)}
    least = {i: min(LEAST_ROWS, count) for i, count in rows.items()}
    while True:
        lines = [_lines(item) for item in _cut_items(page, rows)]
        excess = sum(map(len, lines)) - (MOST_LINES - 1)
        if excess <= 0 or rows == least:
            break
        for _ in range(excess):
            longest = max(rows, key=lambda i: rows[i])
            rows[longest] = max(rows[longest] - 1, least[longest])
    begin_within = 1 + sum(end < MOST_LINES - 1 for end in accumulate(map(len, lines)))
    return _Cut(rows, min(begin_within, len(lines)), [line for each in lines for line in each])


def _cut_items(page: Page, rows: dict[int, int]) -> list[Item]:
    """Return the items of a page, of its tables the first rows and a last one that says how many more there are."""
    return [
        _shortened(item, rows[i]) if isinstance(item, Table) and rows[i] < item.row_count else item
        for i, item in enumerate(page.items)
    ]


def _shortened(item: Table, count: int) -> Table:
    cells = [list(column.cells) for column in item.columns]
    table = Table(box=item.box, pad_edge=item.pad_edge, show_edge=item.show_edge)
    for c in item.columns:
        table.add_column(c.header, justify=c.justify, no_wrap=c.no_wrap, overflow=c.overflow, max_width=c.max_width)
    for k in range(count):
        table.add_row(*(column[k] for column in cells))
    left_out = item.row_count - count
    if already := _MORE.fullmatch(str(cells[0][-1])):
        left_out += int(already[1]) - 1
    table.add_row(f"and {left_out} more", *[""] * (len(cells) - 1))
    return table


def _lines(item: Item) -> list[str]:
    console = _console()
    with console.capture() as captured:
        console.print(item)
    return [line.rstrip() for line in captured.get().split("\n")[:-1]]


@cache
def _console() -> Console:
    """Return a console that knows nothing of a notebook's or terminal's own colours."""
    return Console(
        file=io.StringIO(), width=WIDTH, color_system=None, force_jupyter=False,
        highlight=False, emoji=False, markup=False, legacy_windows=False,
    )  # fmt: skip


def _html(items: Sequence[Item]) -> Iterator[str]:
    """Yield the tables and paragraphs; facts that follow each other are one table."""
    for _, group in groupby(items, key=type):
        alike = list(group)
        if facts := [item for item in alike if isinstance(item, Text)]:
            yield _facts(facts)
        yield from (_table(item) for item in alike if isinstance(item, Table))
        yield from (f"<p>{escape(item)}</p>" for item in alike if isinstance(item, str) and item)


def _facts(items: Sequence[Text]) -> str:
    """Return facts as a table; one without a word goes on below the one before."""
    facts: list[tuple[str, list[str]]] = []
    for item in items:
        end = item.spans[0].end if item.spans else 0
        word, text = item.plain[:end].strip(), item.plain[end:].strip()
        if word or not facts:
            facts.append((word, []))
        facts[-1][1].append(text)
    left = ' style="text-align:left;vertical-align:top"'
    rows = (
        f"<tr><th{left}>{escape(word)}</th><td{left}>{'<br>'.join(map(escape, texts))}</td></tr>"
        for word, texts in facts
    )
    return f"<table><tbody>{''.join(rows)}</tbody></table>"


def _table(table: Table) -> str:
    styles = [f' style="text-align:{"right" if c.justify == "right" else "left"}"' for c in table.columns]
    head = "".join(f"<th{s}>{escape(str(c.header))}</th>" for c, s in zip(table.columns, styles, strict=True))
    rows = zip(*(column.cells for column in table.columns), strict=True)
    body = "".join(
        "<tr>" + "".join(f"<td{s}>{escape(str(cell))}</td>" for cell, s in zip(row, styles, strict=True)) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
