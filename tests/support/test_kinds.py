"""Names in annotations stand for classes, which the check of an argument does not import."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import fmilin as fl
from fmilin.simulation import InputTable
from fmilin.support.annotations import is_own_class, list_members
from fmilin.systems import cartesian_pendulum

PACKAGE = Path(fl.__file__).parent
CHECKS = ("kinds_checked", "containers_checked", "one_at_a_time", "require_kinds", "require_field")


def names_in(annotation: str, module: str) -> list[str]:
    import_module(module)
    return [member.name for member in list_members(annotation, module)]


def accepts(annotation: str, value: object, module: str = "fmilin.simulation.run") -> bool:
    return any(member.accepts(value) for member in list_members(annotation, module))


def test_a_union_of_builtin_types_is_written_out_and_one_of_classes_keeps_its_name() -> None:
    assert names_in("Wires | None", "fmilin.composition.loop_transfer") == ["str", "Sequence", "None"]
    assert names_in("Inputs | None", "fmilin.simulation.run") == ["Inputs", "None"]


def test_members_of_a_union_of_classes_and_others_are_accepted() -> None:
    table = InputTable(np.array([0.0, 1.0]), ("u",), np.zeros((2, 1)))
    assert all(accepts("Inputs", value) for value in (table, {"u": 1.0}, np.sin))
    assert not any(accepts("Inputs", value) for value in ("u", 3.0, [1.0], None))


def test_subclasses_are_accepted_and_classes_of_the_same_name_are_not() -> None:
    class Model:
        pass

    assert accepts("Model", cartesian_pendulum())
    assert not accepts("Model", Model())


def test_fields_that_a_user_adds_to_a_data_class_are_not_compared() -> None:
    namespace: dict[str, Any] = {"Limits": fl.Limits, "__name__": "a_file_that_is_no_module"}
    exec("class More(Limits):\n    seconds: float\n    extra: 'Unheard' = 3", namespace)
    assert namespace["More"](seconds=2.0).seconds == 2.0
    with pytest.raises(fl.UsageError, match=r"'seconds' is \[2\.0\]: a number is needed"):
        namespace["More"](seconds=[2.0])


def test_switches_may_be_of_numpy() -> None:
    assert all(accepts("bool", value) for value in (True, np.True_, np.array([True])[0]))
    assert not any(accepts("bool", value) for value in (1, 0.0, "yes", np.array([True]), np.array(True)))


def test_a_class_that_is_not_loaded_is_not_imported_for_a_check() -> None:
    program = """
import sys
from fmilin.errors import UsageError
from fmilin.options.linearization import Linearization
Linearization(formulation="mcs")
try:
    Linearization(formulation=3)
except UsageError as error:
    print(error, any(name.startswith("fmilin.formulations") for name in sys.modules))
from fmilin.formulations import MCS
Linearization(formulation=MCS())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("'formulation' is of the type 'int', and should be of the type Formulation or str. F")


def imported_for_type_checkers(tree: ast.Module) -> dict[str, str]:
    """Return the modules of names that a module imports in ``if TYPE_CHECKING:``."""
    blocks = [node.body for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    imports = [node for block in blocks for node in block if isinstance(node, ast.ImportFrom)]
    return {alias.name: node.module or "" for node in imports for alias in node.names}


def names_in_checked_annotations(tree: ast.Module) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        calls = node.decorator_list if isinstance(node, ast.FunctionDef) else []
        if isinstance(node, ast.ClassDef):
            calls = [n.func for n in ast.walk(node) if isinstance(n, ast.Call)]
        if any(ast.unparse(call).startswith(CHECKS) for call in calls):
            declared = [a.annotation for a in ast.walk(node) if isinstance(a, ast.arg | ast.AnnAssign)]
            parts = [n for annotation in declared if annotation is not None for n in ast.walk(annotation)]
            names |= {n.id for n in parts if isinstance(n, ast.Name)}
    return names


def test_names_that_are_imported_for_type_checkers_only_are_classes() -> None:
    """Nothing is an instance of one whose module is not loaded, which would be wrong for other names."""
    compared = set()
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if any(check in text for check in CHECKS) and "TYPE_CHECKING" in text:
            tree = ast.parse(text)
            sources = imported_for_type_checkers(tree)
            for name in names_in_checked_annotations(tree) & set(sources):
                kind = getattr(import_module(sources[name]), name)
                if sources[name].startswith("fmilin."):
                    assert all(is_own_class(member) for member in get_args(kind) or [kind]), f"{name} in {path}"
                    compared.add(name)
    assert "Formulation" in compared
