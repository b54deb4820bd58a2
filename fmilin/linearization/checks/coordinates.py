"""The check of how well the coordinates of the linear model determine the states."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.linearization.checks.check import ResultCheck
from fmilin.linearization.linearization_context import (
    AssembledPoint,
    LinearizedBatch,
    LinearizedPoint,
    Mask,
    SparseLinearizedPoint,
)
from fmilin.manifold.checks.context import ExaminedPoint
from fmilin.manifold.selection import CONDITION_LIMIT, select_partition
from fmilin.tolerances import DOUBTFUL_CONDITION_NUMBER


class CoordinatesAreWellConditioned(ResultCheck):
    """Errors of all entries grow with the condition number of (R; H)."""

    verifies = "The coordinates of the linear model determine the other states well."
    needs = "Nothing."
    runs = "at every point"
    kinds = ("conditioning",)

    def has_meaning(self, at: ExaminedPoint) -> bool:
        """Whether the method determines the other states by coordinates that it has chosen, or that are named."""
        return isinstance(at, (LinearizedPoint, SparseLinearizedPoint))

    def examine(self, at: AssembledPoint) -> Sequence[Remark]:
        condition_number = at.linear.accuracy.conditioning
        if condition_number <= DOUBTFUL_CONDITION_NUMBER:
            return ()
        if not isinstance(at, LinearizedPoint):
            text = (
                f"Dependent states move up to {condition_number:.3g} times as far as the coordinates: name others, or "
                "none."
            )
            return (Remark("conditioning", text),)
        selection = at.nearby.frame.selection
        better = ", ".join(select_partition(at.manifold.tangent).signals.names) or "none"
        text = (
            f"The coordinates {', '.join(selection.signals.names)} are badly conditioned here (condition number "
            f"{selection.condition_number:.3g}); {better} would be better."
        )
        return (Remark("conditioning", text),)

    def find_doubt(self, at: LinearizedBatch) -> Mask:
        return np.asarray(~(at.geometry.condition_number <= CONDITION_LIMIT))


def find_singular_points(at: LinearizedBatch) -> Mask:
    """Return the points of a batch with singular coordinates, or nearly so, or with derivatives that are not finite."""
    is_regular = at.geometry.condition_number <= CONDITION_LIMIT
    is_regular &= np.isfinite(at.derivatives.errors).all(axis=(1, 2))
    return np.asarray(~(at.derivatives.find_finite(at.geometry.independent) & is_regular))
