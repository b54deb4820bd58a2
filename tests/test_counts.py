"""What was quick stays quick: the table of counts, which no machine's noise touches."""

from __future__ import annotations

import json

import pytest

from tests.counts import TABLE, counts_of, works

WORKS = works()
EXPECTED = json.loads(TABLE.read_text(encoding="utf-8"))


def test_the_table_is_that_of_the_works() -> None:
    assert EXPECTED.keys() == WORKS.keys()


@pytest.mark.parametrize("name", WORKS)
def test_work_takes_no_more_than_the_table_says(name: str) -> None:
    """Where it takes less, ``python -m tests.counts`` writes the table anew."""
    counts, most = counts_of(WORKS[name]), EXPECTED[name]
    assert {kind: count for kind, count in counts.items() if count > most[kind] + (kind == "millions held")} == {}
