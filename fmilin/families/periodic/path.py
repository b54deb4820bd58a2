"""Slopes along a stretch of a motion, in coordinates that do not jump from one of its points to the next.

States are taken that determine the others well at all points, where there are such; else a basis of the tangent space
is carried along (Spencer, chapter 2): y = R(t) x turns with the motion, and y' = (R f_x + R') T y.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.interpolate import make_interp_spline

from fmilin.families.along import linearize_along_as, stack_of
from fmilin.families.family import LinearFamily
from fmilin.ground.errors import FmilinError
from fmilin.ground.signals import FloatArray, Signals
from fmilin.linearization.procedure import linearize_next
from fmilin.linearization.request import Request
from fmilin.linearization.stack import AGREES, EPS
from fmilin.manifold.coordinates import LinearCoordinates
from fmilin.manifold.frame import manifold_at
from fmilin.manifold.invariants import Invariants
from fmilin.manifold.kinematics import kinematic_pairs
from fmilin.manifold.operating_points import model_at
from fmilin.manifold.selection import Manifold, Selection, select_partition, select_states
from fmilin.model.interface import Model, OperatingPoint

GOOD = 30.0  # condition number up to which states are kept as coordinates along the whole motion
LOOKED_AT = 24  # points of a motion at which coordinates are compared


@dataclass(frozen=True, eq=False)
class PathSlopes:
    """Slopes at m + 1 points from the start to the end of a stretch of a motion.

    Attributes
    ----------
    times : array, shape (m + 1,)
    states, inputs, outputs : Signals
        The P coordinates, at the end those of the start or carried along from there.
    A, B, C, D, T, f0 : array, shapes (m + 1, P, P), (m + 1, P, nu), (m + 1, ny, P), (m + 1, ny, nu), (m + 1, N, P),
        (m + 1, P)
        As of :class:`~fmilin.LinearModel`, R standing still.
    error : array, shape (m + 1, P, P)
        Of A.
    R : array, shape (m + 1, P, N)
        dy = R dx.
    carried : bool
        Whether R turns along the motion.
    """

    times: FloatArray
    states: Signals
    inputs: Signals
    outputs: Signals
    A: FloatArray
    B: FloatArray
    C: FloatArray
    D: FloatArray
    T: FloatArray
    f0: FloatArray
    error: FloatArray
    R: FloatArray
    carried: bool = False

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
        kept = _good_everywhere(model_at(model, points[0]), points)
        request = replace(request, coordinates="tangent") if kept is None else replace(request, independent=kept)
    if request.coordinates != "partition":
        return _carried(model, points, request)
    return _at_once(model, points, request) or _of_family(linearize_along_as(model, points, request))


def _at_once(model: Model, points: Sequence[OperatingPoint], request: Request) -> PathSlopes | None:
    """Return exact slopes at all points together, checked at the first one; None where the model does not have them.

    What is true of one point alone (whether the motion is steady there, how A changes further on) is of no interest
    along a whole orbit.
    """
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


def _good_everywhere(model: Model, points: Sequence[OperatingPoint]) -> tuple[str, ...] | None:
    """Return the states that determine the others best where they do it worst; None where none do it well."""
    if not len(model.constraints):
        return model.states.names
    some = [points[i] for i in np.unique(np.linspace(0, len(points) - 1, LOOKED_AT).astype(int))]
    manifolds = _manifolds(model, some)
    choices = {select_partition(manifold).kept for manifold in manifolds}
    if model.independent:
        choices = {tuple(model.states.positions[name] for name in model.independent), *choices}
    order = manifolds[0].order
    worst = {
        kept: max(select_states(manifold, kept, "partition").condition_number for manifold in manifolds)
        for kept in sorted(c for c in choices if c is not None and len(c) == order)
    }
    best = min(worst, key=lambda kept: worst[kept], default=None)
    return None if best is None or not worst[best] <= GOOD else tuple(model.states.names[i] for i in best)


def _manifolds(model: Model, points: Sequence[OperatingPoint]) -> list[Manifold]:
    pairs, scales = kinematic_pairs(model, points[0]), model.states.scales(points[0].states)
    return [manifold_at(Invariants(model, point.inputs, pairs, scales), point)[0] for point in points]


def _of_family(family: LinearFamily) -> PathSlopes:
    rows = [family.full_states.positions[name] for name in family.states.names]
    R = np.zeros((len(rows), len(family.full_states)))
    R[range(len(rows)), rows] = 1.0
    A, B, C, D, T, f0, error = (np.asarray(family.array(n)) for n in ("A", "B", "C", "D", "T", "f0", "error_A"))
    times = np.asarray(family.array("time"))
    return PathSlopes(
        times,
        family.states,
        family.inputs,
        family.outputs,
        A,
        B,
        C,
        D,
        T,
        f0,
        error,
        np.broadcast_to(R, (len(times), *R.shape)),
    )


def _carried(model: Model, points: Sequence[OperatingPoint], request: Request) -> PathSlopes:
    previous: Selection | None = None
    made, R = [], []
    for point in points:
        linear, selection = linearize_next(model_at(model, point), point, request, previous)
        previous = selection or previous
        assert selection is not None and isinstance(selection.coordinates, LinearCoordinates)  # noqa: S101, PT018
        made.append(linear)
        R.append(selection.coordinates.R)
    A, B, C, D, T, f0 = (
        np.array([getattr(linear, name) for linear in made]) for name in ("A", "B", "C", "D", "T", "f0")
    )
    error = np.array([linear.errors.A for linear in made if linear.errors is not None]).reshape(
        len(made), *made[0].A.shape
    )
    times = np.array([point.time for point in points])
    first = made[0]
    return PathSlopes(
        times, first.states, first.inputs, first.outputs, A, B, C, D, T, f0, error, np.array(R), carried=True
    )
