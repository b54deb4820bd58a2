"""Writes the tables of ``docs/howto/files.md`` from the table of formats.

Usage: ``python docs/formats.py``. A test compares the page with what is written here.
"""

from __future__ import annotations

from pathlib import Path

from fmilin.formats import FORMATS, Format

__all__ = ["page", "write"]

PAGE = Path(__file__).parent / "howto" / "files.md"
BEGIN, END = "<!-- made by docs/formats.py -->\n", "<!-- end of what docs/formats.py makes -->\n"


def page() -> str:
    """Return the text of the page with the table as it should be."""
    head, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    rows = ["| file of | suffix | for | content |", "| --- | --- | --- | --- |", *map(_row, FORMATS)]
    return "\n".join([head + BEGIN.rstrip(), *rows, END.rstrip()]) + "\n" + rest.partition(END)[2]


def _row(kind: Format) -> str:
    options = ", ".join(f"`--{choice}`" for choice in kind.choices if choice != "name")
    content = f"{kind.content}; {options}" if options else kind.content
    back = "" if kind.read else " (not read back)"
    return f"| {kind.holds} | `{kind.suffix}` | {kind.audience} | {content}{back if kind.kind else ''} |"


def write() -> None:
    """Write the page."""
    PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    write()
