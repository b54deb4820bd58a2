"""TOML and JSON from anywhere: whatever stands in them, what is wrong is one error, soon."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

DEEPEST = 64  # parts of a dotted key; the time that reading one takes grows with their square

_LONG_KEY = re.compile(
    r"""(?<![\w."'-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){%d}""" % DEEPEST  # noqa: UP031 - braces
)


class DocumentError(ValueError):
    """What is wrong with a document, as the end of a sentence."""


def read_toml(content: bytes | str) -> dict[str, Any]:
    """Return the table; raise :class:`DocumentError`."""
    text = _text(content)
    if _LONG_KEY.search(text):
        raise DocumentError(f"a dotted key has more than {DEEPEST} parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise DocumentError("it is nested too deeply") from None
    except ValueError as error:
        raise DocumentError(_why(error)) from None


def read_json(content: bytes | str) -> Any:
    """Return the value; raise :class:`DocumentError`."""
    try:
        return json.loads(_text(content))
    except RecursionError:
        raise DocumentError("it is nested too deeply") from None
    except ValueError as error:
        raise DocumentError(_why(error)) from None


def _text(content: bytes | str) -> str:
    try:
        return content if isinstance(content, str) else content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentError(str(error)) from None


def _why(error: ValueError) -> str:
    return "an integer has thousands of digits" if str(error).startswith("Exceeds the limit") else str(error)
