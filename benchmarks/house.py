"""The house itself: lines, modules, folders, circles of imports, exceptions of the contract, makers of results."""

from __future__ import annotations

import ast
import tomllib
from functools import partial
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from unittest.mock import patch

import grimp
import numpy as np

import fmilin
import fmilin as fl
from benchmarks.mechanism import quickest
from benchmarks.robots import nearby, robots
from benchmarks.tables import show
from fmilin.codegen.compiler import CompilationBudget
from fmilin.models.mechanism import Mechanism

PACKAGE = Path(fmilin.__file__).parent
LINES, MODULES, FOLDERS, FILES = 72_000, 450, 17, 4
ROAD, POINTS = 1.5, 512

Graph = dict[str, set[str]]
"""For each file or folder those that it imports."""


def main() -> None:
    files = sorted(PACKAGE.rglob("*.py"))
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)
    imports = _imports()
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    at_the_top = [path.name for path in PACKAGE.iterdir() if path.is_file()]
    makers = _makers(files)
    rows = [
        ["Python lines", f"{lines:,}", _verdict(lines, LINES)],
        ["modules", str(len(files)), _verdict(len(files), MODULES)],
        ["folders at the top", str(len(folders)), _verdict(len(folders), FOLDERS)],
        ["files at the top", str(len(at_the_top)), _verdict(len(at_the_top), FILES)],
        ["circle of files", *_none(" -> ".join(_circle(imports)))],
        ["circle of folders", *_none(" -> ".join(_circle(_between_folders(imports))))],
        ["exceptions of the import contract", *_none(", ".join(_exceptions()))],
        ["places that construct a numeric LinearModel", ", ".join(makers), _verdict(len(makers), 1)],
    ]
    show("The house", ["what", "now", "target"], rows, "Imports inside functions and for types count. Files apart.")
    roads()


def roads() -> None:
    """How much longer checked linear models take than the bare kernel inside, at the same points, by the recursion."""
    rows = []
    for robot in robots():
        model = robot.make()
        rows.append([robot.name, *_ratios(model, nearby(model, POINTS), fl.linearize(model).states.names)])
    show(
        "The road beside its kernel",
        ["robot", "kernel", "linearize_along", "sweep", "sweep, coordinates named", "target"],
        [[*row, f"at most {ROAD:g}"] for row in rows],
        f"{POINTS} points, processor time, in turns, the quickest of each; kernel: matrices_along. No compiled code.",
    )


def _ratios(model: Mechanism, points: list[fl.OperatingPoint], named: tuple[str, ...]) -> list[str]:
    """Return the time of the kernel at a point, and of the roads in parts of it."""
    name = named[1]
    start = float(model.start.states[model.states.positions[name]])
    vary = {name: np.linspace(start, start + 0.05, len(points))}
    with patch.object(CompilationBudget, "is_spent_by", return_value=False):
        kernel, *others = quickest(
            partial(model.matrices_along, points, compiled=False),
            partial(fl.linearize_along, model, points),
            partial(fl.sweep, model, vary),
            partial(fl.sweep, model, vary, independent=named),
            rounds=3,
        )
    return [f"{1e6 * kernel / len(points):.0f} us", *(f"{t / kernel:.2f}" for t in others)]


def _imports() -> Graph:
    graph = grimp.build_graph("fmilin", exclude_type_checking_imports=False, cache_dir=None)
    return {file: set(graph.find_modules_directly_imported_by(file)) for file in graph.modules}


def _exceptions() -> list[str]:
    """Return what the import contracts let pass, but that the command line uses the front door."""
    with (PACKAGE.parent / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    return [line for c in contracts for line in c.get("ignore_imports", []) if line != "fmilin.cli.* -> fmilin"]


def _makers(files: list[Path]) -> list[str]:
    """Return the modules that call ``LinearModel(...)``, but for those that read files."""
    return [
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        for path in files
        if "output" not in path.parts and any(_makes(node) for node in ast.walk(ast.parse(path.read_text("utf-8"))))
    ]


def _makes(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "LinearModel"


def _between_folders(imports: Graph) -> Graph:
    def folder(file: str) -> str:
        return file.split(".")[1] if "." in file else "__init__"

    folders: Graph = {folder(file): set() for file in imports}
    for file, imported in imports.items():
        folders[folder(file)] |= {folder(other) for other in imported} - {folder(file)}
    return folders


def _circle(graph: Graph) -> list[str]:
    """Return the files or folders of one circle, none when there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [name.removeprefix("fmilin.") for name in reversed(error.args[1])]
    return []


def _none(what: str) -> tuple[str, str]:
    return what or "none", "none: " + ("MISSED" if what else "kept")


def _verdict(value: int, target: int) -> str:
    return f"at most {target:,}: {'kept' if value <= target else 'MISSED'}"
