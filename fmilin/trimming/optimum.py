"""The best of the points that satisfy the equations: a preference on what freedom they leave, within bounds.

SciPy's SLSQP finds which bounds bind; then Newton's method on the directions that equations and binding bounds leave
open sharpens the point and says how well it is determined. Multipliers say what a unit of each target or bound costs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fmilin.errors import NumericalError
from fmilin.numerics.balanced import equilibrate_jacobian
from fmilin.signals import FloatArray
from fmilin.tolerances import RANK, RANK_MEASURED
from fmilin.trimming.damped_newton import find_independent_rows, newton_correct
from fmilin.trimming.equilibrium_equations import Equations
from fmilin.trimming.equilibrium_solver import Solution, assess_point
from fmilin.trimming.optimum_problem import Limit, Preference, Problem, prefer_interior
from fmilin.trimming.unknowns import Reading, make_reading

ITERATIONS = 200  # of SLSQP
PRECISION = 1e-12  # of the preference in sizes of its start
BINDING_DISTANCE = 1e-6  # distance from a bound, in sizes of what is bounded, at which it may bind
PROBE_STEP_SIZE = 1e-4  # step for second derivatives, in sizes of the unknowns
MAX_POLISHING_STEPS = 30  # Newton steps on the conditions of the optimum, which end before unless it is flat
LONGEST_STEP = 1.0  # of a polishing step, in sizes of the unknowns
FLAT_CURVATURE_RATIO = 1e-9  # curvature, relative to the largest, along which a preference says nothing
FIRST_PART, LEAST_PART = 0.25, 1e-4  # of the way of a bound: the first step, and the least
PATH_RESIDUAL_TOLERANCE = 1e-8  # residual, in sizes, up to which a point is on that way
DISPLACEMENT_SIZES = (0.1, 1.0, 3.0)  # of a start from which bounds are not reached, in sizes of the unknowns
MAX_DIRECTIONS, MIXED_DIRECTION_COUNT = (
    4,
    2,
)  # directions that equations leave open along which it is displaced, and mixtures of them
MAX_DISTANCE = 1e5  # sizes of the unknowns beyond which a preference has no least value


@dataclass(frozen=True, eq=False)
class Optimum:
    """The best point, the equations that it satisfies (binding bounds are targets among them), and what each costs."""

    equations: Equations
    solution: Solution
    value: float
    multipliers: Mapping[str, float] = field(default_factory=dict)  # change of the preference per unit
    open: int = 0  # directions along which the preference does not change either


def find_optimum(equations: Equations, start: Solution, preference: Preference, limits: Sequence[Limit]) -> Optimum:
    """Return the best point near a solution; reject bounds that leave none, and what has no least value there."""
    problem = Problem(equations, preference, limits, exact=start.is_exact)
    best, failure = _find_best_point(problem, equations, start.z)
    # At a start where the derivatives of what is bounded vanish nothing says which way leads inside: x^2 >= 4 at x = 0.
    if best is None and limits:
        best = _search_displaced(problem, equations, start.z)
    if best is not None:
        return best
    raise failure or NumericalError(
        f"The search for the least '{preference.name}' did not end at an equilibrium. Start elsewhere (guess=)."
    )


def _find_best_point(
    problem: Problem, equations: Equations, z0: FloatArray
) -> tuple[Optimum | None, NumericalError | None]:
    """Return the best point that a search from z0 (n,) finds, or None and what ended the search."""
    failure: NumericalError | None = None
    try:
        z = _minimize(problem, z0)
        # SLSQP ended outside of the bounds: it starts again from a point that is inside of them.
        if any(abs(b) > BINDING_DISTANCE for b in problem.beyond(z)):
            inside = Problem(equations, prefer_interior(problem.limits), (), exact=problem.exact)
            z = _minimize(problem, _minimize(inside, z0))
        best = _finish(problem, equations, z)
        if best is not None:
            return best, None
    except NumericalError as error:
        failure = error
    # The search may have left the equations on its way: move the bounds from where the solution is to where they are.
    moved = _move_bounds(problem, equations, z0)
    return (None if moved is None else _finish(problem, equations, moved)), failure


def _search_displaced(problem: Problem, equations: Equations, z0: FloatArray) -> Optimum | None:
    """Return the best point found from places to which what the equations leave open leads; None without one."""
    inside = Problem(equations, prefer_interior(problem.limits), (), exact=problem.exact)
    form = equilibrate_jacobian(problem.slopes(z0)[: problem.m])
    is_measured = not problem.exact or equations.moving  # changes of rates are differences in any case
    open_directions = form.columns[:, None] * form.null_space(RANK_MEASURED if is_measured else RANK)
    random = np.random.default_rng(1947)
    mixed = open_directions @ random.uniform(-1.0, 1.0, (open_directions.shape[1], MIXED_DIRECTION_COUNT))
    sizes = equations.unknowns.sizes(z0)
    for distance in DISPLACEMENT_SIZES:
        optima: list[Optimum] = []
        for direction in np.hstack((open_directions[:, :MAX_DIRECTIONS], mixed)).T:
            longest = float(np.max(np.abs(direction) / sizes, initial=0.0))
            for sign in (1.0, -1.0) if longest > 0 else ():
                z = newton_correct(equations, z0 + sign * distance / longest * direction, exact=problem.exact).z
                best = _search_interior(problem, inside, equations, z)
                optima += [best] if best is not None else []
        if optima:
            return min(optima, key=lambda best: best.value)
    return None


def _search_interior(problem: Problem, inside: Problem, equations: Equations, z0: FloatArray) -> Optimum | None:
    """Return the best point inside the bounds near z0 (n,), or None."""
    try:
        feasible = _minimize(inside, z0)
        if any(abs(b) > BINDING_DISTANCE for b in problem.beyond(feasible)):
            return None
        z = _minimize(problem, feasible)
        # SLSQP may leave the bounds again: then the feasible point itself is the start of the last steps.
        is_inside = not any(abs(b) > BINDING_DISTANCE for b in problem.beyond(z))
        return (_finish(problem, equations, z) if is_inside else None) or _finish(problem, equations, feasible)
    except NumericalError:
        return None


def _move_bounds(problem: Problem, equations: Equations, z: FloatArray) -> FloatArray | None:
    """Return the point to which the solution goes when crossed bounds are moved step by step; None without one."""
    read = problem.read(z)[problem.k :]
    crossed = [
        (limit.reading, float(value), limit.low if beyond < 0 else limit.high)
        for limit, value, beyond in zip(problem.limits, read, problem.beyond(z), strict=True)
        if beyond != 0.0
    ]
    if not crossed:
        return None
    done, part = 0.0, FIRST_PART
    while done < 1.0:
        part = min(part, 1.0 - done)
        ahead = [replace(r, value=value + (done + part) * (bound - value)) for r, value, bound in crossed]
        moved = equations.with_targets([*equations.targets, *ahead])
        end = newton_correct(moved, z, exact=problem.exact)
        if np.isfinite(end.r).all() and float(np.max(np.abs(end.r), initial=0.0)) <= PATH_RESIDUAL_TOLERANCE:
            z, done, part = end.z, done + part, 2 * part
        else:
            part /= 2
            if part < LEAST_PART:
                return None
    return z


def _list_crossed_bounds(problem: Problem, z: FloatArray) -> list[Reading]:
    """Return what is beyond a bound, with the bound as its value."""
    pairs = zip(problem.limits, problem.beyond(z), strict=True)
    return [
        replace(limit.reading, value=limit.low if beyond < 0 else limit.high)
        for limit, beyond in pairs
        if abs(beyond) > BINDING_DISTANCE
    ]


def _finish(problem: Problem, equations: Equations, z: FloatArray) -> Optimum | None:
    """Return the best point near z, where it balances; None where it does not."""
    exact = problem.exact
    binding = _list_binding_bounds(problem, equations, z)
    added: set[str] = set()
    while True:
        final = equations.with_targets([*equations.targets, *binding])
        z, last, unresolved = _sharpen(problem, final, z)
        multipliers = _compute_multipliers(problem, final, z)
        # A bound is added once: it would otherwise be added and released in turn for ever.
        crossed = [r for r in _list_crossed_bounds(problem, z) if r.name not in added]
        wrong = [
            r for r in binding if r.name not in added and not _is_binding(problem, equations, r, multipliers[r.name])
        ]
        if crossed:  # the search had stopped before this bound, and the best point without it lies beyond
            binding = [*binding, crossed[0]]
            added.add(crossed[0].name)
        elif wrong:
            # One at a time: the multipliers of the others change when it is released.
            binding = [r for r in binding if r is not wrong[0]]
        else:
            break
    # The equations with the added bounds may have no solution: then these are still crossed.
    if _list_crossed_bounds(problem, z):
        return None
    solution = assess_point(final, z, exact=exact)
    names = {r.name for r in binding}
    # A quantity at its bound is known exactly, whatever the derivatives say of it.
    stopped = np.array([name in names for name in equations.unknowns.names], dtype=bool)
    distance = np.where(stopped, 0.0, solution.certified.distance + 2 * np.abs(last))
    multiple = tuple(i for i in solution.certified.multiple if not stopped[i])
    solution = replace(solution, certified=replace(solution.certified, distance=distance, multiple=multiple))
    if not solution.is_zero:
        return None
    return Optimum(final, solution, problem.value(solution.z), multipliers, unresolved)


def _minimize(problem: Problem, z0: FloatArray) -> FloatArray:
    """Return where SLSQP ends."""
    from scipy.optimize import minimize

    equations, unknowns = problem.equations, problem.equations.unknowns
    J = problem.slopes(z0)[: problem.m]
    form = equilibrate_jacobian(J)
    rows = find_independent_rows(equations.kinds("constraint")[: problem.m], form)
    weights = form.rows[rows]
    # A preference that is zero at the start, with its gradient, is left in its unit times 1e12 at most.
    scale = max(abs(problem.value(z0)), float(np.linalg.norm(problem.gradient(z0))), 1e-12)
    constraints: list[Any] = [
        {
            "type": "eq",
            "fun": lambda z: weights * problem.rows(z)[rows],
            "jac": lambda z: weights[:, None] * problem.slopes(z)[rows],
        }
    ]
    if problem.limits:
        constraints.append({"type": "ineq", "fun": problem.margins, "jac": problem.margin_slopes})
    result = minimize(  # type: ignore[call-overload]
        lambda z: float(problem.value(z) / scale),
        z0,
        jac=lambda z: problem.gradient(z) / scale,
        bounds=list(zip(unknowns.low, unknowns.high, strict=True)),
        constraints=constraints,
        method="SLSQP",
        options={"maxiter": ITERATIONS, "ftol": PRECISION},
    )
    z = np.clip(np.asarray(result.x, dtype=np.float64), unknowns.low, unknowns.high)
    distances = np.abs(z - z0) / unknowns.sizes(z0)
    if not np.isfinite(z).all() or float(np.max(distances, initial=0.0)) > MAX_DISTANCE:
        # The error names an unknown that the preference reads, where there is one: that is the one to bound.
        meant = np.array([name in {r.name for r in problem.preference.readings} for name in unknowns.names], dtype=bool)
        distances = np.where(meant | ~meant.any(), np.nan_to_num(distances, nan=np.inf), 0.0)
        name = unknowns.names[int(np.argmax(distances))]
        raise NumericalError(
            f"'{problem.preference.name}' has no least value: '{name}' grows without limit. Give it bounds: "
            f"bounds={{{name!r}: (LO, HI)}}.",
            variable=name,
        )
    return z


def _list_binding_bounds(problem: Problem, equations: Equations, z: FloatArray) -> list[Reading]:
    """Return what is at a bound, with the bound as its value; reject what is beyond one."""
    binding: list[Reading] = []
    unknowns, candidate = equations.unknowns, equations.unknowns.at(z)
    read = problem.read(z)[problem.k :]
    for limit, value, beyond in zip(problem.limits, read, problem.beyond(z), strict=True):
        if abs(beyond) > BINDING_DISTANCE:
            side = limit.low if value < limit.low else limit.high
            unit = f" {limit.reading.unit}".rstrip()
            raise OutOfBoundsError(
                f"No point at which '{limit.reading.name}' keeps its bound {side:g}{unit} was found from this start. "
                "Start elsewhere (guess=) where its derivative is not zero, release the bound, or free an input that "
                "moves it (free=).",
                replace(limit.reading, value=side),
            )
        sides = (side for side in (limit.low, limit.high) if abs(value - side) <= BINDING_DISTANCE * limit.reading.size)
        binding += [replace(limit.reading, value=side) for side in sides]
    end = np.where(z - unknowns.low < unknowns.high - z, unknowns.low, unknowns.high)
    stopped = np.flatnonzero(np.abs(z - end) <= BINDING_DISTANCE)
    return binding + [
        make_reading(candidate.model, unknowns.names[i], float(end[i] * unknowns.scales[i])) for i in stopped
    ]


class OutOfBoundsError(NumericalError):
    """A bound of what comes out cannot be kept: ``bound`` has it as its value."""

    def __init__(self, message: str, bound: Reading) -> None:
        super().__init__(message, variable=bound.name)
        self.bound = bound


def _is_binding(problem: Problem, equations: Equations, bound: Reading, multiplier: float) -> bool:
    """Whether a bound binds: the preference would be better beyond it."""
    for limit in problem.limits:
        if limit.reading.name == bound.name:
            return multiplier >= 0 if bound.value == limit.low else multiplier <= 0
    unknowns = equations.unknowns
    i = unknowns.names.index(bound.name)
    at_low = abs(bound.value / unknowns.scales[i] - unknowns.low[i]) <= BINDING_DISTANCE
    return multiplier >= 0 if at_low else multiplier <= 0


def _compute_multipliers(problem: Problem, final: Equations, z: FloatArray) -> dict[str, float]:
    """Return how the preference changes per unit of each target and each binding bound."""
    J = np.nan_to_num(final.jacobian(z, exact=problem.exact)[0])
    form = equilibrate_jacobian(J)
    weights = np.linalg.lstsq((form.E).T, problem.gradient(z) * form.columns, rcond=RANK)[0] * form.rows
    rows = np.flatnonzero(final.kinds("target"))
    return {final.rows[i].name: float(weights[i] / final.rows[i].size) for i in rows}


def _sharpen(problem: Problem, final: Equations, z: FloatArray) -> tuple[FloatArray, FloatArray, int]:
    """Return the point by Newton's method on what the equations leave open, its last step, and what stays open.

    This is a minimum and not a zero: the signs of the curvatures along what the equations leave open at each point say
    whether a step leads downhill, and along which directions the preference says nothing. The equations themselves are
    kept by :func:`fmilin.trimming.damped_newton.newton_correct` after every step.
    """
    exact = problem.exact
    z = newton_correct(final, z, exact=exact).z
    previous = np.inf
    last = np.zeros(len(z))
    unresolved = 0
    for _ in range(MAX_POLISHING_STEPS):
        J = np.nan_to_num(final.jacobian(z, exact=exact)[0])
        form = equilibrate_jacobian(J)
        Z = form.columns[:, None] * form.null_space(RANK if exact and not final.moving else RANK_MEASURED)
        if not Z.shape[1]:
            return z, np.zeros(len(z)), 0
        Z = np.linalg.qr(Z)[0].astype(np.float64)
        g = problem.gradient(z)
        multipliers = np.linalg.lstsq(J.T, g, rcond=None)[0].astype(np.float64)

        def reduce_gradient(at: FloatArray, Z: FloatArray = Z, multipliers: FloatArray = multipliers) -> FloatArray:
            J = np.nan_to_num(final.jacobian(at, exact=exact)[0])
            return Z.T @ (problem.gradient(at) - J.T @ multipliers)

        columns = [
            (reduce_gradient(z + PROBE_STEP_SIZE * v) - reduce_gradient(z - PROBE_STEP_SIZE * v))
            / (2 * PROBE_STEP_SIZE)
            for v in Z.T
        ]
        H = np.array(columns).T
        curvatures, V = np.linalg.eigh((H + H.T) / 2)
        largest = float(np.max(np.abs(curvatures)))
        stiff = curvatures > FLAT_CURVATURE_RATIO * largest
        unresolved = int(np.count_nonzero(~stiff))
        # Smaller negative curvatures are errors of the differences of gradients.
        if (curvatures < -1e-3 * largest).any():
            raise NumericalError(
                f"'{problem.preference.name}' has no least value near the guess: it still decreases where the search "
                "ended. Give bounds (bounds=), or start elsewhere (guess=)."
            )
        step = -Z @ (V[:, stiff] @ ((V[:, stiff].T @ (Z.T @ g)) / curvatures[stiff]))
        length = float(np.max(np.abs(step), initial=0.0))
        if length > LONGEST_STEP:  # far from the best point: it is approached, and the curvature examined again
            z = newton_correct(final, z + LONGEST_STEP / length * step, exact=exact).z
            last = step
            continue
        # Steps that do not halve are the noise of the gradient.
        if length > 0.5 * previous:
            last = step
            break
        z, previous, last = newton_correct(final, z + step, exact=exact).z, length, step
        if length < 1e-14:  # rounding of z
            break
    return z, last, unresolved
