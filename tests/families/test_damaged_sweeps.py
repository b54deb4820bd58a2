"""Sweeps that go on with a damaged folder: what does not match its checksum is computed again.

``python -m benchmarks kills`` does the same with 100 folders.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.damaged_sweeps import DAMAGES, LIES, Sweep


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    return Sweep(tmp_path_factory.mktemp("sweep"))


@pytest.mark.parametrize("name", DAMAGES)
def test_no_row_is_wrong(name: str, sweep: Sweep) -> None:
    assert sweep.wrong_after(DAMAGES[name], random.Random(name)) == 0


@pytest.mark.parametrize("lie", LIES, ids=[lie[:20].decode() for lie in LIES])
def test_no_line_that_lies_is_believed(lie: bytes, sweep: Sweep) -> None:
    def lying(folder: Path, _: random.Random) -> None:
        with (folder / "points.jsonl").open("ab") as journal:
            journal.write(lie + b"\n")
        (folder / "rows.bin").write_bytes(b"")  # and nothing is there

    assert sweep.wrong_after(lying, random.Random(0)) == 0


@pytest.mark.parametrize("plan", [b"", b"[]", b"[" * 100_000, b"\xff"], ids=["empty", "list", "brackets", "no text"])
def test_a_plan_that_says_nothing(plan: bytes, sweep: Sweep) -> None:
    def emptied(folder: Path, _: random.Random) -> None:
        (folder / "plan.json").write_bytes(plan)

    assert sweep.wrong_after(emptied, random.Random(0)) == 0
