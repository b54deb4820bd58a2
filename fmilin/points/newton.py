"""Newton's method for r(z) = 0, damped where it must be: rows and columns in sizes that the Jacobian itself tells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import BALANCED_EXACTLY
from fmilin.numerics.balanced import Balanced, balanced
from fmilin.points.equations import Equations

ITERATIONS = 40
LONGEST = 0.5
"""Of the first step, in sizes of the states: what lies farther away is another solution. It grows while steps help."""
DROP = 1e-9
"""Singular values of the balanced Jacobian below this fraction of the largest: nothing is known of their directions."""
DAMPINGS = (0.0, 1e-6, 1e-4, 1e-2, 1.0, 1e2)
"""Tried in turn until the residual falls, in squares of the largest singular value, which is near one."""
LAST = 2  # steps after the residual has vanished, as long as each makes it smaller yet; the last slopes are good enough
BARELY = 2.0**-14  # a step of an input, in its size, that shows nothing inside a dead band
BEYOND = (1.0, 4.0, 16.0, 64.0)  # how far it may reach
TERMS_ROUNDED = 64 * float(np.finfo(np.float64).eps)


def rounding_of(J: FloatArray, z: FloatArray) -> FloatArray:
    """Return what counts as zero where the model has no noise, shape (m,): a limit, and the rounding of the terms."""
    return np.maximum(BALANCED_EXACTLY, TERMS_ROUNDED * np.abs(J) @ np.maximum(np.abs(z), 1.0))


def affine(equations: Equations, z0: FloatArray, *, exact: bool) -> FloatArray | None:
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


def awakened(equations: Equations, z0: FloatArray) -> FloatArray | None:
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
class Corrected:
    """Where Newton's method ended."""

    z: FloatArray  # shape (n,)
    r: FloatArray  # shape (m,)
    seen: FloatArray  # (m, n), the largest absolute value of each entry of the Jacobian on the way
    distance: float  # how far it was, in sizes of the unknowns


def corrected(equations: Equations, z0: FloatArray, *, exact: bool = True, iterations: int = ITERATIONS) -> Corrected:
    """Return where Newton's method from z0 (n,) ends; the corrector of a continuation, too."""
    unknowns, z, radius, last = equations.unknowns, z0, LONGEST, LAST
    r, J = equations.values(z), equations.jacobian(z, exact=exact, quick=True)[0]
    seen = np.abs(J)
    for _ in range(iterations if J.size else 0):
        if not (np.isfinite(J).all() and np.isfinite(r).all()):
            break
        is_zero = bool((np.abs(r) <= rounding_of(J, z)).all())
        last -= is_zero
        step = _step(equations, z, r, balanced(_inside(equations, z, J, r), seen), radius) if last >= 0 else None
        if step is None:
            break
        z, r, radius = step
        if not (np.abs(r) <= rounding_of(J, z)).all():  # else these slopes are good enough for the last digits
            J = equations.jacobian(z, exact=exact, quick=True)[0]
            seen = np.fmax(seen, np.abs(J))
    z = np.clip(z, unknowns.low, unknowns.high)
    return Corrected(z, r, np.nan_to_num(seen), float(np.max(np.abs(z - z0), initial=0.0)))


def _inside(equations: Equations, z: FloatArray, J: FloatArray, r: FloatArray) -> FloatArray:
    """Return J without the columns of unknowns that would leave their bounds."""
    unknowns = equations.unknowns
    low, high = z <= unknowns.low, z >= unknowns.high
    if not (low.any() or high.any()):
        return J
    step = balanced(J).step(r, drop=DROP)
    blocked = (low & (step < 0)) | (high & (step > 0))
    return np.where(blocked, 0.0, J)


def _step(
    equations: Equations, z: FloatArray, r: FloatArray, J: Balanced, radius: float
) -> tuple[FloatArray, FloatArray, float] | None:
    """Return z and r after the first step that makes the weighted residual smaller, and a radius; None without one."""
    unknowns = equations.unknowns
    before = float(np.linalg.norm(J.rows * r))
    if before == 0.0:
        return None
    states = unknowns.state_columns
    for damping in DAMPINGS:
        step = J.step(r, damping, DROP)
        longest = float(np.max(np.abs(step[states]), initial=0.0))
        fraction = min(1.0, radius / longest) if longest > 0 else 1.0
        candidate = np.clip(z + fraction * step, unknowns.low, unknowns.high)
        value = equations.values(candidate)
        norm = float(np.linalg.norm(J.rows * value))
        if norm < before:
            new = radius * 4 if fraction < 1.0 and norm < before * (1 - 0.3 * fraction) else max(radius, longest)
            return candidate, value, new
        radius = min(radius, longest)
        radius /= 4 if damping else 2
    return None
