"""Pieces of C text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

__all__ = ["c_string", "indented", "wrapped"]

WIDTH = 116


def c_string(text: str) -> str:
    """Return ``text`` as a C string literal in UTF-8."""
    plain = [chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in text.encode("utf-8")]
    return '"' + "".join(plain) + '"'


def wrapped(items: Iterable[str]) -> str:
    """Return items with commas, in lines of readable length."""
    return textwrap.fill(", ".join(items), WIDTH, break_long_words=False, break_on_hyphens=False)


def indented(line: str, first: str, others: str) -> str:
    """Return a statement in lines of readable length."""
    if len(first) + len(line) <= WIDTH:
        return f"{first}{line}\n"
    words = textwrap.TextWrapper(WIDTH, first, others, break_long_words=False, break_on_hyphens=False)  # 1e-05 is one
    return words.fill(line) + "\n"
