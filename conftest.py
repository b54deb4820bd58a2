"""Tests that take seconds (tests/slow.txt) run where FMILIN_TEST_SLOW=1 is set, or where they are named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SLOW_TESTS = Path(__file__).parent / "tests" / "slow.txt"


def read_slow_tests() -> set[str]:
    """Return the names of the tests, and of the files of tests, that take seconds."""
    lines = SLOW_TESTS.read_text(encoding="utf-8").splitlines()
    return {line.partition(" ")[2] for line in lines if line and not line.startswith("#")}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the slow tests out."""
    if os.environ.get("FMILIN_TEST_SLOW") == "1":
        return
    named = {argument.split("[")[0] for argument in config.args if "::" in argument}
    slow = read_slow_tests()
    selected: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        is_named = any(item.nodeid.split("[")[0].endswith(name) for name in named)
        is_slow = item.nodeid in slow or item.nodeid.partition("::")[0] in slow
        (left_out if is_slow and not is_named else selected).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = selected
