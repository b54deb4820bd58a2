"""The plan of a linearization: the part common to all calls with the same model and request, computed once.

Once compiled code differentiates a model, and of an FMU, of which a batch is few messages to its process, a point of a
loop (an extended Kalman filter, a simulation with gain scheduling) is a batch of one in the coordinates of an earlier
point. It is linearized alone when one of the checks has a doubt, when other coordinates would be chosen there,
or when the model allows no batch. Where that happens call after call, batches are tried less and less often.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fmilin.errors import FmilinError
from fmilin.linear_model.arrays import MATRICES
from fmilin.linear_model.model import LinearModel
from fmilin.linearization.assembly import extract_model
from fmilin.linearization.linearization_context import BatchResult, LinearizedBatch
from fmilin.linearization.reference import Reference
from fmilin.linearization.repeated_point import RepeatedLinearization
from fmilin.linearization.request import Request
from fmilin.manifold.rank import independent_rows, scaled
from fmilin.manifold.selection import Manifold, Selection, select_partition
from fmilin.model.capabilities import can_be_described, is_quick_in_batches
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.memory import find_memory
from fmilin.support.dataclass import dataclass
from fmilin.tolerances import DOUBTFUL_CONDITION_NUMBER

MAX_PLANS = 8  # requests of one model
MAX_PAUSE = 64  # calls without a batch, however often one was in vain


@dataclass(eq=False)
class LinearizationPlan:
    """Results of earlier calls with one model and one request."""

    model: Model
    request: Request
    reference: Reference | None = None  # the last point that was linearized alone
    calls_in_vain: int = 0  # one after the other, at which a batch of one was of no use
    pause: int = 0  # calls from now on at which none is tried
    _repetition: tuple[Reference, RepeatedLinearization | None] | None = None  # of the reference

    def find_reference(self) -> Reference | None:
        """Return the reference of a batch of one; None where the point is to be linearized alone."""
        if self.pause:
            self.pause -= 1
            return None
        return self.reference

    def find_repetition(self) -> RepeatedLinearization | None:
        """Return the linearization of points near the reference that takes less than a batch of one; None without."""
        reference = self.reference
        if reference is None or self.pause:
            return None
        if self._repetition is None or self._repetition[0] is not reference:
            self._repetition = reference, _make_repetition(reference)
        return self._repetition[1]

    def remember_success(self) -> None:
        """Try a batch of one at the next call, too."""
        self.calls_in_vain = 0

    def remember(self, point: OperatingPoint, linear: LinearModel, selection: Selection) -> None:
        """Take a point that was linearized alone as the reference of later ones, unless batches are in vain."""
        if self.pause:
            return
        was_tried = self.reference is not None
        # The caller may write to the arrays of both before the next call examines them.
        point = replace(point, states=point.states.copy(), inputs=point.inputs.copy())
        matrices = {name: getattr(linear, name).copy() for name in MATRICES}
        linear = replace(linear, **matrices)
        reference = Reference(self.model, self.request, point, linear, selection, point_model=self.model)
        self.reference = reference if reference.is_usable else None
        if was_tried or self.reference is None:
            self.calls_in_vain += 1
            self.pause = min(2**self.calls_in_vain - 2, MAX_PAUSE)  # one doubt may be that of this point


def _make_repetition(reference: Reference) -> RepeatedLinearization | None:
    """Return the linearization of points near a reference; None without, and where the model fails near it."""
    try:
        with np.errstate(all="ignore"):
            return RepeatedLinearization.of_reference(reference)
    except (FmilinError, np.linalg.LinAlgError):
        return None


def find_plan(model: Model, request: Request) -> LinearizationPlan | None:
    """Return the plan of a model and a request; None as long as one point alone is quicker than a batch of one.

    Models with a descriptor system, which is compared with A at every point, are linearized alone.
    """
    if request.checks == "all" or not is_quick_in_batches(model) or can_be_described(model):
        return None
    plans: list[LinearizationPlan] = find_memory(model).setdefault(LinearizationPlan, [])
    for plan in plans:
        if plan.request is request or plan.request == request:
            return plan
    plan = LinearizationPlan(model, request)
    plans.append(plan)
    del plans[:-MAX_PLANS]
    return plan


def accept_point(result: BatchResult, point: OperatingPoint) -> tuple[LinearModel, Selection] | None:
    """Return the linear model of a batch of one; None if a check has a doubt, or other coordinates would be chosen."""
    at = result.computed
    reference, selection = at.reference, at.reference.selection
    is_meant_elsewhere = point.slope_changes is not None  # errors include how far the point is from the one meant
    if result.is_doubtful[0] or selection is None or is_meant_elsewhere or not would_be_chosen(at):
        return None
    states = selection.signals.with_start(point.states[reference.independent].tolist())
    method = replace(reference.linear.method, evaluations=at.evaluations, products=at.products)
    diagnostics = (*point.remarks, *result.diagnostics[0])
    return extract_model(result.models, reference.model, point, states, method, diagnostics), selection


def would_be_chosen(at: LinearizedBatch) -> bool:
    """Whether the coordinates of the reference would be chosen at the first point, too."""
    reference, model = at.reference, at.reference.model
    if not reference.dependent:
        return True
    H, sizes = at.tangents.gradient[0], at.geometry.sizes[0]
    every_row, _ = scaled(H, sizes, np.abs(H) @ sizes, np.zeros_like(H))
    rows = independent_rows(every_row, len(reference.dependent), len(model.constraints))
    if rows != reference.rows:
        return False
    if reference.request.independent or model.independent:
        return bool(at.geometry.condition_number[0] <= DOUBTFUL_CONDITION_NUMBER)
    is_position, pairs = reference.is_position_level[rows], reference.facts.pairs or {}
    Hs, x = every_row[rows], at.points.states[0]
    manifold = Manifold(model.states, H[rows], Hs, is_position, lambda: reference.linear_states, pairs, sizes, x)
    return select_partition(manifold).independent == tuple(reference.independent)
