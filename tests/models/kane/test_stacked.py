"""Small dense systems: many at once, or one."""

from __future__ import annotations

import numpy as np
import pytest

from fmilin.models.kane.stacked import StackedSystems, systems


@pytest.mark.parametrize("count", [1, 4])
def test_systems_are_solved_whatever_their_scales(count: int) -> None:
    random = np.random.default_rng(5)
    sizes = 10.0 ** random.uniform(-8, 8, (count, 1, 5))
    W = random.normal(size=(count, 5, 5)) * 10.0 ** random.uniform(-8, 8, (count, 5, 1)) * sizes
    w = random.normal(size=(count, 5, 2)) / sizes.transpose(0, 2, 1)
    found = systems(W)
    assert not len(found.singular)
    np.testing.assert_allclose(found.solve(W @ w) / w, 1.0, rtol=1e-10)


def test_the_singular_ones_are_found() -> None:
    W = np.stack([np.eye(3), np.diag([1.0, 0.0, 1.0]), np.ones((3, 3)), 2 * np.eye(3)])
    assert systems(W).singular.tolist() == [1, 2]
    assert [len(systems(one[None]).singular) for one in W] == [0, 1, 1, 0]
    with np.errstate(invalid="ignore"):
        assert np.isnan(StackedSystems(np.full((1, 2, 2), np.nan)).rcond).all()


@pytest.mark.parametrize("count", [1, 3])
def test_empty_systems(count: int) -> None:
    found = systems(np.empty((count, 0, 0)))
    assert found.solve(np.empty((count, 0, 2))).shape == (count, 0, 2)
    assert not len(found.singular)


def test_what_is_not_a_number_stays_so() -> None:
    W = np.full((1, 2, 2), np.nan)
    assert not len(systems(W).singular)
    assert np.isnan(systems(W).solve(np.ones((1, 2, 1)))).all()
