"""The checks of constraints and coordinates: the first ones of a linearization, and those of whoever needs no more.

Takes: a model at a point with its manifold and coordinates.
Returns: diagnostics, or the first error.
Does not depend on: the order in which the checks run; derivatives, the linear model.
"""

from __future__ import annotations

from fmilin.manifold.checks.check import Check
from fmilin.manifold.checks.constraints import (
    ConstraintsDoNotVanish,
    InputsKeepConstraints,
    MotionKeepsConstraints,
    NothingIsConserved,
    PointIsReachable,
    PointObeysConstraints,
    RankIsClear,
)
from fmilin.manifold.checks.context import BatchInCoordinates, PointInCoordinates
from fmilin.manifold.checks.coordinates import CoordinatesAreAsRequested

__all__ = ["FRAME_CHECKS"]

FRAME_CHECKS: tuple[Check[PointInCoordinates, BatchInCoordinates], ...] = (
    ConstraintsDoNotVanish(),
    PointObeysConstraints(),
    RankIsClear(),
    PointIsReachable(),
    CoordinatesAreAsRequested(),
    MotionKeepsConstraints(),
    NothingIsConserved(),
    InputsKeepConstraints(),
)
"""In the order in which their errors take precedence. They run in :func:`fmilin.manifold.checks.check.run_checks`."""
