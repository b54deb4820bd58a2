"""The words and signs of a Modelica text, each with its place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
from typing import NamedTuple

__all__ = ["Token", "find_closing", "join_tokens", "read_tokens", "skip_to", "split_list"]

_TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<string>"(?:\\.|[^"\\])*")
    |(?P<number>\d+(?:\.(?![*/^+-])\d*)?(?:[eE][+-]?\d+)?)
    |(?P<name>[A-Za-z_]\w*|'(?:\\.|[^'\\\n])*')
    |(?P<symbol>:=|==|<>|<=|>=|\.[*/^+-]|\S)""",
    re.VERBOSE | re.DOTALL,
)
_OPENING = {"(": ")", "[": "]", "{": "}"}
_CLOSING = {")", "]", "}"}
_TIGHT_AFTER = {".", "(", "[", "{"}
_TIGHT_BEFORE = {".", ")", "]", "}", ",", "(", "["}


class Token(NamedTuple):
    """A word, number, string or sign."""

    kind: str
    text: str
    begin: int
    end: int


def read_tokens(text: str) -> list[Token]:
    """Return the tokens of a text, without comments."""
    tokens = []
    for found in _TOKEN.finditer(text):
        kind = found.lastgroup or ""
        if kind != "skip":
            tokens.append(Token(kind, found[0], *found.span()))
    return tokens


def find_closing(tokens: list[Token], begin: int) -> int:
    """Return the place of the bracket that closes the one at ``begin``, the last place without any."""
    depth = 0
    for place in range(begin, len(tokens)):
        text = tokens[place].text
        if text in _OPENING:
            depth += 1
        elif text in _CLOSING:
            depth -= 1
            if depth == 0:
                return place
    return len(tokens) - 1


def skip_to(tokens: list[Token], begin: int, words: Set[str]) -> int:
    """Return the first place at which one of the words stands outside of brackets; the number of tokens without any."""
    place = begin
    while place < len(tokens):
        if tokens[place].text in words:
            return place
        place = find_closing(tokens, place) + 1 if tokens[place].text in _OPENING else place + 1
    return len(tokens)


def split_list(tokens: list[Token]) -> list[list[Token]]:
    """Return what stands between commas outside of brackets."""
    parts = []
    begin = 0
    while begin < len(tokens):
        end = skip_to(tokens, begin, {","})
        parts.append(tokens[begin:end])
        begin = end + 1
    return parts


def join_tokens(tokens: Iterable[Token]) -> str:
    """Return the text of tokens in one line."""
    joined = ""
    last = ""
    for token in tokens:
        is_tight = last in _TIGHT_AFTER or (token.text in _TIGHT_BEFORE and (token.text not in "([" or last.isalnum()))
        joined += token.text if is_tight or not joined else f" {token.text}"
        last = token.text
    return joined
