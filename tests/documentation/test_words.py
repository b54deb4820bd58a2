"""Variables of the package are named by what they hold, not by what happened to them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "fmilin"
SAY_NOTHING = {"found", "known", "place", "places", "there", "beside", "asked", "heard"}


def names_given(source: str) -> set[str]:
    """Return the names of variables, parameters and attributes to which a module gives a value."""
    return {
        name.strip("_").lower()
        for node in ast.walk(ast.parse(source))
        for name in (
            [node.id]
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            else [node.attr]
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
            else [node.arg]
            if isinstance(node, ast.arg)
            else []
        )
    }


@pytest.mark.parametrize("folder", sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py")))
def test_no_variable_is_named_by_what_happened_to_it(folder: str) -> None:
    named = {
        f"{path.relative_to(PACKAGE)}: {name}"
        for path in (PACKAGE / folder).rglob("*.py")
        for name in names_given(path.read_text(encoding="utf-8")) & SAY_NOTHING
    }
    assert not named


def test_what_is_looked_for() -> None:
    source = "def f(known): self._found = known; there: int = 1\nfor place in (beside, 2): pass"
    assert names_given(source) & SAY_NOTHING == {"known", "found", "there", "place"}
