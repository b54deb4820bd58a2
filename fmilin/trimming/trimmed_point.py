"""From a solution to the trimmed point: rates, certificate, stability, and what a user should know about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.errors import REFUSALS, join_first
from fmilin.model.capabilities import read_point_remarks
from fmilin.numerics.certificate import Certificate
from fmilin.tolerances import EQUILIBRIUM_RATE_TOLERANCE, EXACT_BALANCE_TOLERANCE
from fmilin.trimming.equilibrium_equations import Equations
from fmilin.trimming.equilibrium_solver import Solution
from fmilin.trimming.failures import MAX_LISTED_RESIDUALS
from fmilin.trimming.optimum import Optimum
from fmilin.trimming.solution_family import free_directions
from fmilin.trimming.stable_equilibrium import judge_equilibrium
from fmilin.trimming.trim_report import TrimmedPoint, TrimReport
from fmilin.trimming.trim_request import TrimRequest
from fmilin.trimming.unknowns import Candidate, list_recommended_states, make_reading

CONSTANT_RATE_TOLERANCE = 1e-6
"""A rate is constant when it changes by less than this, relative to the fastest, while the motion is followed."""


def list_remarks(
    equations: Equations, candidate: Candidate, report: TrimReport, restless: Sequence[str]
) -> Iterator[Remark]:
    """Yield what the user should know; ``restless`` states should rest, and moved when the motion was followed."""
    if restless:
        yield Remark(
            "unsteady",
            f"In a simulation from the point, {', '.join(restless)} should be constant and "
            f"{'is' if len(restless) == 1 else 'are'} not. This is a steady motion at this instant only.",
        )
    elif report.moving and not equations.moving:
        yield Remark(
            "unsteady",
            "States that should be constant start to move slowly: this is a steady motion at this instant only.",
        )
    if not report.exact:
        yield Remark(
            "rounding",
            f"The largest residual is {report.residual:.2g} instead of 1e-10 (in sizes of the states per second): the "
            "model's own noise or rounding prevents a smaller one.",
        )
    if report.multiple:
        listed = join_first(
            (f"{name} (+-{report.distance[name]:.2g})" for name in report.multiple), MAX_LISTED_RESIDUALS
        )
        yield Remark("multiple", f"Several solutions meet here, or nearly: the derivatives do not determine {listed}.")
    if report.free_directions:
        leaders = ", ".join(d.name for d in report.free_directions)
        choice = (
            "Those nearest to the guess were chosen; fix them to choose others"
            if report.is_nearest
            else "The search ended at these, and others may be nearer to the guess: fix them to choose others"
        )
        yield Remark(
            "family",
            f"The solution is one of a family: {leaders} may have other values. {choice}: fixed={{'NAME': VALUE}}.",
        )
    later = _rates_later(equations, candidate)
    # Rates that were as large at the point itself say nothing of the time.
    if later is not None and not report.moving and later > max(100 * report.residual, 1e-7):
        yield Remark(
            "time",
            f"The model depends on time: this is an equilibrium at t = {candidate.time:g} s only; soon after, rates "
            f"reach {later:.2g} of the states' sizes per second.",
        )


def _rates_later(equations: Equations, candidate: Candidate) -> float | None:
    """Return the largest rate at the same states a little later; None where the model cannot be asked."""
    try:
        # 10 ms: an excitation of a few hertz has changed by then, and most models are still defined.
        f = candidate.evaluator.evaluate(candidate.time + 1e-2, candidate.states, candidate.inputs).derivatives
    except REFUSALS:
        return None
    largest = float(np.max(np.abs(f) / equations.state_scales, initial=0.0))
    return largest if np.isfinite(largest) else None


def read_values(balance: Equations, solution: Solution, names: Sequence[str]) -> dict[str, float]:
    """Return what comes out at a solution, by name."""
    readings = [make_reading(balance.unknowns.start.model, name) for name in names]
    # A slice of -0 below would return all rows.
    if not readings:
        return {}
    values = balance.with_targets(readings).balance(solution.z)[-len(readings) :]
    return {r.name: float(value * r.size) for r, value in zip(readings, values, strict=True)}


def make_point(
    equations: Equations,
    solution: Solution,
    request: TrimRequest,
    remarks: tuple[Remark, ...] = (),
    best: Optimum | None = None,
    *,
    is_nearest: bool = False,
) -> TrimmedPoint:
    """Return the point at a solution, with its report; what is ``best`` is not a member of a family."""
    unknowns = equations.unknowns
    candidate = unknowns.at(solution.z)
    f, changes = equations.describe_motion(candidate)
    names = candidate.model.states.names
    leaders = [*request.steady, *(names[i] for i in list_recommended_states(candidate.model, equations.pairs))]
    later = equations.follow_fastest_state(candidate) if request.steady else None
    sizes = equations.state_scales
    rest = sizes * max(EQUILIBRIUM_RATE_TOLERANCE, float(np.max(solution.allowed[equations.first_order], initial=0.0)))
    speed = float(np.max(np.abs(f) / sizes, initial=0.0))
    varies = (
        np.abs(later - f) > CONSTANT_RATE_TOLERANCE * speed * sizes
        if later is not None
        else np.zeros(len(f), dtype=bool)
    )
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
        exact=residual <= EXACT_BALANCE_TOLERANCE,
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
        moving=() if report.varying else moving,  # rates that vary are those of no steady motion
        report=report,
        request=request,
    )
    model_remarks = read_point_remarks(candidate.model, point)
    report = replace(
        report, search_remarks=(*remarks, *list_remarks(equations, candidate, report, restless), *model_remarks)
    )
    # The stability of a motion is judged by its linear models along the way, in :mod:`fmilin.trimming.trim_procedure`.
    unstable = None if request.steady or report.moving else judge_equilibrium(equations, solution)
    if unstable is None:
        return replace(point, report=report)
    return replace(point, report=replace(report, instability=unstable), slope_changes=unstable.slope_changes)
