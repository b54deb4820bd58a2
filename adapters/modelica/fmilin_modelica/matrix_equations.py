"""Equations between columns, ``[a; b] = M*[c; d]``, as equations between vectors, ``{a, b} = M*{c, d}``.

The front end counts an equation with a matrix of one column on its left as one scalar equation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from fmilin_modelica.rewriting import edit_text, mask_comments_and_strings

__all__ = ["BALANCE_FAULT", "find_column_equations"]

BALANCE_FAULT = re.compile(r"unbalanced model")
_BEGIN = re.compile(r"(?:;|\b(?:equation|then|else|loop))\s*(?=\[)")
_EQUALS = re.compile(r"\s*=(?!=)")
_CLOSING = {"(": ")", "[": "]", "{": "}"}


def find_column_equations(files: Mapping[str, str], text: str) -> Callable[[str], str] | None:
    """Return the function that writes them as equations between vectors; None where no text has any."""
    return write_column_equations if any(_list_edits(code) for code in (text, *files.values())) else None


def write_column_equations(text: str) -> str:
    """Return a text in which equations that begin with a column have vectors in place of columns."""
    return edit_text(text, _list_edits(text))


def _list_edits(text: str) -> list[tuple[int, int, str]]:
    code = mask_comments_and_strings(text)
    edits: list[tuple[int, int, str]] = []
    for beginning in _BEGIN.finditer(code):
        first = _find_closing(code, beginning.end())
        if not _EQUALS.match(code, first + 1) or _split_column(code, beginning.end(), first) is None:
            continue
        edits.extend(_list_edits_of_equation(code, beginning.end()))
    return edits


def _list_edits_of_equation(code: str, begin: int) -> Iterator[tuple[int, int, str]]:
    """Yield the edits of the columns of the equation at a place, none inside of other brackets."""
    place = begin
    while place < len(code) and code[place] != ";":
        if code[place] not in _CLOSING:
            place += 1
            continue
        end = _find_closing(code, place)
        separators = _split_column(code, place, end) if code[place] == "[" else None
        if separators is not None and not re.search(r"\w\s*$", code[begin:place]):  # an index is not a column
            yield place, place + 1, "{"
            yield from ((separator, separator + 1, ",") for separator in separators)
            yield end, end + 1, "}"
        place = end + 1


def _split_column(code: str, begin: int, end: int) -> list[int] | None:
    """Return the places of the semicolons of a matrix with one column and two rows or more; None for others."""
    separators = []
    place = begin + 1
    while place < end:
        if code[place] in _CLOSING:
            place = _find_closing(code, place)
        elif code[place] == ",":
            return None
        elif code[place] == ";":
            separators.append(place)
        place += 1
    return separators or None


def _find_closing(code: str, begin: int) -> int:
    """Return the place of the bracket that closes the one at ``begin``, the last place without any."""
    depth = 0
    for place in range(begin, len(code)):
        if code[place] in "([{":
            depth += 1
        elif code[place] in ")]}":
            depth -= 1
            if depth == 0:
                return place
    return len(code) - 1
