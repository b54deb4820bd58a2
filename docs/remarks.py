"""Writes ``docs/reference/remarks.md``: checks of a linearization and kinds of diagnostics, from the code.

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
        "Every result has diagnostics (`lin.warnings`, `warnings` in JSON, the lines below a table) with a `kind` for\n"
        "programs and a `message`. A *note* (`is_information`) needs no action. Advice follows the arrow, with\n"
        "keywords of Python; the command line prints its options.\n\n"
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
    return f"## {title}\n\n{text}\n\n{rows}\n"


def _list_checks() -> str:
    rows = "\n".join(map(_describe_check, CHECKS))
    return (
        "## Checks of a linearization\n\n"
        '`checks="standard"` runs these checks of a linear model, at every point unless the list says otherwise;\n'
        '`checks="all"` every one at every point; `checks="none"` none, with a warning. Problems of the computation\n'
        "itself (a kink or an event among the differences, singular coordinates) are errors in any case. With\n"
        "`formulation=`, at singular configurations and for large models, the checks that have a meaning there run.\n"
        '`checks=` is rejected with `formulation=`, `checks="none"` for models identified\n'
        "from responses.\n\n"
        "The parentheses state the cost beyond the linear model, the arrow the result of a failed check.\n\n"
        f"{rows}\n"
    )


def _describe_check(check: Check[LinearizedPoint, LinearizedBatch]) -> str:
    kinds = ", ".join(f"`{kind}`" for kind in check.kinds)
    result = ". ".join(part for part in (kinds, check.error.removesuffix(".")) if part)
    needs = check.needs.removesuffix(".")
    once = "once a model: " if check.runs == "once a model" else ""
    in_parentheses = "" if needs == "Nothing" else f" ({once}{needs[:1].lower()}{needs[1:]})"
    return f"- {check.verifies.removesuffix('.')}{in_parentheses} → {result}"


def _row(kind: Kind) -> str:
    note = " (note)" if kind.severity == "information" else ""
    advice = "" if kind.advice == "Nothing." else f" → {kind.advice.removeprefix('Nothing; ')}"
    return f"- `{kind.name}`{note}: {kind.meaning}{advice}"


if __name__ == "__main__":
    write()
