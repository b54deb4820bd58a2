"""The commands of growth and of peers: their pages, and what they print of a peer that is missing or fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.growth import command as growth
from benchmarks.growth.paths import PATHS, GrowingPath
from benchmarks.peers import command as peers
from benchmarks.peers.tasks import TASKS, Task
from benchmarks.peers.ways import TOOLS, Tool, Way

DOCS = Path(__file__).parents[2] / "docs"
MISSING = Tool("Missing", "no_such_module", "no-such-package", "pip install no-such-package")


@contextmanager
def sum_numbers(size: int, _folder: Path) -> Iterator[Callable[[], Any]]:
    yield lambda: np.full((1, 1), float(sum(range(size))))


@contextmanager
def fail(size: int, _folder: Path) -> Iterator[Callable[[], Any]]:
    if size > 8:
        raise ValueError("The peer takes 8 at most.")
    yield lambda: np.zeros((1, 1))


WAYS = [Way(TOOLS["fmilin"], sum_numbers), Way(TOOLS["SciPy"], fail), Way(MISSING, sum_numbers)]


def test_growth_is_a_page_with_exponents_and_what_a_peer_cannot_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PATHS, "sums", GrowingPath("sums", "numbers", 4, WAYS, factor=8))
    assert growth.main(["sums", "--page", str(tmp_path / "growth.md")]) == 0
    text = (tmp_path / "growth.md").read_text("utf-8")
    assert "## Sums\n\n| tool | sizes | first [s] | exponent |" in text
    assert "| SciPy | 4 numbers; 32 numbers: ValueError: The peer takes 8 at most. |" in text
    assert "| Missing | not installed: pip install no-such-package |" in text
    assert "| fmilin | 4 to 1,048,576 numbers |" in text


def test_a_peer_that_is_missing_or_fails_is_a_line_of_the_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TASKS, "sums", Task("sums", "numbers", (100,), WAYS))
    assert peers.main(["sums"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "not installed:" in printed
    assert "ValueError:" in printed


@pytest.mark.parametrize("main", [growth.main, peers.main])
def test_an_unknown_name_is_answered_with_the_names(
    main: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["sum"])
    assert "There are: fmu_plain" in capsys.readouterr().err


def test_the_pages_of_the_site_have_every_path_and_task() -> None:
    growth_page, peers_page = ((DOCS / f"{name}.md").read_text("utf-8").lower() for name in ("growth", "peers"))
    assert [path.title for path in PATHS.values() if f"\n| {path.title.lower()} |" not in growth_page] == []
    assert [task.title for task in TASKS.values() if f"\n| {task.title.lower()}, " not in peers_page] == []
