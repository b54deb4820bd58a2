"""Steady motions of a stack of points: what :mod:`fmilin.manifold.steady` asks at one point, asked of all of them.

In the coordinates of the stack alone. A point where the motion may be steady in others is left to the search at one
point: which coordinates these are is a decision of its own at each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fmilin.ground.signals import FloatArray
from fmilin.manifold.stack import PointStack, StackGeometry, StackSurroundings
from fmilin.manifold.uniform import (
    Beyond,
    Change,
    Mask,
    Moving,
    Uniform,
    Visited,
    change_along,
    compared,
    confirmed,
    depending,
    fastest_states,
    influential,
    unseen,
)
from fmilin.model.interface import Model, TangentStack

DEPENDENT = 1e-13
"""Square of a singular value, of the largest, below which states certainly do not determine the others."""

Some = slice | NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class StackMotion:
    """How the points of a stack move."""

    fastest: NDArray[np.intp]  # (k,), the state that moves fastest in its size; -1 at rest
    steady: Mask  # (k,), where the motion is steady in the coordinates of the stack
    open: Mask  # (k,), where it may be steady in others
    carried: Mask  # (k, P), coordinates on which nothing depends and whose rates change all the same
    later: FloatArray  # (k,), how much later A was the same, in s
    change: Change  # of A along the motion, (k,) each, NaN where that was not looked at


def stack_motion(
    model: Model,
    points: PointStack,
    tangents: TangentStack,
    geometry: StackGeometry,
    surroundings: StackSurroundings,
    row_errors: FloatArray,
) -> StackMotion:
    """Say how the points move; ``row_errors`` (k, N) of the slopes of their rates, in sizes of the coordinates."""
    kept, shape = list(tangents.kept), (len(points), len(tangents.kept))
    fastest = fastest_states(
        tangents.rates, geometry.sizes, geometry.slopes.terms, tangents.derivatives, geometry.scales
    )
    moving = fastest >= 0
    steady, elsewhere = np.zeros(shape[0], dtype=bool), np.zeros(shape[0], dtype=bool)
    falls, change = np.zeros(shape[0], dtype=bool), Change.unseen(shape[0])
    motion = StackMotion(fastest, steady, elsewhere, np.zeros(shape, dtype=bool), np.zeros(shape[0]), change)
    if not kept or not moving.any():
        return motion
    f_y, errors = tangents.derivatives[..., : shape[1]], row_errors[..., None] / geometry.y_sizes[:, None]
    paces = np.abs(tangents.rates) / model.states.scales()
    at = Moving(tangents.rates, tangents.rates[:, kept], f_y, errors, geometry.sizes, geometry.y_sizes, paces)

    def beyond(some: Some) -> _BeyondStack:
        back = None if geometry.back is None else geometry.back[some]
        return _BeyondStack(points[some], kept, tangents.T[some], geometry.sizes[some], back, surroundings)

    if len(geometry.others):
        free = ~(tangents.gradient != 0).any(axis=1)
        free[:, kept] &= unseen(f_y, errors, geometry.y_sizes)
        leading, second = ~free[:, kept], at.bends[:, kept]
        keeps = moving & (at.vanishes(second, np.abs(second)) | ~leading).all(axis=1)
        if keeps.any():
            some = slice(None) if keeps.all() else np.flatnonzero(keeps)
            part = at if keeps.all() else at[some]
            uniform = Uniform(part.y_rates, part.y_sizes, part.f_y[:, kept], leading[some])
            motions = confirmed(part, uniform, beyond(some))
            steady[some], motion.carried[some], motion.later[some] = motions.steady, motions.carried, motions.later
            falls[some] = motions.falls
        straight = (at.bends == 0) | free
        elsewhere |= keeps & ~steady & ~falls  # no coordinates make a fall steady
        rest = np.flatnonzero(moving & ~keeps & (straight.sum(axis=1) >= shape[1]))
        if len(rest):
            elsewhere[rest] = _are_coordinates(tangents.T[rest] / geometry.sizes[rest, :, None], straight[rest])
    bend, dependence = at.bends[:, kept], depending(f_y[:, kept], errors[:, kept], geometry.y_sizes)
    leading = influential(dependence)
    varying = moving & ~steady & ~elsewhere & compared(at, bend, f_y[:, kept], dependence, leading)
    if varying.any():
        some = slice(None) if varying.all() else np.flatnonzero(varying)
        part = at if varying.all() else at[some]
        uniform = Uniform(part.y_rates, part.y_sizes, part.f_y[:, kept], leading[some])
        for values, seen in zip(change, change_along(part, uniform, bend[some], beyond(some)), strict=True):
            values[some] = seen
    return motion


def _are_coordinates(T: FloatArray, allowed: Mask) -> Mask:
    """Return where some of the allowed states (k, N) may determine all others, from scaled T (k, N, P), shape (k,)."""
    tangents = np.linalg.qr(T)[0] * allowed[..., None]
    values = np.linalg.eigvalsh(np.swapaxes(tangents, 1, 2) @ tangents)
    return np.asarray(values[:, 0] > DEPENDENT * values[:, -1])


@dataclass(frozen=True, eq=False)
class _BeyondStack(Beyond):
    """The model further along the motions of a stack, all visits that are asked for together in one."""

    points: PointStack
    kept: list[int]
    T: FloatArray
    sizes: FloatArray
    back: FloatArray | None
    surroundings: StackSurroundings

    def further(self, path: FloatArray, times: Sequence[FloatArray], bend: FloatArray | float = 0.0) -> list[Visited]:
        """Go on in y, from the tangent."""
        steps = [(t, t[:, None] * path + t[:, None] ** 2 / 2 * bend) for t in times]
        return self._visited([(self.points.states, step, t) for t, step in steps])

    def beside(self, far: Visited, displacements: Sequence[FloatArray]) -> list[Visited]:
        """Move y, from the tangent there."""
        return self._visited([(far.x, displacement, far.later) for displacement in displacements])

    def slopes(self, far: Visited, direction: FloatArray) -> tuple[FloatArray, Mask]:
        """Return the slopes by a short one-sided difference: exact equations allow it, and it hardly bends."""
        return self.one_sided(far, direction)

    def _visited(self, steps: Sequence[tuple[FloatArray, FloatArray, FloatArray]]) -> list[Visited]:
        """Visit the model at coordinates dy (k, P) from states (k, N), so much later (k,)."""
        near, dy, later = (np.concatenate(part) for part in zip(*steps, strict=True))
        count = len(self.T)
        guess = near + np.concatenate([(self.T @ step[..., None])[..., 0] for _, step, _ in steps])
        guess[:, self.kept] = near[:, self.kept] + dy
        every = np.tile(np.arange(count), len(steps))
        back = None if self.back is None else self.back[every]
        reached, good = self.surroundings.reached(self.points[every], self.kept, guess, self.sizes[every], back)
        ahead = PointStack(reached.time + later, reached.states, reached.inputs, reached.parameters)
        f, _ = self.surroundings.visited(ahead, self.kept)
        rates, good = f[:, self.kept], good & np.isfinite(f).all(axis=1)
        slices = [slice(i, i + count) for i in range(0, len(near), count)]
        return [Visited(later[s], reached.states[s], f[s], rates[s], good[s]) for s in slices]
