from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.reference.systems import CASES, CONDITION, linear_model

TABLE = json.loads(Path(__file__).with_name("numbers.json").read_text())


def test_the_table_holds_every_case() -> None:
    assert list(TABLE) == list(CASES)


@pytest.mark.parametrize("name", CASES)
def test_matrices_are_those_of_the_first_house(name: str) -> None:
    lin, expected = linear_model(name), TABLE[name]
    assert [list(s.names) for s in (lin.states, lin.inputs, lin.outputs)] == [
        expected[k] for k in ("states", "inputs", "outputs")
    ]
    allowed = max(1e-12, np.finfo(float).eps * CONDITION.get(name, 1.0))
    for letter in "ABCD":
        found, before = getattr(lin, letter), np.array(expected[letter]).reshape(getattr(lin, letter).shape)
        assert np.max(np.abs(found - before), initial=0.0) <= allowed * np.max(np.abs(before), initial=0.0), letter
