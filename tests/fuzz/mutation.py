"""Files that are well-formed and wrong: bytes say which attributes, elements and values are changed, and how."""

from __future__ import annotations

import copy
import io
import json
import re
from typing import Any

import numpy as np

__all__ = ["as_npz", "changed_document", "changed_toml", "mutated"]

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


_VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 2, 1e308, 1e-320, 10**400, "", "x", "nan", "\0", "\ud800", [], [[]], [1, 2], {}, {"a": 1},
    float("nan"), float("inf"), [None], ["1", "2"], [[1, 2], [3]], "1e400", -0.0, 2**63,
)  # fmt: skip
_LITERAL = re.compile(
    r"""-?\d+(?:\.\d+)?(?:e-?\d+)?|"[^"\n]*"|\b(?:true|false)\b|(?m:^[\w.]+(?= ?=))|\[\[?[\w.]+\]\]?"""
)
_TOML = (
    "0", "-1", "1e308", "nan", "inf", '""', '"x"', "[]", "[0, 0, 0]", "{}", "true", "10e10", "1e-320", '"ground"',
    '"world"', "[[body]]", "[[joint]]", "2", "9" * 30, "[1, 2]", '"(3*x)^999999999"', '"a.b"', "\n", "0.5",
)  # fmt: skip


def changed_document(document: dict[str, Any], data: bytes) -> dict[str, Any]:
    """Replace one value of a JSON document for every four bytes of ``data``: by another, or by something odd."""
    document = copy.deepcopy(document)
    for i in range(0, len(data) - 3, 4):
        places = [*_places(document)]
        holder, key = places[(data[i] * 256 + data[i + 1]) % len(places)]
        other, name = places[(data[i + 2] * 256 + data[i + 3]) % len(places)]
        new = other[name] if data[i + 2] % 3 == 0 else _VALUES[data[i + 3] % len(_VALUES)]
        holder[key] = copy.deepcopy(new)
    return document


def _places(value: Any, depth: int = 0) -> Any:
    if depth > 8 or not isinstance(value, dict | list):
        return
    for key in [*value] if isinstance(value, dict) else range(len(value)):
        yield value, key
        yield from _places(value[key], depth + 1)


def as_npz(document: dict[str, Any]) -> bytes:
    """Return a document as a .npz file, arrays of whatever NumPy makes of them."""
    arrays: dict[str, Any] = {}
    rest = dict(document)
    for name in (
        "A",
        "B",
        "C",
        "D",
        "T",
        "T_u",
        "f0",
        "y0",
        "eigenvalues",
        "states",
        "full_states",
        "inputs",
        "outputs",
    ):
        arrays[name] = _array(rest.pop(name, None))
    errors = rest.pop("errors", None)
    for name, value in (errors if isinstance(errors, dict) else {}).items():
        arrays[f"error_{name}"] = _array(value)
    arrays["fmilin"] = np.array(json.dumps(rest))
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def _array(value: Any) -> Any:
    try:
        array = np.array(value)
    except (ValueError, OverflowError):
        return np.array("odd")
    return np.array(repr(value)[:50].encode("ascii", "replace")) if array.dtype.hasobject else array


def changed_toml(text: str, data: bytes) -> str:
    """Replace one number, text, key or header of a TOML file for every four bytes of ``data``."""
    for i in range(0, len(data) - 3, 4):
        found = list(_LITERAL.finditer(text))
        if not found:
            return text
        match, other = found[(data[i] * 256 + data[i + 1]) % len(found)], found[data[i + 2] % len(found)]
        new = other[0] if data[i + 2] % 2 else _TOML[data[i + 3] % len(_TOML)]
        text = text[: match.start()] + new + text[match.end() :]
    return text
