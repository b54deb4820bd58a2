"""Solving r(z) = 0: trust-region least squares, then Gauss-Newton to the last digit, and what the result is worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg
from scipy.optimize import least_squares

from fmilin.derivatives.noise import POINTS, noise_from_table
from fmilin.signals import FloatArray
from fmilin.tolerances import BALANCED_EXACTLY, STEADY
from fmilin.trimming.equations import Equations

__all__ = ["Solution", "compromise", "solve"]

TERMS_ROUNDED = 64 * float(np.finfo(np.float64).eps)
"""What rounding leaves of a residual, in parts of its terms."""

NOISIEST = 1e-6
"""No noise of a model excuses a larger residual."""

SPREADS = (0.03, 0.1, 0.3, 1.0, 2.0)
"""How far from the guess, in sizes of the unknowns, the search starts again when the guess leads nowhere."""

FAR = 0.3
"""A spread that leaves the neighbourhood of the guess."""

ROUNDS = 12
"""How often least squares starts again where it stopped, as long as that helps."""

POLISHING = 6
"""Gauss-Newton steps at the end of a round."""

ITERATIONS = 40
"""Of least squares in one round."""

TOWARDS_GUESS = 1e-4
"""Weight of the distance from the start of a round among residuals of weight one; the last steps do without."""

TINY = 1e-15
"""Of the size of an unknown: rounding."""

DROP = 1e-8
"""Singular values below this fraction of the largest are directions in which nothing changes."""


@dataclass(frozen=True, eq=False)
class Solution:
    """A zero of r, or where the search ended.

    Attributes
    ----------
    z : array, shape (n,)
    residual : array, shape (m,)
        Without weights.
    allowed : array, shape (m,)
        What counts as zero: rounding and the model's own noise included.
    J : array, shape (m, n)
        Without weights.
    is_exact : bool
        Whether J is, rather than differenced.
    """

    z: FloatArray
    residual: FloatArray
    allowed: FloatArray
    J: FloatArray
    is_exact: bool

    @property
    def is_zero(self) -> bool:
        """Whether this is a solution rather than a compromise."""
        return bool((np.abs(self.residual) <= self.allowed).all())

    @property
    def cost(self) -> float:
        """The Euclidean norm of what is left."""
        norm = float(np.linalg.norm(self.residual))
        return norm if np.isfinite(norm) else np.inf


def solve(equations: Equations, z0: FloatArray) -> Solution:
    """Return the zero of r nearest to the guess, or the best point of several attempts.

    The model's own directional derivatives are used first; since they may be wrong, a failure is repeated with
    differences, and then from points beside the guess, which may itself lie on a ridge (a pendulum held
    out horizontally).
    """
    best = _assessed(equations, z0, exact=True)
    if best.is_zero:
        return best
    weights = _balanced(equations, z0)
    best = _attempt(equations, z0, weights, exact=True)
    if not best.is_zero and best.is_exact and not _products_agree(equations, best.z):
        best = _better(best, _attempt(equations, z0, weights, exact=False))
    random = np.random.default_rng(1959)
    for spread in SPREADS:
        if best.is_zero:
            break
        beside = z0 + spread * random.uniform(-1.0, 1.0, len(z0)) * np.maximum(np.abs(z0), 1.0)
        start = np.clip(beside, equations.unknowns.low, equations.unknowns.high)
        found = _attempt(equations, start, weights, exact=best.is_exact)
        same = abs(found.cost - best.cost) <= 1e-3 * best.cost
        best = _better(best, found)
        if same and spread >= FAR and not _at_bound(equations, best.z):
            break  # two searches from different places end in the same dead end
    return _tidied(equations, best) if best.is_zero else best


def _at_bound(equations: Equations, z: FloatArray) -> bool:
    """Whether a bound stopped the search: there may be a solution at another one."""
    unknowns = equations.unknowns
    return bool(((z - unknowns.low <= 1e-3) | (unknowns.high - z <= 1e-3)).any())


def _better(one: Solution, other: Solution) -> Solution:
    if one.is_zero:
        return one
    return other if other.is_zero or other.cost < one.cost else one


def _products_agree(equations: Equations, z: FloatArray) -> bool:
    """Whether the model's directional derivatives agree with differences."""
    exact, measured = equations.jacobian(z)[0], equations.jacobian(z, exact=False, quick=True)[0]
    size = np.maximum(np.linalg.norm(exact, axis=1), np.linalg.norm(measured, axis=1))
    return bool((np.linalg.norm(exact - measured, axis=1) <= 1e-4 * np.maximum(size, 1e-12)).all())


def compromise(equations: Equations, starts: Sequence[FloatArray]) -> Solution:
    """Return the point of the manifold with the smallest rates, for a problem without solution."""
    weights = np.array([1e4 if row.kind == "constraint" else 1.0 for row in equations.rows])
    found = []
    for start in starts:
        best = _least_squares(equations, start, weights, exact=True)
        on_manifold = _polished(equations, best, np.where(equations.kinds("constraint"), 1.0, 0.0), exact=True)
        found.append(_assessed(equations, on_manifold, exact=True))
    return min(found, key=lambda solution: solution.cost)


def _attempt(equations: Equations, z0: FloatArray, weights: FloatArray, *, exact: bool) -> Solution:
    best = _assessed(equations, z0, exact=exact)
    for _ in range(ROUNDS):
        z = _least_squares(equations, best.z, weights, exact=exact)
        found = _assessed(equations, _polished(equations, z, weights * equations.first_order, exact=exact), exact=exact)
        found = _better(found, _assessed(equations, z, exact=exact))
        progress = np.linalg.norm(weights * found.residual) <= 0.5 * np.linalg.norm(weights * best.residual)
        best = _better(best, found)
        if best.is_zero or not progress:
            break
    return best


def _tidied(equations: Equations, found: Solution) -> Solution:
    """Return the solution with 0 for what is only rounding, if it is still one."""
    z = np.where(np.abs(found.z) < TINY, 0.0, found.z)
    z = np.clip(z, equations.unknowns.low, equations.unknowns.high)
    residual = equations.values(z)
    return replace(found, z=z, residual=residual) if (np.abs(residual) <= found.allowed).all() else found


def _balanced(equations: Equations, z0: FloatArray) -> FloatArray:
    """Return weights that make the rows of the Jacobian about equally long, shape (m,).

    Seen from several points: where a force is largest its slope vanishes, and a row that is short by chance must
    not be magnified.
    """
    size = np.zeros(len(equations.rows))
    wave = np.cos(np.arange(len(z0)) + 1.0)
    for amount in (0.0, 0.1, -0.2):
        J = equations.jacobian(z0 + amount * wave, quick=True)[0]
        size = np.maximum(size, np.linalg.norm(np.nan_to_num(J), axis=1))
    weights: FloatArray = 1.0 / np.maximum(size, 1e-14 * max(float(np.max(size, initial=0.0)), 1e-14))
    return weights


def _least_squares(equations: Equations, z0: FloatArray, weights: FloatArray, *, exact: bool) -> FloatArray:
    """Return the nearest local minimum of |W r|, inside the bounds, up to a small pull towards the guess."""
    unknowns = equations.unknowns
    if not len(z0) or not np.isfinite(equations.values(z0)).all():
        return z0

    pull = TOWARDS_GUESS * np.eye(len(z0))  # keeps the solver from wandering where nothing changes

    def weighted(z: FloatArray) -> FloatArray:
        return np.concatenate((weights * equations.values(z), TOWARDS_GUESS * (z - z0)))

    def jacobian(z: FloatArray) -> FloatArray:
        return np.vstack((np.nan_to_num(equations.jacobian(z, exact=exact, quick=True)[0]) * weights[:, None], pull))

    result = least_squares(
        weighted,
        z0,
        jac=jacobian,
        bounds=(unknowns.low, unknowns.high),
        method="trf",
        xtol=1e-12,
        ftol=1e-12,
        gtol=None,
        max_nfev=ITERATIONS,
    )
    return np.asarray(result.x, dtype=np.float64)


def _polished(equations: Equations, z: FloatArray, weights: FloatArray, *, exact: bool) -> FloatArray:
    """Return z after a few shortest Gauss-Newton steps on the rows with a weight, as long as they help."""
    unknowns = equations.unknowns
    residual = weights * equations.values(z)
    for _ in range(POLISHING):
        J = weights[:, None] * equations.jacobian(z, exact=exact, quick=True)[0]
        if not (np.isfinite(J).all() and np.isfinite(residual).all()) or not J.size:
            break
        inside = (z > unknowns.low) & (z < unknowns.high)
        step = np.zeros_like(z)
        step[inside] = linalg.lstsq(J[:, inside], -residual, cond=DROP)[0]
        candidate = np.clip(z + step, unknowns.low, unknowns.high)
        value = weights * equations.values(candidate)
        if not np.linalg.norm(value) < np.linalg.norm(residual):
            break
        z, residual = candidate, value
    return z


def _assessed(equations: Equations, z: FloatArray, *, exact: bool) -> Solution:
    J, is_exact = equations.jacobian(z, exact=exact)
    residual = equations.values(z)
    J = np.nan_to_num(J)
    allowed = np.maximum(BALANCED_EXACTLY, TERMS_ROUNDED * np.abs(J) @ np.maximum(np.abs(z), 1.0))
    first = equations.first_order
    if not (np.abs(residual[first]) <= allowed[first]).all():
        allowed = np.maximum(allowed, np.minimum(10 * _noise(equations, z), NOISIEST))
    second = ~first
    if second.any() and np.isfinite(residual).all():
        allowed[second] = np.maximum(allowed[second], STEADY * _speed(equations, z))
    return Solution(z, residual, allowed, J, is_exact)


def _noise(equations: Equations, z: FloatArray) -> FloatArray:
    """Return the noise of r at z, shape (m,); 0 where it cannot be measured."""
    line = np.cos(np.arange(len(z)) + 1.0)
    values = np.array([equations.values(z + 1e-8 * s * line) for s in range(POINTS)])
    if not np.isfinite(values).all():
        return np.zeros(len(equations.rows))
    return noise_from_table(values)


def _speed(equations: Equations, z: FloatArray) -> float:
    """Return the rate of the fastest state, in sizes per second, squared: the size of terms in d/dt f."""
    f, _ = equations.described(equations.unknowns.at(z))
    return max(1.0, float(np.max(np.abs(f) / equations.state_scales, initial=0.0)) ** 2)
