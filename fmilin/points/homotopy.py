"""From a guess that does not balance to a solution: what holds the guess is taken away step by step.

    h(z) = 0,    f(z) - (1 - lambda) f(z0) = 0,    lambda = 0 .. 1,

by pseudo-arclength, so that folds are passed: z is balanced at lambda = 0 by forces that nobody applies, gravity and
preload that are held, and by nothing at lambda = 1. Of the rates those are taken that determine the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import PSEUDO_INVERSE, RANK
from fmilin.manifold.rank import pivoted_qr
from fmilin.numerics.balanced import Balanced, balanced
from fmilin.points.equations import Equations

FIRST, LONGEST, SHORTEST = 0.1, 0.5, 1e-4  # lengths of a step, in sizes of the unknowns and of lambda
JACOBIANS = 200  # at most, in each direction: then the search is given up
CORRECTIONS = 5
NEAR = 1e-6  # how well the path is kept to, beside its start: the end is corrected anyhow
FAR = 10.0  # multiples of what held the guess beyond which the path leads away


@dataclass(frozen=True, eq=False)
class _Path:
    """The equations of the path in sizes of the start: w = (z / S, lambda)."""

    equations: Equations
    rows: NDArray[np.intp]
    start: Balanced
    held: FloatArray  # W r(z0) of the chosen rows; 0 for constraints
    exact: bool

    def value(self, w: FloatArray) -> FloatArray:
        r = self.equations.values(w[:-1] * self.start.columns)[self.rows]
        value: FloatArray = self.start.rows[self.rows] * r - (1.0 - w[-1]) * self.held
        return value

    def slope(self, w: FloatArray) -> FloatArray:
        J = self.equations.jacobian(w[:-1] * self.start.columns, exact=self.exact, quick=True)[0][self.rows]
        return np.hstack((self.start.rows[self.rows, None] * J * self.start.columns, self.held[:, None]))


def released(equations: Equations, z0: FloatArray, *, exact: bool) -> FloatArray | None:
    """Return z where the path from z0 (n,), near the manifold, ends, to be corrected; None when it does not end."""
    r = equations.values(z0)
    J = equations.jacobian(z0, exact=exact, quick=True)[0]
    if not J.size or not (np.isfinite(J).all() and np.isfinite(r).all()):
        return None
    start = balanced(J)
    rows = independent_rows(equations.kinds("constraint"), start)
    held = np.where(equations.kinds("constraint"), 0.0, start.rows * r)[rows]
    if not len(rows) or not held.any():
        return None
    path = _Path(equations, rows, start, held, exact)
    w = np.append(z0 / start.columns, 0.0)
    for direction in (1.0, -1.0):
        end = _followed(path, w, direction)
        if end is not None:
            return np.clip(end[:-1] * start.columns, equations.unknowns.low, equations.unknowns.high)
    return None


def independent_rows(constraints: NDArray[np.bool_], start: Balanced) -> NDArray[np.intp]:
    """Return the ``constraints`` (m,) that are independent, and then the other rows that are so beside them."""
    first, others = np.flatnonzero(constraints), np.flatnonzero(~constraints)
    some = first[_pivots(start.E[first])]
    span = linalg.orth(start.E[some].T) if len(some) else np.zeros((start.E.shape[1], 0))
    rest = start.E[others] - (start.E[others] @ span) @ span.T
    return np.concatenate((some, others[_pivots(rest)]))


def _pivots(rows: FloatArray) -> NDArray[np.intp]:
    if not rows.size:
        return np.empty(0, dtype=np.intp)
    diagonal, order = pivoted_qr(rows.T)
    return order[: int(np.count_nonzero(diagonal > RANK))]


def _followed(path: _Path, w: FloatArray, direction: float) -> FloatArray | None:
    """Return w at lambda = 1, or None."""
    towards, length = np.append(np.zeros(len(w) - 1), direction), FIRST
    slope, left = path.slope(w), JACOBIANS
    while left > 0 and length > SHORTEST and abs(w[-1]) < FAR:
        tangent = _tangent(slope, towards)
        if tangent is None:
            return None
        if w[-1] + length * tangent[-1] >= 1.0:
            w_end = w + (1.0 - w[-1]) / tangent[-1] * tangent
            return w_end if np.isfinite(path.value(w_end)).all() else None
        corrected_point = _corrected(path, w + length * tangent)
        left -= CORRECTIONS if corrected_point is None else corrected_point[2]
        if corrected_point is None or (corrected_point[0] - w) @ tangent < 0.5 * length:
            length /= 2
            continue
        w, slope, count = corrected_point
        towards, length = tangent, min(LONGEST, 2 * length) if count <= 3 else length
    return None


def _tangent(slope: FloatArray, towards: FloatArray) -> FloatArray | None:
    """Return the direction of the path nearest to another, of length one; None where there is none."""
    if not np.isfinite(slope).all():
        return None
    V = linalg.svd(slope)[2]
    sigma = linalg.svdvals(slope)
    V = V[int(np.count_nonzero(sigma > RANK * sigma[0])) :]
    along: FloatArray = V.T @ (V @ towards)
    size = float(np.linalg.norm(along))
    return along / size if size > 1e-8 else None


def _corrected(path: _Path, w: FloatArray) -> tuple[FloatArray, FloatArray, int] | None:
    """Return the point of the path nearest to w, the slope there, and the number of slopes that this took."""
    for count in range(1, CORRECTIONS + 1):
        value, slope = path.value(w), path.slope(w)
        if not (np.isfinite(value).all() and np.isfinite(slope).all()):
            return None
        if float(np.max(np.abs(value))) <= NEAR * max(1.0, float(np.max(np.abs(path.held)))):
            return w, slope, count
        w = w - linalg.pinv(slope, rtol=PSEUDO_INVERSE) @ value
    return None
