"""From a request to a point: assemble the guess, solve, and say what was found or what is in the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.errors import REFUSALS, ConstraintError, NumericalError, UsageError, join_first
from fmilin.linearization.linearize import along_motion
from fmilin.manifold.operating_points import assemble_point, assembled_from, model_at, operating_point
from fmilin.manifold.projection import project
from fmilin.manifold.selection import find_kinematic_pairs
from fmilin.model.capabilities import HasSparseForm, read_remarks_at, read_sparse_equations
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.locks import one_at_a_time
from fmilin.numerics.certificate import Certificate
from fmilin.signals import FloatArray
from fmilin.tolerances import BALANCED_EXACTLY, EQUILIBRIUM
from fmilin.trimming.equations import Equations
from fmilin.trimming.failures import SHOWN, TrimError, explain_obstacles
from fmilin.trimming.family import free_directions, least_contact_forces, move_to_nearest
from fmilin.trimming.large import answers, search_sparse
from fmilin.trimming.optimum import Optimum, OutOfBoundsError
from fmilin.trimming.report import TrimmedPoint, TrimReport
from fmilin.trimming.request import PointRequest, TrimRequest, names_minimized, quantity, read_name
from fmilin.trimming.resting import BLURRED, judge_equilibrium, judge_growth
from fmilin.trimming.solver import Solution
from fmilin.trimming.solving import find_preferred, make_equations, read_values, require_stable, solve_request
from fmilin.trimming.totals import keep_totals
from fmilin.trimming.unknowns import Candidate, invariants_at, model_that_shows, recommended

FOLLOWED = 1e-6
"""A rate is constant when it changes by less than this, relative to the fastest, while the motion is followed."""


@one_at_a_time
def trim(
    model: Model,
    *,
    guess: Mapping[str, float] | None = None,
    fixed: Mapping[str, float] | None = None,
    steady: Sequence[str] | None = None,
    free: Sequence[str] | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    time: float | None = None,
    minimize: str | None = None,
    near: Mapping[str, float] | None = None,
    stable: bool = False,
) -> TrimmedPoint:
    """Return an equilibrium, or a steady motion, on the manifold: the one nearest to the guess, with a report on it.

    In an equilibrium no state moves. In a steady motion the states listed in ``steady`` may move (at constant
    rate, or, like the position on a circular road, at a rate that changes with them), every other independent
    state rests, and stays at rest while they move. Dependent states go where the constraints take them. A state that
    is not listed counts as dependent, if the constraints allow, when the model's author does not recommend it as
    a coordinate and it moves at the guess.

    Parameters
    ----------
    model : Model
    guess : mapping of str to float, optional
        Where to start: free states, inputs and parameters by name. The rest starts where the model does; a
        point off the manifold is projected first.
    fixed : mapping of str to float, optional
        States, inputs and parameters that keep these values, and what should come out: outputs, any other continuous
        variable, ``der(STATE)``. A state with such a rate may move; where no motion with it is steady ("pull up"), it
        is taken at an instant, with a remark.
    steady : sequence of str, optional
        States that may move.
    free : sequence of str, optional
        Inputs and parameters to solve for. States are free unless they are fixed; inputs and parameters are
        held unless they are free.
    bounds : mapping of str to (float, float), optional
        Of free quantities and of what comes out; infinite where there is no bound.
    time : float, optional
        In seconds; the model's own start time by default.
    minimize : str, optional
        An expression over whatever may be fixed: its least value (near the guess) on what freedom is left.
    near : mapping of str to float, optional
        What should come as near to these values as it can: least squares in nominal sizes (else the value, at least 1).
    stable : bool
        Whether to look for a rest at which the motion stays: by descent, or by the motion with damping added.

    Raises
    ------
    UsageError, UnknownNameError
        When the request contradicts itself or names what the model does not have.
    ConstraintError
        When no state is named and the model's start values violate the constraints.
    NumericalError
        When no solution was found near the guess; with the residuals that remain, by name, in ``.residuals``.

    Examples
    --------
    >>> import fmilin as fl
    >>> from fmilin.systems import cartesian_pendulum
    >>> point = fl.trim(cartesian_pendulum(), guess={"y": 0.9})
    >>> [round(float(x), 9) + 0.0 for x in point.states]
    [0.0, 1.0, 0.0, 0.0]
    """
    request = TrimRequest(
        fixed or {}, steady or (), free or (), bounds or {}, time, minimize=minimize, near=near or {}, stable=stable
    )
    return _assess_motion(model, search(model, request, guess or {}))


@one_at_a_time
def trim_each(
    model: Model,
    guesses: Sequence[Mapping[str, float]],
    *,
    fixed: Mapping[str, float] | None = None,
    steady: Sequence[str] | None = None,
    free: Sequence[str] | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    time: float | None = None,
) -> tuple[TrimmedPoint, ...]:
    """Return several equilibria or steady motions: one search per guess, each solution once, in order of the guesses.

    Raises NumericalError when no guess leads to a solution: what :func:`trim` says about the first.

    Parameters
    ----------
    model : Model
    guesses : sequence of mapping
        Each as in :func:`trim`; one that leads nowhere is passed over.
    fixed, steady, free, bounds, time
        As in :func:`trim`.
    """
    request = TrimRequest(fixed or {}, steady or (), free or (), bounds or {}, time)
    return search_each(model, request, guesses)


def search_each(
    model: Model, request: TrimRequest, guesses: Sequence[Mapping[str, float]], *, anywhere: bool = False
) -> tuple[TrimmedPoint, ...]:
    """Return each solution that a guess leads to, once; ``anywhere`` as in :func:`search`."""
    if not guesses:
        raise UsageError("There is no guess to start from: give at least one, which may be empty.")
    solutions: list[TrimmedPoint] = []
    failure: NumericalError | None = None
    for guess in guesses:
        try:
            point = search(model, request, guess, anywhere=anywhere)
        except NumericalError as error:
            failure = failure or error
            continue
        if not any(point.same_place(other) for other in solutions):
            solutions.append(point)
    if not solutions and failure is not None:
        raise failure
    return tuple(_assess_motion(model, point) for point in solutions)


def _assess_motion(model: Model, point: TrimmedPoint) -> TrimmedPoint:
    """Return the point with what is to be said of A along its motion, and of stability where A stays."""
    if not point.report.moving or isinstance(model, HasSparseForm):
        return point
    remarks, linear = along_motion(model_at(model, point), point)
    report = replace(point.report, remarks=(*point.report.remarks, *remarks))
    if linear is not None:
        report = judge_growth(linear.A, BLURRED[linear.method.derivatives == "exact"]).told_in(report)
    return replace(point, report=report)


def search(
    model: Model, request: TrimRequest, guess: Mapping[str, float], *, anywhere: bool = False, explain: bool = True
) -> TrimmedPoint:
    """Return the solution nearest to a guess; ``anywhere``: even from off the manifold; ``explain``: say why not."""
    request = request.checked(model)
    guess = request.checked_guess(model, guess)
    equations = read_sparse_equations(model)
    minimized = [read_name(model, name) for name in names_minimized(request)]
    model = model_that_shows(model, [*request.targets, *request.bounds, *request.near, *minimized])
    if equations is not None and answers(model, request) and all(quantity(model, n)[0] != "parameter" for n in guess):
        balanced = search_sparse(model, equations, request, guess, anywhere=anywhere)
        if balanced is not None:
            return balanced

    evaluator = PointEvaluator(model)

    def search_for(request: TrimRequest) -> TrimmedPoint:
        start, remarks = assemble_guess(evaluator, request, guess, anywhere=anywhere)
        is_nearest = False
        balance, solution = solve_request(make_equations(start, request), request)
        best = find_preferred(balance, solution, request)
        if best is None:
            solution, choice_remarks = least_contact_forces(balance, solution)
            remarks = (*remarks, *choice_remarks)
            if not choice_remarks and free_directions(balance, solution, ())[0]:
                balance, solution, total_remarks = keep_totals(balance, solution)
                remarks = (*remarks, *total_remarks)
                if free_directions(balance, solution, ())[0]:
                    solution, is_nearest = move_to_nearest(balance, solution)
        else:
            balance, solution = best.equations, best.solution
        point = make_point(balance, solution, request, remarks, best, is_nearest=is_nearest)
        if request.stable:
            require_stable(point.report)
        return point

    try:
        return search_for(request)
    except (TrimError, OutOfBoundsError) as error:
        if explain:
            raise explain_obstacles(error, model, request, search_for) from None
        raise


def assemble_guess(
    evaluator: PointEvaluator, request: TrimRequest, guess: Mapping[str, float], *, anywhere: bool
) -> tuple[Candidate, tuple[Remark, ...]]:
    """Return the guess, on the manifold where it can be brought there, and what is to be said of that."""
    model = evaluator.model
    named = {**request.fixed, **guess}
    changed = {n: v for n, v in named.items() if quantity(model, n)[0] == "parameter"}
    if changed:
        model = model.with_parameters(changed)
        evaluator = PointEvaluator(model)
    held = [n for n in named if model.states.has(n)]
    t = model.start.time if request.time is None else request.time
    parameters = {**model.start.parameters, **{n: v for n, v in changed.items() if n in request.fixed}}
    if not held and not anywhere:
        values = {n: v for n, v in named.items() if n not in changed}
        point = assemble_point(evaluator, values, time=t)  # refuses start values that are off the manifold
        return Candidate(evaluator, t, point.states, point.inputs, parameters), ()
    x, u = model.start.states.copy(), model.start.inputs.copy()
    for name, value in named.items():
        kind, i = quantity(model, name)
        if kind != "parameter":
            (x if kind == "state" else u)[i] = value
    candidate = Candidate(evaluator, t, x, u, parameters)
    if held and len(model.constraints) and len(held) < len(model.states):
        try:
            point = assembled_from(evaluator, t, model.start.states, u, {n: named[n] for n in held})
            return replace(candidate, states=point.states), point.remarks
        except (ConstraintError, NumericalError):
            pass  # a guess need not be kept
    firm = [model.states.positions[n] for n in held if n in request.fixed]
    return replace(candidate, states=_project_guess(candidate, firm)), ()


def _project_guess(candidate: Candidate, held: Sequence[int]) -> FloatArray:
    """Return the nearest point of the manifold with these states held, or else the candidate's own."""
    pairs = find_kinematic_pairs(candidate.evaluator, candidate.model.start) or {}
    try:
        return project(invariants_at(candidate, pairs), candidate.time, candidate.states, held)
    except (ConstraintError, NumericalError):
        return candidate.states


def remarks_on(
    equations: Equations, candidate: Candidate, report: TrimReport, restless: Sequence[str]
) -> Iterator[Remark]:
    """Yield what the user should know; ``restless`` states should rest, and moved when the motion was followed."""
    if restless:
        yield Remark(
            "unsteady",
            f"Followed for a while, the motion does not stay steady: {', '.join(restless)} should rest and "
            f"{'does' if len(restless) == 1 else 'do'} not. This is a steady motion at this instant only.",
        )
    elif report.moving and not equations.moving:
        yield Remark(
            "unsteady", "What should rest starts to move, if slowly: this is a steady motion at this instant only."
        )
    if not report.exact:
        yield Remark(
            "rounding",
            f"The largest residual is {report.residual:.2g} instead of 1e-10 (in sizes of the states per second): "
            "the model's own noise or rounding allows no better.",
        )
    if report.multiple:
        listed = join_first((f"{name} (+-{report.distance[name]:.2g})" for name in report.multiple), SHOWN)
        yield Remark("multiple", f"Several solutions meet here, or nearly: slopes do not determine {listed}.")
    if report.free_directions:
        leaders = ", ".join(d.name for d in report.free_directions)
        choice = (
            "Those nearest to the guess were taken; fix them to choose"
            if report.is_nearest
            else "The search ended at these, and others may be nearer to the guess: fix them to choose"
        )
        yield Remark(
            "family",
            f"The solution is one of a family: {leaders} may have other values. {choice}: fixed={{'NAME': VALUE}}.",
        )
    later = _rates_later(equations, candidate)
    if later is not None and not report.moving and later > max(100 * report.residual, 1e-7):
        yield Remark(
            "time",
            f"The model depends on time: this is an equilibrium at t = {candidate.time:g} s only; rates are "
            f"back at {later:.2g} of the states' sizes per second soon after.",
        )


def _rates_later(equations: Equations, candidate: Candidate) -> float | None:
    """Return the largest rate at the same states a little later; None where the model cannot be asked."""
    try:
        f = candidate.evaluator.evaluate(candidate.time + 1e-2, candidate.states, candidate.inputs).derivatives
    except REFUSALS:
        return None
    largest = float(np.max(np.abs(f) / equations.state_scales, initial=0.0))
    return largest if np.isfinite(largest) else None


def make_point(
    equations: Equations,
    solution: Solution,
    request: TrimRequest,
    remarks: tuple[Remark, ...] = (),
    best: Optimum | None = None,
    *,
    is_nearest: bool = False,
) -> TrimmedPoint:
    """Return the point at a solution, with its report; what is ``best`` is no member of a family."""
    unknowns = equations.unknowns
    candidate = unknowns.at(solution.z)
    f, changes = equations.described(candidate)
    names = candidate.model.states.names
    leaders = [*request.steady, *(names[i] for i in recommended(candidate.model, equations.pairs))]
    later = equations.followed(candidate) if request.steady else None
    sizes = equations.state_scales
    rest = sizes * max(EQUILIBRIUM, float(np.max(solution.allowed[equations.first_order], initial=0.0)))
    speed = float(np.max(np.abs(f) / sizes, initial=0.0))
    varies = np.abs(later - f) > FOLLOWED * speed * sizes if later is not None else np.zeros(len(f), dtype=bool)
    moves = (np.abs(f) > rest) | varies if request.steady else np.zeros(len(f), dtype=bool)
    at_bounds = (solution.z <= unknowns.low) | (solution.z >= unknowns.high)
    residual = float(np.max(np.abs(solution.residual[equations.first_order]), initial=0.0))
    moving = tuple(n for n, m in zip(names, moves, strict=True) if m)
    read = read_values(equations, solution, [*request.targets, *request.near])
    directions, regularity = free_directions(equations, solution, leaders) if best is None else ((), np.nan)
    states, inputs = candidate.model.states, candidate.model.inputs
    nominal = dict.fromkeys(request.free, 1.0)  # parameters have none
    nominal |= zip(states.names, states.scales().tolist(), strict=True)
    nominal |= zip(inputs.names, inputs.scales().tolist(), strict=True)
    certificate = Certificate.from_zero(
        solution.certified, unknowns.names, unknowns.scales, {name: nominal[name] for name in unknowns.names},
        residual=residual, regularity=regularity,
    )  # fmt: skip
    report = TrimReport(
        states=states, inputs=inputs, rates=f, certificate=certificate, changes=changes, moving=moving,
        varying=tuple(n for n, v in zip(names, varies, strict=True) if v),
        dragged=tuple(n for n in moving if n not in request.steady),
        free_directions=directions, is_nearest=is_nearest,
        at_bounds=tuple(n for n, b in zip(unknowns.names, at_bounds, strict=True) if b),
        exact=residual <= BALANCED_EXACTLY,
        multipliers={} if best is None else best.multipliers,
        preferred=None if best is None else best.value,
        targets=read, missed={name: read[name] - value for name, value in request.near.items()},
    )  # fmt: skip
    restless = [names[i] for i in equations.at_rest if varies[i]]
    point = TrimmedPoint(
        time=candidate.time,
        states=candidate.states,
        inputs=candidate.inputs,
        parameters=candidate.parameters,
        names=(candidate.model.states.names, candidate.model.inputs.names),
        report=report,
        request=request,
    )
    own = read_remarks_at(candidate.model, point)
    report = replace(report, remarks=(*remarks, *remarks_on(equations, candidate, report, restless), *own))
    unstable = None if request.steady or report.moving else judge_equilibrium(equations, solution)
    if unstable is None:
        return replace(point, report=report)
    return replace(point, report=unstable.told_in(report), slope_changes=unstable.slope_changes)


def point_of(model: Model, request: PointRequest) -> OperatingPoint:
    """Return the point that a completed request describes, of a model loaded with its parameters."""
    if request.trim is not None:
        problem, guess = request.trim_of(model)
        return search(model, problem, guess, anywhere=request.project)
    values, saved = request.values_of(model), request.saved_point
    if saved is None:
        return operating_point(model, values, time=request.time, project=request.project)
    if states := [name for name in values if model.states.has(name)]:
        raise UsageError(
            f"settings={{{states[0]!r}: ...}} contradicts saved=, a point that has all states. Leave "
            "one of them out, or trim from there: fl.trim(model)."
        )
    point = saved.on(model)
    for name, value in values.items():
        point.inputs[model.inputs.index_of(name, "an input of the model")] = value
    return point if request.time is None else replace(point, time=request.time)
