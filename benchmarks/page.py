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

INTRODUCTION = """# Measured numbers

Made by `python -m benchmarks --page` on {day}:
Python {python}, numpy {numpy}, {machine}, {cores} cores.
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
    here = {"day": datetime.datetime.now(tz=datetime.UTC).date(), "python": platform.python_version()}
    here |= {"numpy": version("numpy"), "machine": platform.machine(), "cores": os.cpu_count()}
    listed = ", ".join(f"`{name}`" for name in others)
    parts = [INTRODUCTION.format(**here, others=len(others), names=listed), *map(_section, shown)]
    path.write_text("\n".join(parts), encoding="utf-8")
    print(f"{path}: {len(shown)} tables")


def _section(table: Shown) -> str:
    def row(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"

    rule = row(["---", *["---:"] * (len(table.columns) - 1)])
    remark = " ".join(table.remark.split())
    return f"## {table.title}\n\n{row(table.columns)}{rule}{''.join(map(row, table.rows))}\n{remark}\n"
