"""Writes a notebook next to every example that runs: its README, its code in cells, its pictures at the end.

Usage: ``python docs/notebooks.py``; with ``--run NOTEBOOK ...`` notebooks are executed, each in a copy of its folder
(by nbclient and ipykernel). A test compares the notebooks with what is written here.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import json
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["execute", "notebook", "scripts", "write"]

EXAMPLES = Path(__file__).parents[1] / "examples"
FIRST = (
    'import sys\n\nsys.argv, __file__ = ["{name}"], "{name}"  # as on a command line, in the folder of this notebook'
)
LAST = """from IPython.display import Image, display

for picture in {pictures}:
    display(Image(picture))"""


def scripts() -> list[Path]:
    """Return the scripts that are run: ``run.py`` of an example, or all that end by running themselves."""
    return sorted(p for p in EXAMPLES.glob("*/*.py") if p.stem == "run" or "__main__" in p.read_text(encoding="utf-8"))


def notebook(script: Path) -> dict[str, Any]:
    """Return the notebook of a script, as its file has it."""
    source = script.read_text(encoding="utf-8")
    words = ast.get_docstring(ast.parse(source)) or ""
    alone = script.stem == "run"
    title = (script.parent / "README.md").read_text(encoding="utf-8") if alone else f"# {words}"
    pictures = [path.name for path in script.parent.glob("*.png") if alone or path.stem == script.stem]
    cells = [_cell("markdown", title), _cell("code", FIRST.format(name=script.name)), *_cells(source)]
    cells.append(_cell("code", LAST.format(pictures=json.dumps(sorted(pictures)))))
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    numbered = [cell | {"id": f"cell-{number}"} for number, cell in enumerate(cells)]
    return {"cells": numbered, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}


def _cells(source: str) -> Iterator[dict[str, Any]]:
    """Yield code between functions and comments of the top level, which are text."""
    lines, start, after = source.splitlines(), 0, False
    statements = ast.parse(source).body
    for statement in statements[isinstance(statements[0], ast.Expr) :]:
        decorators = getattr(statement, "decorator_list", [])
        begin = min(s.lineno for s in (statement, *decorators)) - 1
        first = begin
        while lines[first - 1].startswith("#"):
            first -= 1
        apart = isinstance(statement, ast.FunctionDef | ast.ClassDef)
        if start and (first < begin or apart or after):
            yield _cell("code", "\n".join(lines[start:first]))
            start = 0
        if first < begin:
            yield _cell("markdown", " ".join(line.strip("# -") for line in lines[first:begin]))
        start, after = start or begin, apart
    yield _cell("code", "\n".join(lines[start:]))


def _cell(kind: str, text: str) -> dict[str, Any]:
    more: dict[str, Any] = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {}, "source": text.strip().splitlines(keepends=True), **more}


def write() -> None:
    """Write all notebooks."""
    for script in scripts():
        text = json.dumps(notebook(script), indent=1, ensure_ascii=False, sort_keys=True)
        script.with_suffix(".ipynb").write_text(f"{text}\n", encoding="utf-8")


def execute(path: Path, seconds: int = 600) -> Any:
    """Return a notebook with what its cells print and show, run in a copy of its folder."""
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")  # of what Jupyter itself plans to change
        import nbformat
        from nbclient import NotebookClient

        shutil.copytree(path.parent, folder, dirs_exist_ok=True)
        read: Any = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
        client = NotebookClient(read, timeout=seconds, resources={"metadata": {"path": folder}})
        return asyncio.run(client.async_execute())  # execute() leaves its event loop open


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", nargs="+", type=Path, metavar="NOTEBOOK", help="execute these instead")
    for each in (given := parser.parse_args().run) or ():
        shown = [o for c in execute(each)["cells"] for o in c.get("outputs", ()) if "image/png" in o.get("data", ())]
        sys.stdout.write(f"{each}: {len(shown)} pictures\n")
    if not given:
        write()
