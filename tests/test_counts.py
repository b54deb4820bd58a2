"""What was quick stays quick: the table of counts, which no machine's noise touches."""

from __future__ import annotations

import json

import pytest

from tests.counts import TABLE, Call, counts_of, works

EXPECTED = json.loads(TABLE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def calls() -> dict[str, Call]:
    return works()


def test_the_table_is_that_of_the_works(calls: dict[str, Call]) -> None:
    assert EXPECTED.keys() == calls.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_work_takes_no_more_than_the_table_says(calls: dict[str, Call], name: str) -> None:
    """Where it takes less, ``python -m tests.counts`` writes the table anew."""
    counts, most = counts_of(calls[name]), EXPECTED[name]
    assert {kind: count for kind, count in counts.items() if count > most[kind] + (kind == "millions held")} == {}
