"""Writes ``docs/mechanism.schema.json`` and the lists of keys in ``docs/mechanism.md``, from the schema of the files.

Usage: ``python docs/mechanism_file.py``. A test compares both files with what is written here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fmilin.models.mechanism.schema import MechanismFile

__all__ = ["json_schema", "reference", "write"]

DOCS = Path(__file__).parent
EVERY = ("name", "kind", "start", "nominal", "delay")  # keys of every input
MAX_LISTED_CHOICES = 8
EVIDENT = (
    "The body.",
    "The joint.",
    "In the body's frame, in m.",
    "A body, or the ground.",
    "In the frame of this body, in m.",
)
"""Meanings that occur in many tables: the page states them once, above the tables."""
BEGIN = "<!-- what follows is written by python docs/mechanism_file.py -->"


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a mechanism file."""
    schema = MechanismFile.model_json_schema()
    found: dict[str, Any] = {"$schema": "https://json-schema.org/draft/2020-12/schema", **_plain(schema)}
    return found


def _plain(part: Any) -> Any:
    """Leave out what pydantic adds for None, which TOML does not have, and titles that repeat the key."""
    if isinstance(part, list):
        return [_plain(p) for p in part]
    if not isinstance(part, dict):
        return part
    plain = {k: _plain(v) for k, v in part.items() if k != "title" or not isinstance(v, str)}
    if plain.get("default", 0) is None or isinstance(plain.get("default"), dict):
        del plain["default"]
    choices = [c for c in plain.get("anyOf", ()) if c != {"type": "null"}]
    if len(choices) == 1 and len(choices) < len(plain["anyOf"]):
        del plain["anyOf"]
        plain = {**choices[0], **plain}
    return plain


def reference() -> str:
    """Return every key of a mechanism file as lists in Markdown."""
    schema = json_schema()
    named = {}
    for key, entry in schema["properties"].items():
        items = entry.get("items", {})
        for one in items.get("oneOf", [items] if "$ref" in items else []):
            table = one["$ref"].rsplit("/", 1)[1]
            kind = schema["$defs"][table]["properties"].get("kind", {}).get("const")
            named[table] = f'[[{key}]]`, `kind = "{kind}"' if kind else f"[[{key}]]"
    inputs = (
        "### Every `[[input]]`\n\nHas `name`, `kind`, `start` (its initial value, 0 by default), `nominal` (its "
        "typical size, by which searches and errors are scaled) and, unless it is a motion, `delay` (the dead time "
        "before it acts, 0 s by default).\n"
    )
    tables = [key for key, entry in schema["properties"].items() if _type(entry) == "tables"]
    whole = _section("The file itself", schema, leave=tables)
    sections = [
        f"{whole}\nTables: {', '.join(f'`[[{key}]]`' for key in tables)}. Each has a `name`. After each key: the type "
        "of its value, *needed* or the default (0 also for zero vectors), its meaning. `body`, `joint`, `first` and "
        "`second` name bodies and joints (`first` and `second` also the ground); a `point` is in its body's frame, in "
        "m.\n",
        _section("Frames (placements)", schema["$defs"]["PlacementTable"]),
    ]
    for name, heading in named.items():
        table = schema["$defs"][name]
        if heading == "[[joint_setting]]":
            others = ", ".join(f"`{key}`" for key in table["properties"] if key != "joint")
            sections.append(
                f"### `{heading}`\n\n{table['description']} `joint` is its name; {others} are as for a joint, instead "
                "of the robot file's.\n"
            )
        elif "kind" in table["properties"]:
            sections += [inputs] * (inputs not in sections)
            sections.append(_section(f"`{heading}`", table, leave=EVERY))
        else:
            sections.append(_section(f"`{heading}`", table, leave=("name",)))
    return BEGIN + "\n\n" + "\n".join(sections)


def _section(heading: str, table: dict[str, Any], leave: Sequence[str] = ()) -> str:
    description = table["description"].removeprefix("An input: ")
    rows = [f"### {heading}", "", f"{description[:1].upper()}{description[1:]}", ""]
    required = table.get("required", ())
    keys_of: dict[str, list[str]] = {}  # keys with the same values and meaning share a line
    for key, entry in table["properties"].items():
        if key in leave:
            continue
        default = "*needed*" if key in required else _default(entry.get("default", ""))
        value = f"{_type(entry)}, {default}" if default else _type(entry)
        keys_of.setdefault(f"({value}): {entry['description']}", []).append(f"`{key}`")
    for meaning, keys in keys_of.items():
        value, _, text = meaning.partition("): ")
        rows.append(f"- {', '.join(keys)} {value + ')' if text in EVIDENT else meaning}")
    return "\n".join(rows) + "\n"


def _default(value: Any) -> str:
    if value in ("", [], {}):
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, list):
        value = [int(v) if isinstance(v, float) and v.is_integer() else v for v in value]
        value = value if any(value) else 0
    return f"`{json.dumps(value)}`"


def _type(entry: dict[str, Any]) -> str:
    """Say in words what a value may be."""
    if "const" in entry:
        return f"`{entry['const']}`"
    if "enum" in entry:
        is_long = len(entry["enum"]) > MAX_LISTED_CHOICES  # the page lists them with their meaning
        return "one of the above" if is_long else ", ".join(f"`{value}`" for value in entry["enum"])
    if "anyOf" in entry:
        return " or ".join(_type(choice) for choice in entry["anyOf"]).replace("number or numbers", "number(s)")
    if "$ref" in entry:
        return "frame"
    if entry["type"] != "array":
        return {"string": "text", "boolean": "boolean", "integer": "whole number"}.get(entry["type"], "number")
    if "$ref" in entry["items"] or "oneOf" in entry["items"]:
        return "tables"
    inner = {"array": f"rows of {entry['items'].get('minItems', 3)} numbers", "string": "texts"}.get(
        entry["items"]["type"], "numbers"
    )
    return f"{entry['maxItems']} {inner}" if "maxItems" in entry else inner


def write() -> None:
    """Write the schema and the lists of keys of the reference."""
    (DOCS / "mechanism.schema.json").write_text(json.dumps(json_schema(), indent=2) + "\n", encoding="utf-8")
    page = DOCS / "mechanism.md"
    before = page.read_text(encoding="utf-8").split(BEGIN)[0]
    page.write_text(before + reference(), encoding="utf-8")


if __name__ == "__main__":
    write()
