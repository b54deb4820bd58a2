"""What the documentation says is run: the README, every page of the site, and the examples in docstrings."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import sys
from pathlib import Path

import pytest

import fmilin
from tests.documentation.blocks import run_page

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
_OF_OTHER_SYSTEMS = () if sys.platform == "win32" else ("fmilin.fmi.client.pipes_windows",)
MODULES = sorted(
    m.name
    for m in pkgutil.walk_packages(fmilin.__path__, "fmilin.")
    if m.name not in ("fmilin.__main__", *_OF_OTHER_SYSTEMS)
)


@pytest.mark.parametrize("page", PAGES, ids=[str(p.relative_to(ROOT)) for p in PAGES])
def test_blocks_of_a_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = page.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setenv("COLUMNS", "80")
    run_page(page, text)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0
