"""What checks of a linearization look at: a point evaluated, on its manifold, in coordinates, linearized; a batch."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fmilin.linear_model.arrays import LinearArrays
from fmilin.linear_model.model import LinearModel
from fmilin.linearization.batch_remarks import BatchRemarks
from fmilin.linearization.reference import Reference
from fmilin.linearization.request import Request
from fmilin.manifold.derivatives import TangentDerivatives
from fmilin.manifold.frame import ConstraintManifold, Frame
from fmilin.manifold.motion import MotionBatch
from fmilin.manifold.neighbourhood import Neighbourhood, Observations
from fmilin.manifold.parametrization import LocalParametrization
from fmilin.manifold.points import PointBatch
from fmilin.manifold.verification import (
    Invariance,
    VerifiedFacts,
    conserved_quantities,
    is_kept_at_point,
    measure_invariance,
)
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Evaluation, Model, OperatingPoint, TangentBatch

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class EvaluatedPoint:
    """A model evaluated at a point: all that a check of the point itself needs."""

    evaluator: PointEvaluator  # remembers the points at which the model was evaluated
    point: OperatingPoint
    request: Request
    facts: VerifiedFacts  # what was verified of the model at other points
    base: Evaluation  # rates, outputs and residuals at the point
    model: Model = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", self.evaluator.model)


@dataclass(frozen=True, eq=False)
class PointOnManifold(EvaluatedPoint):
    """The same with the constraint manifold: for checks of the constraints."""

    manifold: ConstraintManifold


@dataclass(frozen=True, eq=False)
class PointInCoordinates(PointOnManifold):
    """The same with independent coordinates: for checks of these, and of the motion near the point."""

    frame: Frame

    @cached_property
    def invariance(self) -> Invariance | None:
        """How well the motion keeps the constraints; None where they were verified near another point, and here."""
        if not len(self.manifold.invariants) or is_kept_at_point(self.frame.parametrization, self.facts):
            return None
        return measure_invariance(self.frame.parametrization)

    @cached_property
    def conserved(self) -> list[str]:
        """Declared constraints that are curved in the velocities, as energies are."""
        return conserved_quantities(self.frame.parametrization)


@dataclass(frozen=True, eq=False)
class LinearizedPoint(PointInCoordinates):
    """The same with derivatives and the linear model: for all other checks."""

    nearby: Neighbourhood  # the model near the point, in these coordinates
    jacobians: TangentDerivatives
    motion: MotionBatch  # how the point moves, and whether A stays the same along it
    linear: LinearModel

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
class LinearizedBatch:
    """Points that were linearized together in the coordinates of a reference, for the checks of all of them."""

    reference: Reference
    points: PointBatch  # k of them
    tangents: TangentBatch  # rates, outputs and residuals, with their derivatives
    geometry: LocalParametrization  # distances, conditioning and sizes, and the model near the points
    derivatives: TangentDerivatives  # with errors that are the same in each row
    motion: MotionBatch  # how the points move
    models: LinearArrays  # the linear models
    evaluations: int  # of the model, at these points and near them

    def __len__(self) -> int:
        return len(self.points)


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
