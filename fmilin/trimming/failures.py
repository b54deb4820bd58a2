"""Why no operating point was found: what was tried, which residuals remain, what might be freed, what is in the way."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fmilin.errors import FmilinError, NumericalError, join_first
from fmilin.manifold.selection import find_kinematic_pairs
from fmilin.manifold.wrapping_angles import TURNS_OF_UNITS
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Model
from fmilin.numerics.balanced import equilibrate_jacobian
from fmilin.signals import FloatArray, rate_unit
from fmilin.tolerances import RANK_MEASURED
from fmilin.trimming.damped_newton import newton_correct
from fmilin.trimming.equilibrium_equations import Equations, OutOfTimeError, Row, limit_time
from fmilin.trimming.equilibrium_solver import Solution
from fmilin.trimming.optimum import OutOfBoundsError
from fmilin.trimming.trim_report import TrimmedPoint
from fmilin.trimming.trim_request import TrimRequest, quantity
from fmilin.trimming.unknowns import Candidate, Reading, compute_reading_values, make_reading

MAX_LISTED_RESIDUALS = 4
REMAINING_RESIDUAL_RATIO = (
    1e-4  # part of what is left that a quantity leaves over, to first order, when freeing it helps
)


class TrimError(NumericalError):
    """No equilibrium was found near the guess: what :func:`fmilin.trim` raises.

    ``residuals`` holds by name what remains at the best compromise, in the units of the model; ``point`` holds the
    values of states, inputs and parameters there.
    """

    def __init__(self, message: str, *, residuals: Mapping[str, float], point: Mapping[str, float]) -> None:
        super().__init__(message, variable=next(iter(residuals), None))
        self.residuals = dict(residuals)
        self.point = dict(point)


def explain_no_solution(equations: Equations, best: Solution, request: TrimRequest) -> TrimError:
    """Return the error that says what remains at the best compromise, largest first."""
    unknowns = equations.unknowns
    candidate = unknowns.at(best.z)
    size = np.abs(best.residual)
    # A row relative to the largest residuals that is ten thousand times smaller does not stand in the way.
    worth_saying = np.maximum(best.allowed, 1e-4 * float(np.max(size, initial=0.0)))
    order = sorted(np.flatnonzero(size > worth_saying), key=lambda i: -size[i])
    remaining = [(equations.rows[i], float(best.residual[i] * equations.rows[i].size)) for i in order]
    residuals = {_name(row): value for row, value in remaining}
    targets = {target.name: target for target in equations.targets}
    listed = join_first(
        (_sentence(row, value, candidate, targets) for row, value in remaining), MAX_LISTED_RESIDUALS, "; "
    )
    what = "steady motion" if equations.moving else "equilibrium"
    moving = f" in which only {', '.join(request.steady)} may move" if equations.moving else ""
    limits = _list_reached_bounds(equations, best)
    helpers = _list_helpers(equations, best, request)
    hint = f"Freeing {' or '.join(helpers)} would let it vanish, to first order. " if helpers else ""
    hint += _suggest_turns([row for row, _ in remaining if row.kind == "target"], targets)
    tried = f" Tried: {', '.join(best.tried)}." if best.tried else ""
    message = (
        f"Near the guess no {what}{moving} was found.{tried} The smallest residual leaves {listed}{limits}. "
        f"{hint}Release a fixed quantity, free an input (free=), let a state move (steady=), or start elsewhere "
        "(guess=)."
    )
    return TrimError(message, residuals=residuals, point=_collect_values(candidate))


def explain_too_far(equations: Equations, best: Solution) -> TrimError:
    """Return the error of a small residual with no solution near: what runs away, or how little is determined."""
    unknowns, certified = equations.unknowns, best.certified
    candidate, sizes = unknowns.at(best.z), unknowns.sizes(best.z)
    worst = int(np.argmax(np.abs(certified.step if certified.runs_away else certified.distance) / sizes))
    name, unit, scale = unknowns.names[worst], unknowns.units[worst], float(unknowns.scales[worst])
    value, step = (f"{v * scale:.6g} {unit}".rstrip() for v in (best.z[worst], certified.step[worst]))
    what = "steady motion" if equations.moving else "equilibrium"
    tried = f" Tried: {', '.join(best.tried)}." if best.tried else ""
    if certified.runs_away:
        reason = f"'{name}' diverges: the residual decreases only with distance"
    elif np.isfinite(certified.distance[worst]):
        reason = f"'{name}' is accurate to +-{certified.distance[worst] * scale:.2g} {unit}".rstrip() + " only"
    else:
        reason = f"near '{name}' the rates are small, but do not vanish"
    message = (
        f"Near the guess no {what} was found.{tried} {reason[0].upper() + reason[1:]}. The last step of '{name}' was "
        f"{step}, at {value}. Release a fixed quantity, free an input (free=), or start elsewhere (guess=)."
    )
    rates = equations.describe_motion(candidate)[0]
    order = sorted(zip(candidate.model.states.names, rates.tolist(), strict=True), key=lambda pair: -abs(pair[1]))
    error = TrimError(message, residuals={f"der({n})": rate for n, rate in order}, point=_collect_values(candidate))
    error.variable = name
    return error


def _collect_values(candidate: Candidate) -> dict[str, float]:
    names = (*candidate.model.states.names, *candidate.model.inputs.names)
    values = [*candidate.states.tolist(), *candidate.inputs.tolist()]
    return dict(zip(names, values, strict=True)) | dict(candidate.parameters)


def _name(row: Row) -> str:
    rates = {"rate": f"der({row.name})", "change of rate": f"der(der({row.name}))"}
    return rates.get(row.kind, row.name)


def _sentence(row: Row, value: float, candidate: Candidate, targets: Mapping[str, Reading]) -> str:
    if row.kind == "target":
        target = targets[row.name]
        return f"'{row.name}' at {_with_unit(target.value + value, target.unit)} instead of {target.value:.6g}"
    if row.kind == "total":
        return f"the total {row.name} changed by {value:.6g}"
    if row.kind == "constraint":
        return f"the constraint '{row.name}' at {value:.6g} instead of 0"
    unit = candidate.model.states[candidate.model.states.positions[row.name]].unit
    unit = rate_unit(unit) if row.kind == "rate" else rate_unit(rate_unit(unit))
    return f"{_name(row)} = {_with_unit(value, unit)} instead of 0"


def _suggest_turns(rows: Sequence[Row], targets: Mapping[str, Reading]) -> str:
    """Return what to ask instead of an angle beyond half a turn, which an output that wraps never has."""
    for row in rows:
        target = targets[row.name]
        turn = TURNS_OF_UNITS.get(target.unit, (0.0,))[0]
        if turn and abs(target.value) > turn / 2:
            wrapped = target.value - turn * round(target.value / turn)
            return f"If '{row.name}' is an angle that wraps, use {_with_unit(wrapped, target.unit)}.  "
    return ""


def _with_unit(value: float, unit: str) -> str:
    return f"{value:.6g} {unit}".rstrip()


def _list_reached_bounds(equations: Equations, best: Solution) -> str:
    """Return which quantities the bounds stop."""
    unknowns, z = equations.unknowns, best.z
    # The search ends near a bound, not on it.
    margin = 1e-3 * np.maximum(np.abs(z), 1.0)
    stopped = np.flatnonzero((z - unknowns.low <= margin) | (unknowns.high - z <= margin))
    listed = [f"{unknowns.names[i]} = {z[i] * unknowns.scales[i]:.6g}" for i in stopped]
    return f", with {join_first(listed, MAX_LISTED_RESIDUALS)} at a bound" if listed else ""


def _list_helpers(equations: Equations, best: Solution, request: TrimRequest) -> list[str]:
    """Return the held quantities each of which could make all residuals vanish, to first order."""
    candidate = equations.unknowns.at(best.z)
    model = candidate.model
    remaining_norm = _compute_unremovable_residual(best, np.zeros(len(best.residual)))
    # To first order the unknowns remove all of it: nothing that is fixed is in the way.
    if not remaining_norm:
        return []
    fixed_names = [name for name in (*model.inputs.names, *request.fixed) if name not in equations.unknowns.names]
    helpers = []
    for name in dict.fromkeys(fixed_names):
        column = _residual_slopes(equations, candidate, name)
        if (
            column is not None
            and _compute_unremovable_residual(best, column) <= REMAINING_RESIDUAL_RATIO * remaining_norm
        ):
            helpers.append(f"'{name}'")
    return helpers[:MAX_LISTED_RESIDUALS]


def _residual_slopes(equations: Equations, candidate: Candidate, name: str) -> FloatArray | None:
    """Return how the residuals change with a quantity that is held, over a step that shows; None where none does."""
    kind, i = quantity(candidate.model, name)
    value = candidate.parameters[name] if kind == "parameter" else getattr(candidate, f"{kind}s")[i]
    # An input may act beyond a dead zone only, or be large in its unit: up to 1e7 until an effect shows. Parameters and
    # states are not moved so far: the model may not be defined there.
    step = 1e-5 * max(abs(float(value)), 1.0)
    for _ in range(5 if kind == "input" else 1):
        ahead = equations.compute_values(_displace(candidate, name, step))
        column = (ahead - equations.compute_values(_displace(candidate, name, -step))) / 2
        if not np.isfinite(column).all():
            return None
        # A smaller change may be rounding of the residuals.
        if np.max(np.abs(column), initial=0.0) > 1e-6:
            return column
        step *= 1e3
    return None


def _displace(candidate: Candidate, name: str, step: float) -> Candidate:
    kind, i = quantity(candidate.model, name)
    if kind == "parameter":
        changed = {name: candidate.parameters[name] + step}
        return replace(
            candidate,
            evaluator=PointEvaluator(candidate.model.with_parameters(changed)),
            parameters={**candidate.parameters, **changed},
        )
    x, u = candidate.states.copy(), candidate.inputs.copy()
    (x if kind == "state" else u)[i] += step
    return replace(candidate, states=x, inputs=u)


def _compute_unremovable_residual(best: Solution, column: FloatArray) -> float:
    """Return what a step along the unknowns and one more column cannot remove, rows in sizes of the Jacobian."""
    form = equilibrate_jacobian(np.column_stack((best.J, column)))
    part = form.compute_unremovable_part(best.residual, RANK_MEASURED)
    # Rows that nothing affects have no size: x' = 1 + u where u is fixed. Their residual remains as a whole.
    return float(np.linalg.norm(np.where(form.rows > 0, part, best.residual)))


MAX_NAMES = 8  # targets that are left out in turn
MAX_MOVING_POSITIONS = 40  # of a vehicle, tried together
SLOPE_ROUNDING = 1e-9  # slope of a target, relative to its terms, that is rounding
FARTHER_START_DISTANCE = 0.05  # sizes of the unknowns
HALVINGS = 16  # of the way to a target
EXPLANATION_SECONDS = 4.0  # seconds of computing for what is learnt by leaving out one quantity after the other
MAX_FAILURES = 4  # failed searches after which the way is halved no more: each may take a second

Search = Callable[[TrimRequest], TrimmedPoint]


def suggest_steady_motion(error: TrimError, model: Model, request: TrimRequest, search: Search) -> TrimError | None:
    """Return the error with the states that must move, if a steady motion exists in which they do; else None."""
    restless = [name for name in model.states.names if f"der({name})" in error.residuals and name not in request.steady]
    # Where a target or a constraint is missed as well, something else is in the way.
    if not restless or len(restless) < len(error.residuals):
        return None
    # A vehicle that cannot stand still leaves accelerations, too, at the best point: only its positions may move.
    positions = _list_positions(model)
    choices = [[name for name in restless if name in positions], positions, restless]
    tried: list[set[str]] = []
    for moving in choices:
        limit = MAX_MOVING_POSITIONS if set(moving) <= set(positions) else MAX_NAMES
        if not moving or len(moving) > limit or set(moving) in tried:
            continue
        tried.append(set(moving))
        try:
            with limit_time(EXPLANATION_SECONDS):
                solution = search(replace(request, steady=(*request.steady, *moving)))
        except (FmilinError, OutOfTimeError):
            continue
        # States that constraints take along may vary, as the velocity of a point of a wheel does; others may not.
        is_unsteady = any(remark.kind == "unsteady" for remark in solution.report.search_remarks)
        if is_unsteady or set(moving).intersection(solution.report.varying):
            continue
        names = [name for name in solution.report.moving if name in moving]
        listed = ", ".join(f"'{name}'" for name in names)
        error.args = (f"{error} A steady motion exists if {', '.join(names)} may move: add steady=[{listed}].",)
        return error
    return None


def _list_positions(model: Model) -> list[str]:
    """Return the states that are not the rate of another one, and do not have the unit of such a rate."""
    pairs = find_kinematic_pairs(PointEvaluator(model), model.start) or {}
    velocities = {model.states.names[i] for i in pairs.values()}
    rate_units = {rate_unit(signal.unit) for signal in model.states if signal.unit}
    return [signal.name for signal in model.states if signal.name not in velocities and signal.unit not in rate_units]


def explain_obstacles(error: NumericalError, model: Model, request: TrimRequest, search: Search) -> NumericalError:
    """Return the error with what was learnt by leaving out one target, held state or bound after the other."""
    names = [*request.targets, *(name for name in request.fixed if model.states.has(name))]
    bound = error.bound if isinstance(error, OutOfBoundsError) else None
    names += [] if bound is None else [bound.name]
    if not names or len(names) > MAX_NAMES:
        return error
    sentences: list[str] = []
    is_complete = True
    for name in names:
        try:
            with limit_time(EXPLANATION_SECONDS / len(names)):
                sentences += _explain_relaxed(name, model, request, search, bound)
        except OutOfTimeError:
            is_complete = False
    if not sentences and is_complete and len(names) > 1:
        sentences = [f"No single one of {', '.join(names)} prevents the solution: leaving one out is not sufficient."]
    error.args = (" ".join([str(error), *sentences]),)
    return error


def _explain_relaxed(
    name: str, model: Model, request: TrimRequest, search: Search, bound: Reading | None
) -> Iterator[str]:
    """Yield how near one comes to what ``name`` should be when it need not be."""
    fixed_value = request.targets.get(name, request.fixed.get(name))
    goal = fixed_value if bound is None or bound.name != name else bound.value
    assert goal is not None  # noqa: S101 - it is a target, held, or the bound
    fewer = replace(
        request,
        fixed=_drop(request.fixed, name),
        targets=_drop(request.targets, name),
        bounds=_drop(request.bounds, name),
        near={name: goal},
        minimize=None,
    )
    try:
        closest = search(fewer).report.targets[name]
    except FmilinError:
        limit = _approach(name, goal, fewer, search, model)
        if limit is None:
            return
        closest = limit
    unit = f" {make_reading(model, name).unit}".rstrip()
    what = "bound" if fixed_value is None else "target"
    yield (
        f"The {what} '{name}' = {goal:g}{unit} prevents the solution: without it the others are met, and the closest "
        f"value is {closest:.6g}{unit}."
    )


def _approach(name: str, goal: float, fewer: TrimRequest, search: Search, model: Model) -> float | None:
    """Return how near one comes where points end on the way: it is halved, to as many digits as that tells."""
    start, closest, done = model.start, None, 0.0
    answer = model.evaluate(start.time, start.states, start.inputs)
    here = float(
        compute_reading_values([make_reading(model, name)], start.states, start.inputs, start.parameters, answer)[0]
    )
    failures, part = 0, 1.0
    for _ in range(HALVINGS):
        part *= 0.5
        near = {name: here + (done + part) * (goal - here)}
        try:
            closest = search(replace(fewer, near=near)).report.targets[name]
        except FmilinError:
            failures += 1
            if failures == MAX_FAILURES:
                break
        else:
            done += part
    step = abs(goal - here) * part
    return None if closest is None else round(closest, -math.ceil(math.log10(step)) - 1)


def _drop(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {n: v for n, v in values.items() if n != name}


def explain_targets(equations: Equations, without: Solution) -> str:
    """Return what derivatives say at a solution ``without`` targets: nothing moves some, or few move many."""
    count, without_targets = len(equations.targets), equations.with_targets(())
    Z = _open_directions(without_targets, without.z)
    if not Z.shape[1]:
        return " No quantity is free to meet the targets."
    # By chance the derivatives of targets may depend on each other at one point: examine a second point near it.
    elsewhere = newton_correct(
        without_targets, without.z + FARTHER_START_DISTANCE * Z @ np.cos(np.arange(Z.shape[1]) + 1.0)
    ).z

    def slopes_on_freedoms(z: FloatArray) -> FloatArray:
        J = np.nan_to_num(equations.jacobian(z, quick=True)[0])[equations.kinds("target")]
        Z = _open_directions(without_targets, z)
        return np.where(np.abs(J @ Z) > SLOPE_ROUNDING * (np.abs(J) @ np.abs(Z)), J @ Z, 0.0)

    slopes = [slopes_on_freedoms(z) for z in (without.z, elsewhere)]
    still = [t.name for i, t in enumerate(equations.targets) if not any(np.any(S[i] != 0.0) for S in slopes)]
    if still:
        return f" No free quantity affects {', '.join(map(repr, still))}, to first order."
    freedoms = max(equilibrate_jacobian(S).rank(RANK_MEASURED) for S in slopes)
    if freedoms < count:
        return f" {count} targets have only {freedoms} free quantit{'ies' if freedoms != 1 else 'y'}."
    return ""


def _open_directions(equations: Equations, z: FloatArray) -> FloatArray:
    """Return a basis (n, f) of what the equations leave open."""
    form = equilibrate_jacobian(np.nan_to_num(equations.jacobian(z, quick=True)[0]))
    return form.columns[:, None] * form.null_space(RANK_MEASURED)
