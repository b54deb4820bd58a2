"""The procedure: what the states are, a search among functions of them, and the verification away from the samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from fmilin.constraints.declared import Level
from fmilin.diagnostics import Remark
from fmilin.discovery.constraint_search import ConstraintSearch, Rejected
from fmilin.discovery.discovery_result import Discovery, Finding, KeptOut
from fmilin.discovery.function_library import (
    MAX_TERMS,
    first_library,
    further_libraries,
    linear_library,
    squares_library,
)
from fmilin.discovery.invariant import (
    INDEPENDENCE_TOLERANCE,
    Invariant,
    Numbers,
    independent_ones,
    is_independent,
    project_points,
)
from fmilin.discovery.invariant_verification import InvariantResiduals, InvariantVerification
from fmilin.discovery.phases import find_phase_relations
from fmilin.discovery.sampler import Sampler, Stopped
from fmilin.discovery.states import StateKinds, find_driven_positions, state_kinds
from fmilin.discovery.tangent import linearize_on_tangent
from fmilin.errors import FmilinError
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.locks import one_at_a_time
from fmilin.signals import FloatArray
from fmilin.tolerances import EQUILIBRIUM_RATE_TOLERANCE, INVARIANT_TOLERANCE, MEASURED_INVARIANT_TOLERANCE

POINTS = 2
MIN_ANNOUNCED_SIZE = 100  # functions among which a search takes its time
STEP = 1e-3  # of differences, in sizes of the states
ROUNDING_OF_RATES = 1e-12  # of a rate, in the sum of its terms
PREFERRED_INDEPENDENCE_TOLERANCE = 1e-2
"""The least part that a gradient adds to the span of others to be preferred: parallel ones are nearly singular."""


@dataclass(frozen=True)
class ConstraintSelection:
    """The selected constraints, and the manifold that they declare."""

    constraints: list[tuple[Invariant, Level]]
    manifold: list[Invariant]  # all that is zero at a consistent point, rates of positions' constraints too
    order: int  # states that are independent then


def select_constraints(search: ConstraintSearch) -> ConstraintSelection:
    """Return the constraints to declare; what is open and belongs to no position is kept out, of ``search`` too."""
    sizes, x0 = search.sampler.sizes, search.sampler.point.states
    positions = _positions(search)
    manifold = [*positions, *search.norms, *search.speeds, *search.open]
    for d in search.decaying:
        manifold += [d.g, d.rate]
    manifold = independent_ones(manifold, search.sampler.states(4), sizes)
    points = project_points(search.sampler.states(4 * POINTS), manifold, sizes)[:POINTS]
    if not len(points):
        points = x0[None]
    positions += [d.g for d in search.decaying]
    rates = [_rate_gradients(search, positions, x) for x in points]
    independent_speeds = [
        h for h in search.speeds if not _is_implied(search, h, [*positions, *search.norms], rates, points)
    ]
    for h in list(search.open):
        if not _is_implied(search, h, [*positions, *search.norms], rates, points):
            search.open.remove(h)
            manifold = [m for m in manifold if m is not h]
            search.rejected.append(Rejected(h, "linear in the speeds, as momentum is; no input acts on it"))
    declared = [*positions, *search.norms, *independent_speeds]
    rank = max(
        _rank(np.vstack((_gradients(declared, x), r)) * sizes, _tolerance(search))
        for x, r in zip(points, rates, strict=True)
    )
    search.rejected = [k for k in search.rejected if is_independent(k.invariant, manifold, points, sizes)]
    constraints: list[tuple[Invariant, Level]] = [(g, "position") for g in positions]
    constraints += [(h, "velocity") for h in (*search.norms, *independent_speeds)]
    return ConstraintSelection(constraints, manifold, len(sizes) - rank)


def _positions(search: ConstraintSearch) -> list[Invariant]:
    """Return the shortest constraints of positions that are independent, at the point itself where any are."""
    sizes, x0 = search.sampler.sizes, search.sampler.point.states[None]
    nearby = search.sampler.states(5)
    positions: list[Invariant] = []
    for g in sorted(search.candidates, key=_length):
        if is_independent(g, [*positions, *search.norms], x0, sizes, PREFERRED_INDEPENDENCE_TOLERANCE):
            positions.append(g)
    for g in sorted(search.candidates, key=_length):  # what is singular at the point, but nowhere else
        near = project_points(nearby, [*positions, *search.norms], sizes)
        if len(near) and is_independent(g, [*positions, *search.norms], near, sizes):
            positions.append(g)
    return positions


def _length(g: Invariant) -> tuple[int, int]:
    return len(g.coefficients) + bool(g.level), sum(t.complexity[0] for t in g.library.terms)


def _gradients(invariants: Sequence[Invariant], x: FloatArray) -> FloatArray:
    return np.array([h.gradients(x[None])[0] for h in invariants]).reshape(-1, len(x))


def _rate_gradients(search: ConstraintSearch, positions: Sequence[Invariant], x: FloatArray) -> FloatArray:
    """Return the gradients of the rates of ``positions`` at x (N,), by differences, one row each."""
    if not positions:
        return np.empty((0, len(x)))
    steps = STEP * np.diag(search.sampler.sizes)
    both = np.vstack((x + steps, x - steps))
    f = search.sampler.rates_at_fixed_inputs(both)
    terms = np.array([g.gradients(both) * f for g in positions])
    forward, backward = np.split(terms.sum(axis=2), 2, axis=1)
    change = forward - backward  # a constraint with a rate of zero everywhere changes by rounding alone
    change[np.abs(change) <= ROUNDING_OF_RATES * np.abs(terms).sum(axis=2).max(axis=1, keepdims=True)] = 0.0
    return np.asarray(np.nan_to_num(change / (2 * STEP * search.sampler.sizes)))


def _tolerance(search: ConstraintSearch) -> float:
    """Return what counts as nothing where gradients of rates are differences of noisy ones."""
    return max(10 * INDEPENDENCE_TOLERANCE, 10 * search.sampler.noise / STEP)


def _is_implied(
    search: ConstraintSearch,
    h: Invariant,
    constraints: Sequence[Invariant],
    rates: Sequence[FloatArray],
    points: FloatArray,
) -> bool:
    """Whether h is zero wherever ``held`` (positions' constraints, norms) and the positions' rates are."""
    sizes = search.sampler.sizes
    for x, r in zip(points, rates, strict=True):
        rows = np.vstack((_gradients(constraints, x), r)) * sizes
        if not len(rows):
            return False
        rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
        row = h.gradients(x[None])[0] * sizes
        remainder = row - rows.T @ np.linalg.lstsq(rows.T, row, rcond=1e-7)[0]
        if np.linalg.norm(remainder) > _tolerance(search) * np.linalg.norm(row):
            return False
    return True


def _rank(rows: FloatArray, tolerance: float) -> int:
    if not rows.size:
        return 0
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
    s = np.linalg.svd(rows, compute_uv=False)
    return int((s > tolerance * s[0]).sum())


_INTERRUPTED = Remark(
    "interrupted",
    "The search was interrupted: the listed constraints were found and verified before; there may be more.",
)
ACCURACY_OF_NOISE = 50  # how much less accurate than the rates numbers in an expression may be


@one_at_a_time
def discover(
    model: Model,
    point: OperatingPoint | None = None,
    *,
    excite: float = 1.0,
    progress: Callable[[str], None] = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
) -> Discovery:
    """Return the constraints that a model keeps and does not declare.

    An index-reduced model keeps g'' = 0 for every state, on its manifold or not: g' never changes, whatever the
    states are and the inputs do. So the search first finds functions phi of the states with zero rate, Dphi f = 0, at
    random states, by the null space of a matrix with one evaluation per row; then functions of positions that change
    nowhere where these are zero.

    Sparse identification (pysindy) takes one term at a time for the left side; a null space says how many there are.
    Raises NumericalError when the model gives no rates near the point.

    Parameters
    ----------
    model : Model
        Its declared constraints play no part.
    point : OperatingPoint, optional
        Consistent; states around it are sampled. Where the model starts by default.
    excite : float
        How far inputs are moved, in their sizes.
    progress : callable, optional
        Receives lines: the task, each constraint of positions as soon as it is found, and withdrawn constraints.
    stop : callable, optional
        Called often; once it returns true, what was found so far is verified and returned, with a diagnostic
        ``interrupted``.

    Examples
    --------
    >>> from fmilin.systems import cartesian_pendulum
    >>> discover(cartesian_pendulum()).constraints
    ['x^2 + y^2 - 1']
    """
    start_time = perf_counter()
    if not len(model.states):
        return Discovery((), (), 0, 0, name=model.info.name)
    point = model.start if point is None else point
    sampler = Sampler(model, point, excite)
    sampler.stop = stop
    try:
        samples = sampler.random
        sampler.random = np.random.default_rng(17)  # the samples of the search do not depend on this question
        driven_positions = find_driven_positions(sampler)
        sampler.random = samples
        if driven_positions:
            # Nothing moves where the inputs are zero, and all functions would be kept.
            sampler.point = replace(point, inputs=sampler.inputs(1)[0])
        kinds = state_kinds(sampler, driven_positions)
        sampler.widen(kinds.angles)
    except Stopped:
        n = len(model.states)
        return Discovery((), (), n, n, visits=sampler.visits, warnings=(_INTERRUPTED,), name=model.info.name)
    names, numbers = model.states.names, Numbers(_parameters(model), ACCURACY_OF_NOISE * sampler.noise)

    def text(h: Invariant) -> str:
        return h.simplify_numbers(numbers).text(names, numbers)

    search = ConstraintSearch(sampler, kinds, lambda h: progress(f"Found: {text(h)} = 0"))
    try:
        least_order, skipped = _search_libraries(search, progress)
        remarks: tuple[Remark, ...] = ()
    except Stopped:
        least_order, skipped, remarks = None, 0, (_INTERRUPTED,)
    sampler.stop = lambda: False  # what was found is verified in any case
    selected, residuals = _verify_selection(search, numbers)
    for h in search.announced:
        if all(h is not declared for declared, _ in selected.constraints):
            progress(f"Withdrawn: {text(h)} = 0, {search.explain_rejection(h)}")
    return Discovery(
        findings=tuple(
            Finding(text(h), level, tuple(names[i] for i in sorted(h.states)), *r)
            for (h, level), r in zip(selected.constraints, residuals, strict=True)
        ),
        kept_out=tuple(KeptOut(text(k.invariant), k.reason) for k in search.rejected),
        order=selected.order,
        full_order=len(model.states),
        constant=tuple(names[i] for i in sorted(kinds.constant)),
        warnings=(
            *remarks,
            *_remarks(sampler, kinds, 0 if least_order is None else selected.order - least_order, skipped),
        ),
        visits=sampler.visits,
        seconds=perf_counter() - start_time,
        name=model.info.name,
    )


def _search_libraries(search: ConstraintSearch, progress: Callable[[str], None]) -> tuple[int | None, int]:
    """Look through all libraries; return the order that numbers tell, and how many groups were too large to begin."""
    kinds, count = search.kinds, len(search.sampler.sizes)
    moving = set(range(count)) - kinds.constant
    search.search_everywhere(squares_library(moving))
    relations = find_phase_relations(search.sampler, kinds, search.norms)
    if relations:
        search.adopt(relations)
    search.search_everywhere(linear_library(moving & kinds.speeds))
    search.search_on_manifold(linear_library(moving))
    least_order = _order_in_numbers(search.sampler)
    skipped = 0
    for number, group in enumerate(kinds.groups, start=1):
        first = first_library(group, kinds)
        skipped += not len(first)
        for library in (first, *further_libraries(group, kinds)):
            if library is not first and least_order is not None and count - search.rank() <= least_order:
                break  # numbers say that nothing is missing
            if len(library) > MIN_ANNOUNCED_SIZE:
                where = f" (group {number} of {len(kinds.groups)})" if len(kinds.groups) > 1 else ""
                progress(f"Searching {len(library)} functions of {len(group)} states{where}")
            search.search_library(library)
            if library is first and (least_order is None or count - search.rank() > least_order):
                search.search_redundant(library)
    return least_order, skipped


def _verify_selection(
    search: ConstraintSearch, numbers: Numbers
) -> tuple[ConstraintSelection, list[InvariantResiduals]]:
    """Return the constraints that hold as they are written where no sample was, and their residuals."""
    sampler = search.sampler
    least = max(INVARIANT_TOLERANCE, ACCURACY_OF_NOISE * sampler.noise)
    while True:
        selected = select_constraints(search)
        verification = InvariantVerification(sampler, selected.manifold)
        declared = [h for h, _ in selected.constraints]
        implied = [h for h in selected.manifold if not any(h is d for d in declared)]
        residuals = [verification.of(h.simplify_numbers(numbers)) for h in declared]
        all_residuals = [*residuals, *(verification.of(h) for h in implied)]
        failed = [
            (h, max(r.along_motion, r.along_inputs))
            for h, r in zip((*declared, *implied), all_residuals, strict=True)
            if max(r.along_motion, r.along_inputs) > least
        ]
        failed += [
            (h, r.value)
            for (h, level), r in zip(selected.constraints, residuals, strict=True)
            if level == "position" and r.value > MEASURED_INVARIANT_TOLERANCE and not any(h is f for f, _ in failed)
        ]
        if not failed:
            return selected, residuals
        for h, residual in failed:
            search.reject(h, f"changes at other states, at {residual:.1g} of the size of its terms")


def _parameters(model: Model) -> dict[str, float]:
    """Return values that expressions may name, as far as they are numbers."""
    values = {**model.constraints.parameters, **model.parameters}
    return {name: value for name, value in values.items() if isinstance(value, float)}


def _remarks(sampler: Sampler, kinds: StateKinds, more: int, skipped: int) -> Iterator[Remark]:
    if len(kinds.constant) == len(sampler.point.states) > 0:
        yield Remark(
            "nothing-moves",
            "Nothing moves: all rates are zero for all states near the point and all inputs. Give another point, "
            "fl.operating_point(model, {'NAME': VALUE}), or larger inputs with excite=.",
        )
        return
    if skipped:
        largest = max(map(len, kinds.groups))
        yield Remark(
            "too-many-states",
            f"{largest} states are coupled, and all products of two of them are more than {MAX_TERMS} terms, the limit "
            "of the search (64 states, 32 if all are angles): only smaller sets of functions, such as sums and squares "
            "of the states, were tried. Declare the constraints that you know with constraints=[...], or discover "
            "those of a smaller part of the model.",
        )
    if more > 0:
        yield Remark(
            "incomplete",
            f"At the point {more} more {'direction seems' if more == 1 else 'directions seem'} to be invariant, and "
            "no expression was found: it has a form that was not tried, or it is an uncontrollable mode. For one "
            "linear model none is needed: fmilin.discovery.tangent.linearize_on_tangent(model).",
        )
    if sampler.crosses_events():
        yield Remark(
            "events",
            "Some of the sampled states lie beyond an event of the model: the constraints hold on both sides of it.",
        )


def _order_in_numbers(sampler: Sampler) -> int | None:
    """Return how many states can move independently, as the derivatives at the point say; none off equilibrium."""
    sizes, point = sampler.sizes, sampler.point
    f = sampler.rates_at_fixed_inputs(point.states[None])[0]
    if not np.abs(f / sizes).max(initial=0.0) <= EQUILIBRIUM_RATE_TOLERANCE:
        return None
    try:
        linear = linearize_on_tangent(sampler.model, point)
    except FmilinError:
        return None
    sampler.visits += linear.method.evaluations
    return len(linear.states)
