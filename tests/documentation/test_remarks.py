"""The page of remarks is the one that ``python docs/remarks.py`` writes, and every kind in use is on it."""

from __future__ import annotations

import ast
from pathlib import Path
from types import ModuleType

import pytest

from fmilin.diagnostics import KINDS
from tests.documentation.scripts import script

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def remarks() -> ModuleType:
    return script("remarks")


def test_the_page_is_made_from_the_table(remarks: ModuleType) -> None:
    page = (ROOT / "docs" / "reference" / "remarks.md").read_text(encoding="utf-8")
    assert page == remarks.page()
    assert all(f"\n- `{name}`" in page for name in KINDS)


def test_the_kinds_of_the_table_are_those_in_use() -> None:
    sources = [path for folder in ("fmilin", "adapters") for path in (ROOT / folder).rglob("*.py")]
    in_use = {kind for path in sources for kind in _kinds(path)}
    assert in_use == set(KINDS) - {"detour"}  # which older files have


def _kinds(path: Path) -> list[str]:
    """Return the kinds of the remarks that a module makes: the texts in the first argument of ``Remark(...)``."""
    calls = [n for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(n, ast.Call)]
    firsts = [n.args[0] for n in calls if isinstance(n.func, ast.Name) and n.func.id == "Remark" and n.args]
    texts = [n for first in firsts if not isinstance(first, (ast.Starred, ast.Subscript)) for n in ast.walk(first)]
    return [n.value for n in texts if isinstance(n, ast.Constant) and isinstance(n.value, str) and n.value in KINDS]
