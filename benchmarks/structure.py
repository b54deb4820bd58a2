"""The structure of the package: size, imports, calls by string, options, what tests import, and what checks cost."""

from __future__ import annotations

import ast
import os
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import TypeGuard

import click
import grimp
import numpy as np

import fmilin
import fmilin as fl
from benchmarks.mechanism import quickest
from benchmarks.robots import nearby, robots
from benchmarks.speed import make_compiled
from benchmarks.tables import show
from fmilin import systems
from fmilin.cli.derive import DerivedOption
from fmilin.cli.main import COMMANDS, program
from fmilin.models.mechanism import Mechanism
from fmilin.options import DESCRIBED, describe
from tests.test_import_paths import DOCUMENTED_MODULES, DOCUMENTED_PATHS
from tests.typing.checkers import check_sources, count_unresolved_imports, list_mistakes

PACKAGE = Path(fmilin.__file__).parent
ROOT = PACKAGE.parent
IMPLEMENTED_IN = PACKAGE / "support" / "implemented_in.py"
MAX_RATIO_ALONG, MAX_RATIO_OF_SWEEP = 3.0, 2.0  # times of checked linear models to those of the compiled kernel
MAX_ENTERED, MAX_RETURNS = 12, 10  # modules on the way of one point through linearize
PACKAGES_OF_THE_ALGORITHM = ("linearization", "manifold")
PACKAGES_OF_SOURCES = ("models", "systems", "codegen", "constraints")
MAX_TESTS_OF_INTERNALS = 200
MAX_REPEATED_CLASSES = 5
POINTS = 512
OPTIONS_OF_CLICK = {"--help", "--deadline"}

Graph = dict[str, set[str]]
"""For each module or package those that it imports."""


def main() -> None:
    files = sorted(PACKAGE.rglob("*.py"))
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in files}
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)
    packages = [path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()]
    modules_at_the_top = [path.name for path in PACKAGE.iterdir() if path.suffix == ".py"]
    imports = find_imports()
    makers = find_makers(trees)
    tests = sorted((ROOT / "tests").rglob("test_*.py"))
    tests_of_internals = [path for path in tests if imports_internals(ast.parse(path.read_text(encoding="utf-8")))]
    repeated_classes = find_repeated_classes(trees)
    rows = [
        *check_types(),
        ["Python lines", f"{lines:,}", ""],
        ["modules", str(len(files)), ""],
        ["packages at the top", str(len(packages)), ""],
        ["modules at the top", str(len(modules_at_the_top)), ""],
        ["imports upward", *compare_with_zero(find_upward_imports(imports))],
        ["circle of modules", *compare_with_zero(find_circle(imports))],
        ["circle of packages", *compare_with_zero(find_circle(join_packages(imports)))],
        ["exceptions of the import contracts", *compare_with_zero(find_exceptions())],
        ["calls by string other than implemented_in", *compare_with_zero(find_calls_by_string(trees))],
        ["modules that import others by a computed name", ", ".join(find_computed_imports(trees)), ""],
        ["options described in more than one place", *compare_with_zero(find_repeated_options())],
        [
            "test modules that import internals",
            f"{len(tests_of_internals)} of {len(tests)}",
            compare(len(tests_of_internals), MAX_TESTS_OF_INTERNALS),
        ],
        [
            "classes with the same name in two modules",
            f"{len(repeated_classes)}: {', '.join(repeated_classes)}",
            compare(len(repeated_classes), MAX_REPEATED_CLASSES),
        ],
        ["places that construct a numeric LinearModel", ", ".join(makers), compare(len(makers), 1)],
        *list_paths_through_linearize(),
    ]
    remark = (
        "Imports inside functions and for types count. A call by string takes a function or class by its name from a "
        "module that a text names. Internals are modules and names that the documentation does not name. Modules "
        "entered: by calls of Python functions of the packages linearization and manifold, at a warm call; a return is "
        "a call of a module that was called before, behind one of another module."
    )
    show("Structure", ["what", "now", "target"], rows, remark)
    print_time_ratios()


def list_paths_through_linearize() -> list[list[str]]:
    """Return rows with the modules that a warm point enters on its way through linearize, and how often it returns."""
    models: list[tuple[str, fl.Model]] = [("four-bar", systems.four_bar())]
    models += [(robot.name, robot.make()) for robot in robots() if robot.name == "UR5"]
    rows = []
    for name, model in models:
        calls = list_modules_called(partial(fl.linearize, model))
        entered, returns = count_entries_and_returns([m for m in calls if package_of(m) in PACKAGES_OF_THE_ALGORITHM])
        every, _ = count_entries_and_returns([m for m in calls if package_of(m) not in PACKAGES_OF_SOURCES])
        rows += [
            [f"one point through linearize, {name}: modules entered", str(entered), compare(entered, MAX_ENTERED)],
            [f"one point through linearize, {name}: returns", str(returns), compare(returns, MAX_RETURNS)],
            [f"one point through linearize, {name}: modules of all packages but those of the source", str(every), ""],
        ]
    return rows


def list_modules_called(work: Callable[[], object]) -> list[str]:
    """Return the module of each call of a Python function of fmilin, in their order, at the third time of the work."""
    work()
    work()
    modules: list[str] = []
    prefix = str(PACKAGE) + os.sep

    def record(frame: FrameType, event: str, _: object) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(prefix):
            modules.append("fmilin." + module_of(Path(path)))

    sys.setprofile(record)
    try:
        work()
    finally:
        sys.setprofile(None)
    return modules


def count_entries_and_returns(calls: Iterable[str]) -> tuple[int, int]:
    """Return how many modules are called, and how often one is called again after another one."""
    entered: set[str] = set()
    returns = 0
    before = ""
    for module in calls:
        if module != before:
            returns += module in entered
            entered.add(module)
        before = module
    return len(entered), returns


def print_time_ratios() -> None:
    """Print how much longer checked linear models take than the compiled kernel inside, at the same points."""
    rows = []
    for robot in robots():
        model = robot.make()
        rows.append([robot.name, *measure_ratios(model, nearby(model, POINTS), fl.linearize(model).states.names)])
    show(
        "Checked linear models and the compiled kernel inside",
        ["robot", "kernel", "linearize_along", "sweep", "sweep, coordinates named", "target"],
        [[*row, f"at most {MAX_RATIO_ALONG:g}, {MAX_RATIO_OF_SWEEP:g}"] for row in rows],
        f"{POINTS} points, processor time, in turns, the quickest of each; kernel: matrices_along. All is compiled.",
    )


def measure_ratios(model: Mechanism, points: list[fl.OperatingPoint], coordinates: tuple[str, ...]) -> list[str]:
    """Return the time of the kernel at a point, and the times of the functions that check, in parts of it."""
    name = coordinates[1]
    start = float(model.start.states[model.states.positions[name]])
    vary = {name: np.linspace(start, start + 0.05, len(points))}
    make_compiled(model, points)
    kernel, *others = quickest(
        partial(model.matrices_along, points, compiled=True),
        partial(fl.linearize_along, model, points),
        partial(fl.sweep, model, vary),
        partial(fl.sweep, model, vary, independent=coordinates),
        rounds=5,
    )
    return [f"{1e6 * kernel / len(points):.0f} us", *(f"{time / kernel:.2f}" for time in others)]


def check_types() -> list[list[str]]:
    """Return what mypy and pyright report of documentation, examples and deliberate mistakes; it takes a minute."""
    with TemporaryDirectory() as folder:
        _, complaints = check_sources(Path(folder))
    mistakes = list_mistakes()
    rows = []
    for checker, unresolved in count_unresolved_imports(complaints).items():
        verdict = "kept" if unresolved == 0 else "MISSED"
        rows.append([f"documented imports that {checker} does not resolve", str(unresolved), f"0: {verdict}"])
    for checker in ("mypy", "pyright"):
        lines = {c.line for c in complaints if c.checker == checker and c.module == "mistakes.py"}
        reported = len(lines & mistakes)
        verdict = "kept" if reported == len(mistakes) else "MISSED"
        rows.append(
            [f"deliberate mistakes that {checker} reports", f"{reported} of {len(mistakes)}", f"all: {verdict}"]
        )
    return rows


def find_imports() -> Graph:
    graph = grimp.build_graph("fmilin", exclude_type_checking_imports=False, cache_dir=None)
    return {module: set(graph.find_modules_directly_imported_by(module)) for module in graph.modules}


def read_contracts() -> list[dict[str, list[str]]]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts: list[dict[str, list[str]]] = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    return contracts


def find_upward_imports(imports: Graph) -> list[str]:
    """Return the imports from a package to one above it, or to another one of its layer, by the contract."""
    (layers,) = (contract["layers"] for contract in read_contracts() if "layers" in contract)
    level = {name.strip(): k for k, layer in enumerate(layers) for name in layer.split("|")}
    upward = []
    for module, imported in imports.items():
        for other in imported:
            above, below = level.get(package_of(module)), level.get(package_of(other))
            if above is None or below is None or package_of(module) == package_of(other):
                continue
            if below <= above:
                upward.append(f"{module} -> {other}")
    return sorted(upward)


def find_exceptions() -> list[str]:
    """Return what the import contracts let pass, except that the command line imports fmilin itself."""
    exceptions = (line for contract in read_contracts() for line in contract.get("ignore_imports", []))
    return [line for line in exceptions if line != "fmilin.cli.* -> fmilin"]


def find_calls_by_string(trees: dict[Path, ast.Module]) -> list[str]:
    """Return where a name in a text picks a function or class of a module that a text names."""
    return [
        f"{module_of(path)}:{node.lineno}"
        for path, tree in trees.items()
        if path != IMPLEMENTED_IN
        for node in ast.walk(tree)
        if is_call_of(node, "getattr") and any(is_import_by_name(part) for part in ast.walk(node))
    ]


def find_computed_imports(trees: dict[Path, ast.Module]) -> list[str]:
    return sorted(
        {
            module_of(path)
            for path, tree in trees.items()
            for node in ast.walk(tree)
            if is_import_by_name(node) and path != IMPLEMENTED_IN
        }
    )


def is_import_by_name(node: ast.AST) -> bool:
    return is_call_of(node, "import_module") or is_call_of(node, "__import__")


def is_call_of(node: ast.AST, name: str) -> TypeGuard[ast.Call]:
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    return (isinstance(function, ast.Name) and function.id == name) or (
        isinstance(function, ast.Attribute) and function.attr == name
    )


def find_repeated_options() -> list[str]:
    """Return options of commands that have a text of their own besides that of the dataclass."""
    texts: dict[tuple[str, str | None], set[str]] = {}
    for dataclass_type in DESCRIBED:
        for description in describe(dataclass_type):
            texts.setdefault((description.keyword, description.option), set()).add(description.help.lower())
    repeated = []
    context = click.Context(program)
    for name in COMMANDS:
        command = program.get_command(context, name)
        assert command is not None
        for option in command.params:
            if not isinstance(option, click.Option) or OPTIONS_OF_CLICK & set(option.opts):
                continue
            if not isinstance(option, DerivedOption):
                repeated.append(f"{name} {option.opts[0]}")
            elif not option.is_of_commands_only:
                text = (option.help or "").removeprefix("Repeatable: ").lower()
                if text not in texts.get((option.keyword, option.flag), set()):
                    repeated.append(f"{name} {option.opts[0]}")
    return repeated


def imports_internals(tree: ast.Module) -> bool:
    """Whether a module imports a name of fmilin that the documentation does not have, or a private name."""
    return any(not is_documented(module, name) for module, name in list_imported_names(tree))


def is_documented(module: str, name: str) -> bool:
    """Whether a module is documented as a whole, or the reference of Python lists this name of it."""
    if name.startswith("_"):
        return False
    return module in DOCUMENTED_MODULES or f"{module}.{name}" in DOCUMENTED_PATHS


def list_imported_names(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield module and name of each import from fmilin; the name is empty where the module itself is imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "fmilin":
                    yield alias.name, ""
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "fmilin":
            for alias in node.names:
                path = f"{node.module}.{alias.name}"
                is_module = (ROOT / Path(*path.split("."))).with_suffix(".py").exists()
                yield (path, "") if is_module else (node.module or "", alias.name)


def find_repeated_classes(trees: dict[Path, ast.Module]) -> list[str]:
    """Return the names of classes, private ones included, that two modules or more define at their top."""
    modules_of_name: dict[str, set[Path]] = {}
    for path, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                modules_of_name.setdefault(node.name, set()).add(path)
    return sorted(name for name, modules in modules_of_name.items() if len(modules) > 1)


def find_makers(trees: dict[Path, ast.Module]) -> list[str]:
    """Return the modules that call ``LinearModel(...)``, except for those that read files."""
    return [
        module_of(path)
        for path, tree in trees.items()
        if PACKAGE / "export" not in path.parents and any(is_maker(node) for node in ast.walk(tree))
    ]


def is_maker(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "LinearModel"


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def package_of(module: str) -> str:
    return module.split(".")[1] if "." in module else "__init__"


def join_packages(imports: Graph) -> Graph:
    packages: Graph = {package_of(module): set() for module in imports}
    for module, imported in imports.items():
        packages[package_of(module)] |= {package_of(other) for other in imported} - {package_of(module)}
    return packages


def find_circle(graph: Graph) -> list[str]:
    """Return the modules or packages of one circle, none if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [" -> ".join(name.removeprefix("fmilin.") for name in reversed(error.args[1]))]
    return []


def compare_with_zero(findings: list[str]) -> tuple[str, str]:
    text = f"{len(findings)}: {', '.join(findings)}" if findings else "0"
    return text, "0: " + ("MISSED" if findings else "kept")


def compare(value: int, target: int) -> str:
    return f"at most {target:,}: {'kept' if value <= target else 'MISSED'}"
