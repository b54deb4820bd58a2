"""The checks of a linearization, in the order in which their diagnostics are listed and their errors take precedence.

Takes: what a linearization computed at a point.
Returns: diagnostics, or the first error.
Does not depend on: the order in which the checks run; how the linear model was computed.
"""

from __future__ import annotations

from collections.abc import Iterable

from fmilin.linearization.checks.check import Check, CoordinateCheck, LinearizationCheck, ManifoldCheck
from fmilin.linearization.checks.constraints import (
    ConstraintsDoNotVanish,
    InputsKeepConstraints,
    MotionKeepsConstraints,
    NothingIsConserved,
    PointIsReachable,
    PointObeysConstraints,
    RankIsClear,
)
from fmilin.linearization.checks.coordinates import CoordinatesAreAsRequested, CoordinatesAreWellConditioned
from fmilin.linearization.checks.derivatives import (
    DerivativesAgree,
    EntriesAreAccurate,
    ModelRepeatsItself,
    NoEventIsNear,
)
from fmilin.linearization.checks.equations import DescriptorSystemAgrees, StatesAreIndependent
from fmilin.linearization.checks.motion import PointRests
from fmilin.linearization.checks.notes import InputsDoNotPrescribeMotion, ModelHasNoNotes
from fmilin.linearization.checks.response import InputsReachOutputs
from fmilin.linearization.context import LinearizedPoint

__all__ = ["CHECKS", "Check", "CoordinateCheck", "LinearizationCheck", "ManifoldCheck", "sort_checks"]

CHECKS: tuple[Check[LinearizedPoint], ...] = (
    ConstraintsDoNotVanish(),
    PointObeysConstraints(),
    RankIsClear(),
    PointIsReachable(),
    CoordinatesAreAsRequested(),
    MotionKeepsConstraints(),
    NothingIsConserved(),
    InputsKeepConstraints(),
    DerivativesAgree(),
    ModelRepeatsItself(),
    PointRests(),
    InputsDoNotPrescribeMotion(),
    CoordinatesAreWellConditioned(),
    ModelHasNoNotes(),
    NoEventIsNear(),
    EntriesAreAccurate(),
    DescriptorSystemAgrees(),
    InputsReachOutputs(),
    StatesAreIndependent(),
)

POSITIONS = {one: number for number, one in enumerate(CHECKS)}


def sort_checks(checks: Iterable[Check[LinearizedPoint]]) -> list[Check[LinearizedPoint]]:
    """Return checks in the order of their list, whatever the order in which they ran."""
    return sorted(checks, key=POSITIONS.__getitem__)
