"""Slopes along a stretch of a motion, in coordinates that do not jump from one of its points to the next.

States are taken that determine the others well at all points, where there are such; else a basis of the tangent space
is carried along (Spencer, chapter 2): y = R(t) x turns with the motion, and y' = (R f_x + R') T y.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.interpolate import make_interp_spline

from fmilin.families.along import linearize_along_as, stack_of
from fmilin.families.family import LinearFamily
from fmilin.ground.errors import FmilinError, NumericalError
from fmilin.ground.signals import FloatArray, Signals
from fmilin.linearization.procedure import linearize_next
from fmilin.linearization.request import Request
from fmilin.linearization.stack import AGREES, EPS
from fmilin.manifold.coordinates import LinearCoordinates
from fmilin.manifold.frame import manifold_at
from fmilin.manifold.invariants import Invariants
from fmilin.manifold.operating_points import model_at
from fmilin.manifold.selection import Selection, kinematic_pairs, select_partition, select_states
from fmilin.model.interface import Model, OperatingPoint

GOOD = 30.0  # condition number up to which states are kept as coordinates along the whole motion
LOOKED_AT = 24  # points of a motion at which coordinates are compared
OF_MODELS = ("A", "B", "C", "D", "T", "f0")  # what slopes have of every linear model


@dataclass(frozen=True, eq=False)
class PathSlopes:
    """Slopes at m + 1 points from the start to the end of a stretch of a motion, a leading axis of that length."""

    times: FloatArray
    states: Signals  # the P coordinates, at the end those of the start or carried along from there
    inputs: Signals
    outputs: Signals
    # A, B, C, D, T, f0: as of a linear model, R standing still
    A: FloatArray
    B: FloatArray
    C: FloatArray
    D: FloatArray
    T: FloatArray
    f0: FloatArray
    error: FloatArray  # of A
    R: FloatArray  # shape (m + 1, P, N), dy = R dx
    carried: bool = False  # whether R turns along the motion

    @cached_property
    def moving(self) -> FloatArray:
        """A with the rate at which the coordinates turn, (m + 1, P, P)."""
        if not self.carried:
            return self.A
        rate = make_interp_spline(self.times, self.R, k=min(5, len(self.times) - 1), axis=0).derivative()(self.times)
        return np.asarray(self.A + rate @ self.T)

    @property
    def closing(self) -> FloatArray:
        """What becomes of y at the end in the coordinates of the start, shape (P, P)."""
        return np.asarray(self.R[0] @ self.T[-1])


def slopes_along(model: Model, points: Sequence[OperatingPoint], request: Request) -> PathSlopes:
    """Return slopes at points of a motion, in their order, in coordinates that are carried along."""
    if request.outputs is not None:
        model, request = model.with_interface(None, request.outputs), replace(request, outputs=None)
    if request.independent is None and request.coordinates == "partition":
        kept = good_everywhere(model_at(model, points[0]), points)
        request = replace(request, coordinates="tangent") if kept is None else replace(request, independent=kept)
    if request.coordinates != "partition":
        return _carried(model, points, request)
    return _at_once(model, points, request) or _of_family(linearize_along_as(model, points, request))


def _at_once(model: Model, points: Sequence[OperatingPoint], request: Request) -> PathSlopes | None:
    """Return exact slopes at all points together, checked at the first one; None where the model does not have them."""
    own = model_at(model, points[0])
    chosen = request.inputs is not None or request.derivatives not in ("auto", "exact")
    if chosen or own.constraints.prescribing or own.discrete_states():
        return None
    first, selection = linearize_next(own, points[0], request, None)
    kept = list(selection.kept or ()) if selection is not None else []
    stack, order = stack_of(points), len(kept)
    try:
        tangents = own.tangents(stack.time, stack.states, stack.inputs, kept) if kept else None
    except FmilinError:
        return None
    if tangents is None or first.method.derivatives != "exact":
        return None
    J, seen = tangents.derivatives, tangents.outputs
    A, B = J[:, kept, :order], J[:, kept, order:]
    exact = np.isfinite(J).all() and np.isfinite(tangents.T).all()
    if not (exact and np.abs(A[0] - first.A).max(initial=0.0) <= AGREES * np.abs(first.A).max(initial=1e-12)):
        return None
    R = np.zeros((len(points), order, len(own.states)))
    R[:, range(order), kept] = 1.0
    error = np.abs(A).max(axis=2, keepdims=True) * max(first.accuracy.A, EPS) * np.ones_like(A)
    times = np.array([point.time for point in points])
    return PathSlopes(
        times, first.states, first.inputs, first.outputs, A, B, seen[..., :order], seen[..., order:], tangents.T,
        tangents.rates[:, kept], error, R,
    )  # fmt: skip


def good_everywhere(model: Model, points: Sequence[OperatingPoint]) -> tuple[str, ...] | None:
    """Return the states that determine the others best where they do it worst; None where none do it well."""
    if not len(model.constraints):
        return model.states.names
    some = [points[i] for i in np.unique(np.linspace(0, len(points) - 1, LOOKED_AT).astype(int))]
    pairs, scales = kinematic_pairs(model, some[0]), model.states.scales(some[0].states)
    manifolds = [manifold_at(Invariants(model, point.inputs, pairs, scales), point)[0] for point in some]
    choices = {select_partition(manifold).kept for manifold in manifolds}
    if model.independent:
        choices = {tuple(model.states.positions[name] for name in model.independent), *choices}
    order = manifolds[0].order
    if other := [(p, m) for p, m in zip(some, manifolds, strict=True) if m.order != order]:
        raise NumericalError(
            f"The motion passes a singular configuration at t = {other[0][0].time:.6g} s: {other[0][1].order} states "
            f"are independent there and {order} where it begins, and what becomes of deviations is not determined. "
            "Look at a motion that does not reach it, or at other lengths."
        )
    worst = {
        kept: max(select_states(manifold, kept, "partition").condition_number for manifold in manifolds)
        for kept in sorted(c for c in choices if c is not None and len(c) == order)
    }
    best = min(worst, key=lambda kept: worst[kept], default=None)
    return None if best is None or not worst[best] <= GOOD else tuple(model.states.names[i] for i in best)


def _of_family(family: LinearFamily) -> PathSlopes:
    rows = [family.full_states.positions[name] for name in family.states.names]
    R = np.zeros((len(rows), len(family.full_states)))
    R[range(len(rows)), rows] = 1.0
    arrays: dict[str, Any] = {name: np.asarray(family.array(name)) for name in OF_MODELS}
    times, error = (np.asarray(family.array(name)) for name in ("time", "error_A"))
    every = np.broadcast_to(R, (len(times), *R.shape))
    return PathSlopes(times, family.states, family.inputs, family.outputs, **arrays, error=error, R=every)


def _carried(model: Model, points: Sequence[OperatingPoint], request: Request) -> PathSlopes:
    previous: Selection | None = None
    made, R = [], []
    for point in points:
        linear, selection = linearize_next(model_at(model, point), point, request, previous)
        previous = selection or previous
        assert selection is not None and isinstance(selection.coordinates, LinearCoordinates)  # noqa: S101, PT018
        made.append(linear)
        R.append(selection.coordinates.R)
    arrays: dict[str, Any] = {name: np.array([getattr(linear, name) for linear in made]) for name in OF_MODELS}
    arrays |= {"error": np.array([linear.errors.A for linear in made]), "R": np.array(R), "carried": True}
    times, first = np.array([point.time for point in points]), made[0]
    return PathSlopes(times, first.states, first.inputs, first.outputs, **arrays)
