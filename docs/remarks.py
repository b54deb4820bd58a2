"""Writes ``docs/reference/remarks.md``: the kinds of remarks, from the table in ``fmilin/diagnostics.py``.

Usage: ``python docs/remarks.py``. A test compares the page with what is written here.
"""

from __future__ import annotations

from pathlib import Path

from fmilin.diagnostics import KINDS, Kind

__all__ = ["page", "write"]

PAGE = Path(__file__).parent / "reference" / "remarks.md"
SECTIONS = {
    "model": ("Of the model", "True of the model as a whole: interpolated models carry them on."),
    "point": ("Of the point", "True of the result at its point."),
    "entry": ("Of entries", "True of single entries of the matrices at the point."),
}


def page() -> str:
    """Return the text of the page."""
    return (
        "# Remarks\n\n"
        "Every result says what you should know about it: `lin.warnings` in Python, `warnings` in JSON, the lines\n"
        "below the table on the command line. A remark has a `kind`, which programs can test for, and a `message`,\n"
        "which names variables and numbers. A *note* is mere information on how the result was made\n"
        "(`is_information`); a *warning* says what to beware of. Advice names Python keywords;\n"
        'the command line prints them as its options, `free=["torque"]` as `--free torque`.\n\n'
        + "\n".join(_section(scope, *words) for scope, words in SECTIONS.items())
    )


def write() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


def _section(scope: str, title: str, text: str) -> str:
    kinds = sorted((kind for kind in KINDS.values() if kind.scope == scope), key=lambda kind: kind.name)
    rows = "\n".join(map(_row, kinds))
    return f"## {title}\n\n{text}\n\n| kind | | what it means | what to do |\n| --- | --- | --- | --- |\n{rows}\n"


def _row(kind: Kind) -> str:
    word = "note" if kind.severity == "information" else "warning"
    return f"| `{kind.name}` | {word} | {kind.meaning} | {kind.advice} |"


if __name__ == "__main__":
    write()
