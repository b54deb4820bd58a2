"""What checks of a linearization look at: a point linearized, a batch of points linearized together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fmilin.linear_model.arrays import LinearArrays
from fmilin.linear_model.model import LinearModel
from fmilin.linearization.reference import Reference
from fmilin.linearization.request import Request
from fmilin.manifold.checks.batch_remarks import BatchRemarks
from fmilin.manifold.checks.context import BatchInCoordinates, InputDerivatives, Mask, PointInCoordinates
from fmilin.manifold.derivatives import TangentDerivatives
from fmilin.manifold.motion import MotionBatch
from fmilin.manifold.neighbourhood import Neighbourhood, Observations
from fmilin.model.interface import Evaluation

__all__ = ["BatchResult", "LinearizedBatch", "LinearizedPoint", "Mask"]


@dataclass(frozen=True, eq=False)
class LinearizedPoint(PointInCoordinates):
    """A point in coordinates with derivatives and the linear model: for all other checks."""

    request: Request
    base: Evaluation  # rates, outputs and residuals at the point
    nearby: Neighbourhood  # the model near the point, in these coordinates
    jacobians: TangentDerivatives
    motion: MotionBatch  # how the point moves, and whether A stays the same along it
    linear: LinearModel

    @property
    def input_derivatives(self) -> InputDerivatives:
        """How the rates change with the inputs, which is among the derivatives."""
        return InputDerivatives(self.jacobians.f_u[0], self.jacobians.f_u_errors[0])

    @property
    def observations(self) -> Observations:
        """What the evaluations near the point have shown beyond their values."""
        return self.jacobians.observations

    @cached_property
    def stated(self) -> LinearModel:
        """The linear model with errors of A that include how far the point may be from the one that is meant.

        The matrices are those of the point; eigenvalues and stability are meant to be those of the equilibrium.
        """
        if self.point.slope_changes is None:
            return self.linear
        frame = self.nearby.frame
        change = np.abs(frame.coordinates.R) @ self.point.slope_changes @ np.abs(frame.T)
        errors = replace(self.linear.errors, A=self.linear.errors.A + change)
        return replace(self.linear, errors=errors)


@dataclass(frozen=True, eq=False)
class LinearizedBatch(BatchInCoordinates):
    """Points that were linearized together in the coordinates of a reference, for the checks of all of them."""

    reference: Reference
    derivatives: TangentDerivatives  # with errors that are the same in each row
    motion: MotionBatch  # how the points move
    models: LinearArrays  # the linear models
    evaluations: int  # of the model, at these points and near them


@dataclass(frozen=True, eq=False)
class BatchResult:
    """Linear models at k points, what is said of them, and which of them are to be examined alone."""

    computed: LinearizedBatch
    diagnostics: BatchRemarks
    is_doubtful: Mask

    @property
    def models(self) -> LinearArrays:
        """The linear models."""
        return self.computed.models

    @property
    def good(self) -> int:
        """How many points come before the first that is to be examined alone."""
        return int(np.argmin([*~self.is_doubtful, False]))
