"""The page of measured numbers: made by a command, from the tables that the benchmarks print."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import page
from benchmarks.tables import show

ROOT = Path(__file__).parents[2]


def test_a_page_is_made_of_what_benchmarks_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "QUICK", ("constraints",))
    page.write_page(tmp_path / "numbers.md", ["constraints", "kane"])
    text = (tmp_path / "numbers.md").read_text()
    assert "| what | CPU | target |\n| --- | ---: | ---: |\n| read, compiled, first numbers |" in text
    assert "these and 1 more tables" in text
    show("not recorded any more", ["a"], [["1"]])
    assert "not recorded" not in text


def test_the_page_of_the_site_has_every_quick_benchmark() -> None:
    text = (ROOT / "docs" / "numbers.md").read_text(encoding="utf-8")
    assert text.startswith("# Measured numbers")
    assert text.count("\n## ") >= len(page.QUICK)
