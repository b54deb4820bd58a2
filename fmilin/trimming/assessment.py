"""What a solution is worth: remarks on it, and whether it stands alone or is one of a family.

Where there is none: what was tried, the residuals that remain, and what might be freed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy import linalg

from fmilin.diagnostics import Remark
from fmilin.errors import REFUSALS, NumericalError, join_first
from fmilin.manifold.angles import TURNS_OF_UNITS
from fmilin.numerics.balanced import balanced
from fmilin.signals import FloatArray, rate_unit
from fmilin.tolerances import RANK, RANK_MEASURED, STAYS
from fmilin.trimming.equations import Equations, Row
from fmilin.trimming.report import FreeDirection, TrimReport
from fmilin.trimming.request import TrimRequest, quantity
from fmilin.trimming.solver import Solution
from fmilin.trimming.unknowns import Candidate, Reading


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
    later = _later(equations, candidate)
    if later is not None and not report.moving and later > max(100 * report.residual, 1e-7):
        yield Remark(
            "time",
            f"The model depends on time: this is an equilibrium at t = {candidate.time:g} s only; rates are "
            f"back at {later:.2g} of the states' sizes per second soon after.",
        )


def _later(equations: Equations, candidate: Candidate) -> float | None:
    """Return the largest rate at the same states a little later; None where the model cannot be asked."""
    try:
        f = candidate.model.evaluate(candidate.time + 1e-2, candidate.states, candidate.inputs).derivatives
    except REFUSALS:
        return None
    largest = float(np.max(np.abs(f) / equations.state_scales, initial=0.0))
    return largest if np.isfinite(largest) else None


SHOWN = 4
VANISHES = 1e-4  # part of what is left that a quantity leaves over, to first order, when freeing it helps


class TrimError(NumericalError):
    """No solution near the guess: ``residuals`` remain at the best compromise, in their units, ``point`` is where."""

    def __init__(self, message: str, *, residuals: Mapping[str, float], point: Mapping[str, float]) -> None:
        super().__init__(message, variable=next(iter(residuals), None))
        self.residuals = dict(residuals)
        self.point = dict(point)


def no_solution(equations: Equations, best: Solution, request: TrimRequest) -> TrimError:
    """Return the error that says what remains at the best compromise, largest first."""
    unknowns = equations.unknowns
    candidate = unknowns.at(best.z)
    size = np.abs(best.residual)
    worth_saying = np.maximum(best.allowed, 1e-4 * float(np.max(size, initial=0.0)))
    order = sorted(np.flatnonzero(size > worth_saying), key=lambda i: -size[i])
    left = [(equations.rows[i], float(best.residual[i] * equations.rows[i].size)) for i in order]
    residuals = {_name(row): value for row, value in left}
    targets = {target.name: target for target in equations.targets}
    listed = "; ".join(_sentence(row, value, candidate, targets) for row, value in left[:SHOWN])
    more = f" (and {len(left) - SHOWN} more)" if len(left) > SHOWN else ""
    what = "steady motion" if equations.moving else "equilibrium"
    moving = f" in which only {', '.join(request.steady)} may move" if equations.moving else ""
    limits = _limits(equations, best)
    helpers = _what_would_help(equations, best, request)
    hint = f"Freeing {' or '.join(helpers)} would let it vanish, to first order. " if helpers else ""
    hint += _suggest_turns([row for row, _ in left if row.kind == "target"], targets)
    tried = f" Tried: {', '.join(best.tried)}." if best.tried else ""
    message = (
        f"Near the guess no {what}{moving} was found.{tried} The best compromise leaves {listed}{more}{limits}. {hint}"
        "Release a fixed quantity, free an input (free=), let a state move (steady=), or start elsewhere (guess=)."
    )
    return TrimError(message, residuals=residuals, point=_values_at(candidate))


def too_far(equations: Equations, best: Solution) -> TrimError:
    """Return the error of a small residual with no solution near: what runs away, or how little is determined."""
    unknowns, certificate = equations.unknowns, best.certificate
    assert certificate is not None  # noqa: S101 - what balances has one
    candidate, sizes = unknowns.at(best.z), unknowns.sizes(best.z)
    worst = int(np.argmax(np.abs(certificate.step if certificate.runs_away else certificate.distance) / sizes))
    name, unit, scale = unknowns.names[worst], unknowns.units[worst], float(unknowns.scales[worst])
    value, step = (f"{v * scale:.6g} {unit}".rstrip() for v in (best.z[worst], certificate.step[worst]))
    what = "steady motion" if equations.moving else "equilibrium"
    tried = f" Tried: {', '.join(best.tried)}." if best.tried else ""
    if certificate.runs_away:
        reason = f"'{name}' runs away: what does not balance only fades with distance"
    elif np.isfinite(certificate.distance[worst]):
        reason = f"'{name}' is known to +-{certificate.distance[worst] * scale:.2g} {unit}".rstrip() + " only"
    else:
        reason = f"near '{name}' the rates are small, but do not vanish"
    message = (
        f"Near the guess no {what} was found.{tried} {reason[0].upper() + reason[1:]}. The last step of '{name}' was "
        f"{step}, at {value}. Release a fixed quantity, free an input (free=), or start elsewhere (guess=)."
    )
    rates = equations.described(candidate)[0]
    order = sorted(zip(candidate.model.states.names, rates.tolist(), strict=True), key=lambda pair: -abs(pair[1]))
    error = TrimError(message, residuals={f"der({n})": rate for n, rate in order}, point=_values_at(candidate))
    error.variable = name
    return error


def _values_at(candidate: Candidate) -> dict[str, float]:
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
            return f"If '{row.name}' is an angle that wraps, ask for {_with_unit(wrapped, target.unit)}. "
    return ""


def _with_unit(value: float, unit: str) -> str:
    return f"{value:.6g} {unit}".rstrip()


def _limits(equations: Equations, best: Solution) -> str:
    """Return which quantities the bounds stop."""
    unknowns, z = equations.unknowns, best.z
    margin = 1e-3 * np.maximum(np.abs(z), 1.0)
    stopped = np.flatnonzero((z - unknowns.low <= margin) | (unknowns.high - z <= margin))
    listed = [f"{unknowns.names[i]} = {z[i] * unknowns.scales[i]:.6g}" for i in stopped]
    return f", with {', '.join(listed[:SHOWN])} at a bound" if listed else ""


def _what_would_help(equations: Equations, best: Solution, request: TrimRequest) -> list[str]:
    """Return the held quantities each of which could make all residuals vanish, to first order."""
    candidate = equations.unknowns.at(best.z)
    model = candidate.model
    left = _left(best, np.zeros(len(best.residual)))
    if not left:
        return []
    held = [name for name in (*model.inputs.names, *request.fixed) if name not in equations.unknowns.names]
    helpers = []
    for name in dict.fromkeys(held):
        column = _column(equations, candidate, name)
        if column is not None and _left(best, column) <= VANISHES * left:
            helpers.append(f"'{name}'")
    return helpers[:SHOWN]


def _column(equations: Equations, candidate: Candidate, name: str) -> FloatArray | None:
    """Return how the residuals change with a quantity that is held, over a step that shows; None where none does."""
    kind, i = quantity(candidate.model, name)
    value = candidate.parameters[name] if kind == "parameter" else getattr(candidate, f"{kind}s")[i]
    step = 1e-5 * max(abs(float(value)), 1.0)
    for _ in range(5 if kind == "input" else 1):
        ahead = equations.values_at(_moved(candidate, name, step))
        column = (ahead - equations.values_at(_moved(candidate, name, -step))) / 2
        if not np.isfinite(column).all():
            return None
        if np.max(np.abs(column), initial=0.0) > 1e-6:
            return column
        step *= 1e3
    return None


def _moved(candidate: Candidate, name: str, step: float) -> Candidate:
    kind, i = quantity(candidate.model, name)
    if kind == "parameter":
        changed = {name: candidate.parameters[name] + step}
        return replace(
            candidate, model=candidate.model.with_parameters(changed), parameters={**candidate.parameters, **changed}
        )
    x, u = candidate.states.copy(), candidate.inputs.copy()
    (x if kind == "state" else u)[i] += step
    return replace(candidate, states=x, inputs=u)


def _left(best: Solution, column: FloatArray) -> float:
    """Return what a step along the unknowns and one more column cannot remove, rows in sizes of the Jacobian."""
    return float(np.linalg.norm(balanced(np.column_stack((best.J, column))).left(best.residual, RANK_MEASURED)))


STEP = 1e-4  # how far along a free direction the residual is looked at, in sizes of the unknowns


def free_directions(
    equations: Equations, solution: Solution, preferred: Sequence[str]
) -> tuple[tuple[FreeDirection, ...], float]:
    """Return the Jacobian's null space, a leading unknown (if it can, ``preferred``) in each, and how regular it is."""
    unknowns = equations.unknowns
    certificate = solution.certificate
    assert certificate is not None  # noqa: S101 - a solution has one
    free = (solution.z > unknowns.low) & (solution.z < unknowns.high)
    free[list(certificate.multiple)] = False
    inside = np.flatnonzero(free)
    if not len(inside):
        return (), 1.0
    seen = np.fmax(np.abs(solution.J), certificate.seen if solution.seen is None else solution.seen)
    if certificate.empty_rows is not None:
        seen[certificate.empty_rows] = 0.0
    J = balanced(solution.J[:, inside], seen[:, inside])
    if certificate.is_isolated:
        return (), J.regularity
    limit = RANK if solution.is_exact and not equations.moving else RANK_MEASURED
    V = _confirmed(equations, solution, inside, J.columns[:, None] * J.null_space(limit), seen)
    if not V.shape[1]:
        return (), J.regularity
    weights = np.array([1.0 if unknowns.names[i] in preferred else 0.3 for i in inside])
    leaders = linalg.qr((V * weights[:, None]).T, mode="r", pivoting=True)[1][: V.shape[1]]
    basis = V @ np.linalg.inv(V[leaders])
    scales = unknowns.scales[inside]
    directions = []
    for k in np.argsort(leaders):
        leader = int(leaders[k])
        direction = basis[:, k] * scales / scales[leader]
        others = [i for i in range(len(inside)) if i != leader and abs(basis[i, k]) > 1e-6]
        along = {unknowns.names[inside[i]]: float(direction[i]) for i in others}
        directions.append(FreeDirection(unknowns.names[inside[leader]], along))
    return tuple(directions), J.regularity


def _confirmed(
    equations: Equations, solution: Solution, inside: np.ndarray, V: FloatArray, seen: FloatArray
) -> FloatArray:
    """Return the directions along which the residual really stays: exact products may have claimed too much."""
    first = equations.first_order
    rows = balanced(solution.J, seen).rows
    # A row's change is compared with what its other unknowns do, those moved in sizes that the Jacobian tells.
    size = np.where(rows > 0, 1.0 / np.where(rows > 0, rows, 1.0), 0.0)

    def stays(v: FloatArray) -> bool:
        step = np.zeros_like(solution.z)
        step[inside] = STEP * v / np.max(np.abs(v))
        change = np.abs(equations.balance(solution.z + step) - equations.balance(solution.z - step)) / (2 * STEP)
        return bool((change <= (STAYS * size + solution.allowed / STEP)[first]).all())  # NaN does not

    if V.shape[1] > 1 and stays(V @ np.cos(np.arange(V.shape[1]) + 1.0)):
        return V  # where a sum of all of them leads nowhere, none does
    confirmed = [v for v in V.T if stays(v)]
    return np.array(confirmed).T if confirmed else np.empty((len(inside), 0))
