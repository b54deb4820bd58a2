"""Newton's method for r(z) = 0, damped where it must be: rows and columns in sizes that the Jacobian itself tells."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from fmilin.manifold.rank import pivoted_qr
from fmilin.numerics.balanced import TERMS_ROUNDED, Balanced, balanced
from fmilin.signals import FloatArray
from fmilin.tolerances import BALANCED_EXACTLY, PSEUDO_INVERSE, RANK
from fmilin.trimming.equations import Equations

ITERATIONS = 40
LONGEST = 0.5
"""Of the first step, in sizes of the states: what lies farther away is another solution. It grows while steps help."""
DROP = 1e-9
"""Singular values of the balanced Jacobian below this fraction of the largest: nothing is known of their directions."""
ROUNDED = 1e-14
"""Singular values of the balanced Jacobian, whose largest is near one, that are rounding."""
DAMPINGS = (0.0, 1e-6, 1e-4, 1e-2, 1.0, 1e2)
"""Tried in turn until the residual falls, in squares of the largest singular value, which is near one."""
SLOWLY = 0.9  # part of the residual that a step leaves, above which the corrections are compared instead
NATURAL_FRACTIONS = np.array([1.0, 0.5, 0.25, 0.125])  # of a step whose next correction is to be shorter, tried in turn
LAST = 2  # steps after the residual has vanished, as long as each makes it smaller yet; the last slopes are good enough
BARELY = 2.0**-14  # a step of an input, in its size, that shows nothing inside a dead band
BEYOND = (1.0, 4.0, 16.0, 64.0)  # how far it may reach


def compute_rounding(J: FloatArray, z: FloatArray, equations: Equations | None = None) -> FloatArray:
    """Return what counts as zero where the model has no noise, shape (m,): a limit, and the rounding of the terms."""
    rounding = TERMS_ROUNDED * np.abs(J) @ np.maximum(np.abs(z), 1.0)
    if equations is not None and len(equations.targets):
        # A target may be far below the sizes of the unknowns that reach it: there terms are what the unknowns are.
        own = TERMS_ROUNDED * np.abs(J) @ np.abs(z)
        rounding = np.where(equations.kinds("target"), own, rounding)
    return np.maximum(BALANCED_EXACTLY, rounding)


def balance_inputs(equations: Equations, z0: FloatArray, *, exact: bool) -> FloatArray | None:
    """Return the guess with the free inputs that balance it best (most enter affinely); None where no input is free."""
    columns = equations.unknowns.input_columns
    if not len(columns):
        return None
    unknowns, z = equations.unknowns, z0.copy()
    r = equations.values(z)
    J = equations.jacobian(z, exact=exact, quick=True)[0][:, columns]
    if not (np.isfinite(J).all() and np.isfinite(r).all()):
        return None
    z[columns] += balanced(J).step(r, drop=DROP)
    return np.clip(z, unknowns.low, unknowns.high)


def wake_inputs(equations: Equations, z0: FloatArray) -> FloatArray | None:
    """Return the guess with the free inputs that do nothing there set to where they do; None where all do something."""
    z, moved = z0.copy(), False
    base = float(np.linalg.norm(equations.values(z0)))
    for j in equations.unknowns.input_columns:
        ways = np.outer([*BEYOND, *(-s for s in BEYOND)], np.eye(len(z0))[j])
        here = [equations.values(z0 + s * np.eye(len(z0))[j]) for s in (-BARELY, 0.0, BARELY)]
        if not np.array_equal(here[0], here[1]) or not np.array_equal(here[1], here[2]):
            continue
        costs = [float(np.linalg.norm(equations.values(z0 + way))) for way in ways]
        awake = [k for k, cost in enumerate(costs) if np.isfinite(cost) and cost != base]
        if awake:
            z, moved = z + ways[min(awake, key=lambda k: costs[k])], True
    return np.clip(z, equations.unknowns.low, equations.unknowns.high) if moved else None


@dataclass(frozen=True, eq=False)
class Correction:
    """Where Newton's method ended."""

    z: FloatArray  # shape (n,)
    r: FloatArray  # shape (m,)
    seen: FloatArray  # (m, n), the largest absolute value of each entry of the Jacobian on the way
    distance: float  # how far it was, in sizes of the unknowns


def newton_correct(
    equations: Equations, z0: FloatArray, *, exact: bool = True, iterations: int = ITERATIONS
) -> Correction:
    """Return where Newton's method from z0 (n,) ends; the corrector of a continuation, too."""
    unknowns, z, radius = equations.unknowns, z0, LONGEST
    steps_at_zero = 0
    r = equations.values(z)
    J = equations.jacobian(z, exact=exact, quick=True)[0]
    seen = np.abs(J)

    def is_zero() -> bool:
        return bool((np.abs(r) <= compute_rounding(J, z, equations)).all())

    for _ in range(iterations if J.size else 0):
        if not (np.isfinite(J).all() and np.isfinite(r).all()):
            break
        if is_zero():
            steps_at_zero += 1
            if steps_at_zero > LAST:
                break
        form = balanced(_drop_blocked_columns(equations, z, J, r), seen)
        step = _take_step(equations, z, r, form, radius)
        if step is None:
            break
        z, r, radius = step
        if not is_zero():  # else these slopes are good enough for the last digits
            J = equations.jacobian(z, exact=exact, quick=True)[0]
            seen = np.fmax(seen, np.abs(J))
    z = np.clip(z, unknowns.low, unknowns.high)
    return Correction(z, r, np.nan_to_num(seen), float(np.max(np.abs(z - z0), initial=0.0)))


def _drop_blocked_columns(equations: Equations, z: FloatArray, J: FloatArray, r: FloatArray) -> FloatArray:
    """Return J without the columns of unknowns that would leave their bounds."""
    unknowns = equations.unknowns
    low, high = z <= unknowns.low, z >= unknowns.high
    if not (low.any() or high.any()):
        return J
    step = balanced(J).step(r, drop=DROP)
    # What the comparisons say of a step of zero makes no difference: without its column the shortest step is the same.
    blocked = (low & (step < 0)) | (high & (step > 0))
    return np.where(blocked, 0.0, J)


def _take_step(
    equations: Equations, z: FloatArray, r: FloatArray, J: Balanced, radius: float
) -> tuple[FloatArray, FloatArray, float] | None:
    """Return z and r after the first step that makes the weighted residual smaller, and a radius; None without one."""
    unknowns = equations.unknowns
    before = float(np.linalg.norm(J.rows * r))
    if before == 0.0:
        return None
    states = unknowns.state_columns
    stiff = bool(((J.sigma > ROUNDED) & (J.sigma <= DROP * J.sigma[0])).any()) if len(J.sigma) else False
    # Of a stiff model the small singular values are true: they are used where the step without them hardly helps.
    tried = [(0.0, DROP, 0.5), (0.0, ROUNDED, 1.0)] if stiff else []
    tried += [(damping, DROP, 1.0) for damping in DAMPINGS]
    for damping, drop, falls in tried:
        step = J.step(r, damping, drop)
        longest = float(np.max(np.abs(step[states]), initial=0.0))
        fraction = min(1.0, radius / longest) if longest > 0 else 1.0
        candidate = np.clip(z + fraction * step, unknowns.low, unknowns.high)
        value = equations.values(candidate)
        norm = float(np.linalg.norm(J.rows * value))
        if norm < falls * before:
            if norm > SLOWLY * before:
                natural = _take_natural_step(equations, z, r, J, radius)
                if natural is not None:
                    return natural
            new = radius * 4 if fraction < 1.0 and norm < before * (1 - 0.3 * fraction) else max(radius, longest)
            return candidate, value, new
        if falls < 1.0:
            continue  # the step without small singular values is no measure of how far the other one may go
        radius = min(radius, longest)
        radius /= 4 if damping else 2
    return None


def _take_natural_step(
    equations: Equations, z: FloatArray, r: FloatArray, J: Balanced, radius: float
) -> tuple[FloatArray, FloatArray, float] | None:
    """Return z, r and a radius after a step that makes the next one with the same J shorter; None without one.

    Along the bottom of a stiff, curved valley every step that leads far makes the residual larger, and monotone
    residuals allow tiny steps only. The natural monotonicity test (Deuflhard, Newton Methods for Nonlinear Problems,
    2011, section 3.3) compares the corrections instead, which do not depend on how stiff the rows are.
    """
    unknowns = equations.unknowns
    step = J.step(r, 0.0, ROUNDED)
    length = float(np.max(np.abs(step), initial=0.0))
    longest = float(np.max(np.abs(step[unknowns.state_columns]), initial=0.0))
    if not 0 < longest < np.inf:
        return None
    for fraction in min(1.0, LONGEST / longest) * NATURAL_FRACTIONS:
        candidate = np.clip(z + fraction * step, unknowns.low, unknowns.high)
        value = equations.values(candidate)
        if not np.isfinite(value).all():
            continue
        remaining = float(np.max(np.abs(J.step(value, 0.0, ROUNDED)), initial=0.0))
        if remaining <= (1.0 - fraction / 2) * length:
            return candidate, value, max(radius, longest)
    return None


# Newton's method that does not go where a solution is known already, by deflation: r(z) is multiplied by
#     m(z) = prod_k (1/|z - z_k|^2 + 1),
# which grows without bounds at known solutions z_k. The Newton step of m r is that of r times
# 1 / (1 - (grad m . d) / m) (Farrell, Birkisson and Funke, SIAM Journal on Scientific Computing 37, 2015).

LONGEST_DEFLATED = 2.0  # of a step, in sizes of the unknowns
DEFLATED_CLOSE = 1e-6  # length of a step at which Newton's method without deflation takes over


def search_elsewhere(equations: Equations, z0: FloatArray, solutions: Sequence[FloatArray]) -> FloatArray | None:
    """Return where Newton's method from z0 (n,) ends beside known ``solutions``; None where it ends at no point."""
    unknowns, z = equations.unknowns, z0
    if any(np.array_equal(z, each) for each in solutions):
        return None
    for _ in range(ITERATIONS):
        r = equations.values(z)
        J = equations.jacobian(z, quick=True)[0]
        if not (np.isfinite(J).all() and np.isfinite(r).all()):
            return None
        sizes = unknowns.sizes(z)
        newton = balanced(J).step(r, drop=DROP)
        slope = sum(_slope_of_factor((z - each) / sizes, newton / sizes) for each in solutions)
        denominator = 1.0 - slope
        step = newton / denominator if denominator != 0 else newton
        length = float(np.max(np.abs(step) / sizes, initial=0.0))
        if not np.isfinite(length):
            return None
        z = np.clip(z + step * min(1.0, LONGEST_DEFLATED / length if length > 0 else 1.0), unknowns.low, unknowns.high)
        if length <= DEFLATED_CLOSE:
            return z
    return None


def _slope_of_factor(away: FloatArray, step: FloatArray) -> float:
    """Return (grad m_k . step) / m_k of m_k = 1/|away|^2 + 1."""
    square = float(away @ away)
    return float(-2.0 * (away @ step) / (square * (1.0 + square))) if square > 0 else -np.inf


# From a guess that does not balance to a solution: what holds the guess is taken away step by step.
#     h(z) = 0,    f(z) - (1 - lambda) f(z0) = 0,    lambda = 0 .. 1,
# by pseudo-arclength, so that folds are passed: z is balanced at lambda = 0 by forces that nobody applies, gravity and
# preload that are held, and by nothing at lambda = 1. Of the rates those are taken that determine the others.

FIRST, LONGEST_STEP, SHORTEST = 0.1, 0.5, 1e-4  # lengths of a step, in sizes of the unknowns and of lambda
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
        return np.asarray(self.start.rows[self.rows] * r - (1.0 - w[-1]) * self.held)

    def slope(self, w: FloatArray) -> FloatArray:
        J = self.equations.jacobian(w[:-1] * self.start.columns, exact=self.exact, quick=True)[0][self.rows]
        return np.hstack((self.start.rows[self.rows, None] * J * self.start.columns, self.held[:, None]))


def release_guess(equations: Equations, z0: FloatArray, *, exact: bool) -> FloatArray | None:
    """Return z where the path from z0 (n,), near the manifold, ends, to be corrected; None when it does not end."""
    r = equations.values(z0)
    J = equations.jacobian(z0, exact=exact, quick=True)[0]
    if not J.size or not (np.isfinite(J).all() and np.isfinite(r).all()):
        return None
    start = balanced(J)
    rows = find_independent_rows(equations.kinds("constraint"), start)
    held = np.where(equations.kinds("constraint"), 0.0, start.rows * r)[rows]
    if not len(rows) or not held.any():
        return None
    path = _Path(equations, rows, start, held, exact)
    w = np.append(z0 / start.columns, 0.0)
    for direction in (1.0, -1.0):
        end = _follow_path(path, w, direction)
        if end is not None:
            return np.clip(end[:-1] * start.columns, equations.unknowns.low, equations.unknowns.high)
    return None


def find_independent_rows(constraints: NDArray[np.bool_], start: Balanced) -> NDArray[np.intp]:
    """Return the ``constraints`` (m,) that are independent, and then the other rows that are so beside them."""
    first, others = np.flatnonzero(constraints), np.flatnonzero(~constraints)
    some = first[_find_pivots(start.E[first])]
    span = linalg.orth(start.E[some].T) if len(some) else np.zeros((start.E.shape[1], 0))
    rest = start.E[others] - (start.E[others] @ span) @ span.T
    return np.concatenate((some, others[_find_pivots(rest)]))


def _find_pivots(rows: FloatArray) -> NDArray[np.intp]:
    if not rows.size:
        return np.empty(0, dtype=np.intp)
    diagonal, order = pivoted_qr(rows.T)
    return order[: int(np.count_nonzero(diagonal > RANK))]


def _follow_path(path: _Path, w: FloatArray, direction: float) -> FloatArray | None:
    """Return w at lambda = 1, or None."""
    towards, length = np.append(np.zeros(len(w) - 1), direction), FIRST
    slope, left = path.slope(w), JACOBIANS
    while left > 0 and length > SHORTEST and abs(w[-1]) < FAR:
        tangent = _compute_tangent(slope, towards)
        if tangent is None:
            return None
        if w[-1] + length * tangent[-1] >= 1.0:
            w_end = w + (1.0 - w[-1]) / tangent[-1] * tangent
            return w_end if np.isfinite(path.value(w_end)).all() else None
        corrected_point = _correct_to_path(path, w + length * tangent)
        left -= CORRECTIONS if corrected_point is None else corrected_point[2]
        if corrected_point is None or (corrected_point[0] - w) @ tangent < 0.5 * length:
            length /= 2
            continue
        w, slope, count = corrected_point
        towards, length = tangent, min(LONGEST_STEP, 2 * length) if count <= 3 else length
    return None


def _compute_tangent(slope: FloatArray, towards: FloatArray) -> FloatArray | None:
    """Return the direction of the path nearest to another, of length one; None where there is none."""
    if not np.isfinite(slope).all():
        return None
    _, sigma, V = linalg.svd(slope)
    V = V[int(np.count_nonzero(sigma > RANK * sigma[0])) :]
    along: FloatArray = V.T @ (V @ towards)
    size = float(np.linalg.norm(along))
    return along / size if size > 1e-8 else None


def _correct_to_path(path: _Path, w: FloatArray) -> tuple[FloatArray, FloatArray, int] | None:
    """Return the point of the path nearest to w, the slope there, and the number of slopes that this took."""
    for count in range(1, CORRECTIONS + 1):
        value, slope = path.value(w), path.slope(w)
        if not (np.isfinite(value).all() and np.isfinite(slope).all()):
            return None
        if float(np.max(np.abs(value))) <= NEAR * max(1.0, float(np.max(np.abs(path.held)))):
            return w, slope, count
        w = w - linalg.pinv(slope, rtol=PSEUDO_INVERSE) @ value
    return None
