"""Checks of the derivatives: exact ones against differences, events, kinks, memory, accuracy of the entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.linear_model.accuracy import comparable_sizes, matrix_and_errors, require_parts
from fmilin.linear_model.model import LinearModel
from fmilin.linearization.checks.check import LinearizationCheck, ResultCheck
from fmilin.linearization.checks.sparse_derivatives import require_agreement
from fmilin.linearization.evaluation import MAX_USABLE_SIZE
from fmilin.linearization.linearization_context import (
    AssembledPoint,
    DifferentiatedPoint,
    LinearizedBatch,
    LinearizedPoint,
    Mask,
    SparseLinearizedPoint,
)
from fmilin.manifold.branches import require_no_joint_kink
from fmilin.manifold.checks.context import ExaminedPoint
from fmilin.manifold.differentiation import MoreCareful
from fmilin.manifold.manifold_verification import VerifiedFacts
from fmilin.manifold.neighbourhood import Neighbourhood
from fmilin.model.capabilities import has_graph
from fmilin.numerics.differences.sweep import StepSweep, step_sweep
from fmilin.signals import FloatArray
from fmilin.tolerances import INACCURATE_ENTRY_ERROR


class DerivativesAgree(ResultCheck):
    """Exact directional derivatives are a claim: where they contradict a difference, the difference is used."""

    verifies = "Exact derivatives agree with differences, on both sides of the point and farther away."
    needs = (
        "Two evaluations for each column at the first point, two in all at later points; a sweep of step sizes for "
        "columns in doubt."
    )
    runs = "at every point"
    kinds = ("directional-derivative", "narrow", "kink-branch")
    describes_computation = True
    verifies_model = True
    error = "KinkError if both sides of the point differ; NumericalError for equations of a large model."

    def has_meaning(self, at: ExaminedPoint) -> bool:
        """Whether there are derivatives that differences can be compared with."""
        return isinstance(at, (LinearizedPoint, SparseLinearizedPoint))

    def request_care(self, at: DifferentiatedPoint) -> MoreCareful | None:
        return None if at.comparison is None else at.comparison.request

    def examine(self, at: AssembledPoint) -> Sequence[Remark]:
        if isinstance(at, SparseLinearizedPoint) and at.request.checks != "none":
            require_agreement(at)
        if not isinstance(at, LinearizedPoint):
            return ()
        comparison = at.differentiated.comparison
        if comparison is not None and comparison.is_complete:
            # Columns alone do not show every kink: along each axis min(|x|, |u|) is zero.
            sizes = (np.abs(at.jacobians.J[0]) * at.nearby.scales).max(axis=1, initial=0.0)
            require_no_joint_kink(at.nearby.observing(at.observations), sizes)
        return at.jacobians.remarks

    def learn(self, at: AssembledPoint, facts: VerifiedFacts) -> VerifiedFacts:
        comparison = at.differentiated.comparison if isinstance(at, LinearizedPoint) else None
        if comparison is None or comparison.facts is at.facts:
            return facts
        comparison_facts = comparison.facts
        return replace(
            facts,
            precision=comparison_facts.precision,
            solving=comparison_facts.solving,
            procedure=comparison_facts.procedure,
        )

    def find_doubt(self, at: LinearizedBatch) -> Mask:
        """Return where a difference along one direction contradicts derivatives: their errors are infinite there."""
        return np.asarray(np.isinf(at.derivatives.errors).any(axis=(1, 2)))


class NoEventIsNear(LinearizationCheck):
    """A mode that is held, or an angle that wraps, holds near the point only."""

    verifies = "No event and no jump of an output lies among the points of the differences."
    needs = "The event indicators at these points."
    runs = "at every point"
    kinds = ("held", "turn")
    describes_computation = True
    error = "NumericalError if an event lies at the point, unless hold_modes=True."

    def examine(self, at: LinearizedPoint) -> Sequence[Remark]:
        names = at.model.outputs.names
        remarks = [
            Remark(
                "turn",
                f"The output '{names[i]}' jumps by 360 at the point, which was treated as a full turn of an angle in "
                "degrees. If it is a switch, there is no linear model.",
            )
            for i in at.observations.doubtful_turns
        ]
        if not at.observations.crossed:
            return remarks
        numbers = ", ".join(str(i + 1) for i in at.observations.crossed)
        text = f"Held in its present mode beside the point, where events would change it (indicators: {numbers})"
        return [*remarks, Remark("held", f"{text}. The linear model is valid in this mode only.")]

    def find_doubt(self, at: LinearizedBatch) -> None:
        """Return no doubt: a model with event indicators has no batches."""


class ModelRepeatsItself(LinearizationCheck):
    """A model that keeps something between calls has no derivative to more digits than that."""

    verifies = "Evaluated again at the same point, the model returns the same values."
    needs = "One evaluation, unless the model consists of equations."
    runs = "at every point"
    kinds = ("memory",)

    def examine(self, at: LinearizedPoint) -> Sequence[Remark]:
        point, nearby = at.point, at.nearby
        if at.evaluator.exact_slopes(point.time, point.states, point.inputs) is not None:
            return ()  # equations, not a black box
        measured = at.observations.change_on_return
        change = nearby.change_at_point() if measured is None else measured
        if not change.any():
            return ()
        worst = int(np.argmax(change))
        includes = "the error estimates include that"
        if measured is None:
            includes = "the error estimates do not include that"
        text = (
            f"The model is not reproducible: evaluated again at the same point, {nearby.rows[worst]} differs by up to "
            f"{change[worst]:.3g}. It keeps memory between calls, and {includes}."
        )
        return (Remark("memory", text),)

    def find_doubt(self, at: LinearizedBatch) -> Mask | None:
        """Check whether a black box returns the same values at the points after all other evaluations."""
        if at.reference.has_exact_procedure or has_graph(at.reference.model):
            return None  # equations, not a black box
        tangents, pairs = at.tangents, at.reference.facts.pairs or {}
        again = at.geometry.equations.evaluate(at.points)
        first = tangents.rates, tangents.values
        same = [(a == b) & (np.abs(a) < MAX_USABLE_SIZE) for a, b in zip(again, first, strict=True)]
        same.append(tangents.rates[:, list(pairs)] == at.points.states[:, list(pairs.values())])
        return np.asarray(~np.concatenate(same, axis=1).all(axis=1))


LISTED_STEPS = 6  # scales of steps at which derivatives are listed


class EntriesAreAccurate(LinearizationCheck):
    """An entry with an error of a tenth of its row decides about eigenvalues by chance."""

    verifies = "The error of each entry is small relative to the largest entry of its row of [A B] or [C D]."
    needs = "A sweep of step sizes, for the message only."
    runs = "at every point"
    kinds = ("accuracy",)
    error = "NumericalError if it is more than a tenth, unless keep_inaccurate=True."

    def examine(self, at: LinearizedPoint) -> Sequence[Remark]:
        linear, nearby = at.linear, at.nearby
        J, E = matrix_and_errors(linear)
        if not J.size:
            return ()
        scaled = E * nearby.scales
        largest = (np.abs(J) * nearby.scales).max(axis=1)
        sizes = comparable_sizes(largest, scaled.max(axis=1), _row_terms(linear, nearby, largest))
        part = np.where(scaled > 0, scaled / np.where(sizes > 0, sizes, 1.0)[:, None], 0.0)
        keep = at.request.keep_inaccurate
        judged = require_parts(linear, part, lambda i, j: _describe_slopes(at, i, j), keep=keep)
        return judged.warnings[len(linear.warnings) :]

    def find_doubt(self, at: LinearizedBatch) -> Mask:
        geometry, derivatives = at.geometry, at.derivatives
        errors = derivatives.errors[..., 0]
        model, independent = at.reference.model, at.reference.independent
        sizes = np.concatenate((derivatives.rate_sizes.largest, derivatives.output_sizes.largest), axis=1)
        terms = np.concatenate((geometry.sizes, model.outputs.scales(at.tangents.values)), axis=1)
        is_accurate = errors <= INACCURATE_ENTRY_ERROR * comparable_sizes(sizes, errors, terms)
        rows = [*independent, *range(len(model.states), errors.shape[1])]
        return np.asarray(~(is_accurate[:, rows].all(axis=1) & derivatives.find_finite(independent)))


def _row_terms(linear: LinearModel, nearby: Neighbourhood, largest: FloatArray) -> FloatArray:
    """Return the size of what each row sums, shape (P + ny,): rates by the fastest one, outputs by their own sizes."""
    p = nearby.p
    sizes = nearby.scales[:p]
    fastest = max(1.0, float(np.max(np.maximum(largest[:p], np.abs(linear.f0)) / sizes, initial=0.0)))
    return np.concatenate((sizes * fastest, linear.outputs.scales(nearby.base[nearby.n :])))


def _describe_slopes(at: LinearizedPoint, row: int, j: int) -> str:
    """Say which derivatives steps of several sizes give, and what to do."""
    nearby, on_return = at.nearby.observing(at.observations), at.observations.change_on_return
    unit = np.eye(len(nearby.scales))[j]
    with np.errstate(all="ignore"):
        value = float(np.concatenate((nearby.frame.y0, nearby.point.inputs))[j])
        sweep = step_sweep(lambda s: nearby.at(s * unit), nearby.base, float(nearby.scales[j]), value)
    slopes = "" if sweep is None else f" The derivative at steps of {_list_slopes(nearby, sweep, row)}."
    if on_return is not None and (change := float(np.max(on_return, initial=0.0))):
        slopes += f" Evaluated again at the same point the model differs by up to {change:.2g}: it keeps memory."
    return (
        f"{slopes} A derivative that changes with the step indicates friction, a dead zone, a switch, rounding or "
        f"noise in the model: give '{nearby.columns[j]}' a nominal value of the size at which the model is smooth, "
        "tighten the tolerance of solvers inside, provide exact derivatives, or move the point."
    )


def _list_slopes(nearby: Neighbourhood, sweep: StepSweep, row: int) -> str:
    """List the derivatives of one row of [A; C] at some of the steps."""
    p, D = nearby.p, sweep.D
    slopes = D[:, : nearby.n] @ nearby.frame.coordinates.R[row] if row < p else D[:, nearby.n + row - p]
    steps: Sequence[int] = np.unique(np.linspace(0, len(D) - 1, LISTED_STEPS).round().astype(int)).tolist()
    return ", ".join(f"{sweep.h[k]:.1g} is {slopes[k]:.4g}" for k in steps)
