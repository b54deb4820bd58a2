"""Writes ``docs/reference/remarks.md``: checks of a linearization and kinds of remarks, from their lists in the code.

Usage: ``python docs/remarks.py``. A test compares the page with what is written here.
"""

from __future__ import annotations

from pathlib import Path

from fmilin.diagnostics import KINDS, Kind
from fmilin.linearization.checks import CHECKS
from fmilin.linearization.linearization_context import LinearizedBatch, LinearizedPoint
from fmilin.manifold.checks.check import Check

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
        "# Warnings and notes\n\n"
        "Every result says what you should know about it: `lin.warnings` in Python, `warnings` in JSON, the lines\n"
        "below the table on the command line. Each has a `kind`, which programs can test for, and a `message`,\n"
        "which names variables and numbers. A *note* is mere information on how the result was made\n"
        "(`is_information`); a *warning* says what to beware of. Advice names Python keywords;\n"
        'the command line prints them as its options, `free=["torque"]` as `--free torque`.\n\n'
        + "\n".join(_section(scope, *words) for scope, words in SECTIONS.items())
        + "\n"
        + _list_checks()
    )


def write() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


def _section(scope: str, title: str, text: str) -> str:
    kinds = sorted((kind for kind in KINDS.values() if kind.scope == scope), key=lambda kind: kind.name)
    rows = "\n".join(map(_row, kinds))
    return f"## {title}\n\n{text}\n\n| kind | | what it means | what to do |\n| --- | --- | --- | --- |\n{rows}\n"


def _list_checks() -> str:
    rows = "\n".join(map(_describe_check, CHECKS))
    return (
        "## Checks of a linearization\n\n"
        'A linear model is computed first and checked then. `checks="standard"` runs these checks as often as the\n'
        'table says, `checks="all"` runs every one at every point and takes nothing from earlier points, and\n'
        '`checks="none"` runs none: wrong constraints and derivatives then pass unnoticed, and the linear model says\n'
        "so. Problems of the computation itself are errors in any case: a kink or an event among the differences,\n"
        "coordinates that are singular. No check depends on another one. If several fail, the error of the first one\n"
        "in the table is raised. With `formulation=`, at singular configurations and of large models those checks\n"
        "run that have a meaning there. Models that are identified from responses have checks of their own, which\n"
        'always run: `checks="none"` is rejected together with a method of `fl.Stepping` that measures responses, and\n'
        "`checks=` together with `formulation=`.\n\n"
        "| what is verified | when | what it takes | what it gives |\n| --- | --- | --- | --- |\n"
        f"{rows}\n"
    )


def _describe_check(check: Check[LinearizedPoint, LinearizedBatch]) -> str:
    kinds = ", ".join(f"`{kind}`" for kind in check.kinds)
    gives = ". ".join(part for part in (kinds, check.error.removesuffix(".")) if part)
    return f"| {check.verifies} | {check.runs} | {check.needs} | {gives} |"


def _row(kind: Kind) -> str:
    word = "note" if kind.severity == "information" else "warning"
    return f"| `{kind.name}` | {word} | {kind.meaning} | {kind.advice} |"


if __name__ == "__main__":
    write()
