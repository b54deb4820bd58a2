"""How the results are printed, and on what machine they were measured."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version

from rich import box
from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Shown:
    """A table that was printed."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    remark: str


_RECORDS: list[list[Shown]] = []


@contextmanager
def recorded(tables: list[Shown]) -> Iterator[None]:
    """Append to ``tables`` what is shown meanwhile."""
    _RECORDS.append(tables)
    try:
        yield
    finally:
        _RECORDS.remove(tables)


def show(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], remark: str = "") -> None:
    for record in _RECORDS:
        record.append(Shown(title, columns, rows, remark))
    console = Console(width=None if os.isatty(1) else 120, highlight=False)
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right", no_wrap=i == 0)
    for row in rows:
        table.add_row(*row)
    console.print(table)
    here = f"Python {platform.python_version()}, numpy {version('numpy')}, {platform.machine()}, {os.cpu_count()} cores"
    console.print(f"{remark}\n[{here}]\n".lstrip(), markup=False)
