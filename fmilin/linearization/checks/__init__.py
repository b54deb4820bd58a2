"""The checks of a linearization, in the order in which their diagnostics are listed and their errors take precedence.

Takes: what a linearization computed at a point.
Returns: diagnostics, or the first error.
Does not depend on: the order in which the checks run; how the linear model was computed.
"""

from __future__ import annotations

from collections.abc import Sequence

from fmilin.linearization.checks.coordinates import CoordinatesAreWellConditioned
from fmilin.linearization.checks.derivatives import (
    DerivativesAgree,
    EntriesAreAccurate,
    ModelRepeatsItself,
    NoEventIsNear,
)
from fmilin.linearization.checks.equations import DescriptorSystemAgrees, StatesAreIndependent
from fmilin.linearization.checks.motion import PointRests
from fmilin.linearization.checks.notes import InputsDoNotPrescribeMotion, MethodApplies, ModelHasNoNotes
from fmilin.linearization.checks.response import InputsReachOutputs
from fmilin.linearization.linearization_context import LinearizedBatch, LinearizedPoint
from fmilin.manifold.checks import FRAME_CHECKS
from fmilin.manifold.checks.check import Check

__all__ = ["CHECKS", "LinearizationChecks", "sort_checks"]

LinearizationChecks = Sequence[Check[LinearizedPoint, LinearizedBatch]]

CHECKS: LinearizationChecks = (
    *FRAME_CHECKS,
    DerivativesAgree(),
    ModelRepeatsItself(),
    PointRests(),
    MethodApplies(),
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


def sort_checks(checks: LinearizationChecks) -> LinearizationChecks:
    """Return checks in the order of their list, whatever the order in which they ran."""
    return sorted(checks, key=POSITIONS.__getitem__)
