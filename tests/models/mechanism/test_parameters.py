"""Mechanisms whose loops are just not closed any more, and parts that are just no bodies."""

from __future__ import annotations

import numpy as np
import pytest

from fmilin.errors import ConstraintError, FmilinError
from fmilin.models.mechanism import Body, Placement, assemble
from tests.models.mechanism.builders import triangle
from tests.models.mechanism.test_assembly import residuals


@pytest.mark.parametrize("gap", [1e-3, 1e-5, 1e-7])
def test_a_loop_that_stays_open_by_little_is_open(gap: float) -> None:
    """Two rods of 1 m, stretched, and a pin that is a little farther away than 2 m."""
    with pytest.raises(ConstraintError, match="'pin' has a gap of"):
        assemble(triangle(0.01, -0.02, 2.0 + gap))


def test_a_loop_that_can_be_closed_is_closed_to_rounding() -> None:
    found = assemble(triangle(0.3, -0.7, 1.9)).description
    assert np.abs(residuals(found)).max() < 1e-13


@pytest.mark.parametrize("excess", [1e-2, 1e-5, 1e-7])
def test_a_body_with_a_little_too_large_a_moment_of_inertia_is_none(excess: float) -> None:
    """No mass lies at negative distances: J_xx <= J_yy + J_zz."""
    with pytest.raises(FmilinError, match="moment"):
        Body("rod", 1.0, (0, 0, 0), (1.0 + excess, 0.5, 0.5))


@pytest.mark.parametrize("part", [1e-2, 1e-5, 1e-7])
def test_a_matrix_that_is_nearly_a_rotation_is_none(part: float) -> None:
    with pytest.raises(FmilinError, match="rotation"):
        Placement((0, 0, 0), np.diag([1.0, 1.0, 1.0 + part]))
