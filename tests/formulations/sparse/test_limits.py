"""What just counts as symmetric or as inertia in a sparse problem."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from fmilin import NumericalError
from fmilin.formulations import ConstrainedForm
from fmilin.formulations.sparse import Around, eigenvalues_near


def form(M: list[list[float]], K: list[list[float]]) -> ConstrainedForm:
    """Two coordinates, no constraints and no damping."""
    none = sparse.csc_array((2, 2))
    return ConstrainedForm(
        sparse.csc_array(np.array(M)), none, sparse.csc_array(np.array(K)), sparse.csc_array((0, 2)),
        sparse.csc_array((2, 0)), np.zeros(0), ("a", "b"),
    )  # fmt: skip


@pytest.mark.parametrize("part", [1e-2, 1e-6, 3e-10, 3e-11])
def test_forces_that_turn_make_two_equal_frequencies_flutter(part: float) -> None:
    """s^2 = -1 +- i part: one of the modes grows at part / 2."""
    values = eigenvalues_near(form(np.eye(2).tolist(), [[1.0, part], [-part, 1.0]]), around=Around(1.0, 2)).eigenvalues
    assert np.max(values.real) == pytest.approx(part / 2, rel=1e-3)


@pytest.mark.parametrize(("part", "moves"), [(1e-3, True), (1e-9, True), (1e-11, True), (1e-15, False), (0.0, False)])
def test_a_motion_without_inertia_is_none(part: float, *, moves: bool) -> None:
    light = form([[1.0, 1.0], [1.0, 1.0 + part]], [[1.0, 0.0], [0.0, 1.0]])
    if moves:
        slow = np.abs(eigenvalues_near(light, around=Around(0.0, 1)).eigenvalues[0])
        assert slow == pytest.approx(1 / np.sqrt(2.0), rel=1e-3 + part)
    else:
        with pytest.raises(NumericalError, match="not positive definite"):
            eigenvalues_near(light, around=Around(0.0, 1))
