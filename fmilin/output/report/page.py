"""What is printed on a terminal, collected for an interpreter's answer or a notebook: plain text, or tables of HTML."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from itertools import accumulate, chain

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

__all__ = ["MOST_LINES", "Page", "Show", "as_html", "as_text", "plain_lines", "rich_lines"]

MOST_LINES = 40
"""Of a representation, its hint included."""

WIDTH = 80

UNBROKEN = 1_000_000
"""Columns of a page of HTML: there the browser breaks lines."""

LEAST_ROWS = 2
"""Of a table that is cut."""

Item = Text | Table | str

_MORE = re.compile(r"and (\d+) more")


class Page:
    """Takes what functions of this room print on a console, and keeps it.

    ``width``: columns, for what is broken into lines before it is printed.
    """

    def __init__(self, width: int = WIDTH) -> None:
        self.width = width
        self.items: list[Item] = []

    def print(self, item: Item = "") -> None:
        """Add an item; a text that :func:`fmilin.output.report.table.fact` made is a word and what is said about it."""
        self.items.append(item)


Show = Callable[[Page], None]
"""Prints something on a page, the same items whatever its width."""


@dataclass(frozen=True)
class _Cut:
    """What is left out of a page: how many rows of each table are kept, by item, and how many items."""

    rows: Mapping[int, int]
    items: int
    lines: tuple[str, ...] = ()
    """Of what is kept."""

    def of(self, page: Page) -> list[Item]:
        """Return the items that are kept."""
        return [_with_rows(item, self.rows.get(i)) for i, item in enumerate(page.items[: self.items])]


def as_text(show: Show, more: str = "") -> str:
    """Return what ``show`` prints as text, 80 columns wide and of at most 40 lines.

    ``more``: where all of it is; said when something is left out.
    """
    page = _page(show, WIDTH)
    cut = _fitting(page)
    hint = [f"More: {more}"] if more and _is_shortened(cut, page) else []
    return "\n".join([*cut.lines[: MOST_LINES - 1], *hint])


def as_html(show: Show, more: str = "") -> str:
    """Return the same content as :func:`as_text` as HTML tables, everything from the model escaped."""
    narrow, wide = _page(show, WIDTH), _page(show, UNBROKEN)
    cut = _fitting(narrow)
    parts = list(_html(cut.of(wide)))
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
    return bool(cut.rows) or cut.items < len(page.items) or any(_MORE.search(line) for line in cut.lines)


# ------------------------------------------------------------------------- cutting


def _fitting(page: Page) -> _Cut:
    """Return what must be left out for a page of 40 lines: rows of the longest tables, then what comes last."""
    tables: dict[int, int] = {i: item.row_count for i, item in enumerate(page.items) if isinstance(item, Table)}
    rows = {i: min(count, MOST_LINES) for i, count in tables.items()}
    for lines_of in (_guessed_lines, _lines):  # the guess saves rendering what does not fit anyway
        while True:
            kept = {i: count for i, count in rows.items() if count < tables[i]}
            lines = [lines_of(item) for item in _Cut(kept, len(page.items)).of(page)]
            heights = [len(each) for each in lines]
            too_many = sum(heights) - (MOST_LINES - 1)
            if too_many <= 0 or max(rows.values(), default=0) <= LEAST_ROWS:
                break
            for _ in range(too_many):
                longest = max(rows, key=lambda i: rows[i])
                rows[longest] = max(rows[longest] - 1, min(LEAST_ROWS, tables[longest]))
    return _Cut(kept, _number(heights) if too_many > 0 else len(heights), tuple(chain.from_iterable(lines)))


def _number(heights: Sequence[int]) -> int:
    """Return how many items begin within the page."""
    ends = accumulate(heights)
    return 1 + sum(end < MOST_LINES - 1 for end in ends)


def _guessed_lines(item: Item) -> Sequence[str]:
    return [""] * (item.row_count + 2) if isinstance(item, Table) else _lines(item)


def _with_rows(item: Item, count: int | None) -> Item:
    """Return a table with its first rows, and a last one that says how many more there are."""
    if count is None or not isinstance(item, Table):
        return item
    table = Table(box=item.box, pad_edge=item.pad_edge, show_edge=item.show_edge)
    cells = [list(column.cells) for column in item.columns]
    for column in item.columns:
        table.add_column(
            column.header,
            justify=column.justify,
            no_wrap=column.no_wrap,
            overflow=column.overflow,
            max_width=column.max_width,
        )
    for k in range(count):
        table.add_row(*(column[k] for column in cells))
    left_out = item.row_count - count
    if already := _MORE.fullmatch(str(cells[0][-1])):
        left_out += int(already[1]) - 1
    table.add_row(f"and {left_out} more", *[""] * (len(cells) - 1))
    return table


# ------------------------------------------------------------------------- text


def _lines(item: Item) -> list[str]:
    if isinstance(item, str):
        return textwrap.wrap(item, WIDTH, replace_whitespace=False, break_on_hyphens=False) or [""]
    if isinstance(item, Text):  # broken into lines where it was made
        return [line.rstrip() for line in item.plain.split("\n")]
    if (lines := plain_lines(item)) is not None:
        return lines
    return rich_lines(item)


def plain_lines(table: Table) -> list[str] | None:
    """Return a table that fits without breaking a line, as rich prints it and ten times as quickly; None otherwise."""
    columns = [[str(column.header), *map(str, column.cells)] for column in table.columns]
    if table.box is not SIMPLE_HEAD or not table.row_count or any("\n" in cell for cells in columns for cell in cells):
        return None
    sizes = [[cell_len(cell) for cell in cells] for cells in columns]
    widths = [max(each) for each in sizes]
    limits = [column.max_width for column in table.columns]
    if sum(widths) + 3 * (len(widths) - 1) > WIDTH or any(m and w > m for m, w in zip(limits, widths, strict=True)):
        return None
    right = [column.justify == "right" for column in table.columns]
    lines = []
    for k in range(table.row_count + 1):
        padded = []
        for cells, size, width, at_right in zip(columns, sizes, widths, right, strict=True):
            gap = " " * (width - size[k])
            padded.append(gap + cells[k] if at_right else cells[k] + gap)
        lines.append("   ".join(padded).rstrip())
    return [lines[0], "─" * (sum(widths) + 3 * (len(widths) - 1)), *lines[1:]]


def rich_lines(item: Table) -> list[str]:
    """Return the lines of a table that rich prints."""
    console = _console()
    with console.capture() as captured:
        console.print(item)
    return [line.rstrip() for line in captured.get().split("\n")[:-1]]


@cache
def _console() -> Console:
    """Return a console that knows nothing of a notebook's or terminal's own colours."""
    return Console(
        file=io.StringIO(), width=WIDTH, color_system=None,
        highlight=False, emoji=False, markup=False, legacy_windows=False,
    )  # fmt: skip


# ------------------------------------------------------------------------- HTML


def _html(items: Sequence[Item]) -> Iterator[str]:
    """Yield the tables and paragraphs; facts that follow each other are one table."""
    facts: list[tuple[str, list[str]]] = []
    for item in items:
        if isinstance(item, Text):
            word, said = _fact(item)
            if word or not facts:
                facts.append((word, []))
            facts[-1][1].append(said)
            continue
        yield from _facts(facts)
        facts = []
        if isinstance(item, Table):
            yield _table(item)
        elif item:
            yield f"<p>{escape(item)}</p>"
    yield from _facts(facts)


def _fact(item: Text) -> tuple[str, str]:
    end = item.spans[0].end if item.spans else 0
    return item.plain[:end].strip(), item.plain[end:].strip()


def _facts(facts: Sequence[tuple[str, Sequence[str]]]) -> Iterator[str]:
    if facts:
        left = ' style="text-align:left;vertical-align:top"'
        rows = (
            f"<tr><th{left}>{escape(word)}</th><td{left}>{'<br>'.join(map(escape, said))}</td></tr>"
            for word, said in facts
        )
        yield f"<table><tbody>{''.join(rows)}</tbody></table>"


def _table(table: Table) -> str:
    styles = [f' style="text-align:{"right" if c.justify == "right" else "left"}"' for c in table.columns]
    head = "".join(f"<th{s}>{escape(str(c.header))}</th>" for c, s in zip(table.columns, styles, strict=True))
    rows = zip(*(column.cells for column in table.columns), strict=True)
    body = "".join(
        "<tr>" + "".join(f"<td{s}>{escape(str(cell))}</td>" for cell, s in zip(row, styles, strict=True)) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
