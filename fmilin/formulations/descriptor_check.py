"""A linear model against the descriptor system of the equations as they are written: a second way to order and A."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.errors import ConstraintError, FmilinError, NumericalError
from fmilin.linear_model.descriptor import LazyDescriptor
from fmilin.linear_model.model import LinearModel
from fmilin.model.interface import Model, OperatingPoint
from fmilin.models.dae.model import DaeModel
from fmilin.numerics.staircase import deflate, is_order_doubtful
from fmilin.signals import FloatArray
from fmilin.tolerances import DESCRIPTOR_AGREES, EQUILIBRIUM

MOST_COMPARED = 80  # variables of a descriptor system that is compared each time: some milliseconds


@dataclass(frozen=True)
class DescriptorComparison:
    """What the reduction of the equations and their pencil s E - A say."""

    order: int  # of the linear model
    pencil_order: int | None  # finite eigenvalues of the pencil; None where they cannot be told from infinite ones
    pencil_index: int | None
    difference: float  # how well the modes of the linear model solve (s E - A) z = 0, relative to the terms

    @property
    def agrees(self) -> bool:
        """Whether the two ways lead to the same."""
        same_order = self.pencil_order is None or self.pencil_order == self.order
        return same_order and not self.difference > DESCRIPTOR_AGREES

    def __str__(self) -> str:
        if self.pencil_order is not None and self.pencil_order != self.order:
            return (
                f"The order is {self.order}, but the pencil s E - A of the equations as they are written has "
                f"{self.pencil_order} finite eigenvalues."
            )
        return (
            f"The modes of A leave a residual of {self.difference:.1e} in the equations as they are written, relative "
            "to the terms in these."
        )


def compare_with_descriptor(linear: LinearModel) -> DescriptorComparison | None:
    """Return how a linear model agrees with its descriptor system; None where it has none.

    Both have the same finite eigenvalues at an equilibrium, and everywhere where the equations are linear.
    """
    if linear.descriptor is None:
        return None
    system = linear.descriptor
    if isinstance(system, LazyDescriptor):
        system = system.computed()
    deflation = deflate(system.E, system.A)
    if deflation is not None and deflation.order != len(linear.A) and is_order_doubtful(system.E, system.A):
        deflation = None  # small coefficients may be meant: the reduction, which knows the nominal values, decides
    return DescriptorComparison(
        order=len(linear.A),
        pencil_order=None if deflation is None else deflation.order,
        pencil_index=None if deflation is None else deflation.index,
        difference=system.difference,
    )


def check_descriptor(linear: LinearModel, model: Model, point: OperatingPoint, rates: FloatArray) -> tuple[Remark, ...]:
    """Return a diagnostic if the descriptor system of a small DAE contradicts its linear model.

    Raises NumericalError if the order differs for equations that are linear: rounding decides it then.
    """
    if not isinstance(model, DaeModel) or linear.descriptor is None:
        return ()
    graph = model.engine.graph
    if graph.residuals.numel() > MOST_COMPARED:
        return ()
    is_linear = model.engine.is_linear
    is_at_rest = bool((np.abs(rates) <= EQUILIBRIUM * model.states.scales(point.states)).all()) and model.autonomous
    if not (is_linear or is_at_rest):
        return ()
    try:
        comparison = compare_with_descriptor(linear)
    except (FmilinError, np.linalg.LinAlgError):  # no second way at this point
        return ()
    if comparison is None or comparison.agrees:
        return ()
    if is_linear and comparison.pencil_order not in (None, comparison.order):
        raise NumericalError(
            f"Rounding decides about '{graph.name}'. {comparison} Scale the equations, and write 0 where a coefficient "
            "is what is left of larger numbers that cancel."
        )
    return (Remark("descriptor", str(comparison)),)


def explain_lost_invariants(error: ConstraintError, model: Model) -> NumericalError | None:
    """Return what to say where linear equations do not keep what their own differentiation gave; None elsewhere.

    In exact arithmetic they do: a sum of terms that cancel but for rounding has decided about index and order.
    """
    if not (isinstance(model, DaeModel) and error.residuals and model.engine.is_linear):
        return None
    invariants = model.engine.reduced.invariants
    names = {row.name for row in invariants}
    found_here = {name for name in error.residuals if name.removeprefix("rate of ") in names}
    if found_here != set(error.residuals):
        return None  # one that was declared may be wrong
    smallest = _find_smallest_coefficient(model)
    return NumericalError(
        f"Rounding decides about '{model.engine.graph.name}': equations that differentiation gave are not kept, so a "
        f"sum of coefficients that should cancel was not zero, or one that counts was. Which one cannot be told; the "
        f"smallest coefficient, beside the others of its equation, is {smallest}. Multiply products of numbers out, "
        "scale the equations, and write 0 where a coefficient is what is left of larger numbers that cancel."
    )


def _find_smallest_coefficient(model: DaeModel) -> str:
    """Name the coefficient that is smallest beside the largest one of its equation."""
    form = model.descriptor_form(model.start.time, model.start.states, model.start.inputs)
    if form is None:
        return "the smallest one"
    both = np.abs(np.hstack((form.E, form.A)))
    parts = both / np.maximum(both.max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    row, column = np.unravel_index(int(np.argmin(np.where(parts > 0, parts, np.inf))), parts.shape)
    k = len(form.states)
    variable = f"der({form.states[column]})" if column < k else form.states[int(column) - k]
    value = form.E[row, column] if column < k else -form.A[row, int(column) - k]
    return f"{value:.3g}, that of '{variable}' in '{model.engine.graph.equation_names[int(row)]}'"
