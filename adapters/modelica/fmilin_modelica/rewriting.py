"""Transformations of Modelica text before the front end reads it, where that rejects or miscounts correct Modelica.

Each one is a function from text to text that keeps every line where it stands, so that messages name the right one.
``UPSTREAM.md`` lists the faults of the front end behind them, with the smallest model of each.
"""

from __future__ import annotations

import re

from fmilin_modelica.libraries import SKIPPED

__all__ = ["rewrite"]

_KEYWORDS = (
    "algorithm|and|else|elseif|equation|extends|for|if|import|in|loop|model|not|or|protected|public|return|then|type|"
    "when|while"
)
_TYPE = rf"(?!(?:{_KEYWORDS})\b)[A-Za-z_][\w.]*"
_GROUP = r"\((?:[^;()]|\((?:[^;()]|\([^;()]*\))*\))*\)"  # parentheses, three deep
_DECLARED = re.compile(rf"(?<![\w.])(?:(parameter)\s+)?{_TYPE}\s+([A-Za-z_]\w*)\s*(?:{_GROUP}\s*)?(?==(?!=))")
_SECTION = re.compile(r"\b(?:public|protected)\b")
_TABLE_VALUE = re.compile(r"\bget(?:Table1D|Table2D|TimeTable)Value\w*\s*\(")


def rewrite(text: str) -> str:
    """Return a text that the front end reads as the language means it."""
    return write_table_values_as_equations(text)


def write_table_values_as_equations(text: str) -> str:
    """Return a text in which values that are looked up in tables are variables with equations of their own.

    That is, ``parameter Real mu0 = getTable1DValue(id, 1, 0)`` and parameters that depend on it. The front end counts
    the equation of such a declaration twice, and that of a parameter without an unknown: clutches, brakes and gears
    with losses are "unbalanced" then.
    """
    if _TABLE_VALUE.search(text) is None:
        return text
    code = mask_comments_and_strings(text)
    values = _TABLE_VALUE
    names: list[str] = []
    edits: list[tuple[int, int, str]] = []
    for declaration in _DECLARED.finditer(code):
        end = code.find(";", declaration.end())
        is_value = _TABLE_VALUE.search(code, declaration.end(), end) is not None
        if end < 0 or not (is_value or (declaration[1] and values.search(code, declaration.end(), end))):
            continue
        names.append(declaration[2])
        values = re.compile(rf"{_TABLE_VALUE.pattern}|(?<![\w.])(?:{'|'.join(names)})\b(?!\s*[=(])")
        if declaration[1]:
            edits.append((*declaration.span(1), ""))
        section = [found[0] for found in _SECTION.finditer(code, 0, declaration.start())][-1:]
        edits.append((declaration.end(), declaration.end(), f"; equation {declaration[2]} "))
        edits.append((end + 1, end + 1, f" {''.join(section) or 'public'}"))
    return _edit(text, edits)


def mask_comments_and_strings(text: str) -> str:
    """Return a text of the same length with blanks for comments and strings; the ends of lines stay."""
    return SKIPPED.sub(lambda skipped: re.sub(r"[^\n]", " ", skipped[0]), text)


def _edit(text: str, edits: list[tuple[int, int, str]]) -> str:
    """Return a text with other words at some places, given by begin and end."""
    for begin, end, words in sorted(edits, reverse=True):
        text = text[:begin] + words + text[end:]
    return text
