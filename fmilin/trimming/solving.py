"""From equations to the point that is wanted: their zero, the rest that stays, the best within bounds; obstacles."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fmilin.errors import FmilinError, NumericalError
from fmilin.manifold.selection import kinematic_pairs
from fmilin.model.interface import Model
from fmilin.numerics.balanced import balanced
from fmilin.signals import FloatArray
from fmilin.tolerances import RANK_MEASURED
from fmilin.trimming.assessment import no_solution, too_far
from fmilin.trimming.effort import OutOfTimeError, limit_time
from fmilin.trimming.equations import Equations
from fmilin.trimming.newton import corrected, released
from fmilin.trimming.optimum import Optimum, OutOfBoundsError, optimum
from fmilin.trimming.optimum_problem import Limit, as_near_as_possible, expression_preference
from fmilin.trimming.report import TrimmedPoint, TrimReport
from fmilin.trimming.request import TrimRequest, read_name
from fmilin.trimming.resting import instability, resting
from fmilin.trimming.solver import Solution, assessed, compromise, solve
from fmilin.trimming.unknowns import Candidate, Reading, Unknowns, independent_states, reading, reading_values

GOES_ON = 1e-9  # change of rates, in sizes of the states per second squared, of a motion that is steady later, too


def equations_of(start: Candidate, request: TrimRequest) -> Equations:
    """Return what must vanish near a guess."""
    model = start.model
    pairs = kinematic_pairs(model, model.start)
    listed = [model.states.positions[name] for name in request.steady]
    at_rest = list(range(len(model.states)))
    if listed:
        at_rest = [i for i in independent_states(start, pairs, listed) if i not in listed]
    targets = [_target(model, name, value) for name, value in request.targets.items()]
    return Equations(Unknowns(start, request), at_rest, pairs, moving=bool(listed), targets=targets)


def _target(model: Model, name: str, value: float) -> Reading:
    """Return what should come out, in a size in which its value is not rounding: 4e-24 is not zero."""
    target = reading(model, name, value)
    return replace(target, size=min(target.size, abs(value))) if value != 0.0 else target


def solved(balance: Equations, request: TrimRequest) -> tuple[Equations, Solution]:
    """Return the zero that a request asks for, and the equations that it satisfies; raise what is in the way."""
    if request.stable:
        return balance, _staying(balance, request)
    if not (balance.targets and balance.moving):
        return balance, _solved(balance, request)
    # A pull-up, or a climb through thinner air, is steady at no later instant: what holds at an instant comes first.
    at_rest: list[int] = balance.at_rest.tolist()
    instant = Equations(balance.unknowns, at_rest, balance.pairs, moving=False, targets=balance.targets)
    solution = _solved(instant, request)
    for start in (solution.z, balance.unknowns.z0):
        exact = solution.is_exact
        steady = assessed(balance, corrected(balance, start, exact=exact), exact=exact)
        if steady.is_zero:
            return balance, steady
    # Slopes of changes of rates are measured, and may not tell how near a point is that they leave as it is.
    later = np.abs(balance.values(solution.z)[~balance.first_order])
    instant.moving = float(np.max(later, initial=0.0)) <= GOES_ON
    return instant, solution


def _staying(balance: Equations, request: TrimRequest) -> Solution:
    """Return the rest near the guess at which the motion stays; raise what is in the way."""
    solution = resting(balance, balance.unknowns.z0)
    if solution is not None:
        return solution
    nearest = _solved(balance, request)
    unstable = instability(balance, nearest)
    if unstable is not None and unstable.stability.stable is True:
        return nearest  # the damped motion need not arrive there: it may be slow, or pass by
    raise NumericalError(
        f"No rest at which the motion stays was found near the guess: the motion with damping ends at none. The rest "
        f"nearest to the guess {'is one of unknown stability' if unstable is None else unstable.text}. Start elsewhere "
        "(guess=), or release a fixed quantity."
    )


def _solved(balance: Equations, request: TrimRequest) -> Solution:
    """Return the zero of the equations near the guess; raise what is in the way."""
    unknowns = balance.unknowns
    solution = solve(balance, unknowns.z0)
    if not np.isfinite(solution.residual).all():
        # Raise what is wrong with the guess.
        candidate = unknowns.at(unknowns.z0)
        f = candidate.model.evaluate(candidate.time, candidate.states, candidate.inputs).derivatives
        names = [n for n, value in zip(candidate.model.states.names, f, strict=True) if not np.isfinite(value)]
        names += [r.name for r, v in zip(balance.rows, balance.values(unknowns.z0), strict=True) if not np.isfinite(v)]
        raise NumericalError(
            f"The model is not defined where the search starts: there is no number for '{names[0]}'. "
            f"Start elsewhere: guess={{{names[0]!r}: VALUE}}.",
            variable=names[0],
        )
    if solution.is_balanced and not solution.is_near:
        raise too_far(balance, solution)
    freedoms = ""
    if not solution.is_zero and balance.targets:
        coarse = solve(balance.with_targets(()), unknowns.z0)
        if coarse.is_zero:
            solution = _target_by_target(balance, solution, coarse)
            freedoms = "" if solution.is_zero else freedoms_of_targets(balance, coarse)
    if not solution.is_zero:
        tried = solution.tried
        solution = replace(compromise(balance, [unknowns.z0, solution.z]), tried=tried)
    if not solution.is_zero:
        if solution.is_balanced:
            raise too_far(balance, solution)
        error = no_solution(balance, solution, request)
        error.args = (f"{error}{freedoms}",)
        raise error
    return solution


def _target_by_target(balance: Equations, failed: Solution, coarse: Solution) -> Solution:
    """Return the zero on a path from a point without targets, ``coarse``, to these; else what ``failed``."""
    end = released(balance, coarse.z, exact=coarse.is_exact)
    if end is not None:
        reached = assessed(balance, corrected(balance, end, exact=coarse.is_exact), exact=coarse.is_exact)
        if reached.is_zero:
            return reached
    return replace(failed, tried=(*failed.tried, "the targets, step by step, from a point without them"))


def preferred(balance: Equations, solution: Solution, request: TrimRequest) -> Optimum | None:
    """Return the best point near a solution where something is preferred, or a bound of what comes out is crossed."""
    unknowns, model = balance.unknowns, balance.unknowns.start.model
    pairs = {name: pair for name, pair in request.bounds.items() if name not in unknowns.names}
    limits = [
        Limit(reading(model, n, low if np.isfinite(low) else high), low, high) for n, (low, high) in pairs.items()
    ]
    if request.minimize is not None:
        preference = expression_preference(request.minimize, lambda name: reading(model, read_name(model, name)))
    elif request.near:
        preference = as_near_as_possible([reading(model, name, value) for name, value in request.near.items()])
    else:
        read = read_at(balance, solution, [limit.reading.name for limit in limits])
        if not any(limit.beyond(read[limit.reading.name]) for limit in limits):
            return None
        here = zip(unknowns.names, (solution.z * unknowns.scales).tolist(), strict=True)
        preference = as_near_as_possible([reading(model, name, value) for name, value in here])
    return optimum(balance, solution, preference, limits)


def read_at(balance: Equations, solution: Solution, names: Sequence[str]) -> dict[str, float]:
    """Return what comes out at a solution, by name."""
    readings = [reading(balance.unknowns.start.model, name) for name in names]
    if not readings:
        return {}
    values = balance.with_targets(readings).balance(solution.z)[-len(readings) :]
    return {r.name: float(value * r.size) for r, value in zip(readings, values, strict=True)}


def require_staying(report: TrimReport) -> None:
    """Refuse a preferred point at which the motion does not stay."""
    if report.unstable:
        raise NumericalError(
            f"At the point that is preferred the motion does not stay: {report.unstable} eigenvalues have positive "
            "real parts. Leave the preference out, or give bounds (bounds=)."
        )


MOST = 8  # targets that are left out in turn
STANDS = 1e-9  # slope of a target, beside its terms, that is rounding
FARTHER = 0.05  # sizes of the unknowns
HALVINGS = 16  # of the way to a target
EXPLAINED_WITHIN = 4.0  # seconds of computing for what is learnt by leaving out one quantity after the other
LAST_FAILURES = 4  # failed searches after which the way is halved no more: each may take a second

Search = Callable[[TrimRequest], TrimmedPoint]


def with_obstacles(error: NumericalError, model: Model, request: TrimRequest, search: Search) -> NumericalError:
    """Return the error with what was learnt by leaving out one target, held state or bound after the other."""
    names = [*request.targets, *(name for name in request.fixed if model.states.has(name))]
    bound = error.bound if isinstance(error, OutOfBoundsError) else None
    names += [] if bound is None else [bound.name]
    if not names or len(names) > MOST:
        return error
    sentences: list[str] = []
    is_complete = True
    for name in names:
        try:
            with limit_time(EXPLAINED_WITHIN / len(names)):
                sentences += _without(name, model, request, search, bound)
        except OutOfTimeError:
            is_complete = False
    if not sentences and is_complete and len(names) > 1:
        sentences = [f"No single one of {', '.join(names)} is in the way: none of them left out lets the others hold."]
    error.args = (" ".join([str(error), *sentences]),)
    return error


def _without(name: str, model: Model, request: TrimRequest, search: Search, bound: Reading | None) -> Iterator[str]:
    """Yield how near one comes to what ``name`` should be when it need not be."""
    held = request.targets.get(name, request.fixed.get(name))
    wanted = held if bound is None or bound.name != name else bound.value
    assert wanted is not None  # noqa: S101 - it is a target, held, or the bound
    fewer = replace(
        request,
        fixed=_but(request.fixed, name),
        targets=_but(request.targets, name),
        bounds=_but(request.bounds, name),
        near={name: wanted},
        minimize=None,
    )
    try:
        closest = search(fewer).report.targets[name]
    except FmilinError:
        limit = _approached(name, wanted, fewer, search, model)
        if limit is None:
            return
        closest = limit
    unit = f" {reading(model, name).unit}".rstrip()
    what = "bound" if held is None else "target"
    yield (
        f"The {what} '{name}' = {wanted:g}{unit} is in the way: without it the rest holds, and the closest is "
        f"{closest:.6g}{unit}."
    )


def _approached(name: str, wanted: float, fewer: TrimRequest, search: Search, model: Model) -> float | None:
    """Return how near one comes where points end on the way: it is halved, to as many digits as that tells."""
    start, closest, done = model.start, None, 0.0
    answer = model.evaluate(start.time, start.states, start.inputs)
    here = float(reading_values([reading(model, name)], start.states, start.inputs, start.parameters, answer)[0])
    failures, part = 0, 1.0
    for _ in range(HALVINGS):
        part *= 0.5
        near = {name: here + (done + part) * (wanted - here)}
        try:
            closest = search(replace(fewer, near=near)).report.targets[name]
        except FmilinError:
            failures += 1
            if failures == LAST_FAILURES:
                break
        else:
            done += part
    step = abs(wanted - here) * part
    return None if closest is None else round(closest, -math.ceil(math.log10(step)) - 1)


def _but(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {n: v for n, v in values.items() if n != name}


def freedoms_of_targets(equations: Equations, without: Solution) -> str:
    """Return what slopes say at a solution ``without`` targets: that nothing moves some, or few freedoms many."""
    count, others = len(equations.targets), equations.with_targets(())
    Z = _open(others, without.z)
    if not Z.shape[1]:
        return " Nothing is left free to meet targets with."
    # By chance the slopes of targets may depend on each other at one point: look beside it, too.
    elsewhere = corrected(others, without.z + FARTHER * Z @ np.cos(np.arange(Z.shape[1]) + 1.0)).z

    def slopes_on_freedoms(z: FloatArray) -> FloatArray:
        J = np.nan_to_num(equations.jacobian(z, quick=True)[0])[equations.kinds("target")]
        Z = _open(others, z)
        return np.where(np.abs(J @ Z) > STANDS * (np.abs(J) @ np.abs(Z)), J @ Z, 0.0)

    slopes = [slopes_on_freedoms(z) for z in (without.z, elsewhere)]
    still = [t.name for i, t in enumerate(equations.targets) if not any(np.any(S[i] != 0.0) for S in slopes)]
    if still:
        return f" Nothing that is free moves {', '.join(map(repr, still))}, to first order."
    freedoms = max(balanced(S).rank(RANK_MEASURED) for S in slopes)
    if freedoms < count:
        return f" {count} targets have {freedoms} freedom{'s' * (freedoms != 1)} to be met with."
    return ""


def _open(others: Equations, z: FloatArray) -> FloatArray:
    """Return a basis (n, f) of what the equations leave open."""
    form = balanced(np.nan_to_num(others.jacobian(z, quick=True)[0]))
    return form.columns[:, None] * form.null_space(RANK_MEASURED)
