"""Symmetrical components of quasi-static machines, in arrays that the front end reads.

The front end rejects ``symmetricTransformationMatrix`` and the functions of sequences of
``Modelica.Electrical.Polyphase.Functions``, since functions compute the sizes of their arrays, and it crashes on sums
over array constructors in loops. Parameters get the values of these functions for an odd number of phases m, with the
entries exp(2 pi i j (k - 1)/m)/m of the matrix; for other numbers a size does not agree, which is an error.
"""

from __future__ import annotations

import re

from fmilin_modelica.rewriting import edit_text, mask_comments_and_strings

__all__ = ["write_symmetrical_components_as_arrays"]

_DECLARATION = re.compile(
    r"(?:final\s+)?parameter\s+(?:Complex|Integer)\s+(\w+)\s*\[[^\]]*\]\s*=\s*[\w.]*"
    r"\b(symmetricTransformationMatrix|indexPositiveSequence|indexNonPositiveSequence)\s*\(\s*(\w+)\s*\)"
)
_TWO_PI = "6.283185307179586"
_MATRIX = (
    "final parameter Real {name}_{part}[{m}, {m}] = "
    f"{{{{{{{{{{function}}(j*(k - 1)*{_TWO_PI}/{{m}})/{{m}} for k in 1:{{m}}}}}} for j in 1:{{m}}}}}}"
)
_POSITIVE = "final parameter Integer {name}[1] = {{1}}"
_OTHERS = "final parameter Integer {name}[if mod({m}, 2) == 1 then {m} - 1 else 0] = {{k + 1 for k in 1:{m} - 1}}"
_PRODUCT = r"\(*\s*{name}\s*\[\s*{j}\s*,\s*{k}\s*\]\s*\.\s*(re|im)\s*\*\s*{v}\s*\[\s*{k}\s*\]\s*\.\s*(re|im)\s*\)*"
_SUM = (
    r"\bsum\s*\(\s*\{{\s*"
    + _PRODUCT.replace("{j}", r"(\w+)").replace("{k}", r"(\w+)", 1).replace("{k}", r"\2").replace("{v}", r"(\w+)")
    + r"\s*([+-])\s*"
    + _PRODUCT.replace("{j}", r"\1").replace("{k}", r"\2").replace("{v}", r"\4")
    + r"\s*for\s+\2\s+in\s+1\s*:\s*\w+\s*\}}\s*\)"
)


def write_symmetrical_components_as_arrays(text: str) -> str:
    """Return a text in which parameters have values in the place of calls of these functions."""
    if "symmetricTransformationMatrix" not in text and "PositiveSequence" not in text:
        return text
    code = mask_comments_and_strings(text)
    edits = []
    for found in _DECLARATION.finditer(code):
        name, function, m = found.groups()
        if function == "symmetricTransformationMatrix":
            real = _MATRIX.format(name=name, part="re", function="cos", m=m)
            written = f"{real}; {_MATRIX.format(name=name, part='im', function='sin', m=m)}"
            edits += _list_products(code, name)
        else:
            pattern = _POSITIVE if function == "indexPositiveSequence" else _OTHERS
            written = pattern.format(name=name, m=m)
        edits.append((*found.span(), written + "\n" * found[0].count("\n")))
    return edit_text(text, edits)


def _list_products(code: str, name: str) -> list[tuple[int, int, str]]:
    """Return the edits that write sums over products with a row of a matrix as products of vectors."""
    edits = []
    for found in re.finditer(_SUM.format(name=rf"(?<!\w){name}"), code):
        j, _, part, vector, other, sign, second, last = found.groups()
        first_product = f"{name}_{part}[{j}, :]*{vector}.{other}"
        words = f"({first_product} {sign} {name}_{second}[{j}, :]*{vector}.{last})"
        edits.append((*found.span(), words + "\n" * found[0].count("\n")))
    return edits
