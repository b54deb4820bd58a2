"""Text for streams that cannot encode every character of fmilin's tables, such as Windows consoles in cp1252."""

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
