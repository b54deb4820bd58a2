"""Algorithms at the start with one assignment for each variable, ``p0 := P;``, as initial equations, ``p0 = P;``.

The front end rejects algorithms at the start that assign parameters and variables of the equations.
"""

from __future__ import annotations

import re

from fmilin_modelica.rewriting import edit_text, mask_comments_and_strings

__all__ = ["INITIAL_FAULT", "write_initial_algorithms_as_equations"]

INITIAL_FAULT = re.compile(r"unsupported initial algorithm")
_INITIAL = re.compile(r"\binitial\s+(algorithm)\b")
_END = re.compile(r"\b(?:(?:initial\s+)?(?:equation|algorithm)|public|protected|annotation|end\s+\w+\s*;)(?!\w)")
_ASSIGNMENT = re.compile(r"\s*([A-Za-z_][\w.]*(?:\s*\[[^\[\]]*\])?)\s*(:=)[^;]*;")


def write_initial_algorithms_as_equations(text: str) -> str:
    """Return a text with initial equations in their place; those with conditions or loops stay as they are."""
    if "initial" not in text:
        return text
    code = mask_comments_and_strings(text)
    edits: list[tuple[int, int, str]] = []
    for section in _INITIAL.finditer(code):
        end = _END.search(code, section.end())
        place, last = section.end(), len(code) if end is None else end.start()
        assignments = []
        while found := _ASSIGNMENT.match(code, place, last):
            assignments.append(found)
            place = found.end()
        targets = {re.sub(r"\s", "", found[1]) for found in assignments}
        if code[place:last].strip() or len(targets) < len(assignments):
            continue
        edits.append((*section.span(1), "equation"))
        edits += [(*found.span(2), "=") for found in assignments]
    return edit_text(text, edits)
