"""The developer's guide names functions and classes that exist where it says they are."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "developing.md").read_text(encoding="utf-8")
STEPS = re.findall(r"^\| [^|]+ \| .+ \| `(\w+)` \| `([\w/]+\.py)`", GUIDE, flags=re.MULTILINE)


def test_the_steps_of_the_algorithm_are_listed() -> None:
    assert len(STEPS) >= 7


@pytest.mark.parametrize(("name", "module"), STEPS)
def test_a_step_stands_in_its_module(name: str, module: str) -> None:
    tree = ast.parse((ROOT / "fmilin" / module).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`(fmilin/[\w/]+\.py)`", GUIDE))))
def test_files_that_are_named_exist(path: str) -> None:
    assert (ROOT / path).exists() or "yours" in path
