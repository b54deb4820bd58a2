"""Facts and tables on a terminal, or as lines of text."""

from __future__ import annotations

import io
import os
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any, Literal, TextIO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fmilin.errors import escape_controls
from fmilin.support.table_repr import Item
from fmilin.support.tables import LabelledFact, ResultTable, TableColumn

WIDTH = 80  # columns of files, pipes and representations
LABEL_WIDTH = 13  # columns of the words on the left


class Terminal:
    """Prints facts and tables with rich, control characters in them escaped.

    ``wording`` is applied to each sentence before it is broken into lines: the command line names its options there.
    """

    def __init__(self, console: Console, wording: Callable[[str], str] = str) -> None:
        self.console = console
        self.wording = wording

    def print(self, item: Item = "", /) -> None:
        """Print a line, a fact or a table."""
        if isinstance(item, ResultTable):
            self.console.print(to_rich(item))
        elif isinstance(item, LabelledFact):
            reworded = replace(item, pieces=tuple(map(self.wording, item.pieces)))
            self.console.print(format_fact(reworded, self.console.width))
        else:
            self.console.print(escape_controls(self.wording(item), "\n\t"))


@contextmanager
def open_terminal(stream: TextIO, wording: Callable[[str], str] = str) -> Iterator[Terminal]:
    """Yield a terminal that writes to ``stream``; to a file or pipe plain text, 80 columns wide or as COLUMNS says."""
    if stream.isatty():
        yield Terminal(Console(file=stream, highlight=False, emoji=False, markup=False), wording)
        return
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdigit() and int(columns) >= 40 else WIDTH
    console = Console(file=stream, width=width, highlight=False, emoji=False, markup=False)
    with console.capture() as captured:
        yield Terminal(console, wording)
    stream.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def print_to_stream(
    stream: TextIO, show: Callable[..., None], *things: object, wording: Callable[[str], str] = str, **options: Any
) -> None:
    """Print on a stream what ``show`` prints of some things on a sheet; ``wording`` is applied to each sentence."""
    with open_terminal(stream, wording) as terminal:
        show(*things, terminal, **options)


def render_lines(item: Item) -> list[str]:
    """Return the lines of an item as plain text of 80 columns."""
    console = _plain_console()
    with console.capture() as captured:
        Terminal(console).print(item)
    return [line.rstrip() for line in captured.get().split("\n")[:-1]]


@cache
def _plain_console() -> Console:
    """Return a console that uses none of a notebook's or terminal's own colours."""
    return Console(
        file=io.StringIO(), width=WIDTH, color_system=None, force_jupyter=False,
        highlight=False, emoji=False, markup=False, legacy_windows=False,
    )  # fmt: skip


def format_fact(fact: LabelledFact, width: int) -> Text:
    """Return a word in bold, and next to it the pieces, broken into lines between them."""
    fact = replace(fact, word=escape_controls(fact.word), pieces=tuple(escape_controls(p, "\n\t") for p in fact.pieces))
    label = f"{fact.word:<{LABEL_WIDTH - 1}} "  # a word as wide as the column keeps a space behind it
    lines = [""]
    parts = fact.parts
    for i, part in enumerate(parts):
        is_last = i == len(parts) - 1
        text = part if is_last else part + fact.separator.rstrip()
        gap = " " if lines[-1] else ""
        if lines[-1] and len(label) + len(lines[-1]) + len(gap) + len(text) > width:
            lines.append(text)
        else:
            lines[-1] += gap + text
    remaining = max(width - len(label), 20)
    wrapped = [piece for line in lines for piece in textwrap.wrap(line, remaining, break_on_hyphens=False) or [""]]
    return Text.assemble((label, "bold"), ("\n" + " " * LABEL_WIDTH).join(wrapped))


def to_rich(table: ResultTable) -> Table:
    """Return a table that rich prints."""
    result = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in table.columns:
        result.add_column(
            escape_controls(column.head, "\n"),
            justify=column.align,
            no_wrap=column.breaks == "never",
            overflow=_overflow(column),
            max_width=column.largest_width,
        )
    for texts in table.texts():
        result.add_row(*(escape_controls(text, "\n\t") for text in texts))
    return result


def _overflow(column: TableColumn) -> Literal["fold", "ellipsis"]:
    return "fold" if column.breaks == "anywhere" else "ellipsis"
