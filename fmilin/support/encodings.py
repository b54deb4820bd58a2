"""Text for streams that cannot encode every character of fmilin's tables, such as Windows consoles in cp1252."""

from fmilin.errors import count_omitted

_LOOKALIKES = {
    "±": "+-",
    "×": "x",
    "·": "*",
    "→": "->",
    "∞": "inf",
    "…": "...",
    "°": "deg",
    "µ": "u",
    "Δ": "d",
    "─": "-",
    "━": "-",
    "│": "|",
    "╭": "+",
    "╮": "+",
    "╰": "+",
    "╯": "+",
}
"""ASCII text for characters of tables and messages; any other character that is missing becomes a question mark."""


def describe_printed(beginning: bytes, size: int) -> str:
    r"""Return a message about what a model printed, of which ``size`` bytes the ``beginning`` is shown.

    >>> describe_printed(b"solver: step", 20)
    'The model printed:\nsolver: step\n... and 8 more bytes'
    """
    remaining = count_omitted(size, len(beginning), "bytes")
    text = beginning.decode("utf-8", "replace").rstrip()
    return f"The model printed:\n{text}" + (f"\n... {remaining}" if remaining else "")


def replace_unencodable(text: str, encoding: str | None) -> str:
    """Replace characters that ``encoding`` does not have by similar ASCII text; None stands for UTF-8.

    >>> replace_unencodable("2 ± 3 i ──", "ascii")
    '2 +- 3 i --'
    >>> replace_unencodable("2 ± 3 i ──", "cp1252")
    '2 ± 3 i --'
    """
    name = encoding or "utf-8"
    try:
        text.encode(name)
    except UnicodeEncodeError:
        return "".join(_replace_character(character, name) for character in text)
    except LookupError:  # a stream may claim an encoding that Python does not know
        return replace_unencodable(text, "ascii")
    return text


def _replace_character(character: str, encoding: str) -> str:
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return _LOOKALIKES.get(character, "?")
    return character
