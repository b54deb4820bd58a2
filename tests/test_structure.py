"""The structure of the package by the measures of ``python -m benchmarks structure``, which find what they look for."""

from __future__ import annotations

import ast

import pytest

from benchmarks.structure import (
    PACKAGE,
    count_entries_and_returns,
    find_calls_by_string,
    find_circle,
    find_computed_imports,
    find_repeated_classes,
    find_repeated_options,
    find_upward_imports,
    imports_internals,
)


def test_no_function_is_called_by_its_name_in_a_text() -> None:
    files = [path for path in PACKAGE.rglob("*.py") if "import_module" in path.read_text("utf-8")]
    trees = {path: ast.parse(path.read_text("utf-8")) for path in files}
    assert find_calls_by_string(trees) == []
    # modules of a user, commands, formats: each module is a file that is found by its name
    assert find_computed_imports(trees) == ["cli.main", "export.codecs", "loading.python_objects"]


def test_a_call_by_string_is_found() -> None:
    tree = ast.parse("result = getattr(import_module(f'fmilin.{module}'), name)(1)")
    path = PACKAGE / "models" / "example.py"
    assert find_calls_by_string({path: tree}) == ["models.example:1"]
    assert find_computed_imports({path: tree}) == ["models.example"]


def test_imports_upward_and_circles_are_found() -> None:
    imports = {"fmilin.signals": {"fmilin.model.interface"}, "fmilin.model.interface": {"fmilin.signals"}}
    assert find_upward_imports(imports) == ["fmilin.signals -> fmilin.model.interface"]
    assert len(find_circle(imports)) == 1
    assert find_circle({"fmilin.model": {"fmilin.signals"}, "fmilin.signals": set()}) == []


def test_every_class_of_the_package_has_a_name_of_its_own() -> None:
    trees = {path: ast.parse(path.read_text("utf-8")) for path in PACKAGE.rglob("*.py")}
    assert find_repeated_classes(trees) == []


def test_a_class_name_in_two_modules_is_found() -> None:
    first, second = ast.parse("class Motion: ...\nclass Path: ..."), ast.parse("class Motion: ...\nclass Point: ...")
    trees = {PACKAGE / "first.py": first, PACKAGE / "second.py": second}
    assert find_repeated_classes(trees) == ["Motion"]


def test_no_option_of_a_command_has_a_description_of_its_own() -> None:
    assert find_repeated_options() == []


def test_calls_are_counted_as_entries_and_returns() -> None:
    assert count_entries_and_returns(["a", "a", "b", "a", "c", "b", "b"]) == (3, 2)
    assert count_entries_and_returns([]) == (0, 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import fmilin as fl\nfrom fmilin.errors import UsageError", False),
        ("from fmilin import signals", False),
        ("from fmilin.export.files import dumps", True),
        ("import fmilin.cli.main", True),
        ("from fmilin import formats", True),
        ("def test():\n    from fmilin.cli import main", True),
        ("from fmilin.errors import _private", True),
    ],
)
def test_imports_of_internals_are_found(text: str, *, expected: bool) -> None:
    assert imports_internals(ast.parse(text)) is expected
