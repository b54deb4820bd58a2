"""A point that was linearized alone, in the coordinates of which a batch of others is linearized.

It keeps what is the same at all of them, and is computed once: coordinates, independent invariants, structural zeros,
what was verified of the model, and whether the model's answers for many points agree with the linear model of this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import FmilinError, NumericalError
from fmilin.linear_model.arrays import MATRICES
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.no_response import path_to_an_output
from fmilin.linearization.request import Request
from fmilin.manifold.differenced_points import DifferencedTangents, ModelDifferencing
from fmilin.manifold.invariants import Invariants
from fmilin.manifold.manifold_verification import VerifiedFacts, recall_facts
from fmilin.manifold.point_arrays import PointBatch
from fmilin.manifold.rank import choose_regular_columns, independent_rows, scaled
from fmilin.manifold.selection import Selection, find_linear_states
from fmilin.manifold.structural_zeros import Pattern, find_structural_zeros
from fmilin.manifold.tangent_patterns import find_tangent_pattern
from fmilin.model.capabilities import (
    HasBatchDerivatives,
    HasExactJacobian,
    HasRemarksAtPoints,
    is_at_input_limits,
    is_quick_in_batches,
    read_discrete_states,
    read_event_indicators,
    read_exact_slopes,
    read_sparse_equations,
    read_tangents,
)
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Model, OperatingPoint, TangentBatch
from fmilin.model.memory import find_memory
from fmilin.model.stepping import Stepped
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass

Mask = NDArray[np.bool_]

MATRIX_AGREEMENT_TOLERANCE = 1e-9
"""Relative difference of matrices from the two ways that a model answers, beyond which no batch is computed."""

STATED_ERROR_FACTOR = 4.0
"""Times the errors that are stated with a row of a linear model, what a batch of one may differ from it: an estimate of
few samples is rough."""
MEASURED_ERRORS = 10.0  # of a single point's matrices, that those of a batch may differ by
FEW_COLUMNS = 16  # above these, a batch may take at most so many times as many columns as a single point has groups:
COLUMNS_PER_GROUP = 3

TRANSFERABLE_KINDS = frozenset(
    {"model", "held", "off-equilibrium", "steady", "periodic", "coordinates-switched", "unchecked"}
)
"""Diagnostics at the reference that a batch gives itself where they are true, or that do not concern other points."""


def _require(tangents: TangentBatch | None) -> TangentBatch:
    if tangents is None:
        raise NumericalError("The model does not support derivatives at many points at once.")
    return tangents


class ProcedureTraits(NamedTuple):
    """Properties of a model's exact procedure that hold at every point."""

    smooth: bool  # whether the equations can have no kink
    points: int  # at which it evaluates the equations


@dataclass(eq=False)
class Reference:
    """A point with its linear model, and what other points have in common with it."""

    model: Model
    request: Request
    point: OperatingPoint
    linear: LinearModel
    selection: Selection | None
    _: KW_ONLY
    point_model: Model  # the model with the parameters of this point, where some are varied
    varied: Sequence[str] = ()

    @cached_property
    def independent(self) -> list[int]:
        """The states that are the coordinates."""
        return list(self.selection.independent or ()) if self.selection is not None else []

    @cached_property
    def kept_names(self) -> tuple[str, ...]:
        """Their names."""
        names = self.model.states.names
        return tuple(names[i] for i in self.independent)

    @cached_property
    def dependent(self) -> list[int]:
        """The other states."""
        return [i for i in range(len(self.model.states)) if i not in set(self.independent)]

    @property
    def is_checked(self) -> bool:
        """Whether points of a batch are checked."""
        return self.request.checks != "none"

    @cached_property
    def is_usable(self) -> bool:
        """Whether the model, the request and the point allow a batch."""
        request, model, point, linear = self.request, self.model, self.point, self.linear
        if not (self._is_request_plain and self._has_batch_derivatives):
            return False
        transferable = TRANSFERABLE_KINDS | {remark.kind for remark in point.remarks}
        # Other diagnostics, and inputs that were left out, need the whole procedure at each point.
        if len(linear.inputs) != len(model.inputs) or any(w.kind not in transferable for w in linear.warnings):
            return False
        # Derivatives are one-sided at a limit, and prescribed motions move the manifold from point to point.
        if is_at_input_limits(model) or model.constraints.prescribing:
            return False
        indicators = read_event_indicators(model, point.time, point.states, point.inputs)
        # An event may lie between points; large models have a procedure of their own.
        if len(indicators) or read_sparse_equations(model) is not None:
            return False
        if not self.is_checked:
            return not read_discrete_states(model)  # they may change, which a check would find
        facts = self.facts
        # Constraints that depend on time, or are not verified yet, are examined at each point.
        if facts.moving or (len(model.constraints) and (facts.rank is None or not facts.nothing_conserved)):
            return False
        # Products that did not all agree with differences are compared column by column at every point.
        is_verified = self.facts.precision is not None or self.has_exact_procedure
        return self.is_differenced or request.derivatives == "exact" or is_verified

    @property
    def _is_request_plain(self) -> bool:
        """Whether a batch answers what is requested."""
        request, selection = self.request, self.selection
        if request.checks == "all" or selection is None or selection.independent is None:
            return False
        is_special = request.descriptor or request.at_singularity or request.parameters or request.keep_totals
        kinds = ("auto", "differences") if self.is_differenced else ("auto", "exact")
        return request.derivatives in kinds and not (is_special or request.stepping or request.formulation)

    @property
    def _has_batch_derivatives(self) -> bool:
        """Whether the model has exact derivatives at many points, or differences are taken at these at once."""
        if not isinstance(self.model, HasBatchDerivatives):
            return False
        return self.linear.method.derivatives == "exact" or (self.is_differenced and self._are_differences_few)

    @property
    def is_differenced(self) -> bool:
        """Whether derivatives are differences, of a model that answers many points together and has no exact ones."""
        model = self.model
        is_black_box = is_quick_in_batches(model) and not isinstance(model, (HasExactJacobian, Stepped))
        return self.linear.method.derivatives == "differences" and is_black_box

    @cached_property
    def _are_differences_few(self) -> bool:
        """Whether differences in all columns take hardly longer than in those that a declared structure leaves."""
        model = self.model
        # Hidden constraints are not among the residuals that are differenced with the rates.
        if model.constraints.hidden:
            return False
        if model.structure is None or len(model.constraints):
            return True
        none, x_u = np.zeros((0, len(model.states)), dtype=bool), np.zeros((len(model.states), len(model.inputs)))
        pattern = find_tangent_pattern(model, none, self.linear.T, x_u)
        columns = len(model.states) + len(model.inputs)
        return pattern is None or columns <= FEW_COLUMNS + COLUMNS_PER_GROUP * len(pattern.column_groups)

    @cached_property
    def differencing(self) -> ModelDifferencing | None:
        """How derivatives are measured; None where the model has exact ones."""
        if not self.is_differenced:
            return None
        return ModelDifferencing(self.model, self.independent, self.facts.pairs or {}, self.linear.T)

    @cached_property
    def facts(self) -> VerifiedFacts:
        """The verified properties of the model."""
        point = self.point
        return recall_facts(self.point_model, point, self.point_model.evaluate(point.time, point.states, point.inputs))

    @property
    def tangents_at_point(self) -> TangentBatch:
        """The derivatives of the model here, as a batch of one."""
        return _require(self._tangents_at_point)

    @property
    def is_differentiable_in_batches(self) -> bool:
        """Whether the model differentiates many points at once where these parameters vary: at all points or none."""
        return self._tangents_at_point is not None

    @cached_property
    def _tangents_at_point(self) -> TangentBatch | None:
        point = self.point
        parameters = {name: np.array([point.parameters[name]]) for name in self.varied}
        points = PointBatch(np.array([point.time]), point.states[None], point.inputs[None], parameters)
        if not self.is_differenced:
            return self._read(points)
        measured = self._measured_at_point
        return None if measured is None else measured.tangents

    @cached_property
    def _measured_at_point(self) -> DifferencedTangents | None:
        """The derivatives here, measured as those of a batch are; None where they are exact, or not to be had."""
        if self.differencing is None or self.varied:
            return None
        point = self.point
        points = PointBatch(np.array([point.time]), point.states[None], point.inputs[None])
        return self.differencing.difference(PointEvaluator(self.model), points)

    @cached_property
    def rows(self) -> list[int]:
        """Invariants that are independent at this point, as many as there are dependent states."""
        sizes, H = self.model.states.scales(self.point.states), self.tangents_at_point.gradient[0]
        rows, _ = scaled(H, sizes, np.abs(H) @ sizes, np.zeros_like(H))
        return independent_rows(rows, len(self.dependent), len(self.model.constraints))

    @cached_property
    def _invariants(self) -> Invariants:
        scales = self.point_model.states.scales(self.point.states)
        return Invariants(PointEvaluator(self.point_model), self.point.inputs, self.facts.pairs or {}, scales)

    @cached_property
    def is_position_level(self) -> Mask:
        """Which invariants are of position level, (m,)."""
        return np.array(self._invariants.is_position_level, dtype=bool)

    @cached_property
    def linear_states(self) -> Mask:
        """Which states enter the invariants linearly, (N,): preferred as dependent ones."""
        # Where all states come in pairs the speeds are taken, which needs no test of linearity.
        if 2 * len(self._invariants.pairs) >= len(self.point_model.states):
            return np.ones(len(self.point_model.states), dtype=bool)
        return find_linear_states(self._invariants, self.point.time, self.point.states)

    @cached_property
    def zeros(self) -> Pattern:
        """Which derivatives are zero by the structure of the model, shape (N + ny, P + nu)."""
        point, n, invariants = self.point, len(self.point_model.states), self._invariants
        x_u = np.zeros((n, len(point.inputs)))  # inputs that prescribe a motion allow no batch
        zeros = find_structural_zeros(invariants.evaluator, point, invariants, self.linear.T, x_u).copy()
        # rates and outputs that are states have the rows of T, and their errors
        zeros[[*invariants.pairs, *(n + row for row in self.point_model.copies)]] = False
        if self.is_differenced:  # those of which the point alone says the same
            errors = self.linear.errors
            zeros[self.independent] &= np.hstack((errors.A, errors.B)) == 0
            zeros[n:] &= np.hstack((errors.C, errors.D)) == 0
        return zeros

    @cached_property
    def regular_columns(self) -> list[int]:
        """Columns of [A B] by which every combination of the coordinates can change; none where there are none."""
        linear, sizes = self.linear, self.linear.states.scales(self.linear.y0)
        both = np.hstack((linear.A, linear.B)) * np.concatenate((sizes, linear.inputs.scales()))
        return choose_regular_columns(both / sizes[:, None])

    @cached_property
    def path(self) -> list[tuple[str, int, int]]:
        """The entries of a shortest path from an input to an output, by matrix; empty without either."""
        linear = self.linear
        visible = (np.abs(getattr(linear, name)) > getattr(linear.errors, name) for name in "ABCD")
        return path_to_an_output(*visible) or []

    @cached_property
    def agrees(self) -> bool:
        """Whether a batch of one has the matrices of the linear model; not where the model fails near the point."""
        try:
            measured = self._measured_at_point
            if measured is not None and measured.is_doubtful[0]:
                return False
            return all(self._has_equal_matrix(name) for name in "ABCDT")
        except (FmilinError, np.linalg.LinAlgError):
            return False

    def _has_equal_matrix(self, name: str) -> bool:
        """Whether a batch of one has the matrix of this name, up to the errors of differences."""
        matrix, single = getattr(self.tangents_at_point, name)[0], getattr(self.linear, name)
        if single.shape != matrix.shape:
            return False
        gap = np.abs(matrix - single)
        if self.is_differenced:
            signals, values = self.linear.states, self.linear.y0
            if name in "BD":
                signals, values = self.linear.inputs, self.point.inputs
            scales = signals.scales(values)
            sizes = (np.abs(single) * scales).max(axis=1, initial=0.0)[:, None] / scales
            errors = getattr(self.linear.errors, name)
            return bool((gap <= MEASURED_ERRORS * errors + MATRIX_AGREEMENT_TOLERANCE * sizes).all())
        # 1e-12: a matrix of zeros is compared in absolute values
        allowed = MATRIX_AGREEMENT_TOLERANCE * max(np.abs(single).max(initial=0.0), 1e-12)
        if name in MATRICES:
            # Rounding differs between the two ways; of a long chain of bodies it is seen.
            allowed = allowed + STATED_ERROR_FACTOR * getattr(self.linear.errors, name).max(axis=1, initial=0.0)
            gap = gap.T
        return bool((gap <= allowed).all())

    def differentiate(self, points: PointBatch) -> TangentBatch:
        """Return rates, outputs and their derivatives along the coordinates; NumericalError if the model cannot."""
        return _require(self._read(points))

    def measure(self, evaluator: PointEvaluator, points: PointBatch) -> DifferencedTangents:
        """Return differences with errors; NumericalError if there are none."""
        measured = None
        if self.differencing is not None and not points.parameters:
            measured = self.differencing.difference(evaluator, points)
        if measured is None:
            raise NumericalError("The model cannot be differenced at many points at once.")
        return measured

    def _read(self, points: PointBatch) -> TangentBatch | None:
        if self.differencing is not None:
            return (
                None if points.parameters else self.differencing.difference_quickly(PointEvaluator(self.model), points)
            )
        return read_tangents(self.model, points.time, points.states, points.inputs, self.independent, points.parameters)

    def back(self, tangents: TangentBatch) -> FloatArray:
        """Return the step of the dependent states (k, M) that is too far from the manifold, to first order."""
        if not self.rows:
            return np.zeros((len(tangents.rates), 0))
        H = tangents.gradient[:, self.rows][:, :, self.dependent]
        return np.asarray(np.linalg.solve(H, tangents.residuals[:, self.rows, None])[..., 0])

    @cached_property
    def procedure(self) -> ProcedureTraits | None:
        """The properties of the exact procedure; None without one. Computed once per model because it is slow."""
        memory, point = find_memory(self.point_model), self.point
        traits: ProcedureTraits | None = memory.get(ProcedureTraits)
        if traits is None:
            slopes = read_exact_slopes(self.point_model, point.time, point.states, point.inputs)
            if slopes is not None:
                traits = memory[ProcedureTraits] = ProcedureTraits(slopes.smooth, slopes.points)
        return traits

    @property
    def has_exact_procedure(self) -> bool:
        """Whether derivatives are those of the model's own procedure, else products."""
        return self.facts.procedure or self.procedure is not None

    @cached_property
    def has_point_notes(self) -> bool:
        """Whether the model may say something of its own about points."""
        return isinstance(self.model, HasRemarksAtPoints) and self.model.may_have_point_remarks()
