"""Writes ``docs/packages.md`` and ``docs/pictures/packages.svg``: what each package is for, and its imports.

Usage: ``python docs/packages.py``. A test compares both files with what is written here.
"""

from __future__ import annotations

import ast
import tomllib
from graphlib import TopologicalSorter
from html import escape
from pathlib import Path

import grimp

__all__ = ["layers", "page", "picture", "write"]

ROOT = Path(__file__).parents[1]
FACTS = ("Takes", "Returns", "Does not depend on")
"""Lines of a package's docstring. The page leaves out the last, of which the order of the layers shows most."""
ROW, WIDTH, BOX, LEFT, MARGIN = 46, 1000, 170, 230, 24


def layers() -> list[list[str]]:
    """Return the folders from top to bottom, those next to each other in one list: the import contract's own table."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    names = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [[name.strip() for name in row.split("|")] for row in names]


def page() -> str:
    """Return the text of ``docs/packages.md``."""
    rows = "\n".join(_section(name) for row in layers() for name in row)
    return (
        "# Packages\n\n"
        "From a source to a linear model: **source → `Model` → operating point on the manifold → local\n"
        "parametrization → derivatives → `LinearModel` → file**. Each package imports those below it only.\n"
        "Their docstrings say what each takes (→) and returns;\n"
        "`python docs/packages.py` writes this page.\n\n"
        "![The packages of fmilin, from the command line down, and their imports](pictures/packages.svg)\n\n"
        f"{rows}"
    )


def picture() -> str:
    """Return the SVG: the folders from top to bottom, an arrow for each import that no longer way replaces."""
    place = {name: (i, k) for i, row in enumerate(layers()) for k, name in enumerate(row)}
    height = len(layers()) * ROW + 2 * MARGIN
    arrows = [_arrow(place, a, b) for a, below in sorted(_direct(_imports()).items()) for b in sorted(below)]
    boxes = [_box(name, *place[name]) for name in place]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">',
            '<defs><marker id="tip" markerWidth="7" markerHeight="7" refX="6" refY="3" orient="auto">'
            '<path d="M0,0 L6,3 L0,6 z" fill="#777"/></marker></defs>',
            f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
            *arrows,
            *boxes,
            "</svg>\n",
        ]
    )


def write() -> None:
    """Write both files."""
    (ROOT / "docs" / "packages.md").write_text(page(), encoding="utf-8")
    (ROOT / "docs" / "pictures" / "packages.svg").write_text(picture(), encoding="utf-8")


def read_docstring(folder: str) -> tuple[str, list[str]]:
    """Return the first paragraph of the docstring of a package or module, and of a package the lines below it."""
    package = ROOT / "fmilin" / folder / "__init__.py"
    is_package = package.exists()
    source = (package if is_package else ROOT / "fmilin" / f"{folder}.py").read_text(encoding="utf-8")
    head, _, rest = (ast.get_docstring(ast.parse(source)) or "").partition("\n\n")
    return head.replace("\n", " "), rest.splitlines() if is_package else []


def _section(folder: str) -> str:
    head, lines = read_docstring(folder)
    details = _details(lines).replace(":class:`~fmilin.", "`")
    suffix = "" if lines else ".py"
    return f"## `fmilin/{folder}{suffix}`\n\n{head}\n" + (f"\n{details}\n" if lines else "")


def _details(lines: list[str]) -> str:
    """Return what a package takes and returns as one line."""
    facts = collect_facts(lines)
    if not facts:
        return ""
    takes, returns, _ = (facts.get(fact, "") for fact in FACTS)
    return f"{takes[:1].upper()}{takes[1:].removesuffix('.')} → {returns}"


def collect_facts(lines: list[str]) -> dict[str, str]:
    """Return the facts that the docstring of a package states, by their names."""
    facts: dict[str, str] = {}
    name = ""
    for line in lines:
        head, colon, text = line.partition(": ")
        if colon and head in FACTS:
            name, facts[head] = head, text
        elif name:
            facts[name] += f" {line.strip()}"
    return facts


def _imports() -> dict[str, set[str]]:
    graph = grimp.build_graph("fmilin", exclude_type_checking_imports=False, cache_dir=None)
    folders: dict[str, set[str]] = {name: set() for row in layers() for name in row}
    for module in graph.modules:
        for other in graph.find_modules_directly_imported_by(module):
            a, b = (name.split(".")[1] if "." in name else "" for name in (module, other))
            if a in folders and b in folders and a != b:
                folders[a].add(b)
    return folders


def _direct(folders: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the imports without those that a way over another folder implies."""
    reached: dict[str, set[str]] = {}
    for name in TopologicalSorter(folders).static_order():
        reached[name] = folders[name].union(*(reached[other] for other in folders[name]))
    return {
        name: {b for b in below if not any(b in reached[other] for other in below if other != b)}
        for name, below in folders.items()
    }


def _corner(row: int, column: int) -> tuple[int, int]:
    return LEFT - BOX // 2 + column * (BOX + 30), MARGIN + row * ROW


def _box(name: str, row: int, column: int) -> str:
    x, y = _corner(row, column)
    beside = len(layers()[row]) > 1
    halo = 'fill="#444" stroke="#fff" stroke-width="5" paint-order="stroke"'  # arrows pass behind the words
    label = f'<text x="{x + BOX + 18}" y="{y + 20}" font-size="11" {halo}>{escape(_short(name))}</text>'
    head = "" if beside else label
    return (
        f'<rect x="{x}" y="{y}" width="{BOX}" height="30" rx="5" fill="#e8eff8" stroke="#33669a"/>'
        f'<text x="{x + BOX // 2}" y="{y + 20}" font-size="14" text-anchor="middle" fill="#123">{name}</text>{head}'
    )


def _short(name: str) -> str:
    return read_docstring(name)[0].split(":")[0].rstrip(".")


def _arrow(place: dict[str, tuple[int, int]], above: str, below: str) -> str:
    """Return a line from one box to another: straight to the next row, a bow on the left otherwise."""
    (i, k), (j, m) = place[above], place[below]
    (x1, y1), (x2, y2) = _corner(i, k), _corner(j, m)
    line = 'fill="none" stroke="#777" marker-end="url(#tip)"'
    if j == i + 1:
        return f'<path d="M{x1 + BOX // 2},{y1 + 30} L{x2 + BOX // 2},{y2}" {line}/>'
    if k:  # what stands on the right arrives from the right
        x1, x2 = x1 + BOX // 2, x2 + BOX
        return f'<path d="M{x1},{y1 + 30} C{x1},{y2 + 12} {x1},{y2 + 12} {x2},{y2 + 18}" {line}/>'
    bow = x2 - 24 * min(j - i, 5)
    return f'<path d="M{x1},{y1 + 18} C{bow},{y1 + 18} {bow},{y2 + 12} {x2},{y2 + 12}" {line}/>'


if __name__ == "__main__":
    write()
