"""Which of the invariants are declared: rates of positions' constraints follow from these, others stand alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fmilin.constraints.declared import Level
from fmilin.discovery.invariant import Invariant
from fmilin.discovery.projection import INDEPENDENT, is_independent, projected
from fmilin.discovery.search import Kept, Search
from fmilin.signals import FloatArray

__all__ = ["Selected", "chosen"]

POINTS = 2

APART = 1e-2
"""What a gradient adds to the span of others at the point, to be preferred: nearly parallel ones are nearly singular."""


@dataclass(frozen=True)
class Selected:
    """What is declared.

    Attributes
    ----------
    constraints : list of (Invariant, Level)
    manifold : list of Invariant
        All that is zero at a consistent point, rates of positions' constraints too.
    order : int
        States that are independent then.
    """

    constraints: list[tuple[Invariant, Level]]
    manifold: list[Invariant]
    order: int


def chosen(search: Search) -> Selected:
    """Return the constraints to declare; what is open and belongs to no position is kept out, of ``search`` too."""
    sizes, x0 = search.sampler.sizes, search.sampler.point.states
    positions = _positions(search)
    manifold = [*positions, *search.norms, *search.speeds, *search.open]
    points = projected(search.sampler.states(4 * POINTS), manifold, sizes)[:POINTS]
    if not len(points):
        points = x0[None]
    speeds = sorted(search.character.speeds)
    slopes = [_slopes_along(search, x, speeds) for x in points]
    rates = [
        np.array([g.gradients(x[None])[0] @ f_v for g in positions]).reshape(-1, len(speeds))
        for x, f_v in zip(points, slopes, strict=True)
    ]
    alone = [h for h in search.speeds if not _follow(h, rates, points, speeds)]
    for h in list(search.open):
        if not _follow(h, rates, points, speeds):
            search.open.remove(h)
            manifold.remove(h)
            search.kept_out.append(Kept(h, "linear in the speeds, as momentum is; no input acts on it"))
    rank = max(
        _rank(np.array([h.gradients(x[None])[0] * sizes for h in (*positions, *search.norms)]))
        + _rank(np.vstack([r, *(_along(h, x, speeds) for h in alone)]) * sizes[speeds])
        for x, r in zip(points, rates, strict=True)
    )
    found: list[tuple[Invariant, Level]] = [(g, "position") for g in positions]
    found += [(h, "velocity") for h in (*search.norms, *alone)]
    return Selected(found, manifold, len(sizes) - rank)


def _positions(search: Search) -> list[Invariant]:
    """Return the shortest constraints of positions that are independent, at the point itself where any are."""
    sizes, x0 = search.sampler.sizes, search.sampler.point.states[None]
    beside = search.sampler.states(5)
    found: list[Invariant] = []
    pool = sorted(search.candidates, key=_length)
    for x, tolerance in ((x0, APART), (beside, INDEPENDENT)):
        for g in pool:
            others = [*found, *search.norms]
            if is_independent(g, others, beside, sizes) and is_independent(g, others, x, sizes, tolerance):
                found.append(g)
    return found


def _length(g: Invariant) -> tuple[int, int]:
    return len(g.coefficients) + bool(g.level), sum(t.complexity[0] for t in g.library.terms)


def _slopes_along(search: Search, x: FloatArray, speeds: list[int]) -> FloatArray:
    """Return how the rates change with the speeds, shape (N, len(speeds)); those of positions are linear in them."""
    steps = 0.1 * np.diag(search.sampler.sizes)[speeds]
    there, back = search.sampler.held_rates(x + steps), search.sampler.held_rates(x - steps)
    return np.nan_to_num((there - back).T / (0.2 * search.sampler.sizes[speeds]))


def _along(h: Invariant, x: FloatArray, speeds: list[int]) -> FloatArray:
    return h.gradients(x[None])[:, speeds]


def _follow(h: Invariant, rates: list[FloatArray], points: FloatArray, speeds: list[int]) -> bool:
    """Whether h is zero wherever the rates of positions' constraints are."""
    for x, r in zip(points, rates, strict=True):
        row = _along(h, x, speeds)[0]
        if not len(r):
            return False
        left = row - r.T @ np.linalg.lstsq(r.T, row, rcond=1e-9)[0]
        if np.linalg.norm(left) > INDEPENDENT * np.linalg.norm(row):
            return False
    return True


def _rank(rows: FloatArray) -> int:
    if not rows.size:
        return 0
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
    s = np.linalg.svd(rows, compute_uv=False)
    return int((s > INDEPENDENT * s[0]).sum())
