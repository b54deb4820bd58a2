"""Which of the invariants are declared: rates of positions' constraints follow from these, others stand alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fmilin.discovery.invariant import INDEPENDENT, Invariant, independent_ones, is_independent, projected
from fmilin.discovery.search import Rejected, Search
from fmilin.ground.signals import FloatArray
from fmilin.model.constraints.declared import Level

POINTS = 2

STEP = 1e-3  # of differences, in sizes of the states
ROUNDING_OF_RATES = 1e-12  # of a rate, in the sum of its terms

APART = 1e-2
"""What a gradient adds to the span of others at the point, to be preferred: parallel ones are nearly singular."""


@dataclass(frozen=True)
class Selected:
    """What is declared."""

    constraints: list[tuple[Invariant, Level]]
    manifold: list[Invariant]  # all that is zero at a consistent point, rates of positions' constraints too
    order: int  # states that are independent then


def chosen(search: Search) -> Selected:
    """Return the constraints to declare; what is open and belongs to no position is kept out, of ``search`` too."""
    sizes, x0 = search.sampler.sizes, search.sampler.point.states
    positions = _positions(search)
    manifold = [*positions, *search.norms, *search.speeds, *search.open]
    for d in search.decaying:
        manifold += [d.g, d.rate]
    manifold = independent_ones(manifold, search.sampler.states(4), sizes)
    points = projected(search.sampler.states(4 * POINTS), manifold, sizes)[:POINTS]
    if not len(points):
        points = x0[None]
    positions += [d.g for d in search.decaying]
    rates = [_rate_gradients(search, positions, x) for x in points]
    alone = [h for h in search.speeds if not _follow(search, h, positions, rates, points)]
    for h in list(search.open):
        if not _follow(search, h, positions, rates, points):
            search.open.remove(h)
            manifold = [m for m in manifold if m is not h]
            search.rejected.append(Rejected(h, "linear in the speeds, as momentum is; no input acts on it"))
    declared = [*positions, *search.norms, *alone]
    rank = max(
        _rank(np.vstack((_gradients(declared, x), r)) * sizes, _tolerance(search))
        for x, r in zip(points, rates, strict=True)
    )
    search.rejected = [k for k in search.rejected if is_independent(k.invariant, manifold, points, sizes)]
    constraints: list[tuple[Invariant, Level]] = [(g, "position") for g in positions]
    constraints += [(h, "velocity") for h in (*search.norms, *alone)]
    return Selected(constraints, manifold, len(sizes) - rank)


def _positions(search: Search) -> list[Invariant]:
    """Return the shortest constraints of positions that are independent, at the point itself where any are."""
    sizes, x0 = search.sampler.sizes, search.sampler.point.states[None]
    nearby = search.sampler.states(5)
    positions: list[Invariant] = []
    for g in sorted(search.candidates, key=_length):
        if is_independent(g, [*positions, *search.norms], x0, sizes, APART):
            positions.append(g)
    for g in sorted(search.candidates, key=_length):  # what is singular at the point, but nowhere else
        near = projected(nearby, [*positions, *search.norms], sizes)
        if len(near) and is_independent(g, [*positions, *search.norms], near, sizes):
            positions.append(g)
    return positions


def _length(g: Invariant) -> tuple[int, int]:
    return len(g.coefficients) + bool(g.level), sum(t.complexity[0] for t in g.library.terms)


def _gradients(invariants: Sequence[Invariant], x: FloatArray) -> FloatArray:
    return np.array([h.gradients(x[None])[0] for h in invariants]).reshape(-1, len(x))


def _rate_gradients(search: Search, positions: Sequence[Invariant], x: FloatArray) -> FloatArray:
    """Return the gradients of the rates of ``positions`` at x (N,), by differences, one row each."""
    if not positions:
        return np.empty((0, len(x)))
    steps = STEP * np.diag(search.sampler.sizes)
    both = np.vstack((x + steps, x - steps))
    f = search.sampler.held_rates(both)
    terms = np.array([g.gradients(both) * f for g in positions])
    ahead, back = np.split(terms.sum(axis=2), 2, axis=1)
    change = ahead - back  # a constraint whose rate is zero everywhere changes by rounding alone
    change[np.abs(change) <= ROUNDING_OF_RATES * np.abs(terms).sum(axis=2).max(axis=1, keepdims=True)] = 0.0
    gradients: FloatArray = np.nan_to_num(change / (2 * STEP * search.sampler.sizes))
    return gradients


def _tolerance(search: Search) -> float:
    """Return what counts as nothing where gradients of rates are differences of noisy ones."""
    return max(10 * INDEPENDENT, 10 * search.sampler.noise / STEP)


def _follow(
    search: Search, h: Invariant, positions: Sequence[Invariant], rates: Sequence[FloatArray], points: FloatArray
) -> bool:
    """Whether h is zero wherever positions' constraints and their rates are."""
    sizes = search.sampler.sizes
    for x, r in zip(points, rates, strict=True):
        rows = np.vstack((_gradients(positions, x), r)) * sizes
        if not len(rows):
            return False
        rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
        row = h.gradients(x[None])[0] * sizes
        left = row - rows.T @ np.linalg.lstsq(rows.T, row, rcond=1e-7)[0]
        if np.linalg.norm(left) > _tolerance(search) * np.linalg.norm(row):
            return False
    return True


def _rank(rows: FloatArray, tolerance: float) -> int:
    if not rows.size:
        return 0
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
    s = np.linalg.svd(rows, compute_uv=False)
    return int((s > tolerance * s[0]).sum())
