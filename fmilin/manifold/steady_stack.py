"""Steady motions of a stack of points: what :mod:`fmilin.manifold.steady` asks at one point, asked of all of them.

In the coordinates of the stack alone. A point where the motion may be steady in others is left to the search at one
point: which coordinates these are is a decision of its own at each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fmilin.ground.errors import FmilinError
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
    falls_on,
    fastest_states,
    influential,
    is_straight,
    may_turn,
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
    slopes = tangents.derivatives * geometry.scales[:, None]
    every = np.broadcast_to(row_errors[..., None], slopes.shape)
    fastest = fastest_states(tangents.rates, geometry.sizes, geometry.slopes.terms, slopes, every, shape[1])
    moving = fastest >= 0
    steady, elsewhere = np.zeros(shape[0], dtype=bool), np.zeros(shape[0], dtype=bool)
    change = Change.unseen(shape[0])
    motion = StackMotion(fastest, steady, elsewhere, np.zeros(shape, dtype=bool), np.zeros(shape[0]), change)
    if not kept or not moving.any():
        return motion
    f_y, errors = tangents.derivatives[..., : shape[1]], row_errors[..., None] / geometry.y_sizes[:, None]
    paces = np.abs(tangents.rates) / model.states.scales()
    at = Moving(tangents.rates, tangents.rates[:, kept], f_y, errors, geometry.sizes, geometry.y_sizes, paces)

    def at_some(some: Some) -> tuple[Moving, Uniform, _BeyondStack]:
        back, part = None if geometry.back is None else geometry.back[some], at[some]
        beyond = _BeyondStack(points[some], kept, tangents.T[some], geometry.sizes[some], back, surroundings, model)
        return part, Uniform(part.y_rates, part.y_sizes, part.f_y[:, kept], leading[some]), beyond

    def write_change(some: Some, seen: Change) -> None:
        for values, part in zip(change, seen, strict=True):
            values[some] = part

    bend = at.bends[:, kept]
    if len(geometry.others):
        free = ~(tangents.gradient != 0).any(axis=1)
        free[:, kept] &= unseen(f_y, errors, geometry.y_sizes)
        leading = ~free[:, kept]
        keeps = moving & (at.vanishes(bend, np.abs(bend)) | ~leading).all(axis=1)
        for some in _groups(keeps & bend.any(axis=1)):
            part, uniform, beyond = at_some(some)
            write_change(some, falls_on(part, uniform, bend[some], beyond))
        falls = ~np.isnan(change.part)
        for some in _groups(keeps & ~falls):
            motions = confirmed(*at_some(some))
            steady[some], motion.carried[some], motion.later[some] = motions.steady, motions.carried, motions.later
            falls[some] = motions.falls
        straight = (at.bends == 0) | free
        elsewhere |= keeps & ~steady & ~falls  # no coordinates make a fall steady
        rest = np.flatnonzero(moving & ~keeps & (straight.sum(axis=1) >= shape[1]))
        if len(rest):
            elsewhere[rest] = _are_coordinates(tangents.T[rest] / geometry.sizes[rest, :, None], straight[rest])
    dependence = depending(f_y[:, kept], errors[:, kept], geometry.y_sizes)
    leading = influential(dependence)
    varying = moving & ~steady & ~elsewhere & np.isnan(change.part)
    varying &= compared(at, bend, f_y[:, kept], dependence, leading)
    if varying.any():
        ahead, leads = is_straight(bend, leading), np.ones(at.rates.shape, dtype=bool)
        leads[:, kept] = leading
        turns = may_turn(at, leads, model.states.units)
        for some in (*_groups(varying & ahead), *_groups(varying & ~ahead)):
            part, uniform, beyond = at_some(some)
            write_change(some, change_along(part, uniform, bend[some], beyond, turns[some]))
    return motion


def _groups(wanted: Mask) -> list[Some]:
    """Return these points as one group, none where there are none."""
    return [] if not wanted.any() else [slice(None)] if wanted.all() else [np.flatnonzero(wanted)]


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
    model: Model
    exact = True

    def further(
        self,
        path: FloatArray,
        times: Sequence[FloatArray],
        bend: FloatArray | float = 0.0,
        aside: FloatArray | float = 0.0,
    ) -> list[Visited]:
        """Go on in y, from the tangent."""
        steps = [(t, t[:, None] * path + t[:, None] ** 2 / 2 * bend + aside) for t in times]
        return self._visited([(self.points.states, step, t) for t, step in steps])

    def beside(self, far: Visited, displacements: Sequence[FloatArray]) -> list[Visited]:
        """Move y, from the tangent there."""
        return self._visited([(far.x, displacement, far.later) for displacement in displacements])

    def A(self, far: Visited, sizes: FloatArray, some: Mask) -> FloatArray:
        """Return A as the model tells it; by differences where it does not."""
        near = self.points[some]
        try:
            tangents = self.model.tangents(
                far.later[some] + near.time, far.x[some], near.inputs, self.kept, near.parameters
            )
        except (FmilinError, np.linalg.LinAlgError):
            tangents = None
        if tangents is None:
            return super().A(far, sizes, some)
        return tangents.derivatives[:, self.kept, : len(self.kept)]

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
