"""Means over a turn of families whose coordinates change on the way."""

from __future__ import annotations

import numpy as np
import pytest

import fmilin as fl
from fmilin.families.family_builder import FamilyBuilder, build_outcome
from fmilin.families.grid import Grid
from fmilin.systems import cartesian_pendulum


def test_no_mean_is_taken_of_coordinates_that_change_over_the_turn() -> None:
    builder = FamilyBuilder(Grid({"azimuth": np.array([0.0, 3.0])}))
    model = cartesian_pendulum(angle=0.8)
    for k, kept in enumerate((["x", "vx"], ["y", "vy"])):
        builder.add(build_outcome(k, fl.linearize(model, independent=kept)))
    with pytest.raises(fl.UsageError, match=r"coordinates change over the turn.*sweep with independent="):
        builder.family().averaged()
