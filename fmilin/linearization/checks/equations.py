"""Checks of the linear model against the equations: the descriptor system, and states that depend on each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.linearization.checks.check import LinearizationCheck, ResultCheck
from fmilin.linearization.dependence import describe_dependence, find_unmovable
from fmilin.linearization.linearization_context import AssembledPoint, LinearizedBatch, LinearizedPoint, Mask
from fmilin.manifold.manifold_verification import VerifiedFacts
from fmilin.model.capabilities import can_be_described

MAX_POINTS = 8  # of a batch, each of which is examined for combinations of states that nothing changes


class DescriptorSystemAgrees(LinearizationCheck):
    """The pencil s E - A of a DAE, as it is written, is a second way to the order and to A."""

    verifies = "The descriptor system of a DAE as written has the order and the modes of the linear model."
    needs = "One evaluation of the equations, if there is a descriptor system."
    runs = "at every point"
    kinds = ("descriptor",)
    error = "NumericalError if the order differs for linear equations."

    def examine(self, at: LinearizedPoint) -> Sequence[Remark]:
        if not can_be_described(at.model) or at.linear.descriptor is None:
            return ()
        from fmilin.formulations.descriptor_system import check_descriptor

        return check_descriptor(at.linear, at.model, at.point, at.base.derivatives)

    def find_doubt(self, at: LinearizedBatch) -> None:
        """Return no doubt: the descriptor system is that of the reference; calls one by one have no batches then."""


class StatesAreIndependent(ResultCheck):
    """Undeclared constraints show as combinations of the states that nothing can change."""

    verifies = "Without constraints, every combination of the states can change, to first order."
    needs = "Evaluations at random points if A, B and f0 lack full rank."
    runs = "in doubt"
    verifies_model = True
    kinds = ("dependent-states", "conserved-quantity")

    def examine(self, at: AssembledPoint) -> Sequence[Remark]:
        if len(at.model.constraints):
            return ()
        return describe_dependence(at.stated, at.model, at.dependence.combinations)

    def learn(self, at: AssembledPoint, facts: VerifiedFacts) -> VerifiedFacts:
        if len(at.model.constraints) or at.dependence.free_speeds == at.facts.free_speeds:
            return facts
        return replace(facts, free_speeds=at.dependence.free_speeds)

    def find_doubt(self, at: LinearizedBatch) -> Mask | None:
        """Check the points of a small batch, as of single calls: undeclared constraints show at the reference, too."""
        model, models = at.reference.model, at.models
        if len(model.constraints) or len(at) > MAX_POINTS:
            return None
        A, B, f0 = models.read("A"), models.read("B"), models.read("f0")
        input_sizes, doubt = model.inputs.scales(), np.zeros(len(at), dtype=bool)
        columns = at.reference.regular_columns
        for k, sizes in enumerate(at.geometry.y_sizes):
            # Also those of structural zeros, which are not larger than any error.
            errors = models.read_row_errors("A", k), models.read_row_errors("B", k)
            doubt[k] = find_unmovable((A[k], B[k]), errors, f0[k], sizes, input_sizes, columns).shape[1] > 0
        return doubt
