"""Import paths of the documentation lead to the modules that stand elsewhere, and to nothing twice."""

from __future__ import annotations

import ast
import importlib
import pickle
import re
import sys
from pathlib import Path

import pytest

import fmilin as fl
from fmilin.ground.import_paths import DOCUMENTED, resolve, stay_valid

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("path", sorted(DOCUMENTED))
def test_a_documented_path_is_the_module_itself(path: str) -> None:
    module = importlib.import_module(path)
    assert module is importlib.import_module(DOCUMENTED[path])
    assert module.__name__ == DOCUMENTED[path]
    assert module.__spec__ is not None
    assert module.__spec__.name == DOCUMENTED[path]


def test_what_lies_deeper_follows() -> None:
    deep = importlib.import_module("fmilin.models.kane.model")
    assert deep is importlib.import_module("fmilin.native.kane.model")
    assert resolve("fmilin.models.kane.model") == "fmilin.native.kane.model"
    assert resolve("fmilin.manifold.frame") is None


def test_every_path_in_a_code_block_of_the_documentation_can_be_imported() -> None:
    pages = [*DOCS.rglob("*.md"), DOCS.parent / "README.md", DOCS.parent / "adapters" / "README.md"]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    shown = set(re.findall(r"^\s*from (fmilin\b[\w.]*) import", text, re.MULTILINE))
    assert len(shown) > 5
    for path in sorted(shown):
        importlib.import_module(path)


def test_every_name_that_an_example_imports_is_there() -> None:
    programs = [*DOCS.parent.glob("examples/*/*.py"), *DOCS.parent.glob("adapters/*/example/*.py")]
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


def test_a_class_is_one_class_and_is_pickled_by_where_it_stands() -> None:
    from fmilin.models.ode import OdeModel  # type: ignore[import-untyped]  # as users do; checkers know the real path

    assert OdeModel is fl.models.OdeModel
    assert pickle.loads(pickle.dumps(OdeModel)) is OdeModel
    assert OdeModel.__module__ == "fmilin.native.ode"


def test_a_path_that_leads_nowhere_is_called_by_its_own_name() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'fmilin\.models\.nothing'$"):
        importlib.import_module("fmilin.models.nothing")


def test_the_table_is_known_once() -> None:
    before = len(sys.meta_path)
    stay_valid()
    assert len(sys.meta_path) == before
