"""Model descriptions that are well-formed and wrong: bytes say which attributes and elements are changed, and how."""

from __future__ import annotations

import re

__all__ = ["mutated"]

_ATTRIBUTE = re.compile(r'([\w:]+)="([^"]*)"')
_ELEMENT = re.compile(r"<(?!/|\?|!)[^<>]*?>")
_ODD = (
    "", "0", "1", "-1", "2", "3", "4", "7", "99", "4294967295", "4294967296", "9" * 30, "1e5", "nan", "inf", "-inf",
    "1 2", "1 2 3", "  5 ", "x", "true", "false", "input", "output", "parameter", "structuralParameter",
    "calculatedParameter",
    "local", "independent", "continuous", "discrete", "fixed", "tunable", "constant", "exact", "approx", "calculated",
    "2.0", "3.0", "1.0", "4.0", "{0}", "%s%n", "&lt;&amp;&gt;", "der(x)", "q[2]", "&#x1F600;", "../..", "0x10", "1_000",
    "٣", "1000000000", "-7", "50000000",
)  # fmt: skip
_TAGS = (
    "Real",
    "Integer",
    "Float64",
    "Float32",
    "String",
    "Clock",
    "Dimension",
    "Alias",
    "Unknown",
    "Enumeration",
    "a",
)


def mutated(xml: str, data: bytes) -> str:
    """Change ``xml`` once for every four bytes of ``data``."""
    for i in range(0, len(data) - 3, 4):
        how, where, what = data[i], data[i + 1] * 256 + data[i + 2], data[i + 3]
        pattern = _ATTRIBUTE if how % 4 < 3 else _ELEMENT
        found = list(pattern.finditer(xml))
        if not found:
            return xml
        match = found[where % len(found)]
        xml = xml[: match.start()] + _replacement(match, how, what, found) + xml[match.end() :]
    return xml


def _replacement(match: re.Match[str], how: int, what: int, found: list[re.Match[str]]) -> str:
    other = found[what % len(found)]
    match how % 12:
        case 0 | 1 | 4 | 5 | 8:
            return f'{match[1]}="{_ODD[what % len(_ODD)]}"'
        case 2:
            return f'{match[1]}="{other[2]}"'
        case 6:
            return ""
        case 9 | 10:
            return f'{other[1]}="{match[2]}"'
        case 3:
            return match[0] * 2 if match[0].endswith("/>") else match[0]
        case 7:
            return "" if match[0].endswith("/>") else match[0]
        case _:
            tag = _TAGS[what % len(_TAGS)]
            return re.sub(r"^<[\w:]+", f"<{tag}", match[0]) if match[0].endswith("/>") else match[0]
