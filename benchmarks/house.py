"""The house itself: how many lines, rooms and floors, and whether imports run in circles, those for types included."""

from __future__ import annotations

import tomllib
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp

import fmilin
from benchmarks.tables import show

PACKAGE = Path(fmilin.__file__).parent
LINES, ROOMS, FLOORS = 51_500, 33, 14

Graph = dict[str, set[str]]
"""For each file or room those that it imports."""


def main() -> None:
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in PACKAGE.rglob("*.py"))
    imports = _imports()
    circle = _circle(imports)
    rooms = _rooms(imports)
    among_rooms = _circle(rooms)
    floors = 0 if among_rooms else _floors(rooms)
    rows = [
        ["Python lines", f"{lines:,}", _verdict(lines, LINES)],
        ["rooms: folders and files at the top", str(len(rooms)), _verdict(len(rooms), ROOMS)],
        ["floors: the longest way down", str(floors) if floors else "none", _verdict(floors or FLOORS + 1, FLOORS)],
        ["circle of files", " -> ".join(circle) or "none", "none: " + ("MISSED" if circle else "kept")],
        ["circle of rooms", " -> ".join(among_rooms) or "none", "none: " + ("MISSED" if among_rooms else "kept")],
    ]
    remark = "Imports inside functions and for types count; the methods listed in pyproject.toml do not."
    show("The house", ["what", "now", "target"], rows, remark)


def _imports() -> Graph:
    graph = grimp.build_graph("fmilin", exclude_type_checking_imports=False, cache_dir=None)
    found = {file: set(graph.find_modules_directly_imported_by(file)) for file in graph.modules}
    for importer, imported in _exceptions():
        found[importer].discard(imported)
    return found


def _exceptions() -> list[tuple[str, str]]:
    """Return the imports that the contract of the layers lists."""
    with (PACKAGE.parent / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    listed = next(c["ignore_imports"] for c in contracts if c["type"] == "layers")
    return [tuple(line.split(" -> ")) for line in listed]


def _rooms(imports: Graph) -> Graph:
    def room(file: str) -> str:
        return file.split(".")[1] if "." in file else "__init__"

    rooms: Graph = {room(file): set() for file in imports}
    for file, imported in imports.items():
        rooms[room(file)] |= {room(other) for other in imported} - {room(file)}
    return rooms


def _circle(graph: Graph) -> list[str]:
    """Return the files or rooms of one circle, none when there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [name.removeprefix("fmilin.") for name in reversed(error.args[1])]
    return []


def _floors(rooms: Graph) -> int:
    @cache
    def floor(room: str) -> int:
        return 1 + max((floor(below) for below in rooms[room]), default=0)

    return max(map(floor, rooms))


def _verdict(value: int, target: int) -> str:
    return f"at most {target:,}: {'kept' if value <= target else 'MISSED'}"
