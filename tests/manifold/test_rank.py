"""How many constraints are independent, from singular values and what is known of their errors."""

from __future__ import annotations

import numpy as np
import pytest

from fmilin.manifold.rank import decide_rank, scaled, threshold


@pytest.mark.parametrize(("angle", "rank"), [(1.0, 2), (0.1, 2), (0.04, 2), (3e-3, 1), (0.0, 1)])
def test_however_rough_a_gradient_is_what_differs_by_percents_differs(angle: float, rank: int) -> None:
    """Two rows with an angle between them, of which the smaller singular value is half, known to five percent."""
    H = np.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)]])
    error = np.full((2, 2), 0.05 / np.sqrt(2))
    ones = np.ones(2)
    assert decide_rank(scaled(H, ones, ones, error), threshold(H, ones, error)).rank == rank


@pytest.mark.parametrize("error", [1e-12, 1e-9, 1e-7])
def test_however_good_a_measured_gradient_is_a_part_in_a_million_is_nothing(error: float) -> None:
    H, ones = np.array([[1.0, 0.0], [1.0, 2e-6]]), np.ones(2)
    assert decide_rank(H, threshold(H, ones, np.full((2, 2), error))).rank == 1
    assert decide_rank(H, threshold(H, ones, np.zeros((2, 2)))).rank == 2
