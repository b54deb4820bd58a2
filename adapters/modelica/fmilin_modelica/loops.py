"""Functions with loops that the front end rejects, as expressions in loops that it reads.

It has no ``while`` and no ``return`` in a loop, and no statement with a condition in a loop. ``UPSTREAM.md`` has the
smallest models.
"""

from __future__ import annotations

import re

from fmilin_modelica.rewriting import edit_text, mask_comments_and_strings

__all__ = ["write_loops_as_expressions"]

LARGEST_POWER = 2**30  # of two, among the Integer numbers of Modelica
_NAME = r"[A-Za-z_]\w*"
_POWER_OF_TWO = re.compile(
    rf"\bif\s+mod\(({_NAME}),\s*2\)\s*==\s*1\s+then\s+({_NAME})\s*:=\s*\1\s*==\s*1;\s*else\s+({_NAME})\s*:=\s*div\(\1,\s*2\);"
    rf"\s*({_NAME})\s*:=\s*1;\s*while\s+\4\s*<\s*\3\s+loop\s+\4\s*:=\s*\4\s*\*\s*2;\s*end\s+while;"
    r"\s*\2\s*:=\s*\3\s*==\s*\4;\s*end\s+if;"
)
_FIRST_OF_LOOP = re.compile(
    rf"\bfor\s+({_NAME})\s+in\s+1\s*:\s*([^;]+?)\s+loop\s+if\s+([^;]+?)\s+then\s+({_NAME})\s*:=\s*([^;]+?);"
    r"\s*(return\s*;)?\s*end\s+if;\s*end\s+for;(?=\s*(?:annotation\s*\(|end\s+(?!(?:for|if|while|when)\b)))"
)


def write_loops_as_expressions(text: str) -> str:
    """Return a text in which some functions have expressions in place of ``while``, ``return`` and conditions.

    A loop at the end of a function with one condition and one assignment, and with ``return`` or without, assigns an
    expression in every pass; with ``return`` the passes are in the opposite order. The test of the Standard Library for
    powers of two becomes a remainder.
    """
    if "while" not in text and "end for" not in text:
        return text
    code = mask_comments_and_strings(text)
    edits = []
    for found in _POWER_OF_TWO.finditer(code):
        number, result = found[1], found[2]
        edits.append((*found.span(), f"{result} := mod({LARGEST_POWER}, {number}) == 0;" + _lines(found)))
    for found in _FIRST_OF_LOOP.finditer(code):
        index, last, condition, result, value, returns = found.groups()
        if re.search(r"\b(?:then|else|loop)\b", f"{condition} {value}") or (returns and ":" in last):
            continue
        if returns:
            turned = f"({last} + 1 - {index})"
            condition, value = (re.sub(rf"(?<![\w.]){index}\b", turned, part) for part in (condition, value))
        assignment = f"{result} := if {condition} then {value} else {result};"
        edits.append((*found.span(), f"for {index} in 1:{last} loop {assignment} end for;" + _lines(found)))
    return edit_text(text, edits)


def _lines(found: re.Match[str]) -> str:
    """Return the line ends of a part of a text, so that all others stay where they are."""
    return "\n" * found[0].count("\n")
