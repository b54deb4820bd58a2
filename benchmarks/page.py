"""``python -m benchmarks --page [FILE.md]``: some quick benchmarks as a page of the documentation."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.metadata import version
from itertools import groupby, takewhile
from pathlib import Path

from benchmarks.tables import Shown, recorded

QUICK = ("linearize", "constraints", "discover", "startup")
"""What the page shows: less than two minutes on an idle machine, and no other program needed."""

MADE = "Made by `{command}` on {day}:\nPython {python}, numpy {numpy}, {machine}, {cores} cores."
INTRODUCTION = """# Measured numbers

{made}
Ratios are measured side by side in one run. Absolute times depend on this machine and its load. A missed target is
shown as missed.

`python -m benchmarks` prints these and {others} more tables, one for each module of `benchmarks`.
"""


def write_page(path: Path, names: Sequence[str]) -> None:
    shown: list[Shown] = []
    with recorded(shown):
        for name in QUICK:
            import_module(f"benchmarks.{name}").main()
    others = [name for name in names if name not in QUICK]
    made = describe_making("python -m benchmarks --page")
    write_tables(path, INTRODUCTION.format(made=made, others=len(others)), shown)


def describe_making(command: str) -> str:
    """Return the sentence that says by what, when and where a page was made."""
    here = {"day": datetime.datetime.now(tz=datetime.UTC).date(), "python": platform.python_version()}
    here |= {"numpy": version("numpy"), "machine": platform.machine(), "cores": os.cpu_count()}
    return MADE.format(command=command, **here)


def write_tables(path: Path, introduction: str, shown: Sequence[Shown]) -> None:
    """Write a page of an introduction and the tables; adjacent tables of the same columns and no diagnostic are one."""
    groups = [list(tables) for _, tables in groupby(shown, key=lambda table: (table.columns, table.remark))]
    titles = [tables[0].title if len(tables) == 1 else "Results" for tables in groups]
    sections = [
        _section(title, _join_tables(tables), tables[0].remark) for title, tables in zip(titles, groups, strict=True)
    ]
    path.write_text("\n".join([introduction, *sections]), encoding="utf-8")
    print(f"{path}: {len(shown)} tables")


def _join_tables(tables: Sequence[Shown]) -> list[Sequence[str]]:
    """Return the rows of tables with their heads; of several, the title of each is its first column."""
    [first, *others] = tables
    if not others:
        return [first.columns, *first.rows]
    return [["", *first.columns], *([table.title, *row] for table in tables for row in table.rows)]


def _section(title: str, rows: Sequence[Sequence[str]], remark: str) -> str:
    def write_row(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"

    [columns, *body] = rows
    rule = write_row(["---", *["---:"] * (len(columns) - 1)])
    text = " ".join(remark.split())
    end = f"\n{text}\n" if text else ""
    return f"## {title}\n\n{write_row(columns)}{rule}{''.join(map(write_row, _blank_repetitions(body)))}{end}"


def _blank_repetitions(rows: Sequence[Sequence[str]]) -> Iterator[Sequence[str]]:
    """Leave out the leading cells of a row that repeat the row above, as in a printed table."""
    above: Sequence[str] = ()
    for row in rows:
        count = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(row, above, strict=False)))
        yield [*[""] * min(count, len(row) - 1), *row[count:]] if count < len(row) else row
        above = row
