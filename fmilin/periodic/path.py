"""Slopes along a stretch of a motion, by linear models in coordinates that do not jump, or by deviations beside it.

States are taken that determine the others well at all points, where there are such; else a basis of the tangent space
is carried along (Spencer, chapter 2): y = R(t) x turns with the motion, and y' = (R f_x + R') T y.

Deviations are measured where linear models do not tell what becomes of them: past events (motions beside one another
have the saltation matrix in their differences; Leine and Nijmeijer, Dynamics and bifurcations of non-smooth mechanical
systems, 2004, chapter 7), and of co-simulation FMUs, which do not say their rates.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg
from scipy.interpolate import make_interp_spline

from fmilin.errors import FmilinError, NumericalError, UsageError
from fmilin.families.along import linearize_along_as
from fmilin.families.family import LinearFamily
from fmilin.linear_model.model import LinearModel
from fmilin.linearization.linearize import linearize_next
from fmilin.linearization.reference import AGREEMENT_OF_MATRICES
from fmilin.linearization.request import Request
from fmilin.manifold.frame import manifold_at
from fmilin.manifold.invariants import Invariants
from fmilin.manifold.operating_points import model_at
from fmilin.manifold.points import batch_points
from fmilin.manifold.projection import project
from fmilin.manifold.selection import Selection, kinematic_pairs, select_partition, select_states
from fmilin.model.capabilities import read_discrete_states, read_tangents
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.stepping import Stepped
from fmilin.periodic.orbit import PeriodicOrbit, simulated
from fmilin.signals import FloatArray, Signals
from fmilin.simulation.run import RunRequest, snapshots
from fmilin.tolerances import EPS

GOOD = 30.0  # condition number up to which states are kept as coordinates along the whole motion
LOOKED_AT = 24  # points of a motion at which coordinates are compared
DEGREE_OF_BASIS = 9  # of the spline that says how a carried basis turns
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
        degree = min(DEGREE_OF_BASIS, len(self.times) - 1)
        rate = make_interp_spline(self.times, self.R, k=degree, axis=0).derivative()(self.times)
        return np.asarray(self.A + rate @ self.T)

    @property
    def closing(self) -> FloatArray:
        """What becomes of y at the end in the coordinates of the start, shape (P, P)."""
        return np.asarray(self.R[0] @ self.T[-1])


def slopes_along(
    model: Model, points: Sequence[OperatingPoint], request: Request, *, closed: bool = False
) -> PathSlopes:
    """Return slopes at points of a motion, in their order, in coordinates that are carried along.

    With ``closed`` the last point is the first one a period later, where states that are kept have the same slopes.
    """
    # Points of a motion that is followed: whether each is part of a steady motion does not matter, and takes long.
    request = replace(request, seek_steady=False)
    if request.outputs is not None:
        model, request = model.with_interface(None, request.outputs), replace(request, outputs=None)
    if request.independent is None and request.coordinates == "partition":
        kept = good_everywhere(model_at(model, points[0]), points)
        request = replace(request, coordinates="tangent") if kept is None else replace(request, independent=kept)
    if request.coordinates != "partition":
        return _carried(model, points, request)
    own = points[:-1] if closed else points
    slopes = _at_once(model, own, request) or _of_family(linearize_along_as(model, own, request))
    if not closed:
        return slopes
    arrays: dict[str, Any] = {name: getattr(slopes, name) for name in (*OF_MODELS, "error", "R")}
    again: dict[str, Any] = {name: np.concatenate((values, values[:1])) for name, values in arrays.items()}
    return replace(slopes, times=np.append(slopes.times, points[-1].time), **again)


def _at_once(model: Model, points: Sequence[OperatingPoint], request: Request) -> PathSlopes | None:
    """Return exact slopes at all points together, checked at the first one; None where the model does not have them."""
    own = model_at(model, points[0])
    chosen = request.inputs is not None or request.derivatives not in ("auto", "exact")
    if chosen or own.constraints.prescribing or read_discrete_states(own):
        return None
    first, selection = linearize_next(own, points[0], request, None)
    kept = list(selection.kept or ()) if selection is not None else []
    stack, order = batch_points(points), len(kept)
    try:
        tangents = read_tangents(own, stack.time, stack.states, stack.inputs, kept) if kept else None
    except FmilinError:
        return None
    if tangents is None or first.method.derivatives != "exact":
        return None
    J, seen = tangents.derivatives, tangents.outputs
    A, B = J[:, kept, :order], J[:, kept, order:]
    exact = np.isfinite(J).all() and np.isfinite(tangents.T).all()
    if not (
        exact and np.abs(A[0] - first.A).max(initial=0.0) <= AGREEMENT_OF_MATRICES * np.abs(first.A).max(initial=1e-12)
    ):
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
    manifolds = [
        manifold_at(Invariants(PointEvaluator(model), point.inputs, pairs, scales), point)[0] for point in some
    ]
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
    made: list[LinearModel] = []
    R = []
    for point in points:
        linear, selection = linearize_next(model_at(model, point), point, request, previous)
        previous = selection or previous
        assert selection is not None and selection.coordinates.is_linear  # noqa: S101, PT018
        if not made and request.derivatives == "auto" and linear.method.derivatives == "exact":
            # Compared with differences once, at the first point, as where slopes are taken at all points together.
            request = replace(request, derivatives="exact")
        made.append(linear)
        R.append(selection.coordinates.R)
    arrays: dict[str, Any] = {name: np.array([getattr(linear, name) for linear in made]) for name in OF_MODELS}
    arrays |= {"error": np.array([linear.errors.A for linear in made]), "R": np.array(R), "carried": True}
    times, first = np.array([point.time for point in points]), made[0]
    return PathSlopes(times, first.states, first.inputs, first.outputs, **arrays)


STEP = 2e-5  # of the sizes of the coordinates: a deviation; half of it is compared with the whole
UNTOLD = 1e-3  # relative: how far the two may be apart
LOST = 1e-10  # relative: what is left of a deviation that drowns in others


@dataclass(frozen=True, eq=False)
class NeighbouringMotions:
    """Motions that begin beside one."""

    model: Model
    start: OperatingPoint
    slopes: PathSlopes  # its coordinates, where it begins
    run: RunRequest

    def sensitivities(self, times: FloatArray, columns: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        """Return d x(t) / d(y, u) at the start, some columns of them, and its error: (K, N, columns) each."""
        x, u = self.model.states.scales(self.start.states), self.model.inputs.scales(self.start.inputs)
        sizes = STEP * np.concatenate((np.abs(self.slopes.R[0]) @ x, u))

        def difference(j: int, h: float) -> FloatArray:
            ahead, behind = (simulated(self.model, self._moved(j, s * h), times, self.run).states for s in (1, -1))
            return (ahead - behind) / (2 * h)

        coarse, fine = (np.stack([difference(j, part * sizes[j]) for j in columns], axis=-1) for part in (1.0, 0.5))
        best = (4 * fine - coarse) / 3
        return best, np.abs(best - fine)

    def _moved(self, j: int, by: float) -> OperatingPoint:
        P, start = len(self.slopes.states), self.start
        if j >= P:
            u = start.inputs.copy()
            u[j - P] += by
            return replace(start, inputs=u)
        x = start.states + self.slopes.T[0][:, j] * by
        if len(self.model.constraints):
            pairs = kinematic_pairs(self.model, start)
            scales = self.model.states.scales(start.states)
            invariants = Invariants(PointEvaluator(self.model), start.inputs, pairs, scales)
            kept = np.flatnonzero(np.abs(self.slopes.R[0]).sum(axis=0)).tolist()
            x = project(invariants, start.time, x, kept if len(kept) == P else ())
        return replace(start, states=x)


def slopes_at_ends(model: Model, points: Sequence[OperatingPoint], request: Request) -> PathSlopes:
    """Return slopes where a stretch begins and ends, in the coordinates of both."""
    ends = (points[0], points[-1])
    if isinstance(model, Stepped):
        return _bare(model, ends)
    return slopes_along(model, ends, _inside(model, request, points))


def _inside(model: Model, request: Request, points: Sequence[OperatingPoint]) -> Request:
    """Return the request with states that are good all along, and the modes of a model left as they are."""
    kept = request.independent or good_everywhere(model_at(model, points[0]), points)
    if kept is None or request.coordinates != "partition":
        raise UsageError(
            "A motion that passes events is looked at in states that determine the others all along it, and there are "
            "none such. Begin at another place of it, or describe the model by other states."
        )
    return replace(request, independent=tuple(kept), hold_modes=True)


def _bare(model: Model, points: Sequence[OperatingPoint]) -> PathSlopes:
    """Return the places of a model that does not give its slopes away: all of them zero."""
    n, m = len(model.states), len(points)
    eye, nothing = np.broadcast_to(np.eye(n), (m, n, n)), np.zeros((m, n, n))
    times = np.array([point.time for point in points])
    return PathSlopes(
        times, model.states, Signals(), Signals(), nothing, nothing[..., :0], nothing[:, :0], nothing[:, :0, :0], eye,
        nothing[..., 0], nothing, eye,
    )  # fmt: skip


def measured_slopes(
    orbit: PeriodicOrbit, samples: Sequence[OperatingPoint], request: Request
) -> tuple[PathSlopes, FloatArray]:
    """Return slopes in the modes that the motion has there, and transitions (m, P, P) from each sample to the next."""
    model, period = orbit.model, orbit.period
    times = np.array([point.time for point in samples])
    stepped = isinstance(model, Stepped)
    slopes = _bare(model, samples) if stepped else _in_passing(orbit, times, _inside(model, request, samples))
    P, m = len(slopes.states), len(samples) - 1
    x, error = NeighbouringMotions(model, samples[0], slopes, orbit.run).sensitivities(times, range(P))
    R = np.concatenate((slopes.R[:-1], slopes.R[:1]))  # at the end in the coordinates of the start
    phi, off = R @ x, np.abs(R) @ error
    if (off.max(axis=(1, 2)) > UNTOLD * np.maximum(np.abs(phi).max(axis=(1, 2)), 1.0)).any():
        k = int(np.argmax(off.max(axis=(1, 2))))
        raise NumericalError(
            f"What becomes of deviations cannot be measured at t = {times[k]:.6g} s: large and small ones differ by "
            f"{off[k].max():.2g}. An event is near a sample there, or deviations meet another event: take another "
            "number of points (points=), or begin elsewhere."
        )
    transitions = np.array([phi[k + 1] @ np.linalg.pinv(phi[k], rcond=LOST) for k in range(m)])
    slopes = replace(slopes, error=np.maximum(slopes.error, off * m / period))
    if stepped:
        means = [np.real(linalg.logm(step)) * m / period for step in transitions]
        slopes = replace(slopes, A=np.array([*means, means[0]]))
    return slopes, transitions


def _in_passing(orbit: PeriodicOrbit, times: FloatArray, request: Request) -> PathSlopes:
    """Return slopes taken while a motion passes, and the model is in the mode of that time."""
    model, run = orbit.model, orbit.run
    if request.outputs is not None or request.inputs is not None:
        model = model.with_interface(request.inputs, request.outputs)
        request = replace(request, inputs=None, outputs=None)
    passed = snapshots(model, orbit.start, times=times.tolist(), inputs=run.inputs, method=run.method)
    made = [linearize_next(model_at(model, point), point, request, None)[0] for point in passed]
    arrays: dict[str, Any] = {name: np.array([getattr(linear, name) for linear in made]) for name in OF_MODELS}
    first = made[0]
    R = np.zeros((len(made), len(first.states), len(first.full_states)))
    R[:, range(len(first.states)), [first.full_states.positions[name] for name in first.states.names]] = 1.0
    error = np.array([linear.errors.A for linear in made])
    return PathSlopes(times, first.states, first.inputs, first.outputs, **arrays, error=error, R=R)
