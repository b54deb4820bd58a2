from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from tests.reference.cases import CASES, CONDITION, TABLES, UNSETTLED, installed, linear_models
from tests.reference.record import differences_between, record_of


@cache
def expected_of(table: str) -> dict[str, dict[str, Any]]:
    records: dict[str, dict[str, Any]] = json.loads((TABLES / f"{table}.json").read_text())
    return records


@pytest.mark.parametrize("table", CASES)
def test_the_table_holds_every_case(table: str) -> None:
    assert list(expected_of(table)) == list(CASES[table])


@pytest.mark.parametrize(("table", "name"), [(table, name) for table, cases in CASES.items() for name in cases])
def test_results_are_those_of_the_table(table: str, name: str) -> None:
    if not installed(table, name):
        pytest.skip("the adapter is not installed")
    records = {label: record_of(linear) for label, linear in linear_models(table, name).items()}
    expected = expected_of(table)[name]
    assert list(records) == list(expected)
    told = {}
    for label, record in records.items():
        if differing := differences_between(
            record, expected[label], CONDITION.get((name, label), 1.0), errors=(name, label) not in UNSETTLED
        ):
            told[label] = differing
    assert not told
