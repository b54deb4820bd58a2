"""Folds of branches with a closed form: where they are, and how few steps find them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from fmilin.families.continuation import SolvedPoint
from fmilin.families.folds import fold_between


def parabola(fold: float) -> tuple[str | None, int]:
    """Follow 0 = fold - p - z^2 from p = -1 to p = 2: its derivative 2 z goes as the root of the way to the fold."""
    asked = 0

    def at(values: Mapping[str, float]) -> SolvedPoint:
        unused: Any = None
        return SolvedPoint(dict(values), unused, unused, None)

    def onward(values: Mapping[str, float], _predecessor: SolvedPoint) -> SolvedPoint | None:
        nonlocal asked
        asked += 1
        return at(values) if values["p"] <= fold else None

    said = fold_between(at({"p": -1.0}), {"p": 2.0}, onward, lambda at: 2 * np.sqrt(fold - at.values["p"]))
    return said, asked


@pytest.mark.parametrize("fold", [0.3, 1.0 / 3.0, 1.7])
def test_two_points_tell_where_a_branch_turns_back(fold: float) -> None:
    said, asked = parabola(fold)
    assert said is not None
    assert f"at p = {fold:.9g} (a fold" in said
    assert asked <= 20  # each leaves 0.3 of the way: 16 for 1e-8


def test_a_branch_that_goes_on_has_no_fold() -> None:
    assert parabola(3.0)[0] is None
