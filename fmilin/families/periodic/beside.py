"""Deviations that are measured beside a motion, where linear models along it do not tell what becomes of them.

A deviation that passes an event is multiplied by its saltation matrix, I + (f+ - f-) h_x / (h_x f- + h_t) of a switch
at h = 0 without a jump (Leine and Nijmeijer, Dynamics and bifurcations of non-smooth mechanical systems, 2004, chapter
7): the motions beside it pass the event a little earlier or later, and have it in their differences. A co-simulation
FMU does not say its rates at all, but repeats its steps from other states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg

from fmilin.families.periodic.orbit import PeriodicOrbit, simulated
from fmilin.families.periodic.path import OF_MODELS, PathSlopes, good_everywhere, slopes_along
from fmilin.ground.errors import NumericalError, UsageError
from fmilin.ground.signals import FloatArray, Signals
from fmilin.linearization.procedure import linearize_next
from fmilin.linearization.request import Request
from fmilin.manifold.invariants import Invariants
from fmilin.manifold.operating_points import model_at
from fmilin.manifold.projection import project
from fmilin.manifold.selection import kinematic_pairs
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.stepping import Stepped
from fmilin.motion.simulation.run import RunRequest, snapshots

STEP = 2e-5  # of the sizes of the coordinates: a deviation; half of it is compared with the whole
UNTOLD = 1e-3  # relative: how far the two may be apart
LOST = 1e-10  # relative: what is left of a deviation that drowns in others


@dataclass(frozen=True, eq=False)
class Beside:
    """Motions that begin beside one."""

    model: Model
    start: OperatingPoint
    slopes: PathSlopes  # its coordinates, where it begins
    run: RunRequest

    def sensitivities(self, times: FloatArray, columns: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        """Return d x(t) / d(y, u) at the start, some columns of them, and its error: (K, N, columns) each."""
        each = [self._column(times, j) for j in columns]
        return tuple(np.stack(part, axis=-1) for part in zip(*each, strict=True))  # type: ignore[return-value]

    def _column(self, times: FloatArray, j: int) -> tuple[FloatArray, FloatArray]:
        size = self._sizes[j] * STEP
        coarse, fine = (self._difference(times, j, h) for h in (size, size / 2))
        best = (4 * fine - coarse) / 3
        return best, np.abs(best - fine)

    @property
    def _sizes(self) -> FloatArray:
        x, u = self.model.states.scales(self.start.states), self.model.inputs.scales(self.start.inputs)
        return np.concatenate((np.abs(self.slopes.R[0]) @ x, u))

    def _difference(self, times: FloatArray, j: int, h: float) -> FloatArray:
        ahead, behind = (simulated(self.model, self._moved(j, s * h), times, self.run).states for s in (1, -1))
        return (ahead - behind) / (2 * h)

    def _moved(self, j: int, by: float) -> OperatingPoint:
        P, start = len(self.slopes.states), self.start
        if j >= P:
            u = start.inputs.copy()
            u[j - P] += by
            return replace(start, inputs=u)
        x = start.states + self.slopes.T[0][:, j] * by
        if len(self.model.constraints):
            pairs = kinematic_pairs(self.model, start)
            invariants = Invariants(self.model, start.inputs, pairs, self.model.states.scales(start.states))
            kept = np.flatnonzero(np.abs(self.slopes.R[0]).sum(axis=0)).tolist()
            x = project(invariants, start.time, x, kept if len(kept) == P else ())
        return replace(start, states=x)


def slopes_at_ends(model: Model, points: Sequence[OperatingPoint], request: Request) -> PathSlopes:
    """Return slopes where a stretch begins and ends, in the coordinates of both."""
    ends = (points[0], points[-1])
    return (
        _bare(model, ends) if isinstance(model, Stepped) else slopes_along(model, ends, _inside(model, request, points))
    )


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
    x, error = Beside(model, samples[0], slopes, orbit.run).sensitivities(times, range(P))
    R = np.concatenate((slopes.R[:-1], slopes.R[:1]))  # at the end in the coordinates of the start
    phi, off = R @ x, np.abs(R) @ error
    if (off.max(axis=(1, 2)) > UNTOLD * np.maximum(np.abs(phi).max(axis=(1, 2)), 1.0)).any():
        k = int(np.argmax(off.max(axis=(1, 2))))
        raise NumericalError(
            f"What becomes of deviations cannot be measured at t = {times[k]:.6g} s: large and small ones differ by "
            f"{off[k].max():.2g}. An event is near a sample there, or deviations meet another event: take another "
            "number of --points, or begin elsewhere."
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
        model, request = (
            model.with_interface(request.inputs, request.outputs),
            replace(request, inputs=None, outputs=None),
        )
    passed = snapshots(model, orbit.start, times=times.tolist(), inputs=run.inputs, method=run.method)
    made = [linearize_next(model_at(model, point), point, request, None)[0] for point in passed]
    arrays: dict[str, Any] = {name: np.array([getattr(linear, name) for linear in made]) for name in OF_MODELS}
    first = made[0]
    R = np.zeros((len(made), len(first.states), len(first.full_states)))
    R[:, range(len(first.states)), [first.full_states.positions[name] for name in first.states.names]] = 1.0
    error = np.array([linear.errors.A for linear in made])
    return PathSlopes(times, first.states, first.inputs, first.outputs, **arrays, error=error, R=R)
