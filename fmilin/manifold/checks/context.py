"""The inputs of checks of constraints and coordinates: a point on its manifold, in coordinates; a batch of points."""

from __future__ import annotations

from dataclasses import field
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fmilin.manifold.frame import ConstraintManifold, Frame
from fmilin.manifold.manifold_verification import (
    Invariance,
    VerifiedFacts,
    conserved_quantities,
    input_gradient,
    is_kept_at_point,
    measure_invariance,
)
from fmilin.manifold.parametrization import LocalParametrization
from fmilin.manifold.point_arrays import PointBatch
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Model, OperatingPoint, TangentBatch
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass

Mask = NDArray[np.bool_]


class InputDerivatives(NamedTuple):
    """The derivatives of the rates with respect to the inputs, f_u, and their errors, each (N, nu)."""

    values: FloatArray
    errors: FloatArray


@dataclass(frozen=True, eq=False)
class ExaminedPoint:
    """A model at a point, of which checks examine what was computed there."""

    evaluator: PointEvaluator  # remembers the points at which the model was evaluated
    point: OperatingPoint
    facts: VerifiedFacts  # what was verified of the model at other points
    model: Model = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", self.evaluator.model)


class RequiresPoint(Protocol):
    """A manifold near a point, by whatever method it was computed."""

    def require_point(self) -> None:
        """Raise ConstraintError if the point is not on the manifold."""


@dataclass(frozen=True, eq=False)
class ConstrainedPoint(ExaminedPoint):
    """The same with a manifold, of which a method may say no more than how far the point is from it."""

    manifold: RequiresPoint


@dataclass(frozen=True, eq=False)
class PointOnManifold(ConstrainedPoint):
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

    @property
    def input_derivatives(self) -> InputDerivatives:
        """How the rates change with the inputs, which is computed for this check alone."""
        return InputDerivatives(*input_gradient(self.manifold.invariants, self.point.time, self.point.states))


@dataclass(frozen=True, eq=False)
class BatchInCoordinates:
    """Points with derivatives in the same coordinates, for the checks of all of them."""

    points: PointBatch  # k of them
    facts: VerifiedFacts  # what was verified of the model at another point
    tangents: TangentBatch  # rates, outputs and residuals, with their derivatives
    geometry: LocalParametrization  # distances, conditioning and sizes, and the model near the points

    def __len__(self) -> int:
        return len(self.points)
