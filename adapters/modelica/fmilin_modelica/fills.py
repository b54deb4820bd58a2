"""``fill(v, n)`` of arrays as ``{v for k in 1:n}``: the front end takes the result for an array of scalars."""

from __future__ import annotations

import re

from fmilin_modelica.rewriting import edit_text, mask_comments_and_strings
from fmilin_modelica.tokens import find_closing, join_tokens, read_tokens, split_list

__all__ = ["FILL_FAULT", "write_fills_as_comprehensions"]

FILL_FAULT = re.compile(r"invalid operation: expression shape mismatch")
ARGUMENTS = 2  # of a fill in one dimension
_FILL = re.compile(r"(?<![\w.])fill\s*\(")


def write_fills_as_comprehensions(text: str) -> str:
    """Return a text without ``fill(v, n)`` where v is not a number.

    Those with several dimensions, and those inside of another one, stay. Calls over several lines keep their lines.
    """
    if "fill" not in text:
        return text
    code = mask_comments_and_strings(text)
    edits: list[tuple[int, int, str]] = []
    place = 0
    while (found := _FILL.search(code, place)) is not None:
        tokens = read_tokens(code[found.start() : code.find(";", found.end())])
        closing = find_closing(tokens, 1)
        arguments = split_list(tokens[2:closing])
        end = found.start() + tokens[closing].end
        place = end
        if len(arguments) == ARGUMENTS and arguments[0][0].kind != "number" and tokens[closing].text == ")":
            value, size = (join_tokens(argument) for argument in arguments)
            lines = "\n" * code.count("\n", found.start(), end)
            edits.append((found.start(), end, f"{{{value} for fill_index in 1:{size}}}{lines}"))
    return edit_text(text, edits)
