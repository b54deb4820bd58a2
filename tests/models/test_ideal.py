"""Accelerations under ideal constraints, redundant ones included, against the bordered system."""

from __future__ import annotations

import numpy as np
import pytest

from fmilin.errors import ModelError
from fmilin.models.ideal import IdealConstraints


def system(redundant: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    F = rng.standard_normal((6, 6))
    G = rng.standard_normal((3, 6))
    G = np.vstack((G, rng.standard_normal((redundant, 3)) @ G))
    return F @ F.T + np.eye(6), G, G @ rng.standard_normal((6, 2))


@pytest.mark.parametrize("redundant", [0, 2])
def test_the_bordered_system_is_solved_with_the_least_multipliers(redundant: int) -> None:
    M, G, s = system(redundant)
    r = np.random.default_rng(6).standard_normal((6, 2))
    found, multipliers = IdealConstraints.of(M, G).solve(r, s)
    assert M @ found - G.T @ multipliers == pytest.approx(r, abs=1e-10)
    assert G @ found == pytest.approx(s, abs=1e-10)
    bordered = np.block([[M, -G.T], [G, np.zeros((len(G), len(G)))]])
    least = np.linalg.lstsq(bordered, np.vstack((r, s)), rcond=1e-10)[0]
    assert np.vstack((found, multipliers)) == pytest.approx(least, abs=1e-9)
    alone, _ = IdealConstraints.of(M, G).constrained(np.linalg.solve(M, r[:, 0]), s[:, 0])
    assert alone == pytest.approx(found[:, 0], abs=1e-10)


def test_without_constraints_the_motion_is_free() -> None:
    M, _, _ = system(0)
    a, multipliers = IdealConstraints.of(M, np.empty((0, 6))).solve(M @ np.ones(6), np.empty(0))
    assert a == pytest.approx(np.ones(6))
    assert multipliers.shape == (0,)


def test_what_is_no_number_goes_through_and_a_massless_body_is_refused() -> None:
    M, G, s = system(0)
    a, _ = IdealConstraints.of(M * np.nan, G).solve(np.zeros(6), s[:, 0])
    assert np.isnan(a).all()
    with pytest.raises(ModelError, match="not positive definite"):
        IdealConstraints.of(np.diag([1.0, 1, 1, 1, 1, 0]), G)
