"""What calls with the same model and the same request have in common: the plan of a linearization, made once.

Once compiled code differentiates a model, a point of a loop (an extended Kalman filter, a simulation with gain
scheduling) is a batch of one in the coordinates of an earlier point, see :mod:`fmilin.linearization.batch`. A point is
linearized alone when one of the checks has a doubt, when other coordinates would be chosen there, or when a model
allows no batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.linear_model.arrays import MATRICES
from fmilin.linear_model.builder import built_of_arrays, point_of
from fmilin.linear_model.model import Accuracy, EntryErrors, LinearModel
from fmilin.linearization.batch import linearize_batch
from fmilin.linearization.context import LinearizedBatch
from fmilin.linearization.reference import Reference
from fmilin.linearization.request import Request
from fmilin.manifold.coordinates import condition_number
from fmilin.manifold.points import PointBatch
from fmilin.manifold.rank import independent_rows, scaled
from fmilin.manifold.selection import Manifold, Selection, select_partition
from fmilin.model.capabilities import has_compiled_derivatives
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.memory import memory_of
from fmilin.signals import Signals
from fmilin.tolerances import DOUBTFUL

MAX_PLANS = 8  # requests of one model


@dataclass(eq=False)
class LinearizationPlan:
    """What is kept of earlier calls with one model and one request."""

    model: Model
    request: Request
    reference: Reference | None = None  # the last point that was linearized alone

    def remember(self, point: OperatingPoint, linear: LinearModel, selection: Selection) -> None:
        """Take a point that was linearized alone as the reference of later ones."""
        reference = Reference(self.model, self.request, point, linear, selection, own=self.model)
        self.reference = reference if reference.is_usable else None

    def linearize(self, point: OperatingPoint) -> tuple[LinearModel, Selection] | None:
        """Return the linear model at a point as a batch of one, and its coordinates; None if it has to stand alone."""
        reference = self.reference
        if reference is None or point.slope_changes is not None:
            return None
        return linearize_like(reference, point)


def find_plan(model: Model, request: Request) -> LinearizationPlan | None:
    """Return the plan of a model and a request; None as long as one point alone is quicker than a batch of one."""
    if request.checks == "all" or not has_compiled_derivatives(model):
        return None
    plans: list[LinearizationPlan] = memory_of(model).setdefault(LinearizationPlan, [])
    for plan in plans:
        if plan.request == request:
            return plan
    plan = LinearizationPlan(model, request)
    plans.append(plan)
    del plans[:-MAX_PLANS]
    return plan


def linearize_like(reference: Reference, point: OperatingPoint) -> tuple[LinearModel, Selection] | None:
    """Return the linear model at a point as a batch of one; None if a check has a doubt, or other coordinates suit."""
    points = PointBatch(np.array([point.time]), point.states[None], point.inputs[None])
    result = linearize_batch(reference, points)
    if result is None or result.is_doubtful[0] or reference.selection is None:
        return None
    conditioning = find_conditioning(result.computed)
    if conditioning is None:
        return None
    diagnostics = (*point.remarks, *result.diagnostics[0])
    return extract_model(result.computed, point, conditioning, diagnostics), reference.selection


def find_conditioning(at: LinearizedBatch) -> float | None:
    """Return the condition number of (R; H) at the first point; None if other coordinates would be chosen there."""
    reference, model = at.reference, at.reference.model
    if not reference.dependent:
        return 1.0
    H, sizes = at.tangents.gradient[0], at.geometry.sizes[0]
    every_row, _ = scaled(H, sizes, np.abs(H) @ sizes, np.zeros_like(H))
    rows = independent_rows(every_row, len(reference.dependent), len(model.constraints))
    if rows != reference.rows:
        return None
    Hs = every_row[rows]
    if reference.request.independent or model.independent:
        conditioning = condition_number(np.concatenate((np.eye(len(sizes))[reference.kept], Hs)))
        return conditioning if conditioning <= DOUBTFUL else None
    is_position, pairs = reference.is_position_level[rows], reference.facts.pairs or {}
    x = at.points.states[0]
    manifold = Manifold(model.states, H[rows], Hs, is_position, lambda: reference.linear_states, pairs, sizes, x)
    selection = select_partition(manifold)
    return selection.condition_number if selection.kept == tuple(reference.kept) else None


def extract_model(
    at: LinearizedBatch, point: OperatingPoint, conditioning: float, diagnostics: Sequence[Remark]
) -> LinearModel:
    """Return the first linear model of a batch."""
    reference, model = at.reference, at.reference.model
    models = at.models
    values = {name: np.array(models.read(name)[0]) for name in ("A", "B", "C", "D", "T", "f0", "y0", "out0")}
    starts = zip(reference.kept, values["y0"].tolist(), strict=True)
    states = Signals(model.states[i].starting_at(value) for i, value in starts)
    method = replace(reference.linear.method, evaluations=at.evaluations)
    errors = {name: models.read(f"error_{name}") for name in MATRICES}
    accuracy = Accuracy(*models.summarize_errors(errors)[0].tolist())
    certainty = (
        EntryErrors(**{name: each[0] for name, each in errors.items()}),
        replace(accuracy, conditioning=conditioning),
    )
    at_point = point_of(model, point, values["out0"])
    return built_of_arrays(model, values, certainty, (states, model.states), at_point, method, remarks=diagnostics)
