"""Checks of the linear model against the equations: the descriptor system, and states that depend on each other."""

from __future__ import annotations

from collections.abc import Sequence

from fmilin.diagnostics import Remark
from fmilin.linearization.checks.check import LinearizationCheck
from fmilin.linearization.checks.dependence import describe_dependence
from fmilin.linearization.context import LinearizedPoint
from fmilin.model.capabilities import can_be_described


class DescriptorSystemAgrees(LinearizationCheck):
    """The pencil s E - A of a DAE, as it is written, is a second way to the order and to A."""

    verifies = "The descriptor system of a DAE as it is written has the order and the modes of the linear model."
    needs = "One evaluation of the equations; nothing for models without a descriptor system."
    runs = "at every point"
    kinds = ("descriptor",)
    error = "NumericalError if the order differs for linear equations: rounding decides it then."

    def examine(self, at: LinearizedPoint) -> Sequence[Remark]:
        if not can_be_described(at.model) or at.linear.descriptor is None:
            return ()
        from fmilin.formulations.descriptor import check_descriptor

        return check_descriptor(at.linear, at.model, at.point, at.base.derivatives)


class StatesAreIndependent(LinearizationCheck):
    """Constraints that nobody declared show as combinations of the states that nothing can change."""

    verifies = "Without constraints, every combination of the states can change, to first order."
    needs = "Nothing if A, B and f0 have full rank; otherwise evaluations at random points."
    runs = "in doubt"
    kinds = ("dependent-states", "conserved-quantity")

    def examine(self, at: LinearizedPoint) -> Sequence[Remark]:
        if len(at.model.constraints):
            return ()
        return describe_dependence(at.stated, at.model, at.point)
