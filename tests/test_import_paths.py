"""Import paths of the documentation and of the examples are files or packages at these paths."""

from __future__ import annotations

import ast
import importlib
import pickle
import re
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


def test_every_name_that_an_example_imports_exists() -> None:
    programs = [*ROOT.glob("examples/*/*.py"), *ROOT.glob("adapters/*/example/*.py")]
    imports = {
        (node.module, alias.name)
        for program in programs
        for node in ast.walk(ast.parse(program.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "fmilin"
        for alias in node.names
    }
    assert len(imports) > 20
    for path, name in sorted(imports):
        if not hasattr(importlib.import_module(path), name):
            importlib.import_module(f"{path}.{name}")


def test_a_class_is_pickled_by_the_path_that_the_documentation_shows() -> None:
    from fmilin.models.ode import OdeModel

    assert OdeModel is fl.models.OdeModel
    assert pickle.loads(pickle.dumps(OdeModel)) is OdeModel
    assert OdeModel.__module__ == "fmilin.models.ode"


def test_a_misspelt_name_is_an_error() -> None:
    with pytest.raises(AttributeError, match="linearise"):
        assert fl.linearise  # type: ignore[attr-defined]
