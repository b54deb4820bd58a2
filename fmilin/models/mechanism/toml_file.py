"""Mechanisms as TOML files: ``docs/mechanism.md`` describes every key, ``docs/mechanism.schema.json`` is its schema."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import pi
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fmilin.errors import ModelError, nearest_names
from fmilin.models.mechanism.mechanism_description import INPUTS, PARTS, MechanismDescription
from fmilin.models.mechanism.part import Part, Placement
from fmilin.models.mechanism.parts import COORDINATES, SPEEDS, Body, Joint
from fmilin.models.mechanism.source_lines import LARGEST_NUMBER, KeyPath, Lines, SourceLines, find_lines
from fmilin.support.files import DocumentError, read_file, read_toml

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError


LENGTHS = {"x", "y", "z", "stroke"}  # coordinates that are not angles, but in prismatic joints
PLACEMENTS = ("placement", "child_placement", "first_placement", "second_placement")
DEGREE = pi / 180


def in_radians(kind: str, entry: dict[str, Any]) -> dict[str, Any]:
    """Convert a table from degrees to rad: positions, speeds, rests, turns; what is per angle is in rad always."""
    changed = setting_in_radians(entry["type"], entry) if kind == "joint" else dict(entry)
    if kind == "loop" and "turn" in entry:
        changed["turn"] = entry["turn"] * DEGREE
    for key in PLACEMENTS:
        if key in entry:
            frame = dict(entry[key])
            for angle in ("rpy", "angle"):
                if frame.get(angle) is not None:
                    frame[angle] = _convert_degrees(frame[angle], [True] * 3)
            changed[key] = frame
    return changed


def setting_in_radians(joint_type: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return values of a joint, ``position``, ``velocity`` and ``rest`` among them, in rad."""
    changed = dict(values)
    for key, names in (("position", COORDINATES), ("velocity", SPEEDS), ("rest", SPEEDS)):
        if values.get(key) is not None:
            changed[key] = _convert_degrees(values[key], [_is_angle(joint_type, c) for c in names[joint_type]])
    return changed


def offset_in_radians(joint_type: str, offset: float) -> float:
    """Return the offset of a coupling that is followed by a joint of this type."""
    return offset if joint_type == "prismatic" else offset * DEGREE


def _is_angle(joint_type: str, coordinate: str) -> bool:
    if joint_type == "prismatic" or coordinate in LENGTHS or coordinate in ("vx", "vy", "vz"):
        return False
    if joint_type == "cylindrical" and coordinate == "v":
        return False
    return not (coordinate[0] == "e" and coordinate[1:].isdigit())  # parts of a quaternion


def _convert_degrees(value: Any, is_angle: list[bool]) -> Any:
    """Return a number, or one for each coordinate, in rad; what does not fit stays, to be rejected by the part."""
    if not isinstance(value, list):
        return value * DEGREE if is_angle and is_angle[0] and len(is_angle) in (1, 3) else value
    if len(value) != len(is_angle):
        return value
    return [v * DEGREE if turns else v for v, turns in zip(value, is_angle, strict=True)]


MAX_LISTED_PROBLEMS = 5  # problems that are listed at once


@dataclass(frozen=True)
class Parts:
    """The contents of a file before assembly: a robot's file may add more."""

    content: dict[str, Any]  # the file's tables, checked against the schema; what is left out is left out here, too
    fields: dict[str, Any]  # ``bodies``, ``joints``, ... as in :class:`MechanismDescription`
    source: SourceLines
    lines: Lines

    def wrong(self, path: KeyPath, what: str) -> ModelError:
        """Return the error that something is wrong with a value."""
        return self.source.wrong(self.lines.find(path), what)


def build_description(parts: Parts) -> MechanismDescription:
    """Put together a mechanism of which one file describes all."""
    content = parts.content
    if content.get("joint_setting"):
        what = "[[joint_setting]] is for joints of a URDF or SDFormat file; write its values to the joint"
        raise parts.wrong(("joint_setting", 0), what)
    if not parts.fields["bodies"]:
        raise parts.source.wrong(None, "there is no [[body]] in it, so it describes no mechanism")
    with parts.source.add_location():
        return MechanismDescription(
            content.get("name") or parts.source.file.stem,
            **parts.fields,
            **{key: content[key] for key in ("gravity", "ground", "independent") if key in content},
        )


def read_parts(path: Path) -> Parts:
    """Read the parts of a mechanism from a TOML file."""
    text, table = _table(path)
    lines = find_lines(text)
    named: dict[str, list[int]] = {}
    for kind, entries in table.items():
        for i, entry in enumerate(entries if isinstance(entries, list) else ()):
            if isinstance(entry, dict) and isinstance(entry.get("name"), str):
                named.setdefault(entry["name"], []).append(lines.find((kind, i)) or 0)
    states = table.get("independent")
    for i, state in enumerate(states if isinstance(states, list) else ()):
        named.setdefault(str(state), []).append(lines.find(("independent", i)) or 0)
    source = SourceLines(path, named)
    content = _validate_tables(table, source, lines)
    _check_sizes(content, source, lines)
    make = _Maker(source, lines, content)
    made = {field: tuple(make.all(part.kind, part)) for field, part in PARTS.items()}
    made["inputs"] = tuple(make.all("input", None))
    return Parts(content, made, source, lines)


def _table(path: Path) -> tuple[str, dict[str, Any]]:
    try:
        text = read_file(path).decode("utf-8-sig")
        return text, read_toml(text)
    except OSError as error:
        raise ModelError(
            f"The mechanism file '{path}' cannot be read: {error.strerror or error}. Check the path and its "
            "permissions."
        ) from None
    except (DocumentError, UnicodeDecodeError) as error:
        raise ModelError(f"The mechanism file '{path}' is not TOML: {error}. Correct the file at this line.") from None


def _validate_tables(table: dict[str, Any], source: SourceLines, lines: Lines) -> dict[str, Any]:
    """Return the tables that the schema allows, left out what was left out."""
    from pydantic import ValidationError

    from fmilin.models.mechanism.schema import MechanismFile

    try:
        content: dict[str, Any] = MechanismFile.model_validate(table).model_dump(exclude_unset=True)
    except ValidationError as error:
        raise _explain_validation_error(error, table, source, lines) from None
    return content


def _explain_validation_error(
    error: ValidationError, table: dict[str, Any], source: SourceLines, lines: Lines
) -> ModelError:
    """Return one sentence for each problem: the line, the part, what is wrong and what is right."""
    sentences = []
    for problem in error.errors()[:MAX_LISTED_PROBLEMS]:
        path = tuple(problem["loc"])
        keys = _keys(path[:-1]) if problem["type"] == "extra_forbidden" else []
        if problem["type"].startswith("union_tag"):
            path = (*path, "kind")
        elif path[0] == "input" and len(path) > 3:  # the kind of input stands between
            path = path[:2] + path[3:]
        line = lines.find(path)
        what = _owner(table, path) + _sentence(problem, path, keys)
        sentences.append((f"line {line}: " if line else "") + what + ("" if what.endswith("?") else "."))
    more = error.error_count() - MAX_LISTED_PROBLEMS
    rest = f" And {more} more." if more > 0 else ""
    return ModelError(
        f"The mechanism file '{source.file}' is wrong. " + " ".join(t[0].upper() + t[1:] for t in sentences) + rest
    )


def _owner(table: dict[str, Any], path: KeyPath) -> str:
    """Return the owner of the key: "in the joint 'swing', "."""
    if len(path) < 2 or not isinstance(path[1], int):
        return ""
    entry = table[str(path[0])][path[1]]
    if not isinstance(entry, dict):
        return ""
    name = entry.get("name")
    return f"in the {path[0]} '{name}', " if isinstance(name, str) else f"in [[{path[0]}]] number {path[1] + 1}, "


def _sentence(problem: Any, path: KeyPath, keys: list[str]) -> str:
    """Say what is wrong with the value at a path, of a table with these keys."""
    key = next((p for p in reversed(path) if isinstance(p, str)), "")
    if problem["type"] == "extra_forbidden":
        near = nearest_names(str(key), keys, 1)
        hint = f"did you mean '{near[0]}'?" if near else f"known are {', '.join(keys)}"
        return f"there is no key '{key}'; {hint}"
    if problem["type"] in ("missing", "union_tag_not_found"):
        return f"the key '{key}' is missing"
    if problem["type"] in ("too_short", "too_long"):
        size = problem["ctx"].get("min_length") or problem["ctx"].get("max_length")
        return f"'{key}' needs {size} numbers, not {problem['ctx']['actual_length']}"
    if problem["type"] == "union_tag_invalid":
        return f"'kind' should be {problem['ctx']['expected_tags']}{_format_value(problem['ctx']['tag'])}"
    if problem["type"] == "list_type" and len(path) == 1 and isinstance(problem["input"], dict):
        return f"'{key}' should be a list of tables: write [[{key}]], with two brackets"
    if problem["type"] == "model_type" and problem["ctx"]["class_name"] == "PlacementTable":
        return f"'{key}' should be a table such as {{position = [0, 0, 0.1]}}"
    message = problem["msg"].removeprefix("Value error, ").replace("Input should be", "should be")
    return f"'{key}' {message}{_format_value(problem['input'])}"


def _format_value(value: Any) -> str:
    """Say what was given, as TOML spells it, when it is short."""
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return f", not {text}" if isinstance(value, str | int | float) and len(text) <= 60 else ""


def _keys(path: KeyPath) -> list[str]:
    """Return the keys of the table at a path."""
    from fmilin.models.mechanism import schema

    model: type[BaseModel] = schema.MechanismFile
    for part in path:
        if part in schema.INPUT_TABLES:
            model = schema.INPUT_TABLES[part]
        elif isinstance(part, str):
            annotation = model.model_fields[part].annotation  # X or list[X]
            model = (getattr(annotation, "__args__", None) or [annotation])[0]
    return list(model.model_fields)


def _check_sizes(content: dict[str, Any], source: SourceLines, lines: Lines) -> None:
    """Reject numbers with squares, or sums with others, that overflow; a part rejects infinite ones."""
    for kind, value in content.items():
        for i, entry in enumerate(value if isinstance(value, list) else [value]):
            if large := [number for number in _numbers(entry) if LARGEST_NUMBER < abs(number) < math.inf]:
                line = lines.find((kind, i)) or lines.find((kind,))
                what = f"'{kind}' has the number {large[0]:.3g}, and {LARGEST_NUMBER:g} is the largest allowed"
                raise source.wrong(line, what)


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _numbers(part)
    elif isinstance(value, int | float):
        yield float(min(max(value, -1e300), 1e300)) if isinstance(value, int) else value


@dataclass(frozen=True)
class _Maker:
    """Makes parts of tables, and names their lines when one is wrong."""

    source: SourceLines
    lines: Lines
    content: dict[str, Any]

    def all(self, kind: str, part: type[Part] | None) -> list[Any]:
        """Make all parts of one kind; of inputs, each says itself what it is."""
        return [self._one(kind, i, part, dict(entry)) for i, entry in enumerate(self.content.get(kind, ()))]

    def _one(self, kind: str, i: int, part: type[Part] | None, entry: dict[str, Any]) -> Any:
        line = self.lines.find((kind, i))
        if self.content.get("angle_unit") == "deg":
            entry = in_radians(kind, entry)
            types = {joint["name"]: joint["type"] for joint in self.content.get("joint", ())}
            if kind == "coupling" and entry["joint"] in types:
                entry["offset"] = offset_in_radians(types[entry["joint"]], entry.get("offset", 0.0))
        try:
            if part is Body:
                _check_mass(entry)
            part = INPUTS[entry.pop("kind")] if part is None else part
            for key in PLACEMENTS:
                if key in entry:
                    entry[key] = _placement(entry[key], f"'{key}' of the {kind} '{entry['name']}'")
            return part(**_lists_to_tuples(entry))
        except ModelError as error:
            raise self.source.wrong(line, str(error)) from None
        except OverflowError:
            raise self.source.wrong(line, f"a number of the {kind} '{entry['name']}' is too large") from None


def _check_mass(entry: dict[str, Any]) -> None:
    massless = entry.pop("massless", False)
    if massless and "mass" in entry:
        raise ModelError(f"The body '{entry['name']}' has a mass and is massless: remove one of the two keys.")
    if not massless and "mass" not in entry:
        raise ModelError(
            f"The body '{entry['name']}' has no 'mass': give it one in kg, or write massless = true for a mere frame."
        )
    if not massless and not entry["mass"] > 0 and not (entry.get("any_inertia") and entry["mass"] == 0):
        raise ModelError(
            f"The body '{entry['name']}' has a mass of {entry['mass']:g} kg: a mass must be positive; write massless "
            "= true for a mere frame."
        )
    entry.setdefault("mass", None)


def _placement(entry: dict[str, Any], where: str) -> Placement:
    turns = [key for key in ("rpy", "angle", "quaternion", "rotation") if key in entry]
    position = entry.get("position", (0.0, 0.0, 0.0))
    if len(turns) > 1:
        raise ModelError(f"{where} is turned twice, by '{turns[0]}' and '{turns[1]}': keep one of the two.")
    if "axis" in entry and "angle" not in entry:
        raise ModelError(f"{where} has an 'axis' but no 'angle'.")
    if "rpy" in entry:
        return Placement.from_rpy(position, entry["rpy"])
    if "quaternion" in entry:
        return Placement.from_quaternion(position, entry["quaternion"])
    if "angle" in entry:
        return Placement.from_axis(position, entry.get("axis", (0.0, 0.0, 1.0)), entry["angle"])
    return Placement(tuple(position), entry["rotation"]) if "rotation" in entry else Placement(tuple(position))


def _lists_to_tuples(entry: dict[str, Any]) -> dict[str, Any]:
    return {k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()}


def with_settings(joint: Joint, setting: dict[str, Any], angle_unit: str = "rad") -> Joint:
    """Return a joint with the values of a ``[[joint_setting]]`` table, its angles in this unit."""
    values = setting if angle_unit == "rad" else setting_in_radians(joint.type, setting)
    return replace(joint, **_lists_to_tuples({k: v for k, v in values.items() if k != "joint"}))
