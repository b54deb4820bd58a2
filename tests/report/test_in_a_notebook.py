"""A notebook that is run, and what a real Chromium makes of its outputs."""

from __future__ import annotations

import asyncio
import base64
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.browser import browsing, needs_chromium

CELLS = {
    "family": "family = fl.sweep(cartesian_pendulum(), {'x': [0.0, 0.3, 0.6, 1.4]})\nfamily",
    "point": "fl.operating_point(model)",
    "trimmed": "fl.trim(model)",
    "trim report": "fl.trim(model).report",
    "verification": "linear.verify(model, horizon=0.2)",
    "nonlinear view": "from fmilin.export.nonlinear_control import nonlinear_view\nnonlinear_view(model)",
    "mechanism": "from fmilin.systems import slider_crank\nslider_crank()",
    "description": "slider_crank().description",
    "model": "model",
    "linear": "linear",
    "picture": "linear.plot.eigenvalues()",
}
FIRST = "import fmilin as fl\nfrom fmilin.systems import cartesian_pendulum\n" + (
    "model = cartesian_pendulum()\nlinear = fl.linearize(model)"
)

SAID = {"linear": "2 independent states out of 4", "family": "3 of 4 linear models", "model": "States (4)"}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What every cell shows, by kind of content."""
    with warnings.catch_warnings():  # of what Jupyter itself plans to change
        warnings.simplefilter("ignore")
        import nbformat
        from nbclient import NotebookClient

        new: Any = nbformat.v4
        notebook = new.new_notebook(cells=[new.new_code_cell(source) for source in (FIRST, *CELLS.values())])
        folder = tmp_path_factory.mktemp("notebook")
        client = NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}})
        asyncio.run(client.async_execute())  # execute() leaves its event loop open
    shown = [cell["outputs"] for cell in notebook["cells"][1:]]
    assert all(len(each) == 1 for each in shown), shown
    return {name: each[0]["data"] for name, each in zip(CELLS, shown, strict=True)}


def test_every_result_is_a_table_and_a_figure_a_picture(outputs: dict[str, dict[str, Any]]) -> None:
    for name, data in outputs.items():
        if name == "picture":
            assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
            continue
        assert "<table>" in data["text/html"], name
        assert len(data["text/plain"].splitlines()) <= 40
        assert SAID.get(name, "") in re.sub(r"<[^>]+>", "", data["text/html"])


@needs_chromium
def test_chromium_shows_the_tables(outputs: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    tables = {name: data["text/html"] for name, data in outputs.items() if "text/html" in data}
    page = "".join(f'<section id="{name}">{html}</section>' for name, html in tables.items())
    path = tmp_path / "outputs.html"
    path.write_text(f'<!DOCTYPE html><meta charset="utf-8"><link rel="icon" href="data:,">{page}', "utf-8")
    with browsing(tmp_path) as browser:
        browser.open(path)
        for name, html in tables.items():
            section = f"document.getElementById('{name}')"
            assert browser.evaluate(f"{section}.querySelectorAll('table').length") == html.count("<table>")
            assert browser.evaluate(f"{section}.getBoundingClientRect().height") > 40
            widest = (
                f"Math.max(...Array.from({section}.querySelectorAll('table'), t => t.getBoundingClientRect().width))"
            )
            assert browser.evaluate(widest) < 1200
            assert SAID.get(name, "") in browser.evaluate(f"{section}.innerText")
        assert browser.said == []
