"""Steady motions of a stack of points: what :mod:`fmilin.manifold.steady` asks, in the coordinates of the stack alone.

A point where the motion may be steady in others is left to the search at one point.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import FmilinError
from fmilin.manifold import uniform as motions
from fmilin.manifold.nonlinear import turns_of
from fmilin.manifold.stack import PointBatch, StackGeometry, StackSurroundings
from fmilin.manifold.uniform import STEP, ZEROS, Asides, Bend, Beyond, Change, Mask, Moving, Times, Uniform, Visited
from fmilin.model.capabilities import has_graph, read_tangents
from fmilin.model.interface import Model, TangentBatch
from fmilin.signals import FloatArray
from fmilin.tolerances import SAME_ALONG

DEPENDENT = 1e-13  # square of a singular value, of the largest: no coordinates below

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

    def write_change(self, some: Some, seen: Change) -> None:
        """Write how A changes at some of the points."""
        for values, part in zip(self.change, seen, strict=True):
            values[some] = part


def stack_motion(
    model: Model,
    points: PointBatch,
    tangents: TangentBatch,
    geometry: StackGeometry,
    surroundings: StackSurroundings,
    row_errors: FloatArray,
) -> StackMotion:
    """Say how the points move; ``row_errors`` (k, N) of the slopes of their rates, in sizes of the coordinates."""
    count, p = tangents.T.shape[0], len(tangents.kept)
    slopes, terms = (tangents.derivatives, geometry.scales), geometry.slopes.terms
    every = np.broadcast_to(row_errors[..., None], tangents.derivatives.shape)
    fastest = motions.fastest_states(tangents.rates, geometry.sizes, terms, slopes, every, p)
    steady, elsewhere, carried = (np.zeros(shape, dtype=bool) for shape in (count, count, (count, p)))
    motion = StackMotion(fastest, steady, elsewhere, carried, np.zeros(count), Change.unseen(count))
    if p and not model.autonomous:  # A may change with time at a rest
        for some in _groups(fastest < 0):
            A, near = tangents.A[some], points[some]
            aside = (tangents.T[some] @ (STEP * geometry.y_sizes[some, :, None]))[..., 0]
            motion.open[some] = _differs(surroundings, replace(near, states=near.states + aside), A, tangents.kept)
    if p and (fastest >= 0).any():
        search = _BatchSearch(model, points, tangents, geometry, surroundings, row_errors[..., None], motion)
        if len(geometry.others):
            search.find_steady()
        search.compare()
    return motion


def _differs(surroundings: StackSurroundings, points: PointBatch, A: FloatArray, kept: Sequence[int]) -> Mask:
    """Return where any bit of the rates is another after the time of the fastest eigenvalue, shape (k,)."""
    fastest = np.abs(np.linalg.eigvals(np.where(np.isfinite(A), A, 0.0))).max(axis=1)
    later = replace(points, time=points.time + motions.FURTHER / np.where(fastest > 0, fastest, 1.0))
    rates, after = (surroundings.visited(near, kept)[0] for near in (points, later))
    return np.asarray((rates != after).any(axis=1))


@dataclass(frozen=True, eq=False)
class _BatchSearch:
    """What is asked of a stack of points, some of which move; the answers go to ``motion``."""

    model: Model
    points: PointBatch
    tangents: TangentBatch
    geometry: StackGeometry
    surroundings: StackSurroundings
    errors: FloatArray  # of the slopes of rates along y, in sizes of y, shape (k, N, 1)
    motion: StackMotion

    @cached_property
    def kept(self) -> list[int]:
        """The states that are coordinates."""
        return list(self.tangents.kept)

    @cached_property
    def at(self) -> Moving:
        """The points in motion."""
        rates, f_y = self.tangents.rates, self.tangents.derivatives[..., : len(self.kept)]
        sizes, paces = (self.geometry.sizes, self.geometry.y_sizes), np.abs(rates) / self.model.states.scales()
        return Moving(rates, rates[:, self.kept], f_y, self.errors, *sizes, paces)

    @cached_property
    def bend(self) -> FloatArray:
        """The second derivatives y'' (k, P)."""
        return self.at.bends[:, self.kept]

    def of(self, some: Some, leading: Mask) -> tuple[Moving, Uniform, BeyondStack]:
        """Return some points, their motion in y, and the model further on."""
        geometry, part, T = self.geometry, self.at[some], self.tangents.T[some]
        back = None if geometry.back is None else geometry.back[some]
        uniform = Uniform(part.y_rates, part.y_sizes, self.tangents.A[some], leading[some])
        points, sizes = self.points[some], geometry.sizes[some]
        return part, uniform, BeyondStack(points, self.kept, T, sizes, back, self.surroundings, self.model)

    def find_steady(self) -> None:
        """Look for steady motions and falls, and for points where the motion may be steady in other coordinates."""
        at, kept, motion, moving = self.at, self.kept, self.motion, self.motion.fastest >= 0
        free = ~(self.tangents.gradient != 0).any(axis=1)
        free[:, kept] &= motions.unseen(at.f_y, self.errors, self.geometry.y_sizes)
        leading = ~free[:, kept]
        keeps = moving & (at.vanishes(self.bend, np.abs(self.bend)) | ~leading).all(axis=1)
        for some in _groups(keeps & self.bend.any(axis=1)):
            part, uniform, beyond = self.of(some, leading)
            motion.write_change(some, motions.falls_on(part, uniform, self.bend[some], beyond))
        falls = ~np.isnan(motion.change.part)
        for some in _groups(keeps & ~falls):
            answers = motions.confirmed(*self.of(some, leading))
            motion.steady[some], motion.carried[some], motion.later[some] = answers[:3]
            falls[some] = answers.falls
        motion.open[...] |= keeps & ~motion.steady & ~falls  # no coordinates make a fall steady
        straight = (at.bends == 0) | free
        rest = np.flatnonzero(moving & ~keeps & (straight.sum(axis=1) >= len(kept)))
        if len(rest):
            T = self.tangents.T[rest] / self.geometry.sizes[rest, :, None]
            # Where some of the allowed states (k, N) may determine all others, from scaled T (k, N, P), shape (k,).
            tangents = np.linalg.qr(T)[0] * straight[rest][..., None]
            values = np.linalg.eigvalsh(np.swapaxes(tangents, 1, 2) @ tangents)
            motion.open[rest] = np.asarray(values[:, 0] > DEPENDENT * values[:, -1])

    def compare(self) -> None:
        """Compare A along motions that are not steady."""
        at, bend, motion = self.at, self.bend, self.motion
        varying = (motion.fastest >= 0) & ~motion.steady & ~motion.open & np.isnan(motion.change.part)
        if not varying.any():
            return
        wanted, leading = motions.compared(at, bend, self.tangents.A, self.errors[:, self.kept])
        varying, ahead = varying & wanted, motions.is_straight(bend, leading)
        for some in (*_groups(varying & ahead), *_groups(varying & ~ahead)):
            part, uniform, beyond = self.of(some, leading)
            turns = motions.may_turn(part, self.kept, leading[some], self.model.states.units)
            motion.write_change(some, motions.change_along(part, uniform, bend[some], beyond, turns))
        if (motion.change.part > SAME_ALONG).any():
            motion.open[...] |= (motion.change.part > SAME_ALONG) & self._where_bodies_turn()

    def _where_bodies_turn(self) -> Mask:
        """Return where bodies turn so that A may be the same in coordinates that do not turn with them, shape (k,)."""
        x, structure, tangents = self.points.states, self.model.constraints.structure, self.tangents
        first = {"H": tangents.gradient[0, : len(structure)], "T": tangents.T[0], "f_y": self.at.f_y[0]}
        turns = turns_of(x[0], tangents.rates[0], structure=structure, **first)
        turning = [turn.may_be_steady(x, tangents.rates, self.at.bends) for turn in turns]
        return np.asarray(np.any(turning, axis=0)) if turning else np.zeros(len(x), dtype=bool)


def _groups(wanted: Mask) -> list[Some]:
    """Return these points as one group, none where there are none."""
    return [] if not wanted.any() else [slice(None)] if wanted.all() else [np.flatnonzero(wanted)]


@dataclass(frozen=True, eq=False)
class BeyondStack(Beyond):
    """The model further along the motions of a stack, all visits that are asked for together in one."""

    points: PointBatch
    kept: list[int]
    T: FloatArray
    sizes: FloatArray
    back: FloatArray | None
    surroundings: StackSurroundings
    model: Model

    @property
    def exact(self) -> bool:  # type: ignore[override]
        """Whether its equations are at hand."""
        return has_graph(self.model)

    def further(self, path: FloatArray, times: Times, bend: Bend = 0.0, asides: Asides = ZEROS) -> list[Visited]:
        """Go on in y, from the tangent."""
        steps = [(t, t[:, None] * path + t[:, None] ** 2 / 2 * bend + a) for t, a in zip(times, asides, strict=False)]
        return self._visited([(self.points.states, step, t) for t, step in steps])

    def displaced(self, far: Visited, displacements: Sequence[FloatArray]) -> list[Visited]:
        """Move y, from the tangent there."""
        return self._visited([(far.x, displacement, far.later) for displacement in displacements])

    def A(self, far: Visited, sizes: FloatArray, some: Mask) -> FloatArray:
        """Return A as the model tells it; by differences where it does not."""
        near, times = self.points[some], far.later[some] + self.points.time[some]
        with suppress(FmilinError, np.linalg.LinAlgError):
            tangents = read_tangents(self.model, times, far.x[some], near.inputs, self.kept, near.parameters)
            if tangents is not None:
                return tangents.A
        return super().A(far, sizes, some)

    def _visited(self, steps: Sequence[tuple[FloatArray, FloatArray, FloatArray]]) -> list[Visited]:
        """Visit the model at coordinates dy (k, P) from states (k, N), so much later (k,)."""
        near, dy, later = (np.concatenate(part) for part in zip(*steps, strict=True))
        count = len(self.T)
        guess = near + np.concatenate([(self.T @ step[..., None])[..., 0] for _, step, _ in steps])
        guess[:, self.kept] = near[:, self.kept] + dy
        every = np.tile(np.arange(count), len(steps))
        back = None if self.back is None else self.back[every]
        reached, good = self.surroundings.reached(self.points[every], self.kept, guess, self.sizes[every], back)
        ahead = PointBatch(reached.time + later, reached.states, reached.inputs, reached.parameters)
        f, _ = self.surroundings.visited(ahead, self.kept)
        rates, good = f[:, self.kept], good & np.isfinite(f).all(axis=1)
        slices = [slice(i, i + count) for i in range(0, len(near), count)]
        return [Visited(later[s], reached.states[s], f[s], rates[s], good[s]) for s in slices]
