"""``python -m benchmarks --page [FILE.md]``: some quick benchmarks as a page of the documentation."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

from benchmarks.tables import Shown, recorded

QUICK = ("linearize", "constraints", "discover", "startup")
"""What the page shows: less than two minutes on an idle machine, and no other program needed."""

MADE = "Made by `{command}` on {day}:\nPython {python}, numpy {numpy}, {machine}, {cores} cores."
INTRODUCTION = """# Measured numbers

{made}
Ratios are measured side by side in one run. Absolute times are those of this machine, with whatever else it had to do
at that time. A target that was missed is shown as missed.

`python -m benchmarks` prints these and {others} more tables: {names}.
"""


def write_page(path: Path, names: Sequence[str]) -> None:
    shown: list[Shown] = []
    with recorded(shown):
        for name in QUICK:
            import_module(f"benchmarks.{name}").main()
    others = [name for name in names if name not in QUICK]
    listed = ", ".join(f"`{name}`" for name in others)
    made = describe_making("python -m benchmarks --page")
    write_tables(path, INTRODUCTION.format(made=made, others=len(others), names=listed), shown)


def describe_making(command: str) -> str:
    """Return the sentence that says by what, when and where a page was made."""
    here = {"day": datetime.datetime.now(tz=datetime.UTC).date(), "python": platform.python_version()}
    here |= {"numpy": version("numpy"), "machine": platform.machine(), "cores": os.cpu_count()}
    return MADE.format(command=command, **here)


def write_tables(path: Path, introduction: str, shown: Sequence[Shown]) -> None:
    """Write a page of an introduction and a section for each table."""
    path.write_text("\n".join([introduction, *map(_section, shown)]), encoding="utf-8")
    print(f"{path}: {len(shown)} tables")


def _section(table: Shown) -> str:
    def row(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"

    rule = row(["---", *["---:"] * (len(table.columns) - 1)])
    remark = " ".join(table.remark.split())
    end = f"\n{remark}\n" if remark else ""
    return f"## {table.title}\n\n{row(table.columns)}{rule}{''.join(map(row, table.rows))}{end}"
