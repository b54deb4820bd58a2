"""Linear models along a stretch of a motion, in coordinates that do not jump, or measured deviations from it.

States are taken that determine the others well at all points, where there are such; else a basis of the tangent space
is carried along (Spencer, chapter 2): y = R(t) x turns with the motion, and y' = (R f_x + R') T y.

Deviations are measured where linear models do not tell what becomes of them: past events (motions next to one another
have the saltation matrix in their differences; Leine and Nijmeijer, Dynamics and bifurcations of non-smooth mechanical
systems, 2004, chapter 7), and of co-simulation FMUs, which do not say their rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg
from scipy.interpolate import make_interp_spline

from fmilin.diagnostics import Remark
from fmilin.errors import NumericalError, UsageError
from fmilin.families.along import linearize_path
from fmilin.families.family import LinearFamily
from fmilin.families.family_builder import build_family
from fmilin.linear_model.model import LinearModel
from fmilin.linearization.linearize import linearize_next
from fmilin.linearization.request import Request
from fmilin.manifold.frame import build_manifold
from fmilin.manifold.invariants import Invariants
from fmilin.manifold.operating_points import apply_point_parameters
from fmilin.manifold.projection import project
from fmilin.manifold.selection import Selection, kinematic_pairs, select_partition, select_states
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.stepping import Stepped
from fmilin.periodic.orbit import PeriodicOrbit, simulate_motion
from fmilin.signals import FloatArray, Signals
from fmilin.simulation.run import RunRequest, snapshots

MAX_CONDITION_OF_STATES = 30.0
"""Condition number up to which states are kept as coordinates along a whole motion."""

POINTS_COMPARED = 24
"""Points of a motion at which coordinates are compared."""

DEGREE_OF_BASIS = 9  # of the spline that says how a carried basis turns
QUANTITIES = ("A", "B", "C", "D", "T", "f0")  # that a path has of each linear model


@dataclass(frozen=True, eq=False)
class LinearizedPath:
    """Linear models at m + 1 points from the start to the end of a stretch of a motion, along the first axis."""

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
    is_exact: bool = False  # whether no derivative was measured
    diagnostics: tuple[tuple[Remark, ...], ...] = ()  # of each point; empty where nothing was linearized

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
        """The map from y at the end to the coordinates of the start, shape (P, P)."""
        return np.asarray(self.R[0] @ self.T[-1])

    def measure_dependence(self, scales: FloatArray) -> float:
        """Return the largest norm of T along the path, in sizes of the states: large near singular coordinates."""
        y_scales = np.abs(self.R[0]) @ scales
        return float(np.linalg.norm(self.T * y_scales / scales[:, None], axis=(1, 2)).max(initial=0.0))

    def with_end_like_start(self, time: float) -> LinearizedPath:
        """Return the path with one more point, at a time at which everything is as at the start."""
        arrays: dict[str, Any] = {name: getattr(self, name) for name in (*QUANTITIES, "error", "R")}
        longer: dict[str, Any] = {name: np.concatenate((values, values[:1])) for name, values in arrays.items()}
        return replace(self, times=np.append(self.times, time), **longer)


def linearize_stretch(
    model: Model, points: Sequence[OperatingPoint], request: Request, *, closed: bool = False
) -> LinearizedPath:
    """Return linear models at points of a motion, in their order, in coordinates that do not jump.

    If the path is ``closed``, the last point is the first one a period later, where states that are kept have the same
    linear model. Points are linearized, and checked, as :func:`fmilin.linearize_along` does it; whether each of them
    is part of a steady motion is not examined, as the motion is known.
    """
    request = replace(request, seek_steady=False)
    if request.independent is None and request.coordinates == "partition":
        independent = choose_states(apply_point_parameters(model, points[0]), points)
        request = (
            replace(request, coordinates="tangent")
            if independent is None
            else replace(request, independent=independent)
        )
    repeats = closed and request.coordinates == "partition"
    linearized_points = points[:-1] if repeats else points
    family, selections = linearize_path(model, linearized_points, request)
    path = _join(family, selections, linearized_points)
    return path.with_end_like_start(points[-1].time) if repeats else path


def choose_states(model: Model, points: Sequence[OperatingPoint]) -> tuple[str, ...] | None:
    """Return the states that determine the others best where they do it worst; None where none do it well."""
    if not len(model.constraints):
        return model.states.names
    compared = [points[i] for i in np.unique(np.linspace(0, len(points) - 1, POINTS_COMPARED).astype(int))]
    pairs, scales = kinematic_pairs(model, compared[0]), model.states.scales(compared[0].states)
    manifolds = [
        build_manifold(Invariants(PointEvaluator(model), point.inputs, pairs, scales), point)[0] for point in compared
    ]
    order = manifolds[0].order
    for point, manifold in zip(compared, manifolds, strict=True):
        if manifold.order != order:
            raise NumericalError(
                f"The motion passes a singular configuration at t = {point.time:.6g} s: {manifold.order} states are "
                f"independent there and {order} where it begins, so deviations are not determined. Choose a motion "
                "that does not reach it, or other lengths."
            )
    choices = {select_partition(manifold).independent for manifold in manifolds}
    if model.independent:
        choices.add(tuple(model.states.positions[name] for name in model.independent))
    worst = {
        choice: max(select_states(manifold, choice, "partition").condition_number for manifold in manifolds)
        for choice in sorted(c for c in choices if c is not None and len(c) == order)
    }
    best = min(worst, key=lambda choice: worst[choice], default=None)
    if best is None or not worst[best] <= MAX_CONDITION_OF_STATES:
        return None
    return tuple(model.states.names[i] for i in best)


def _join(
    family: LinearFamily, selections: Sequence[Selection | None], points: Sequence[OperatingPoint]
) -> LinearizedPath:
    """Return the linear models of a family as a path, with the rows of their coordinates."""
    count, order = len(points), family.template.order
    R = np.zeros((count, order, len(family.full_states)))
    for k, (selection, point) in enumerate(zip(selections, points, strict=True)):
        if selection is None:
            R[k, range(order), [family.full_states.positions[name] for name in family.states.names]] = 1.0
        else:
            R[k] = selection.coordinates.jacobian(point.states)
    arrays: dict[str, Any] = {name: np.array(family.array(name)) for name in QUANTITIES}
    return LinearizedPath(
        np.array([point.time for point in points]),
        family.states,
        family.inputs,
        family.outputs,
        **arrays,
        error=np.array(family.array("error_A")),
        R=R,
        carried=any(choice.method[1] == "tangent" for choice in family.choices),
        is_exact=all(choice.method[0] == "exact" for choice in family.choices),
        diagnostics=tuple(family.remarks.get(k, ()) for k in range(count)),
    )


STEP = 2e-5  # of the sizes of the coordinates: a deviation; half of it is compared with the whole
TRANSITION_MISMATCH_TOLERANCE = 1e-3  # relative: how far the two may be apart
TRANSITION_RANK_TOLERANCE = 1e-10  # relative: what is left of a deviation that drowns in others


@dataclass(frozen=True, eq=False)
class NeighbouringMotions:
    """Motions that begin near one."""

    model: Model
    start: OperatingPoint
    path: LinearizedPath  # its coordinates, where it begins
    run: RunRequest

    def sensitivities(self, times: FloatArray, columns: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        """Return d x(t) / d(y, u) at the start, some columns of them, and its error: (K, N, columns) each."""
        x, u = self.model.states.scales(self.start.states), self.model.inputs.scales(self.start.inputs)
        sizes = STEP * np.concatenate((np.abs(self.path.R[0]) @ x, u))

        def difference(j: int, h: float) -> FloatArray:
            ahead, behind = (
                simulate_motion(self.model, self._move_start(j, s * h), times, self.run).states for s in (1, -1)
            )
            return (ahead - behind) / (2 * h)

        coarse, fine = (np.stack([difference(j, part * sizes[j]) for j in columns], axis=-1) for part in (1.0, 0.5))
        best = (4 * fine - coarse) / 3
        return best, np.abs(best - fine)

    def _move_start(self, j: int, by: float) -> OperatingPoint:
        P, start = len(self.path.states), self.start
        if j >= P:
            u = start.inputs.copy()
            u[j - P] += by
            return replace(start, inputs=u)
        x = start.states + self.path.T[0][:, j] * by
        if len(self.model.constraints):
            pairs = kinematic_pairs(self.model, start)
            invariants = Invariants(
                PointEvaluator(self.model), start.inputs, pairs, self.model.states.scales(start.states)
            )
            independent = np.flatnonzero(np.abs(self.path.R[0]).sum(axis=0)).tolist()
            # Coordinates that are states keep the deviation when the others follow; a carried basis has none to hold.
            x = project(invariants, start.time, x, independent if len(independent) == P else ())
        return replace(start, states=x)


def linearize_ends(model: Model, points: Sequence[OperatingPoint], request: Request) -> LinearizedPath:
    """Return linear models where a stretch begins and ends, in the coordinates of both."""
    ends = (points[0], points[-1])
    if isinstance(model, Stepped):
        return _bare(model, ends)
    return linearize_stretch(model, ends, _inside(model, request, points))


def _inside(model: Model, request: Request, points: Sequence[OperatingPoint]) -> Request:
    """Return the request with states that are good all along, and the modes of a model left as they are."""
    independent = request.independent or choose_states(apply_point_parameters(model, points[0]), points)
    if independent is None or request.coordinates != "partition":
        raise UsageError(
            "A motion that passes events needs states that determine the others all along it, and there are none. "
            "Begin at another point of it, or describe the model by other states."
        )
    return replace(request, independent=tuple(independent), hold_modes=True)


def _bare(model: Model, points: Sequence[OperatingPoint]) -> LinearizedPath:
    """Return the points of a model that does not provide its rates: all derivatives are zero."""
    n, m = len(model.states), len(points)
    eye, nothing = np.broadcast_to(np.eye(n), (m, n, n)), np.zeros((m, n, n))
    times = np.array([point.time for point in points])
    return LinearizedPath(
        times, model.states, Signals(), Signals(), nothing, nothing[..., :0], nothing[:, :0], nothing[:, :0, :0], eye,
        nothing[..., 0], nothing, eye,
    )  # fmt: skip


def measure_transitions(
    orbit: PeriodicOrbit, samples: Sequence[OperatingPoint], request: Request
) -> tuple[LinearizedPath, FloatArray]:
    """Return linear models in the modes of the motion, and transitions (m, P, P) from each sample to the next."""
    model, period = orbit.model, orbit.period
    times = np.array([point.time for point in samples])
    stepped = isinstance(model, Stepped)
    path = _bare(model, samples) if stepped else _in_passing(orbit, times, _inside(model, request, samples))
    P, m = len(path.states), len(samples) - 1
    x, error = NeighbouringMotions(model, samples[0], path, orbit.run).sensitivities(times, range(P))
    R = np.concatenate((path.R[:-1], path.R[:1]))  # at the end in the coordinates of the start
    phi, off = R @ x, np.abs(R) @ error
    if (off.max(axis=(1, 2)) > TRANSITION_MISMATCH_TOLERANCE * np.maximum(np.abs(phi).max(axis=(1, 2)), 1.0)).any():
        k = int(np.argmax(off.max(axis=(1, 2))))
        raise NumericalError(
            f"Deviations cannot be measured at t = {times[k]:.6g} s: large and small ones differ by "
            f"{off[k].max():.2g}. An event is near a sample there, or deviations cause another event: use another "
            "number of points (points=), or begin elsewhere."
        )
    transitions = np.array([phi[k + 1] @ np.linalg.pinv(phi[k], rcond=TRANSITION_RANK_TOLERANCE) for k in range(m)])
    path = replace(path, error=np.maximum(path.error, off * m / period))
    # Without rates A is the mean over a step, of which the measured transition is the exponential.
    if stepped:
        means = [np.real(linalg.logm(step)) * m / period for step in transitions]
        path = replace(path, A=np.array([*means, means[0]]))
    return path, transitions


def _in_passing(orbit: PeriodicOrbit, times: FloatArray, request: Request) -> LinearizedPath:
    """Return linear models made while a motion passes, and the model is in the mode of that time."""
    model, run = orbit.model, orbit.run
    # Chosen here once: the model that passes the motion has to have the interface of the linear models.
    if request.outputs is not None or request.inputs is not None:
        model = model.with_interface(request.inputs, request.outputs)
        request = replace(request, inputs=None, outputs=None)
    passed = snapshots(model, orbit.start, times=times.tolist(), inputs=run.inputs, method=run.method)
    points: list[OperatingPoint] = []
    made: list[tuple[LinearModel, Selection | None]] = []
    for point in passed:  # the model is in the mode of this point until the next one comes
        points.append(point)
        made.append(linearize_next(apply_point_parameters(model, point), point, request, None))
    return _join(build_family([linear for linear, _ in made]), [selection for _, selection in made], points)
