"""The inputs of checks of a linearization: a point linearized, a batch of points linearized together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.linear_model.arrays import LinearArrays
from fmilin.linear_model.model import LinearModel
from fmilin.linearization.dependence import StateDependence, find_dependence
from fmilin.linearization.reference import Reference
from fmilin.linearization.request import Request
from fmilin.manifold.checks.batch_remarks import BatchRemarks
from fmilin.manifold.checks.context import (
    BatchInCoordinates,
    ConstrainedPoint,
    ExaminedPoint,
    InputDerivatives,
    Mask,
    PointInCoordinates,
)
from fmilin.manifold.comparison import DerivativeComparison, compare_derivatives
from fmilin.manifold.derivatives import TangentDerivatives
from fmilin.manifold.neighbourhood import Neighbourhood, Observations
from fmilin.manifold.point_motion import MotionBatch
from fmilin.manifold.rank import explanation, is_rank_deficient
from fmilin.model.equation_forms import SecondOrderForm, SparseEquations
from fmilin.model.interface import Evaluation
from fmilin.model.sparse_model_derivatives import SparseJacobian
from fmilin.numerics.differences.differences import Differences
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass

__all__ = [
    "AssembledPoint",
    "BatchResult",
    "DifferentiatedPoint",
    "EnlargedPoint",
    "FormulatedPoint",
    "LinearizedBatch",
    "LinearizedPoint",
    "Mask",
    "SparseLinearizedPoint",
    "SparseStatesPoint",
]


@dataclass(frozen=True, eq=False)
class AssembledPoint(ExaminedPoint):
    """A point with its linear model, by whatever method that was computed."""

    request: Request
    linear: LinearModel

    @property
    def stated(self) -> LinearModel:
        """The linear model with all that is to be said of its errors."""
        return self.linear

    @cached_property
    def dependence(self) -> StateDependence:
        """Combinations of the states that seem as if they could not change; of models without constraints."""
        return find_dependence(self.stated, self.model, self.point, self.facts.free_speeds)

    @property
    def peculiarities(self) -> Sequence[Remark]:
        """The method's diagnostics on its result at this point; the general method has none."""
        return ()


@dataclass(frozen=True, eq=False)
class FormulatedPoint(AssembledPoint):
    """A linear model by one of the formulations of González et al., with what that says of the point."""

    spectrum_remarks: Sequence[Remark]

    @property
    def peculiarities(self) -> Sequence[Remark]:
        """How the formulation was taken at the point."""
        return self.spectrum_remarks


@dataclass(frozen=True, eq=False)
class EnlargedPoint(ConstrainedPoint, AssembledPoint):
    """A singular configuration, with the linear model over the enlarged set of velocities."""

    form: SecondOrderForm

    @property
    def peculiarities(self) -> Sequence[Remark]:
        """An explanation of the eigenvalues over the enlarged velocities; empty where they are those of one branch."""
        if not is_rank_deficient(self.form):
            return ()
        return (explanation(self.model, self.form, len(self.linear.states) // 2),)


@dataclass(frozen=True, eq=False)
class SparseLinearizedPoint(ConstrainedPoint, AssembledPoint):
    """A large model with its linear model from sparse equations, of which no gradient of all constraints is at hand."""

    base: Evaluation  # rates, outputs and residuals at the point
    equations: SparseEquations
    derivatives: TangentDerivatives
    unknowns: FloatArray  # (n + m,), accelerations and multipliers


@dataclass(frozen=True, eq=False)
class SparseStatesPoint(PointInCoordinates, AssembledPoint):
    """A large model without constraints, with its linear model in sparse matrices."""

    base: Evaluation  # rates, outputs and residuals at the point
    nearby: Neighbourhood  # the model near the point
    derivatives: SparseJacobian
    motion: MotionBatch  # how the point moves, and by how much A changes along its motion


@dataclass(frozen=True, eq=False)
class DifferentiatedPoint(PointInCoordinates):
    """A point in coordinates with derivatives, which a check may ask to be computed more carefully."""

    request: Request
    base: Evaluation  # rates, outputs and residuals at the point
    nearby: Neighbourhood  # the model near the point
    jacobians: TangentDerivatives

    @cached_property
    def comparison(self) -> DerivativeComparison | None:
        """How exact derivatives compare with differences; None where they are taken on trust."""
        derivatives = self.request.derivatives
        is_trusted = isinstance(derivatives, Differences) or derivatives == "exact"
        if is_trusted or self.request.checks == "none":
            return None
        return compare_derivatives(self.nearby, self.jacobians, self.facts)


@dataclass(frozen=True, eq=False)
class LinearizedPoint(PointInCoordinates, AssembledPoint):
    """A point in coordinates with derivatives and the linear model: for all other checks."""

    base: Evaluation  # rates, outputs and residuals at the point
    differentiated: DifferentiatedPoint  # the point with the derivatives that were computed first
    nearby: Neighbourhood  # the model near the point, in the coordinates of the linear model
    jacobians: TangentDerivatives
    motion: MotionBatch  # how the point moves, and whether A stays the same along it

    @property
    def input_derivatives(self) -> InputDerivatives:
        """How the rates change with the inputs, which is among the derivatives."""
        return InputDerivatives(self.jacobians.f_u[0], self.jacobians.f_u_errors[0])

    @property
    def observations(self) -> Observations:
        """Observations of the evaluations near the point, in addition to their values."""
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
    products: int  # directions along which it gave exact derivatives, other than by a procedure of its own


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
