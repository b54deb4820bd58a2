"""Import paths of the documentation and of the examples are files or packages at these paths."""

from __future__ import annotations

import ast
import importlib
import pickle
import re
import tomllib
from pathlib import Path

import pytest

import fmilin as fl

ROOT = Path(__file__).parents[1]
DOCUMENTED_PACKAGES = [
    "adapters", "constraints", "design", "errors", "export", "formulations", "lyapunov", "models", "reduction",
    "report", "signals", "simulation", "systems", "testing", "wrapping",
]  # fmt: skip


@pytest.mark.parametrize("name", DOCUMENTED_PACKAGES)
def test_a_documented_path_is_a_file_or_a_package_at_that_path(name: str) -> None:
    module = importlib.import_module(f"fmilin.{name}")
    assert module.__file__ is not None
    path = Path(module.__file__)
    assert path.with_suffix("") in (ROOT / "fmilin" / name, ROOT / "fmilin" / name / "__init__")
    assert getattr(fl, name) is module


def test_every_path_in_a_code_block_of_the_documentation_can_be_imported() -> None:
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "adapters" / "README.md"]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    paths = set(re.findall(r"^\s*from (fmilin\b[\w.]*) import", text, re.MULTILINE))
    assert len(paths) > 5
    for path in sorted(paths):
        importlib.import_module(path)


# Modules below a documented package that docs/reference/api.md names as well.
DOCUMENTED_MODULES = {
    "fmilin", "fmilin.fmi.write", "fmilin.models.mechanism", "fmilin.systems.bicycle_model",
    "fmilin.systems.four_bar_linkage", *(f"fmilin.{name}" for name in DOCUMENTED_PACKAGES),
}  # fmt: skip
DOCUMENTED_PATHS = set(
    re.findall(
        r"^\.\. auto\w+:: (fmilin\.[\w.]+)$",
        (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
)
PATTERNS = ["examples/*/*.py", "adapters/*/example/*.py", "adapters/*/fmilin_*/*.py"]
PROGRAMS = [path for pattern in PATTERNS for path in ROOT.glob(pattern)]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: str(path.relative_to(ROOT)))
def test_examples_and_adapters_import_documented_names_only(program: Path) -> None:
    for node in ast.walk(ast.parse(program.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                assert not alias.name.startswith("fmilin.") or alias.name in DOCUMENTED_MODULES, alias.name
        if not (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "fmilin"):
            continue
        assert node.module in DOCUMENTED_MODULES, f"line {node.lineno}: '{node.module}' is not documented"
        module = importlib.import_module(node.module)
        public = getattr(module, "__all__", [name for name in vars(module) if not name.startswith("_")])
        for alias in node.names:
            assert alias.name in public, f"line {node.lineno}: '{node.module}' does not offer '{alias.name}'"


@pytest.mark.parametrize("name", ["mujoco", "pinocchio", "jsbsim", "modelica", "exudyn"])
def test_an_adapter_has_a_contract_that_forbids_internal_modules(name: str) -> None:
    settings = tomllib.loads((ROOT / "adapters" / name / "pyproject.toml").read_text(encoding="utf-8"))
    [contract] = settings["tool"]["importlinter"]["contracts"]
    assert contract["forbidden_modules"] == ["fmilin.*"]
    allowed = {line.partition(" -> ")[2] for line in contract["ignore_imports"]}
    assert allowed <= DOCUMENTED_MODULES


def test_names_that_the_documentation_lists_exist() -> None:
    assert len(DOCUMENTED_PATHS) > 100
    for path in sorted(DOCUMENTED_PATHS):
        module, _, name = path.rpartition(".")
        assert hasattr(importlib.import_module(module), name), path


def test_every_name_for_authors_of_adapters_is_documented() -> None:
    text = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    overview = (ROOT / "adapters" / "README.md").read_text(encoding="utf-8")
    for name in dir(fl.adapters):
        assert re.search(rf"auto\w+:: fmilin\.adapters\.{name}$", text, re.MULTILINE), name
        assert f"`{name}`" in overview or name == "Installed", name
        assert name == "RANK" or getattr(fl.adapters, name).__doc__, name


def test_a_class_is_pickled_by_the_path_that_the_documentation_shows() -> None:
    OdeModel = importlib.import_module("fmilin.models.ode").OdeModel
    assert OdeModel is fl.models.OdeModel
    assert pickle.loads(pickle.dumps(OdeModel)) is OdeModel
    assert OdeModel.__module__ == "fmilin.models.ode"


def test_a_misspelt_name_is_an_error() -> None:
    with pytest.raises(AttributeError, match="linearise"):
        assert fl.linearise  # type: ignore[attr-defined]
