"""The examples' notebooks are what is made of the scripts, and run; ``.ci/run`` executes those of all examples."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from tests.documentation.scripts import script

notebooks = script("notebooks")
SCRIPTS: list[Path] = notebooks.scripts()


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_a_notebook_has_the_code_of_its_script(path: Path) -> None:
    kept = json.loads(path.with_suffix(".ipynb").read_text(encoding="utf-8"))
    assert kept == json.loads(json.dumps(notebooks.notebook(path))), "run python docs/notebooks.py"
    code = ["".join(cell["source"]) for cell in kept["cells"] if cell["cell_type"] == "code"][1:-1]
    statements = [ast.unparse(s) for s in ast.parse(path.read_text(encoding="utf-8")).body[1:]]
    assert [ast.unparse(s) for cell in code for s in ast.parse(cell).body] == statements


def test_every_example_that_runs_has_one() -> None:
    assert {path.parent.name for path in SCRIPTS} == {
        readme.parent.name for readme in notebooks.EXAMPLES.glob("*/README.md")
    }


def test_a_notebook_prints_and_shows_its_picture() -> None:
    shown = notebooks.execute(notebooks.EXAMPLES / "declared_constraints" / "run.ipynb")
    outputs = [output for cell in shown["cells"] for output in cell.get("outputs", ())]
    assert any("feedthrough" in output.get("text", "") or output.get("name") == "stdout" for output in outputs)
    assert ["image/png" in output.get("data", ()) for output in outputs].count(True) == 1
