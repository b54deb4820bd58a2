"""Slopes of rates and outputs along the manifold: exact products where the model has them, differences elsewhere.

Exact directional derivatives are a claim, not a truth: each column is compared once with a central difference
on the manifold. What is known without asking (an output that is a state, the rate of a position) is written down.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import numpy as np

from fmilin.ground.errors import KinkError, ModelError, NumericalError, UsageError
from fmilin.ground.remarks import Remark
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import AGREEMENT, INACCURATE, KINK, PRECISE
from fmilin.manifold.facts import VerifiedFacts
from fmilin.manifold.neighbourhood import Neighbourhood
from fmilin.manifold.products import by_procedure, by_products, rounding, row_sizes
from fmilin.numerics.differences.differences import Differences, Slopes

__all__ = ["LEFT_OUT", "SMALL_STEP", "TangentSlopes", "measure", "random_direction"]

SMALL_STEP = 2.0**-17
"""For one direction through all columns, in sizes of the variables."""

LEFT_OUT = 4.0
"""Of the step squared times the second derivative: what a central difference may leave out where the slope vanishes."""


@dataclass(frozen=True)
class TangentSlopes:
    """Slopes of x' and of the outputs, with estimated absolute errors."""

    x_u: FloatArray
    f_y: FloatArray
    f_u: FloatArray
    c_y: FloatArray
    c_u: FloatArray
    f_y_error: FloatArray
    f_u_error: FloatArray
    c_y_error: FloatArray
    c_u_error: FloatArray
    method: str
    remarks: tuple[Remark, ...] = field(default=())


def measure(beside: Neighbourhood, derivatives: str | Differences, known: VerifiedFacts | None = None) -> TangentSlopes:
    """Return the slopes at a point along every coordinate and every input.

    ``known``: where all products agreed with differences at another point, one direction through all columns is
    compared here; what is found is added.
    """
    if isinstance(derivatives, Differences):
        return _split(beside, _differenced(beside, derivatives), "differences", ())
    known = known or VerifiedFacts()
    if derivatives != "differences" and (exact := by_procedure(beside)) is not None:
        if derivatives == "exact" or known.procedure:
            return _split(beside, exact, "exact", ())
        return _split(beside, *_verified(beside, exact, known))
    exact = None if derivatives == "differences" else by_products(beside)
    if exact is None:
        if derivatives == "exact":
            raise UsageError(
                f"The model '{beside.model.info.name}' provides no exact directional derivatives: use --derivatives "
                "auto or differences."
            )
        found = _differenced(beside, Differences())
        return _split(beside, found, "differences", _narrow(beside, found))
    finite = np.isfinite(exact.J)
    if not finite.all():
        exact = _merged(exact, _differenced(beside, Differences()), finite)
    if derivatives == "exact":
        return _split(beside, exact, "exact" if finite.all() else "mixed", ())
    if finite.all() and known.precision is not None:
        trusted = _compared_once(beside, exact, known.precision)
        if trusted is not None:
            return _split(beside, trusted, "exact", ())
    checked, kept, remarks = _checked(beside, exact, finite, known)
    return _split(beside, checked, "exact" if kept.all() else "mixed", tuple(remarks))


def _verified(beside: Neighbourhood, exact: Slopes, known: VerifiedFacts) -> tuple[Slopes, str, tuple[Remark, ...]]:
    """Compare the slopes of a procedure with a difference: along one direction, and in every column where that differs.

    The published recursions hold at every point: where the equations have no kink, once is enough.
    """
    procedure = beside.model.exact_slopes(beside.point.time, beside.point.states, beside.point.inputs)
    smooth = procedure is not None and procedure.smooth
    precision = np.full(len(exact.J), np.finfo(float).eps / SMALL_STEP)
    floor = 10 / SMALL_STEP * np.max(rounding(beside, exact.J) * beside.scales, axis=1, initial=0.0)
    if _compared_once(beside, exact, precision, floor) is not None:
        known.procedure = smooth
        return exact, "exact", ()
    checked, kept, remarks = _checked(beside, exact, np.ones(exact.J.shape, dtype=bool), known)
    known.procedure = known.precision is not None and smooth
    return checked, "exact" if kept.all() else "mixed", tuple(remarks)


def _differenced(beside: Neighbourhood, options: Differences) -> Slopes:
    found = beside.written_down(beside.by_differences(options))
    _refuse_kinks(beside, found, list(range(len(beside.columns))))
    return found


def _compared_once(
    beside: Neighbourhood, exact: Slopes, precision: FloatArray, floor: FloatArray | float = 0.0
) -> Slopes | None:
    """Compare the products with a difference along one random direction through all columns, and look for a bend.

    Returns the products, their error raised where the comparison shows one; None where every column is to be looked at.
    Gaps up to ``floor`` (r,) are rounding; where a slope vanishes a gap is what the difference leaves out, of the order
    of the step squared times the curvature.
    """
    direction = random_direction(len(beside.scales)) * beside.scales
    try:
        ahead, behind = beside.at(SMALL_STEP * direction), beside.at(-SMALL_STEP * direction)
    except (ModelError, NumericalError):
        return None
    gap = np.abs((ahead - behind) / (2 * SMALL_STEP) - exact.J @ direction)
    bend = np.abs(ahead + behind - 2 * beside.base) / SMALL_STEP
    sizes = (np.abs(exact.J) * beside.scales).max(axis=1, initial=0.0)
    visible = 10 * len(direction) * precision * (sizes + np.abs(beside.base))
    left_out = LEFT_OUT * SMALL_STEP * bend
    if not (gap <= np.max([visible, left_out, AGREEMENT * sizes, np.broadcast_to(floor, gap.shape)], axis=0)).all():
        return None
    if not (bend <= KINK / 4 * sizes.max(initial=0.0)).all():
        return None
    shown = np.where(gap > visible, gap, 0.0)[:, None] / beside.scales
    return Slopes(exact.J, np.maximum(exact.error, shown), exact.jump, exact.bend)


@cache
def random_direction(count: int) -> FloatArray:
    """Return one random direction, the same every time, shape (count,)."""
    return np.random.default_rng(1848).uniform(0.5, 1.0, count)


def _precision(beside: Neighbourhood, exact: Slopes, quick: Slopes) -> FloatArray | None:
    """Return the error of quick differences over the size of their rows, shape (r,); None where that is not small."""
    error = np.max(quick.error * beside.scales, axis=1, initial=0.0)
    sizes = np.max(np.abs(exact.J) * beside.scales, axis=1, initial=0.0) + np.abs(beside.base)
    precision: FloatArray = np.where(sizes > 0, error / np.where(sizes > 0, sizes, 1.0), 0.0)
    rounding = np.finfo(float).eps / SMALL_STEP  # also of rows that were written down
    return np.maximum(precision, rounding) if (precision <= PRECISE).all() else None


def _checked(
    beside: Neighbourhood, exact: Slopes, known: np.ndarray, facts: VerifiedFacts
) -> tuple[Slopes, np.ndarray, list[Remark]]:
    """Compare each exact column with a difference; return what to use, what of it is exact, and remarks."""
    quick = beside.written_down(beside.by_differences(Differences(order=2, retries=2)))
    allowed = AGREEMENT * row_sizes(exact.J, beside.scales) + rounding(beside, quick.J)
    deviation = np.abs(exact.J - quick.J)
    suspicious = (deviation > 10 * quick.error + allowed) & known
    J, error, kept, remarks = exact.J.copy(), exact.error.copy(), known.copy(), []
    visible = (deviation > 10 * quick.error) & known & ~suspicious
    error[visible] = np.maximum(error[visible], deviation[visible])
    largest = float(np.max(np.abs(exact.J) * beside.scales, initial=0.0))
    bent = quick.bend * beside.scales > KINK * largest
    columns = np.flatnonzero((suspicious | bent).any(axis=0)).tolist()
    clean = known.all() and not columns
    facts.precision = _precision(beside, exact, quick) if clean else None
    careful = beside.by_differences(Differences(), columns) if columns else None
    if careful is not None:
        _refuse_kinks(beside, careful, columns)
        for c, j in enumerate(columns):
            gap = np.abs(exact.J[:, j] - careful.J[:, c])
            wrong = (gap > 10 * careful.error[:, c] + allowed[:, j]) & suspicious[:, j]
            error[:, j] = np.where(suspicious[:, j], np.maximum(error[:, j], gap), error[:, j])
            if wrong.any():
                rows = suspicious[:, j]
                J[rows, j], error[rows, j], kept[rows, j] = careful.J[rows, c], careful.error[rows, c], False
                worst = int(np.argmax(np.where(wrong, gap, 0.0)))
                remarks.append(_disagreement(beside, (worst, j), exact.J[worst, j], careful, c))
    return Slopes(J, error, exact.jump, exact.bend), kept, remarks


def _disagreement(beside: Neighbourhood, entry: tuple[int, int], said: float, careful: Slopes, c: int) -> Remark:
    row, column = beside.rows[entry[0]], beside.columns[entry[1]]
    measured, error = careful.J[entry[0], c], careful.error[entry[0], c]
    return Remark(
        "directional-derivative",
        f"The model's directional derivative with respect to '{column}' is wrong: d {row} / d {column} is said to be "
        f"{said:.9g}, a difference on the manifold gives {measured:.9g} +- {error:.2g}. The difference is used.",
    )


def _refuse_kinks(beside: Neighbourhood, found: Slopes, columns: list[int]) -> None:
    if not found.jump.any():
        return
    i, c = np.unravel_index(int(np.argmax(np.abs(found.jump) * beside.scales[columns])), found.jump.shape)
    row, column = beside.rows[i], beside.columns[columns[c]]
    if np.isinf(found.jump[i, c]):
        raise KinkError(
            f"The model jumps or has a kink at the point: d {row} / d {column} has no value, as {row} jumps as "
            f"soon as '{column}' moves, however little. There is no linear model: move the point away from the switch, "
            f"or replace it by a smooth one{', or leave this output out' if i >= beside.n else ''}.",
            variable=column,
        )
    left, right = found.J[i, c] - found.jump[i, c] / 2, found.J[i, c] + found.jump[i, c] / 2
    output = ", or leave this output out" if i >= beside.n else ""
    raise KinkError(
        f"The model jumps or has a kink at the point: d {row} / d {column} is {left:.6g} on the left and {right:.6g} "
        f"on the right of '{column}'. There is no linear model of both sides: ask for one with --one-sided left or "
        f"right, or move the point{output}.",
        variable=column,
    )


def _narrow(beside: Neighbourhood, found: Slopes) -> tuple[Remark, ...]:
    """Say where the slope that differs most farther away ends."""
    sizes = row_sizes(found.J, beside.scales)
    known = {*beside.pairs, *(beside.n + row for row in beside.model.copies)}
    parts = {
        (i, j): abs(beyond - found.J[i, j]) / sizes[i, j]
        for (i, j), (_, beyond) in found.narrow.items()
        if sizes[i, j] > 0 and i not in known
    }
    if not parts or max(parts.values()) <= INACCURATE:
        return ()
    i, j = max(parts, key=lambda entry: parts[entry])
    reach, beyond = found.narrow[i, j]
    name = f"d {beside.rows[i]} / d {beside.columns[j]}"
    text = f"{name} = {found.J[i, j]:.6g} holds near the point only: steps of {reach:.1g} leave it, and farther away "
    return (Remark("narrow", f"{text}it is {beyond:.4g}. Larger motions of '{beside.columns[j]}' see another slope."),)


def _split(beside: Neighbourhood, found: Slopes, method: str, remarks: tuple[Remark, ...]) -> TangentSlopes:
    """Cut the matrix into the four blocks."""
    n, p, J, E = beside.n, beside.p, found.J, found.error
    return TangentSlopes(
        x_u=beside.frame.x_u,
        f_y=J[:n, :p],
        f_u=J[:n, p:],
        c_y=J[n:, :p],
        c_u=J[n:, p:],
        f_y_error=E[:n, :p],
        f_u_error=E[:n, p:],
        c_y_error=E[n:, :p],
        c_u_error=E[n:, p:],
        method=method,
        remarks=remarks,
    )


def _merged(exact: Slopes, measured: Slopes, known: np.ndarray) -> Slopes:
    return Slopes(
        np.where(known, exact.J, measured.J), np.where(known, exact.error, measured.error), measured.jump, measured.bend
    )
