"""Steady motions of a stack of points: what :mod:`fmilin.manifold.steady` asks at one point, asked of all of them.

In the coordinates of the stack alone. A point where the motion may be steady in others is left to the search at one
point: which coordinates these are is a decision of its own at each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import EQUILIBRIUM, ROUNDING, SAME_ALONG, STEADY, UNIFORM
from fmilin.manifold.stack import PointStack, StackGeometry, StackSurroundings
from fmilin.manifold.steady import ASIDE, FURTHER, SLOWEST, STEP, first_fastest
from fmilin.model.interface import Model, TangentStack

DEPENDENT = 1e-13
"""Square of a singular value, of the largest, below which states certainly do not determine the others."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class StackMotion:
    """How the points of a stack move.

    Attributes
    ----------
    fastest : array of int, shape (k,)
        The state that moves fastest in its size; -1 at rest.
    steady : array of bool, shape (k,)
        Where the motion is steady in the coordinates of the stack.
    open : array of bool, shape (k,)
        Where it may be steady in others.
    carried : array of bool, shape (k, P)
        Coordinates on which nothing depends and whose rates change all the same.
    later : array, shape (k,)
        How much later A was the same, in s.
    """

    fastest: NDArray[np.intp]
    steady: Mask
    open: Mask
    carried: Mask
    later: FloatArray


def stack_motion(
    model: Model,
    points: PointStack,
    tangents: TangentStack,
    geometry: StackGeometry,
    surroundings: StackSurroundings,
    relative: FloatArray,
) -> StackMotion:
    """Say how the points move; ``relative`` (k,) is the error of the slopes over the largest of their rows."""
    search = _Search.at(model, points, tangents, geometry, relative)
    k, p = search.y_rates.shape
    nowhere = np.zeros(k, dtype=bool)
    motion = StackMotion(search.fastest, nowhere, nowhere, np.zeros((k, p), dtype=bool), np.zeros(k))
    moving = search.fastest >= 0
    if not len(geometry.others) or not p or not moving.any():
        return motion
    bends, free = search.bends(), search.free()
    leading = ~free[:, list(tangents.kept)]
    second = np.abs(bends[:, list(tangents.kept)])
    allowed = (UNIFORM * second + ROUNDING * search.pace[:, None] ** 2 * search.y_sizes) >= second
    keeps = moving & (allowed | ~leading).all(axis=1)
    steady, candidates = nowhere.copy(), np.flatnonzero(keeps)
    if len(candidates):
        at = search if keeps.all() else search.part(candidates)
        confirmed = _confirmed(model, at, bends[candidates], leading[candidates], surroundings)
        steady[candidates], motion.carried[candidates], motion.later[candidates] = confirmed
    uniform = (bends == 0) | free
    elsewhere = keeps & ~steady
    rest = np.flatnonzero(moving & ~keeps & (uniform.sum(axis=1) >= p))
    if len(rest):
        elsewhere[rest] = search.part(rest).are_coordinates(uniform[rest])
    return StackMotion(motion.fastest, steady, elsewhere, motion.carried, motion.later)


@dataclass(frozen=True, eq=False)
class _Search:
    """What is known at the points; sizes of states and coordinates, rates, slopes of the rates and their errors."""

    points: PointStack
    kept: tuple[int, ...]
    rates: FloatArray
    f_y: FloatArray
    T: FloatArray
    tied: Mask
    back: FloatArray | None
    sizes: FloatArray
    y_sizes: FloatArray
    row_sizes: FloatArray
    """Of the largest scaled slope in each row of (f_y, f_u) times the relative error, shape (k, N)."""
    terms: FloatArray
    pace: FloatArray
    fastest: NDArray[np.intp]

    @classmethod
    def at(
        cls, model: Model, points: PointStack, tangents: TangentStack, geometry: StackGeometry, relative: FloatArray
    ) -> _Search:
        """Look at the points."""
        p = len(tangents.kept)
        scaled = np.abs(tangents.derivatives) * np.concatenate((geometry.y_sizes, geometry.u_sizes), axis=1)[:, None]
        terms, largest = scaled.sum(axis=2), scaled.max(axis=2, initial=0.0)
        speeds = np.abs(tangents.rates)
        moving = speeds > np.maximum(EQUILIBRIUM * geometry.sizes, ROUNDING * terms)
        fastest = np.where(moving, speeds / geometry.sizes, -1.0)
        which = first_fastest(fastest) if fastest.shape[1] else np.zeros(len(points), dtype=np.intp)
        at_rest = ~moving.any(axis=1)
        return cls(
            points,
            tangents.kept,
            tangents.rates,
            tangents.derivatives[..., :p],
            tangents.T,
            (tangents.gradient != 0).any(axis=1),
            geometry.back,
            geometry.sizes,
            geometry.y_sizes,
            relative[:, None] * largest,
            terms,
            (speeds / model.states.scales()).max(axis=1, initial=0.0),
            np.where(at_rest, -1, which),
        )

    @property
    def y_rates(self) -> FloatArray:
        """y', shape (k, P)."""
        return self.rates[:, list(self.kept)]

    def part(self, some: NDArray[np.intp]) -> _Search:
        """Return some of the points."""
        parts = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "kept"}
        some_parts: dict[str, Any] = {n: None if part is None else part[some] for n, part in parts.items()}
        return _Search(kept=self.kept, **some_parts)

    def bends(self) -> FloatArray:
        """Return the second derivatives x'' that are more than their terms may leave, 0 elsewhere, shape (k, N)."""
        pace = self.pace[:, None]
        moving = np.where(np.abs(self.y_rates) > STEADY * pace * self.y_sizes, self.y_rates, 0.0)
        second = (self.f_y @ moving[..., None])[..., 0]
        terms = (np.abs(self.f_y) @ np.abs(moving)[..., None])[..., 0]
        error = self.row_sizes * (np.abs(moving) / self.y_sizes).sum(axis=1, keepdims=True)
        noise = 10 * error + ROUNDING * pace**2 * self.sizes
        return np.where(np.abs(second) > UNIFORM * terms + noise, second, 0.0)

    def free(self) -> Mask:
        """Return which states can be moved alone and nothing depends on them, shape (k, N)."""
        seen = np.abs(self.f_y) * self.y_sizes[:, None]
        rounding = ROUNDING * seen.max(axis=2, initial=0.0, keepdims=True)
        unseen = (seen <= rounding + 10 * self.row_sizes[..., None]).all(axis=1)
        free = ~self.tied
        free[:, list(self.kept)] &= unseen
        return free

    def are_coordinates(self, allowed: Mask) -> Mask:
        """Return where some of the allowed states (k, N) may determine all others, shape (k,)."""
        tangents = np.linalg.qr(self.T / self.sizes[..., None])[0] * allowed[..., None]
        values = np.linalg.eigvalsh(np.swapaxes(tangents, 1, 2) @ tangents)
        return np.asarray(values[:, 0] > DEPENDENT * values[:, -1])

    def later(self, scales: FloatArray, bends: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return when the motion is looked at, in s, each (k,): soon, and when the slowest has come a way."""
        paces = np.concatenate((np.abs(self.rates) / scales, np.sqrt(np.abs(bends) / self.sizes)), axis=1)
        waited_for = np.where(paces > SLOWEST * self.pace[:, None], paces, np.inf).min(axis=1, initial=np.inf)
        return FURTHER / self.pace, 3 * FURTHER / np.minimum(waited_for, self.pace)


class _Visited(NamedTuple):
    """Points further along the motion: states, rates of the coordinates, and where all that was had."""

    x: FloatArray
    rates: FloatArray
    good: Mask

    def of_each(self, count: int) -> list[_Visited]:
        """Return the stacks of so many points that were visited together."""
        slices = (slice(i, i + count) for i in range(0, len(self.x), count))
        return [_Visited(self.x[some], self.rates[some], self.good[some]) for some in slices]


class _Beyond:
    """The model further along the motions of a stack, and beside them."""

    def __init__(self, at: _Search, surroundings: StackSurroundings) -> None:
        self._at, self._surroundings, self._kept = at, surroundings, list(at.kept)

    def visited(self, steps: Sequence[tuple[FloatArray, FloatArray, FloatArray]]) -> list[_Visited]:
        """Return the points at coordinates dy (k, P) from states (k, N), so much later (k,), all in one visit."""
        at, kept = self._at, self._kept
        near, dy, later = (np.concatenate(part) for part in zip(*steps, strict=True))
        guess = near + np.concatenate([(at.T @ step[..., None])[..., 0] for _, step, _ in steps])
        guess[:, kept] = near[:, kept] + dy
        every = np.tile(np.arange(len(at.rates)), len(steps))
        back = None if at.back is None else at.back[every]
        reached, good = self._surroundings.reached(at.points[every], kept, guess, at.sizes[every], back)
        ahead = PointStack(reached.time + later, reached.states, reached.inputs, reached.parameters)
        f, _ = self._surroundings.visited(ahead, kept)
        return _Visited(reached.states, f[:, kept], good & np.isfinite(f).all(axis=1)).of_each(len(at.rates))


def _confirmed(
    model: Model, at: _Search, bends: FloatArray, leading: Mask, surroundings: StackSurroundings
) -> tuple[Mask, Mask, FloatArray]:
    """Go on uniformly, and see whether rates and A stay what they are: where they do, what is carried, how far on."""
    start, limit, beyond = at.y_rates, UNIFORM * at.pace[:, None] * at.y_sizes, _Beyond(at, surroundings)
    path, x = np.where(leading, start, 0.0), at.points.states
    soon, late = at.later(model.states.scales(), bends)
    near, far = beyond.visited([(x, later[:, None] * path, later) for later in (soon, late)])
    same = (np.abs(near.rates - start) <= limit) & (np.abs(far.rates - start) <= limit)
    good = near.good & far.good
    if not (good & (same | ~leading).all(axis=1)).any():
        return np.zeros(len(start), dtype=bool), ~same, late
    direction = np.random.default_rng(1851).uniform(0.5, 1.0, start.shape[1]) * at.y_sizes
    ahead, behind = beyond.visited([(far.x, s * STEP * direction, late) for s in (1.0, -1.0)])
    A = at.f_y[:, list(at.kept)]
    gap = np.abs((ahead.rates - behind.rates) / (2 * STEP) - (A @ direction[..., None])[..., 0])
    largest = (np.abs(A) * at.y_sizes[:, None]).max(axis=2, initial=0.0)
    same &= gap <= SAME_ALONG * np.maximum(largest, at.pace[:, None] * at.y_sizes)
    good &= ahead.good & behind.good & (same | ~leading).all(axis=1)
    if not leading.all() and good.any():
        (aside,) = beyond.visited([(far.x, np.where(leading, 0.0, ASIDE * at.y_sizes), late)])
        good &= leading.all(axis=1) | (aside.good & (np.abs(aside.rates - far.rates) <= limit).all(axis=1))
    return good, ~same, late
