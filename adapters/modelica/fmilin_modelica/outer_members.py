"""Arrays and records of an outer component, as ``world.g``: classes that use them get variables that are equal to them.

The front end does not find an array of an ``inner`` component that an equation reads through ``outer``, and not the
fields of such a record in the argument of a function, nor a scalar in an array constructor, ``{world.phi, 0}``. It
does find all of them in declaration equations.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from fmilin_modelica.rewriting import edit_text, mask_comments_and_strings

__all__ = ["FAULT", "list_outer_members", "write_outer_members_as_variables"]

FAULT = re.compile(r"unresolved Flat reference|component projection requires a structured base reference")
_NAME = r"\.?[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
_OUTER = re.compile(rf"\bouter\s+(?!inner\b|parameter\b)({_NAME})\s+([A-Za-z_]\w*)\s*[;(\"]")
_CLASS = re.compile(r"\b(?:model|block|class)\s+(?:extends\s+)?([A-Za-z_]\w*)\b(?!\s*=)")
_EQUATION = re.compile(r"(?<![\w.])(?:initial\s+)?equation\b")
SCALAR = "Real {}"
DISCRETE_TYPES = {"Integer", "Boolean", "String"}
KEYWORDS = {"parameter", "constant", "end", "equation", "public", "protected"}
_DIMENSIONS = r"\[\s*\d+\s*(?:,\s*\d+\s*)*\]"


def list_outer_members(texts: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return what the classes of outer components declare as variables: ``{"world": {"g": "Real {}[2]"}}``."""
    codes = [mask_comments_and_strings(text) for text in texts]
    outer: dict[str, str] = {}
    for code in codes:
        outer.update({name: kind.rpartition(".")[2] for kind, name in _OUTER.findall(code)})
    members = {}
    for component, kind in outer.items():
        begin = re.compile(rf"\b(?:model|block|class)\s+{kind}\b")
        definition = next((code[found.start() :] for code in codes if (found := begin.search(code))), "")
        used = {m for code in codes for m in re.findall(rf"(?<![\w.]){component}\.([A-Za-z_]\w*)", code)}
        declared = {member: _declaration(member, definition, codes) for member in sorted(used)}
        members[component] = {member: words for member, words in declared.items() if words}
    return {component: found for component, found in members.items() if found}


def _declaration(member: str, definition: str, codes: list[str]) -> str:
    """Return the declaration of a variable like a member: an array, a record, or a scalar; empty for parameters."""
    pattern = rf"(?:^|;)\s*({_NAME})\s*({_DIMENSIONS})?\s+{member}\b\s*({_DIMENSIONS})?\s*[;=(]"
    found = re.search(pattern, definition, re.MULTILINE)
    if found is None:
        return ""
    if found[2] or found[3]:
        return f"Real {{}}{found[2] or found[3]}"
    last = found[1].rpartition(".")[2]
    is_record = any(re.search(rf"\brecord\s+{last}\b", code) for code in codes)
    if is_record:
        return f"{found[1]} {{}}"
    return "" if last in DISCRETE_TYPES or found[1] in KEYWORDS else SCALAR


def write_outer_members_as_variables(text: str, members: Mapping[str, Mapping[str, str]]) -> str:
    """Return a text in which classes with equations read variables of their own in place of these members."""
    code = mask_comments_and_strings(text)
    edits: list[tuple[int, int, str]] = []
    classes = list(_CLASS.finditer(code))
    ends = [found.start() for found in classes[1:]] + [len(code)]
    for found_class, end in zip(classes, ends, strict=False):
        begin, name = found_class.start(), found_class[1]
        equation = _EQUATION.search(code, begin, end)
        if equation is None:
            continue
        declarations = ""
        for component, found_members in members.items():
            for member, declaration in found_members.items():
                reference = re.compile(rf"(?<![\w.]){component}\.{member}\b(?!\s*[\[.(])")
                places = [found.span() for found in reference.finditer(code, begin, end)]
                if declaration == SCALAR:
                    places = [span for span in places if _is_in_array(code, equation.end(), span[0])]
                if places:
                    alias = f"{component}_{member}_of_{name}"
                    declarations += f"{declaration.format(alias)} = {component}.{member}; "
                    edits += [(*place, alias) for place in places]
        if declarations:
            edits.append((equation.start(), equation.start(), f"protected {declarations}"))
    return edit_text(text, edits)


def _is_in_array(code: str, begin: int, place: int) -> bool:
    """Whether a place of an equation lies in an array constructor."""
    begin = max(begin, code.rfind(";", 0, place))
    return begin < place and code.count("{", begin, place) > code.count("}", begin, place)
