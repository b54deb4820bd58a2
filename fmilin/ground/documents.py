"""TOML and JSON from anywhere: whatever stands in them, what is wrong is one error, soon."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

DEEPEST = 64  # parts of a dotted key; the time that reading one takes grows with their square

_LONG_KEY = re.compile(
    r"""(?<![\w."'-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){%d}""" % DEEPEST  # noqa: UP031 - braces
)


class DocumentError(ValueError):
    """What is wrong with a document, as the end of a sentence."""


def read_toml(content: bytes | str) -> dict[str, Any]:
    """Return the table; raise :class:`DocumentError`."""
    if _LONG_KEY.search(text := _text(content)):
        raise DocumentError(f"a dotted key has more than {DEEPEST} parts")
    with _explained():
        return tomllib.loads(text)


def read_json(content: bytes | str) -> Any:
    """Return the value; raise :class:`DocumentError`."""
    with _explained():
        return json.loads(_text(content))


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except RecursionError:
        raise DocumentError("it is nested too deeply") from None
    except ValueError as error:
        has_long_number = str(error).startswith("Exceeds the limit")
        raise DocumentError("an integer has thousands of digits" if has_long_number else str(error)) from None


def _text(content: bytes | str) -> str:
    try:
        return content if isinstance(content, str) else content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentError(str(error)) from None
