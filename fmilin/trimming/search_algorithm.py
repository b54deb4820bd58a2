"""The search for an operating point, on one page.

The rows that must vanish (:mod:`fmilin.trimming.equilibrium_equations`), each divided by its size, as functions of what
is free (:mod:`fmilin.trimming.unknowns`), each divided by its size, are

    h(t, x, u) = 0,    f_Z(t, x, u) = 0,    [d/dt f_Z = 0],    c(t, x, u) = what should come out.

1. ``assemble_guess``: the guess, on the manifold where it can be brought there.
2. ``make_equations``: rows of the request, and unknowns.
3. ``solve_request``: Newton's method (:mod:`fmilin.numerics.newton`) from the guess, and from other places if it fails
   (:mod:`fmilin.trimming.equilibrium_solver`). Every end is certified: a residual that is zero for the noise of the
   model, with a bound of the distance to the solution (:mod:`fmilin.numerics.certification`). A search yields where
   Newton's method should begin, so that it runs for many guesses at once.
4. ``choose_solution``: of a family of solutions the preferred one, the one with the smallest contact forces, with the
   totals of the start, or nearest to the guess.
5. ``make_point``: rates, certificate and stability of the point.

Large models with sparse equations are solved by the same Newton method in another form
(:mod:`fmilin.trimming.sparse_equilibrium`). Two searches are of their own kind: a stable equilibrium is approached by
damped motion, since Newton's method does not distinguish stable from unstable ones
(:mod:`fmilin.trimming.stable_equilibrium`); and which bounds bind at a preferred point is a question of quadratic
programming, not of a zero (:mod:`fmilin.trimming.optimum`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.errors import FmilinError, NumericalError
from fmilin.manifold.selection import find_kinematic_pairs
from fmilin.model.capabilities import read_sparse_equations
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Model
from fmilin.trimming.damped_newton import NewtonStart, Search, release_guess, run_alone, run_together
from fmilin.trimming.equilibrium_equations import Equations
from fmilin.trimming.equilibrium_solver import Solution, assess_point, find_compromise, search_zero
from fmilin.trimming.failures import (
    TrimError,
    explain_no_solution,
    explain_obstacles,
    explain_targets,
    explain_too_far,
    suggest_steady_motion,
)
from fmilin.trimming.kept_totals import keep_totals
from fmilin.trimming.optimum import Optimum, OutOfBoundsError, find_optimum
from fmilin.trimming.optimum_problem import Limit, as_near_as_possible, expression_preference
from fmilin.trimming.solution_family import free_directions, least_contact_forces, move_to_nearest
from fmilin.trimming.sparse_equilibrium import can_search_sparse, search_sparse
from fmilin.trimming.stable_equilibrium import find_stable_equilibrium, judge_equilibrium
from fmilin.trimming.trim_report import TrimmedPoint, TrimReport
from fmilin.trimming.trim_request import TrimRequest, names_minimized, quantity, read_name
from fmilin.trimming.trimmed_point import make_point, read_values
from fmilin.trimming.unknowns import (
    Candidate,
    Reading,
    Unknowns,
    assemble_guess,
    independent_states,
    make_reading,
    model_that_shows,
)

STEADY_CHANGE_RATE_TOLERANCE = (
    1e-9  # change of rates, in sizes of the states per second squared, of a motion that is steady later, too
)


def search(
    model: Model, request: TrimRequest, guess: Mapping[str, float], *, anywhere: bool = False, explain: bool = True
) -> TrimmedPoint:
    """Return the solution nearest to a guess; ``anywhere``: even from off the manifold; ``explain``: say why not."""
    (outcome,) = search_each(model, request, [guess], anywhere=anywhere, explain=explain)
    if isinstance(outcome, FmilinError):
        raise outcome
    return outcome


def search_each(
    model: Model,
    request: TrimRequest,
    guesses: Sequence[Mapping[str, float]],
    *,
    anywhere: bool = False,
    explain: bool = True,
) -> list[TrimmedPoint | FmilinError]:
    """Return the solution nearest to each guess, or the error that says why there is none.

    Each guess is treated as if it were alone; Newton's method runs for all of them together.
    """
    request = request.check(model)
    sparse = read_sparse_equations(model)
    minimized = [read_name(model, name) for name in names_minimized(request)]
    model_with_outputs = model_that_shows(model, [*request.targets, *request.bounds, *request.near, *minimized])
    evaluator = PointEvaluator(model_with_outputs)

    def find_point(request: TrimRequest, guess: Mapping[str, float]) -> Search[TrimmedPoint]:
        start, remarks = assemble_guess(evaluator, request, guess, anywhere=anywhere)
        equations, solution = yield from solve_request(make_equations(start, request), request)
        choice = choose_solution(equations, solution, request)
        point = make_point(
            choice.equations,
            choice.solution,
            request,
            (*remarks, *choice.remarks),
            choice.best,
            is_nearest=choice.is_nearest,
        )
        # A preference, or totals that are kept, may have led away from the stable equilibrium.
        if request.stable:
            require_stable(point.report)
        return point

    def search_near_guess(guess: Mapping[str, float]) -> Search[TrimmedPoint]:
        guess = request.check_guess(model, guess)
        # The sparse equations were read with the parameters of the model as it is, without those of a guess.
        only_signals = all(quantity(model_with_outputs, name)[0] != "parameter" for name in guess)
        if sparse is not None and only_signals and can_search_sparse(model_with_outputs, sparse, request):
            point = search_sparse(model_with_outputs, sparse, request, guess, anywhere=anywhere)
            # Otherwise the general search says whether there is a family, or why there is nothing.
            if point is not None:
                return point
        try:
            return (yield from find_point(request, guess))
        except (TrimError, OutOfBoundsError) as error:
            if not explain:
                raise

            def search(other: TrimRequest) -> TrimmedPoint:
                return run_alone(find_point(other, guess))

            suggested = None
            # A steady motion would not be the stable equilibrium that was requested.
            if isinstance(error, TrimError) and not request.stable:
                suggested = suggest_steady_motion(error, model_with_outputs, request, search)
            raise suggested or explain_obstacles(error, model_with_outputs, request, search) from None

    return run_together([search_near_guess(guess) for guess in guesses])


@dataclass(frozen=True, eq=False)
class ChosenSolution:
    """A solution, the equations that it satisfies, and why it was taken."""

    equations: Equations
    solution: Solution
    remarks: tuple[Remark, ...] = ()
    best: Optimum | None = None  # where something is preferred
    is_nearest: bool = False  # whether no move along its family leads nearer to the guess


def choose_solution(equations: Equations, solution: Solution, request: TrimRequest) -> ChosenSolution:
    """Return the member of a solution's family that is preferred, presses least, keeps totals, or is the nearest."""
    best = find_preferred(equations, solution, request)
    if best is not None:
        return ChosenSolution(best.equations, best.solution, best=best)
    solution, remarks = least_contact_forces(equations, solution)
    # After a choice by contact forces, and at an isolated solution, nothing is left to choose.
    if remarks or not free_directions(equations, solution, ())[0]:
        return ChosenSolution(equations, solution, remarks)
    equations, solution, remarks = keep_totals(equations, solution)
    # The totals may have taken the last direction that was open.
    if not free_directions(equations, solution, ())[0]:
        return ChosenSolution(equations, solution, remarks)
    solution, is_nearest = move_to_nearest(equations, solution)
    return ChosenSolution(equations, solution, remarks, is_nearest=is_nearest)


def make_equations(start: Candidate, request: TrimRequest) -> Equations:
    """Return what must vanish near a guess."""
    model = start.model
    pairs = dict(find_kinematic_pairs(start.evaluator, model.start) or {})
    listed = [model.states.positions[name] for name in request.steady]
    at_rest = list(range(len(model.states)))
    if listed:
        at_rest = [i for i in independent_states(start, pairs, listed) if i not in listed]
    targets = [_make_target(model, name, value) for name, value in request.targets.items()]
    return Equations(Unknowns(start, request), at_rest, pairs, moving=bool(listed), targets=targets)


def _make_target(model: Model, name: str, value: float) -> Reading:
    """Return what should come out, in a size in which its value is not rounding: 4e-24 is not zero."""
    target = make_reading(model, name, value)
    return replace(target, size=min(target.size, abs(value))) if value != 0.0 else target


def solve_request(balance: Equations, request: TrimRequest) -> Search[tuple[Equations, Solution]]:
    """Return the zero that a request asks for, and the equations that it satisfies; raise what is in the way."""
    if request.stable:
        return balance, (yield from _find_stable(balance, request))
    if not (balance.targets and balance.moving):
        return balance, (yield from _solve_equations(balance, request))
    # A pull-up, or a climb through thinner air, is steady at no later instant: what holds at an instant comes first.
    at_rest: list[int] = balance.at_rest.tolist()
    instant = Equations(balance.unknowns, at_rest, balance.pairs, moving=False, targets=balance.targets)
    solution = yield from _solve_equations(instant, request)
    for start in (solution.z, balance.unknowns.z0):
        exact = solution.is_exact
        steady = assess_point(balance, (yield NewtonStart(balance, start, exact)), exact=exact)
        if steady.is_zero:
            return balance, steady
    # Derivatives of changes of rates are measured, and may not tell how near a point is that they leave as it is.
    later = np.abs(balance.values(solution.z)[~balance.first_order])
    instant.moving = float(np.max(later, initial=0.0)) <= STEADY_CHANGE_RATE_TOLERANCE
    return instant, solution


def _find_stable(balance: Equations, request: TrimRequest) -> Search[Solution]:
    """Return the rest near the guess at which the motion stays; raise what is in the way."""
    solution = find_stable_equilibrium(balance, balance.unknowns.z0)
    if solution is not None:
        return solution
    nearest = yield from _solve_equations(balance, request)
    unstable = judge_equilibrium(balance, nearest)
    if unstable is not None and unstable.stability.stable is True:
        return nearest  # the damped motion need not arrive there: it may be slow, or pass by
    raise NumericalError(
        "No stable equilibrium was found near the guess: the damped motion does not end at one. The nearest "
        f"equilibrium {'has an unknown stability' if unstable is None else unstable.text}. Start elsewhere (guess=), "
        "or release a fixed quantity."
    )


def _solve_equations(balance: Equations, request: TrimRequest) -> Search[Solution]:
    """Return the zero of the equations near the guess; raise what is in the way."""
    unknowns = balance.unknowns
    solution = yield from search_zero(balance, unknowns.z0)
    if not np.isfinite(solution.residual).all():
        # Raise what is wrong with the guess.
        candidate = unknowns.at(unknowns.z0)
        f = candidate.evaluator.evaluate(candidate.time, candidate.states, candidate.inputs).derivatives
        names = [n for n, value in zip(candidate.model.states.names, f, strict=True) if not np.isfinite(value)]
        names += [r.name for r, v in zip(balance.rows, balance.values(unknowns.z0), strict=True) if not np.isfinite(v)]
        raise NumericalError(
            f"The model is not defined where the search starts: '{names[0]}' is not a number there. Start elsewhere: "
            f"guess={{{names[0]!r}: VALUE}}.",
            variable=names[0],
        )
    if solution.is_balanced and not solution.is_close:
        raise explain_too_far(balance, solution)
    freedoms = ""
    # Without its targets the problem may be solvable: a path leads from there to them, or shows which are in the way.
    if not solution.is_zero and balance.targets:
        coarse = yield from search_zero(balance.with_targets(()), unknowns.z0)
        if coarse.is_zero:
            solution = yield from _follow_to_targets(balance, solution, coarse)
            freedoms = "" if solution.is_zero else explain_targets(balance, coarse)
    if not solution.is_zero:
        tried = solution.tried
        solution = replace(find_compromise(balance, [unknowns.z0, solution.z]), tried=tried)
    # Least squares may end at a solution that the search has missed: that is returned below like any other.
    if not solution.is_zero:
        if solution.is_balanced:
            raise explain_too_far(balance, solution)
        error = explain_no_solution(balance, solution, request)
        error.args = (f"{error}{freedoms}",)
        raise error
    return solution


def _follow_to_targets(balance: Equations, failed: Solution, coarse: Solution) -> Search[Solution]:
    """Return the zero on a path from a point without targets, ``coarse``, to these; else what ``failed``."""
    end = release_guess(balance, coarse.z, exact=coarse.is_exact)
    if end is not None:
        start = NewtonStart(balance, end, coarse.is_exact)
        reached = assess_point(balance, (yield start), exact=coarse.is_exact)
        if reached.is_zero:
            return reached
    return replace(failed, tried=(*failed.tried, "the targets, step by step, from a point without them"))


def find_preferred(balance: Equations, solution: Solution, request: TrimRequest) -> Optimum | None:
    """Return the best point near a solution where something is preferred, or a bound of what comes out is crossed."""
    unknowns, model = balance.unknowns, balance.unknowns.start.model
    pairs = {name: pair for name, pair in request.bounds.items() if name not in unknowns.names}
    limits = [
        # Where a reading has no nominal size, its size comes from the bound, which has to be finite.
        Limit(make_reading(model, n, low if np.isfinite(low) else high), low, high)
        for n, (low, high) in pairs.items()
    ]
    if request.minimize is not None:
        preference = expression_preference(request.minimize, lambda name: make_reading(model, read_name(model, name)))
    elif request.near:
        preference = as_near_as_possible([make_reading(model, name, value) for name, value in request.near.items()])
    else:
        read = read_values(balance, solution, [limit.reading.name for limit in limits])
        if not any(limit.beyond(read[limit.reading.name]) for limit in limits):
            return None
        # Without a preference the point within the bounds that is nearest to the solution is the best.
        here = zip(unknowns.names, (solution.z * unknowns.scales).tolist(), strict=True)
        preference = as_near_as_possible([make_reading(model, name, value) for name, value in here])
    return find_optimum(balance, solution, preference, limits)


def require_stable(report: TrimReport) -> None:
    """Reject a preferred point at which the motion does not stay."""
    if report.unstable:
        raise NumericalError(
            f"The preferred equilibrium is unstable: {report.unstable} eigenvalues have positive real parts. Leave "
            "the preference out, or give bounds (bounds=)."
        )
