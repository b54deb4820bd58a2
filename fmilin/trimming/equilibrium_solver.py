"""Solving r(z) = 0: what is affine at once, Newton's method, then other ways to start, and what the result is worth.

A search is written for one guess, and yields where Newton's method should begin: those of many guesses run together
(:func:`fmilin.trimming.damped_newton.run_together`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import numpy as np

from fmilin.numerics.balanced import equilibrate_jacobian
from fmilin.numerics.certificate import CertifiedZero
from fmilin.numerics.certification import CLEAR_RESIDUAL_FACTOR, certify_zero, measure_noise
from fmilin.numerics.newton import Verdict
from fmilin.signals import FloatArray
from fmilin.tolerances import EXACT_BALANCE_TOLERANCE, RANK, STEADY_RATE_TOLERANCE
from fmilin.trimming.damped_newton import (
    Correction,
    NewtonStart,
    Search,
    balance_inputs,
    compute_rounding,
    release_guess,
    run_alone,
    wake_inputs,
)
from fmilin.trimming.equilibrium_equations import Equations

MAX_NOISY_RESIDUAL = 1e-6  # no noise of a model excuses a larger residual
START_SPREAD_SIZES = (0.03, 0.1, 0.3, 1.0, 2.0)
"""How far from the guess, in sizes of the unknowns, the search starts again when the guess leads nowhere."""

MAX_COLUMNS = 5000
"""Columns of Jacobians after which the search does not start once more: all starts of small models, two or three of a
model with 40 unknowns, each of which may take seconds."""

FAR_SPREAD_SIZE = 0.3  # A spread that leaves the neighbourhood of the guess
ROUNDS = 12  # how often least squares starts again where it stopped, as long as that helps
ITERATIONS = 40  # of least squares in one round
GUESS_WEIGHT = 1e-4
"""Weight of the distance from the start of a round among residuals of weight one; the last steps do without."""

MIN_EXPLORED_DISTANCE = 1e-3  # A way, in sizes of the unknowns, on which the Jacobian was seen at more than one place
ROW_ROUNDING_TOLERANCE = (
    1e-7  # of the longest row of a Jacobian: what differences of long steps see of shorter ones is rounding
)
REST_RATE_TOLERANCE = 1e-3  # rates of positions, in their sizes per second, that count as none where nothing balances
ROUNDED_UNKNOWN_SIZE = 1e-15  # of the size of an unknown: rounding


@dataclass(frozen=True, eq=False)
class Solution:
    """A zero of r, or where the search ended."""

    z: FloatArray  # shape (n,)
    residual: FloatArray  # (m,), without weights
    allowed: FloatArray  # (m,), what counts as zero: rounding and the model's own noise included
    J: FloatArray  # (m, n), without weights
    is_exact: bool  # whether J is, rather than differenced
    certified: CertifiedZero  # unknown where the residual does not pass for zero
    sizes: FloatArray  # (n,), of the unknowns at z
    # (m, n), how large the entries of the Jacobian were on the way here; None where there was hardly any
    entry_sizes: FloatArray | None = None
    tried: tuple[str, ...] = field(default=())  # what led nowhere before

    @classmethod
    def nowhere(cls, equations: Equations, z: FloatArray) -> Solution:
        """Return a point of which nothing but the residual is known."""
        r = equations.values(z)
        J = np.zeros((len(r), len(z)))
        return cls(
            z,
            r,
            np.zeros_like(r),
            J,
            is_exact=False,
            certified=CertifiedZero.without_certificate(z, J),
            sizes=equations.unknowns.sizes(z),
        )

    @property
    def is_balanced(self) -> bool:
        """Whether the residual passes for zero."""
        return bool((np.abs(self.residual) <= self.allowed).all())

    @property
    def is_zero(self) -> bool:
        """Whether this is a solution rather than a compromise, or a place from which all that balances is far."""
        return self.is_balanced and self.is_close

    @property
    def is_close(self) -> bool:
        """Whether there is a solution, and it is near, relative to the sizes of the unknowns."""
        return self.certified.is_close(self.sizes)

    @property
    def cost(self) -> float:
        """The Euclidean norm of what is left."""
        norm = float(np.linalg.norm(self.residual))
        return norm if np.isfinite(norm) else np.inf


def solve(equations: Equations, z0: FloatArray) -> Solution:
    """Return the zero of r nearest to the guess, or the best point of several attempts."""
    return run_alone(search_zero(equations, z0))


def search_zero(equations: Equations, z0: FloatArray) -> Search[Solution]:
    """Search for the zero of r nearest to the guess; return it, or the best point of several attempts."""
    best = Solution.nowhere(equations, z0)
    # A guess that balances already stays as it is: Newton's method would change its last digits.
    if (np.abs(best.residual) <= MAX_NOISY_RESIDUAL).all():
        best = assess_point(equations, z0, exact=True)
    if best.is_zero:
        return best
    tried: list[str] = []
    exact = True
    for name, search in _list_attempts(equations, z0):
        end = yield from search(exact=exact)
        if end is None:
            continue
        tried.append(name)
        reached = assess_point(equations, end, exact=exact)
        best = _choose_better(best, reached)
        own_slopes = exact and len(tried) == 1 and reached.is_exact and not best.is_zero
        if (
            own_slopes and z0.size and not _products_agree(equations, reached.z)
        ):  # the model's own derivatives may be wrong
            exact = False
            tried.append(f"{name} with measured derivatives")
            again = yield from search(exact=exact)
            best = _choose_better(best, assess_point(equations, again or end, exact=exact))
        if best.is_zero:
            return _remove_rounding(equations, best)
    best, starts = yield from _search_nearby(equations, z0, best, exact=exact)
    tried += starts
    return _remove_rounding(equations, best) if best.is_zero else replace(best, tried=tuple(tried))


class _Attempt(Protocol):
    """A way from the guess, with the model's own products or without."""

    def __call__(self, *, exact: bool) -> Search[Correction | None]: ...


def _list_attempts(equations: Equations, z0: FloatArray) -> Iterator[tuple[str, _Attempt]]:
    """Return the ways from the guess, with their names."""

    def start_newton(start: Callable[..., FloatArray | None]) -> _Attempt:
        def attempt(*, exact: bool) -> Search[Correction | None]:
            z = start(exact=exact)
            return None if z is None else (yield NewtonStart(equations, z, exact))

        return attempt

    def release_from_balanced_guess(*, exact: bool) -> FloatArray | None:
        start = balance_inputs(equations, z0, exact=exact)
        return release_guess(equations, z0 if start is None else start, exact=exact)

    def least_squares_too(*, exact: bool) -> Search[Correction]:
        return (yield from _repeat_least_squares(equations, z0, _compute_row_weights(equations, z0), exact=exact))

    if len(equations.unknowns.inputs):
        balanced_best = start_newton(partial(balance_inputs, equations, z0))
        yield "the free inputs with the smallest residual at the guess, by one linear solve", balanced_best
        yield "the free inputs outside their dead zones", start_newton(lambda **_: wake_inputs(equations, z0))
    yield "Newton's method from the guess", start_newton(lambda **_: z0)
    yield "least squares from the guess", least_squares_too
    yield ("the guess held by forces that were then removed step by step", start_newton(release_from_balanced_guess))


RETURN_DISTANCES = (0.25, 0.5, 0.625, 0.75, 0.875, 0.95)
"""Ways back from the guess, in sizes of the unknowns, where the search ran away: what attracts may lie on that side."""

RUNAWAY_DISTANCE = 1.0  # how far the search went, in sizes of the unknowns, where the way back is tried


def _list_starts(equations: Equations, z0: FloatArray, best: Solution) -> Iterator[tuple[float, FloatArray]]:
    """Yield where else a search may start, with how far from the guess that is."""
    sizes, random = equations.unknowns.sizes(z0), np.random.default_rng(1959)
    way = best.z - z0
    distance = float(np.max(np.abs(way) / sizes, initial=0.0))
    if distance > RUNAWAY_DISTANCE:
        for spread in RETURN_DISTANCES:
            yield spread, z0 - spread / distance * way
    for spread in START_SPREAD_SIZES:
        yield spread, z0 + spread * random.uniform(-1.0, 1.0, len(z0)) * np.maximum(np.abs(z0), 1.0)


def _search_nearby(
    equations: Equations, z0: FloatArray, best: Solution, *, exact: bool
) -> Search[tuple[Solution, list[str]]]:
    """Return the best of searches from points near the guess."""
    unknowns = equations.unknowns
    weights, count = _compute_row_weights(equations, z0), 0
    enough = equations.columns_computed + MAX_COLUMNS
    for spread, displaced in _list_starts(equations, z0, best):
        if count and equations.columns_computed > enough:
            break
        start = np.clip(displaced, unknowns.low, unknowns.high)
        count += 1
        reached = assess_point(equations, (yield NewtonStart(equations, start, exact)), exact=exact)
        # Newton's method stops in a valley of the residual, along which least squares go on.
        if not reached.is_balanced:
            end = yield from _repeat_least_squares(equations, reached.z, weights, exact=exact)
            reached = assess_point(equations, end, exact=exact)
        # Least squares end with some digits of the smallest residual: 1e-3 takes two such ends for one.
        same = abs(reached.cost - best.cost) <= 1e-3 * best.cost and not reached.is_balanced
        best = _choose_better(best, reached)
        # A bound may have stopped the search: there may be a solution at another one.
        # 1e-3: least squares end near a bound, inside of it.
        at_bound = ((best.z - unknowns.low <= 1e-3) | (unknowns.high - best.z <= 1e-3)).any()
        if best.is_zero or (same and spread >= FAR_SPREAD_SIZE and not at_bound):
            break  # two searches from different places end in the same dead end
    return best, [f"{count} start{'s' * (count > 1)} near the guess"]


def _choose_better(one: Solution, other: Solution) -> Solution:
    if one.is_zero:
        return one
    return other if other.is_zero or other.cost < one.cost else one


def _products_agree(equations: Equations, z: FloatArray) -> bool:
    """Whether the model's directional derivatives agree with differences."""
    exact, measured = equations.jacobian(z)[0], equations.jacobian(z, exact=False, quick=True)[0]
    size = np.maximum(np.linalg.norm(exact, axis=1), np.linalg.norm(measured, axis=1))
    # Rows that are rounding relative to the others disagree with any measurement.
    # 1e-4 is far above the error of differences over such short steps, and far below that of a wrong derivative.
    # 1e-12: where all rows are zero, their rounding agrees.
    floor = max(1e-12, ROW_ROUNDING_TOLERANCE * float(np.max(size, initial=0.0)))
    return bool((np.linalg.norm(exact - measured, axis=1) <= 1e-4 * np.maximum(size, floor)).all())


def find_compromise(equations: Equations, starts: Sequence[FloatArray]) -> Solution:
    """Return the point of the manifold with the smallest rates, positions at rest if they can be."""
    names = equations.unknowns.start.model.states.names
    positions = {names[i] for i in equations.pairs}
    paired = np.array([row.kind == "rate" and row.name in positions for row in equations.rows], dtype=bool)
    smallest = _find_smallest(equations, starts, np.ones(len(paired)))
    # Positions rest if they can: what remains are accelerations, which no damping of a motion hides.
    at_rest = _find_smallest(equations, starts, np.where(paired, 1e3, 1.0))
    # Where rest costs ten times the rates, the motion goes on: a wheel that is driven does not stop.
    rests = (np.abs(at_rest.residual[paired]) <= REST_RATE_TOLERANCE).all() and at_rest.cost <= 10 * smallest.cost
    return at_rest if rests else smallest


def _find_smallest(equations: Equations, starts: Sequence[FloatArray], weights: FloatArray) -> Solution:
    # A compromise has to be on the manifold: there alone its rates have a meaning.
    weights = np.where(equations.kinds("constraint"), 1e4, weights)
    compromises = []
    for start in starts:
        best = _solve_least_squares(equations, start, weights, exact=True)
        compromises.append(assess_point(equations, _project_on_constraints(equations, best), exact=True))
    return min(compromises, key=lambda solution: solution.cost)


def _project_on_constraints(equations: Equations, z: FloatArray) -> FloatArray:
    """Return z after a few shortest Gauss-Newton steps on the constraints alone."""
    unknowns, constraints = equations.unknowns, equations.kinds("constraint")
    for _ in range(6 if constraints.any() else 0):
        r, J = equations.values(z), equations.jacobian(z, quick=True)[0]
        if (
            not (np.isfinite(J).all() and np.isfinite(r).all())
            or (np.abs(r[constraints]) <= EXACT_BALANCE_TOLERANCE).all()
        ):
            break
        step = equilibrate_jacobian(np.where(constraints[:, None], J, 0.0)).step(r, drop=RANK)
        z = np.clip(z + step, unknowns.low, unknowns.high)
    return z


def _repeat_least_squares(
    equations: Equations, z0: FloatArray, weights: FloatArray, *, exact: bool
) -> Search[Correction]:
    """Return where least squares and Newton's method end in turn, as long as that helps."""
    best = Correction(z0, equations.values(z0), np.zeros((len(weights), len(z0))), 0.0, Verdict.STALLED)
    enough = equations.columns_computed + MAX_COLUMNS
    for count in range(ROUNDS):
        if count and equations.columns_computed > enough:
            break
        before = float(np.linalg.norm(weights * best.r))
        z = _solve_least_squares(equations, best.z, weights, exact=exact)
        candidates = [best, replace(best, z=z, r=equations.values(z)), (yield NewtonStart(equations, z, exact))]
        best = min(candidates, key=lambda c: float(np.nan_to_num(np.linalg.norm(weights * c.r), nan=np.inf)))
        cost = float(np.linalg.norm(weights * best.r))
        if not cost <= 0.5 * before or (np.abs(best.r) <= EXACT_BALANCE_TOLERANCE).all():
            break
    return best


def _remove_rounding(equations: Equations, solution: Solution) -> Solution:
    """Return the solution with 0 for what is only rounding, if it is still one."""
    z = np.where(np.abs(solution.z) < ROUNDED_UNKNOWN_SIZE, 0.0, solution.z)
    z = np.clip(z, equations.unknowns.low, equations.unknowns.high)
    # A model with noise would give another residual at the same point.
    if np.array_equal(z, solution.z):
        return solution
    residual = equations.values(z)
    return replace(solution, z=z, residual=residual) if (np.abs(residual) <= solution.allowed).all() else solution


def _compute_row_weights(equations: Equations, z0: FloatArray) -> FloatArray:
    """Return weights (m,) that make the Jacobian's rows about equally long, as seen from several points."""
    size = np.zeros(len(equations.rows))
    wave = np.cos(np.arange(len(z0)) + 1.0)
    for amount in (0.0, 0.1, -0.2):
        J = equations.jacobian(z0 + amount * wave, quick=True)[0]
        size = np.maximum(size, np.linalg.norm(np.nan_to_num(J), axis=1))
    # A row that is rounding, or that nothing changes, would have a weight without bounds.
    return 1.0 / np.maximum(size, 1e-14 * max(float(np.max(size, initial=0.0)), 1e-14))


def _solve_least_squares(equations: Equations, z0: FloatArray, weights: FloatArray, *, exact: bool) -> FloatArray:
    """Return the nearest local minimum of |W r|, inside the bounds, up to a small pull towards the guess."""
    unknowns = equations.unknowns
    # SciPy rejects an empty vector, and a residual that is not finite where it starts.
    if not len(z0) or not np.isfinite(equations.values(z0)).all():
        return z0

    pull = GUESS_WEIGHT * np.eye(len(z0))  # keeps the solver from wandering where nothing changes

    def weigh_residual(z: FloatArray) -> FloatArray:
        return np.concatenate((weights * equations.values(z), GUESS_WEIGHT * (z - z0)))

    def jacobian(z: FloatArray) -> FloatArray:
        return np.vstack((np.nan_to_num(equations.jacobian(z, exact=exact, quick=True)[0]) * weights[:, None], pull))

    from scipy.optimize import least_squares

    # 1e-12: as many digits as a Jacobian gives; a valley costs ITERATIONS at most.
    bounds, stop = (unknowns.low, unknowns.high), 1e-12
    result = least_squares(
        weigh_residual,
        z0,
        jac=jacobian,
        bounds=bounds,
        method="trf",
        xtol=stop,
        ftol=stop,
        gtol=None,
        max_nfev=ITERATIONS,
    )
    return np.asarray(result.x, dtype=np.float64)


def assess_point(equations: Equations, end: FloatArray | Correction, *, exact: bool) -> Solution:
    """Return what a point is worth: its residual, what counts as zero there, and its certificate where it is zero."""
    z, entry_sizes, distance = (
        (end.z, end.entry_sizes, end.distance) if isinstance(end, Correction) else (end, None, 0.0)
    )
    J, is_exact = equations.jacobian(z, exact=exact)
    residual = equations.values(z)
    J = np.nan_to_num(J)
    allowed = compute_rounding(J, z, equations)
    first = equations.first_order
    beyond_rounding = not (np.abs(residual[first]) <= allowed[first]).all()
    # The noise takes several evaluations, and matters only where rounding does not explain the residual.
    noise = measure_noise(equations, z) if beyond_rounding else None
    if noise is not None:
        allowed = np.maximum(allowed, np.minimum(CLEAR_RESIDUAL_FACTOR * noise, MAX_NOISY_RESIDUAL))
    second = ~first
    # The rates can only be described where the model is defined.
    if second.any() and np.isfinite(residual).all():
        rates = equations.describe_motion(equations.unknowns.at(z))[0]
        speed = float(np.max(np.abs(rates) / equations.state_scales, initial=0.0))  # its square: of terms in d/dt f
        allowed[second] = np.maximum(allowed[second], STEADY_RATE_TOLERANCE * max(1.0, speed**2))
    entry_sizes = entry_sizes if distance > MIN_EXPLORED_DISTANCE else None
    solution = Solution(
        z,
        residual,
        allowed,
        J,
        is_exact,
        CertifiedZero.without_certificate(z, J),
        equations.unknowns.sizes(z),
        entry_sizes,
    )
    return _certify(equations, solution) if solution.is_balanced else solution


def _certify(equations: Equations, solution: Solution) -> Solution:
    """Return a solution with a residual that passes for zero, nearer where it can be, and what is known of it."""
    certified = certify_zero(equations, solution.z, solution.J, solution.allowed, exact=solution.is_exact)
    z = certified.z
    if not np.array_equal(z, solution.z):
        J, is_exact = equations.jacobian(z, exact=solution.is_exact)
        residual = equations.values(z)
        solution = replace(solution, z=z, residual=residual, J=np.nan_to_num(J), is_exact=is_exact)
    return replace(solution, certified=certified, sizes=equations.unknowns.sizes(z))
