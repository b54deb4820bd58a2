"""The parts of declarations that the front end's equations lack: written start values, defaults of inputs.

The front end fills in a start value of 0 where none is written, and drops the declaration equation of an input. Its
flattened table, one step before the equations, has both, with the place in the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["LIBRARY_RANK", "declarations_of", "functions_of"]

LIBRARY_RANK = 1000  # rank of a start value that a library writes inside its own classes
_IDENTIFIER = re.compile(rb"([A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)?$")
_SUBSCRIPTS = re.compile(r"\[[^\]]*\]")

Texts = Mapping[int, tuple[str, bytes]]  # path and content of each file by its number


def declarations_of(flat: Mapping[str, Any], texts: Texts) -> dict[str, dict[str, Any]]:
    """Return what the declarations of the flattened variables say, by name, as far as the equations do not.

    ``rank`` of a start value that is written, as opposed to filled in: 0 in the class that is flattened or in a
    modification there, 1, 2, ... for components of it, :data:`LIBRARY_RANK` inside classes of a library. ``binding``
    of inputs: an expression tree. ``output``: of the whole model, as a variable or in a record.
    """
    records = {name for name in flat["record_instances"] if "." not in name}
    declarations: dict[str, dict[str, Any]] = {}
    for name, variable in flat["variables"].items():
        said: dict[str, Any] = {}
        span = _span(variable["start"])
        if span is not None and span != variable["source_span"]:
            said["rank"] = _rank(name, span, texts)
        causality = variable["causality"]
        if "Input" in causality and variable["binding"] is not None:
            said["binding"] = variable["binding"]
        if "Output" in causality and ("." not in name or _SUBSCRIPTS.sub("", name.split(".")[0]) in records):
            said["output"] = True
        if said:
            declarations[name] = said
    return declarations


def functions_of(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Return the functions of a flattened model, where the default of an input calls one: nothing else may do so."""
    bindings = [v["binding"] for v in flat["variables"].values() if "Input" in v["causality"]]
    if not any("FunctionCall" in json.dumps(binding) for binding in bindings if binding is not None):
        return {}
    kept = ("inputs", "outputs", "locals", "body")
    return {name: {key: function[key] for key in kept} for name, function in flat["functions"].items()}


def _span(node: Any) -> dict[str, int] | None:
    """Return the place of an expression tree in the text."""
    if not isinstance(node, dict):
        return None
    content = next(iter(node.values()))
    return content.get("span") if isinstance(content, dict) else None


def _rank(name: str, span: Mapping[str, int], texts: Texts) -> int:
    """Return how far outside a start value is written, see :func:`declarations_of`."""
    path, raw = texts.get(span["source"], ("", b""))
    parts = _SUBSCRIPTS.sub("", name).split(".")
    modified = _modified_names(raw, span["start"])
    level = len(parts) - 1
    if modified and parts[-len(modified) :] == modified:
        level = len(parts) - len(modified)
    is_library = not path.startswith("fmilin-no-folder")
    return LIBRARY_RANK if level and is_library else level


def _modified_names(raw: bytes, place: int) -> list[str]:
    """Return ["load", "r_0"] where "Body load(m = 1, r_0(start = " stands before a place in the text."""
    begin = raw.rfind(b";", 0, place) + 1
    statement = raw[begin:place]
    names: list[str] = []
    is_extends = re.match(rb"\s*(?:\w+\s+)*?extends\b", re.sub(rb"//[^\n]*", b"", statement)) is not None
    depth = 0
    for k in range(len(statement) - 1, -1, -1):  # outwards: what is still open at the place
        character = statement[k : k + 1]
        if character in (b")", b"]", b"}"):
            depth += 1
        elif character in (b"(", b"[", b"{"):
            depth -= 1
            found = _IDENTIFIER.search(statement[:k]) if character == b"(" and depth < 0 else None
            if found is not None:
                names.insert(0, found[1].decode())
            depth = max(depth, 0)
    return names[1:] if is_extends else names
