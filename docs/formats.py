"""Writes the lists of formats of ``docs/howto/files.md`` from the registered formats.

Usage: ``python docs/formats.py``. A test compares the page with what is written here.
"""

from __future__ import annotations

from pathlib import Path

import fmilin.export  # noqa: F401 - registers the formats
from fmilin.formats import AnyCodec, registered_codecs

__all__ = ["page", "write"]

PAGE = Path(__file__).parent / "howto" / "files.md"
BEGIN, END = "<!-- made by docs/formats.py -->\n", "<!-- end of what docs/formats.py makes -->\n"


def page() -> str:
    """Return the text of the page with the lists as they should be."""
    head, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    groups: dict[str, list[str]] = {}
    for codec in registered_codecs():
        groups.setdefault(codec.holds, []).append(_row(codec))
    kinds_of: dict[tuple[str, ...], list[str]] = {}  # kinds of results with the same formats share a list
    for holds, lines in groups.items():
        kinds_of.setdefault(tuple(lines), []).append(holds)
    rows: list[str] = []
    for lines_in_common, kinds in kinds_of.items():
        rows += [""] * bool(rows) + [f"{', '.join(kinds).capitalize()}:", "", *lines_in_common]
    return "\n".join([head + BEGIN.rstrip(), *rows, END.rstrip()]) + "\n" + rest.partition(END)[2]


def _row(codec: AnyCodec) -> str:
    options = ""
    if codec.holds == "linear model":  # the command line writes it
        options = ", ".join(f"`--{choice}`" for choice in codec.choices if choice != "name")
    content = f"{codec.content}; {options}" if options else codec.content
    if codec.description and not codec.is_readable:
        content += " (write-only)"
    return f"- `{codec.suffix}` for {codec.audience}: {content}"


def write() -> None:
    """Write the page."""
    PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    write()
