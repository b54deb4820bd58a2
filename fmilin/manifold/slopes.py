"""Slopes of rates and outputs along the manifold: exact products where the model has them, differences elsewhere.

Exact directional derivatives are a claim, not a truth: each column is compared once with a central difference.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from fmilin.diagnostics import Remark
from fmilin.errors import FmilinError, KinkError, ModelError, NumericalError, UsageError
from fmilin.manifold.branches import require_no_joint_kink, take_one_branch
from fmilin.manifold.frame import with_selection
from fmilin.manifold.neighbourhood import Neighbourhood
from fmilin.manifold.rank import fixed_direction
from fmilin.manifold.selection import Selection
from fmilin.manifold.verification import VerifiedFacts
from fmilin.manifold.zeros import find_structural_zeros
from fmilin.model.capabilities import HasDerivativeErrors, read_exact_slopes, read_products
from fmilin.model.interface import ExactSlopes
from fmilin.numerics.differences.differences import Differences, Slopes
from fmilin.signals import FloatArray
from fmilin.tolerances import AGREEMENT, EPS, INACCURATE, KINK, PRECISE, ROUNDING


def by_procedure(nearby: Neighbourhood) -> Slopes | None:
    """Let the model's own procedure eliminate the dependent states; None where it has none for these coordinates."""
    independent, point = nearby.frame.selection.kept, nearby.point
    exact = None if independent is None else read_exact_slopes(nearby.model, point.time, point.states, point.inputs)
    if exact is None or independent is None:
        return None
    J = _along(exact, independent)
    if J is None:
        return None
    error, rounding_error = _error_of(nearby, J), _rounding_error(nearby, exact, J, independent)
    if rounding_error is not None:
        error = np.maximum(error, rounding_error)
    return nearby.with_exact_rows(_smooth(J, _without_zeros(nearby, J, error)))


def _along(exact: ExactSlopes, independent: Sequence[int]) -> FloatArray | None:
    try:
        answer = exact.along(independent)
    except NumericalError:
        return None
    J = np.concatenate((answer.derivatives, answer.outputs))
    return J if np.isfinite(J).all() else None


def _rounding_error(
    nearby: Neighbourhood, exact: ExactSlopes, J: FloatArray, independent: Sequence[int]
) -> FloatArray | None:
    """Return what rounding changes in a procedure's slopes, shape of J, asked again some bits further on; or None."""
    point = nearby.point
    if (change := exact.rounding(independent)) is not None:
        return row_sizes(change, nearby.scales)
    if not exact.smooth:
        return None
    nudged = some_bits_further(point.states, nearby.frame.invariants.scales)
    try:
        again = read_exact_slopes(nearby.model, point.time, nudged, point.inputs)
    except FmilinError:
        return None
    other = None if again is None else _along(again, independent)
    return None if other is None else row_sizes(other - J, nearby.scales)


def some_bits_further(states: FloatArray, sizes: FloatArray) -> FloatArray:
    """Return states (..., N) moved by some bits of their sizes: also where they are zero, as angles at rest are."""
    return np.asarray(states + 2 * EPS * np.maximum(np.abs(states), sizes) * _signs(states.shape[-1]))


@cache
def _signs(count: int) -> FloatArray:
    """Return signs at random, the same every time, shape (count,)."""
    return np.random.default_rng(1952).choice([-1.0, 1.0], count)


def rounding_of(samples: Sequence[FloatArray]) -> FloatArray:
    """Return what rounding does to slopes, from two samples or three some bits apart: of three, twice their range."""
    # Three may lie close together by chance, and the truth beside them; two are compared as they are.
    some = 1.0 if len(samples) == 2 else 2.0
    return np.asarray(some * np.ptp(samples, axis=0))


def by_products(nearby: Neighbourhood) -> Slopes | None:
    """Ask the model for exact products along T and along each input; None when it has none, NaN where it has none."""
    frame, point, p, k = nearby.frame, nearby.point, nearby.p, nearby.k
    if p + k == 0:
        return _smooth(np.zeros((len(nearby.base), 0)), np.zeros((len(nearby.base), 0)))
    dx = np.hstack((frame.T, frame.x_u))
    du = np.hstack((np.zeros((k, p)), np.eye(k)))
    answer = read_products(nearby.model, point.time, point.states, point.inputs, dx, du)
    if answer is None:
        return None
    J = np.concatenate((answer.derivatives, answer.outputs))
    slopes = nearby.with_exact_rows(_smooth(J, _without_zeros(nearby, J, _error_of(nearby, J))))
    model = nearby.model
    if not isinstance(model, HasDerivativeErrors):
        return slopes
    errors = model.product_errors(point.time, point.states, point.inputs, dx, du)
    if errors is None:
        return slopes
    return replace(slopes, error=slopes.error + np.concatenate((errors.derivatives, errors.outputs)))


def _error_of(nearby: Neighbourhood, J: FloatArray) -> FloatArray:
    """Return the error of slopes that are as good as the coordinates are conditioned, shape of J."""
    frame = nearby.frame
    relative = 8 * EPS * frame.selection.condition_number
    # Both in sizes of states and coordinates: in their units a coordinate of a small nominal value would lend its large
    # entries to all columns.
    per_size = nearby.scales[: nearby.p] / frame.invariants.scales[:, None]
    largest = float((np.abs(frame.T) * per_size).max(initial=0.0))
    relative += float((frame.parametrization.derivative_error * per_size).max(initial=0.0)) / max(largest, 1e-300)
    return relative * row_sizes(J, nearby.scales)


def _without_zeros(nearby: Neighbourhood, J: FloatArray, error: FloatArray) -> FloatArray:
    """Return the errors of exact slopes, 0 where a slope is zero by the structure of the model."""
    if (J != 0).all():
        return error
    frame = nearby.frame
    structural = find_structural_zeros(nearby.model, nearby.point, frame.invariants, frame.T, frame.x_u)
    return np.where((J == 0) & structural, 0.0, error)


def row_sizes(J: FloatArray, scales: FloatArray) -> FloatArray:
    """Return the largest slope of each row, compared in scaled columns, in units of each entry; same shape as J."""
    entries = np.abs(J)
    if not np.isfinite(entries).all():
        entries = np.nan_to_num(entries, nan=0.0, posinf=0.0)
    return np.asarray((entries * scales).max(axis=1, keepdims=True, initial=0.0) / scales)


def rounding(nearby: Neighbourhood, J: FloatArray) -> FloatArray:
    """Return what rounding alone may leave of slopes whose terms cancel, in units of each entry; same shape as J."""
    slope = (np.abs(J) * nearby.scales).max(axis=1, initial=0.0)
    return ROUNDING * nearby.terms(slope)[:, None] / nearby.scales


def _solving(nearby: Neighbourhood) -> FloatArray:
    """Return what Newton's last correction on the manifold may leave of differences over small steps, (r,), scaled."""
    point, sizes = nearby.point, nearby.model.states.scales(nearby.point.states)
    du = np.zeros((nearby.k, len(sizes)))
    answer = read_products(nearby.model, point.time, point.states, point.inputs, np.diag(sizes), du)
    if answer is None or not nearby.frame.parametrization.rows:
        return np.zeros(len(nearby.base))
    off = np.abs(np.concatenate((answer.derivatives, answer.outputs))).sum(axis=1)
    return np.asarray(SOLVED * EPS / SMALL_STEP * np.nan_to_num(off))


def _smooth(J: FloatArray, error: FloatArray) -> Slopes:
    """Return slopes with no jumps and no bends."""
    none = np.zeros(J.shape)
    return Slopes(J, error, none, none)


random_direction = partial(fixed_direction, 1848, 0.5)
SMALL_STEP = 2.0**-17  # for one direction through all columns, in sizes of the variables
LEFT_OUT = 4.0  # times step squared and second derivative: a central difference's own error at a zero
SOLVED = 8.0  # times the rounding of all states: what solving for constraints may leave of them


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


def differentiate(
    nearby: Neighbourhood,
    derivatives: str | Differences,
    facts: VerifiedFacts | None = None,
    *,
    compare: bool = True,
) -> TangentSlopes:
    """Return the Jacobians along coordinates and inputs with errors: exact where the model has them, else differences.

    Exact ones are compared with differences unless ``compare`` is false: along one direction where ``facts`` of other
    points allow, otherwise column by column. Where they contradict each other, the difference is returned.

    Raises
    ------
    KinkError
        When the two sides of the point differ.
    NumericalError
        When an event lies at the point, or the model cannot be evaluated near it.
    UsageError
        When exact derivatives are requested of a model that has none.
    """
    if isinstance(derivatives, Differences):
        measured = _differenced(nearby, derivatives)
        remarks: tuple[Remark, ...] = ()
        if derivatives.side is not None:
            measured, remarks = take_one_branch(nearby, measured, derivatives)
        return _split(nearby, measured, "differences", remarks)
    facts = facts or VerifiedFacts()
    if derivatives != "differences" and (exact := by_procedure(nearby)) is not None:
        if derivatives == "exact" or facts.procedure or not compare:
            return _split(nearby, exact, "exact", ())
        return _split(nearby, *_verified(nearby, exact, facts))
    exact = None if derivatives == "differences" else by_products(nearby)
    if exact is None:
        if derivatives == "exact":
            raise UsageError(
                f"The model '{nearby.model.info.name}' provides no exact directional derivatives. Use "
                "derivatives='auto' or derivatives='differences'."
            )
        measured = _differenced(nearby, Differences())
        if compare:
            require_no_joint_kink(nearby, measured.J)
        return _split(nearby, measured, "differences", _narrow(nearby, measured))
    finite = np.isfinite(exact.J)
    if not finite.all():
        measured = _differenced(nearby, Differences())
        J, error = (np.where(finite, *pair) for pair in ((exact.J, measured.J), (exact.error, measured.error)))
        exact = Slopes(J, error, measured.jump, measured.bend)
    if derivatives == "exact" or not compare:
        return _split(nearby, exact, "exact" if finite.all() else "mixed", ())
    if finite.all() and facts.precision is not None:
        trusted = _compared_once(nearby, exact, facts.precision, facts.solving)
        if trusted is not None:
            return _split(nearby, trusted, "exact", ())
    checked, is_exact, notes = _checked(nearby, exact, finite, facts)
    return _split(nearby, checked, "exact" if is_exact.all() else "mixed", tuple(notes))


def _verified(nearby: Neighbourhood, exact: Slopes, facts: VerifiedFacts) -> tuple[Slopes, str, tuple[Remark, ...]]:
    """Compare a procedure's slopes with a difference along one direction, and in every column where that differs."""
    procedure = read_exact_slopes(nearby.model, nearby.point.time, nearby.point.states, nearby.point.inputs)
    smooth = procedure is not None and procedure.smooth
    precision = np.full(len(exact.J), EPS / SMALL_STEP)
    floor = 10 / SMALL_STEP * np.max(rounding(nearby, exact.J) * nearby.scales, axis=1, initial=0.0)
    if _compared_once(nearby, exact, precision, floor) is not None:
        facts.procedure = smooth
        return exact, "exact", ()
    checked, is_exact, remarks = _checked(nearby, exact, np.ones(exact.J.shape, dtype=bool), facts)
    facts.procedure = facts.precision is not None and smooth
    return checked, "exact" if is_exact.all() else "mixed", tuple(remarks)


def _differenced(nearby: Neighbourhood, options: Differences) -> Slopes:
    measured = nearby.with_exact_rows(nearby.by_differences(options))
    _refuse_kinks(nearby, measured, list(range(len(nearby.columns))))
    return measured


def _compared_once(
    nearby: Neighbourhood, exact: Slopes, precision: FloatArray, floor: FloatArray | float = 0.0
) -> Slopes | None:
    """Return the products, errors raised where a comparison shows one; None where every column must be looked at."""
    direction = random_direction(len(nearby.scales)) * nearby.scales
    try:
        values = nearby.at(SMALL_STEP * direction), nearby.base, nearby.at(-SMALL_STEP * direction)
    except (ModelError, NumericalError):
        return None
    ahead, base, behind = (value[None] for value in values)
    agrees, shown = compared(exact.J[None], nearby.scales[None], (ahead, base, behind), precision, floor)
    return replace(exact, error=np.maximum(exact.error, shown[0][:, None] / nearby.scales)) if agrees[0] else None


def compared(
    J: FloatArray,
    scales: FloatArray,
    values: tuple[FloatArray, FloatArray, FloatArray],
    precision: FloatArray | float,
    floor: FloatArray | float = 0.0,
) -> tuple[NDArray[np.bool_], FloatArray]:
    """Compare slopes J (k, r, c) with ``values`` (k, r) ahead, here and behind: agreement (k,), visible gaps (k, r)."""
    # Where a slope vanishes a gap is what the difference leaves out, of the order of the step squared times the
    # curvature. Where the model bends they do not agree.
    ahead, base, behind = values
    direction = random_direction(scales.shape[1]) * scales
    gap = np.abs((ahead - behind) / (2 * SMALL_STEP) - (J @ direction[..., None])[..., 0])
    bend = np.abs(ahead + behind - 2 * base) / SMALL_STEP
    sizes = (np.abs(J) * scales[:, None]).max(axis=2, initial=0.0)
    visible = 10 * scales.shape[1] * precision * (sizes + np.abs(base))
    allowed = np.maximum(np.maximum(visible, floor), np.maximum(LEFT_OUT * SMALL_STEP * bend, AGREEMENT * sizes))
    straight = bend <= KINK / 4 * sizes.max(axis=1, initial=0.0, keepdims=True)
    return ((gap <= allowed) & straight).all(axis=1), np.where(gap > visible, gap, 0.0)


def _precision(nearby: Neighbourhood, exact: Slopes, quick: Slopes) -> FloatArray | None:
    """Return the error of quick differences over the size of their rows, shape (r,); None where that is not small."""
    error = np.max(quick.error * nearby.scales, axis=1, initial=0.0)
    sizes = np.max(np.abs(exact.J) * nearby.scales, axis=1, initial=0.0) + np.abs(nearby.base)
    precision: FloatArray = np.where(sizes > 0, error / np.where(sizes > 0, sizes, 1.0), 0.0)
    rounding = EPS / SMALL_STEP  # also of exact rows
    return np.maximum(precision, rounding) if (precision <= PRECISE).all() else None


def _checked(
    nearby: Neighbourhood, exact: Slopes, finite: np.ndarray, facts: VerifiedFacts
) -> tuple[Slopes, np.ndarray, list[Remark]]:
    """Compare each exact column with a difference; return what to use, what of it is exact, and remarks."""
    quick = nearby.with_exact_rows(nearby.by_differences(Differences(order=2, retries=2)))
    # A zero is compared in its own size: 1e-8 beside it is the step of a difference that passes for exact.
    inexact = np.where(np.abs(quick.J) <= quick.error, 0.0, AGREEMENT * row_sizes(exact.J, nearby.scales))
    allowed = inexact + rounding(nearby, quick.J)
    deviation = np.abs(exact.J - quick.J)
    suspicious = (deviation > 10 * quick.error + allowed) & finite
    if suspicious.any():
        facts.solving = _solving(nearby)
        suspicious &= deviation * nearby.scales > facts.solving[:, None]
    J, error, is_exact, remarks = exact.J.copy(), exact.error.copy(), finite.copy(), []
    visible = (deviation > 10 * quick.error) & finite & ~suspicious
    error[visible] = np.maximum(error[visible], deviation[visible])
    largest = float(np.max(np.abs(exact.J) * nearby.scales, initial=0.0))
    bent = quick.bend * nearby.scales > KINK * largest
    columns = np.flatnonzero((suspicious | bent).any(axis=0)).tolist()
    clean = finite.all() and not columns
    facts.precision = _precision(nearby, exact, quick) if clean else None
    careful = nearby.by_differences(Differences(), columns) if columns else None
    if careful is not None:
        _refuse_kinks(nearby, careful, columns)
        for c, j in enumerate(columns):
            gap = np.abs(exact.J[:, j] - careful.J[:, c])
            still = (careful.J[:, c] == 0) & (quick.J[:, j] == 0)
            careful.error[still, c] = np.minimum(careful.error[still, c], quick.error[still, j])
            wrong = (gap > 10 * careful.error[:, c] + allowed[:, j]) & suspicious[:, j]
            error[:, j] = np.where(suspicious[:, j], np.maximum(error[:, j], gap), error[:, j])
            if wrong.any():
                rows = suspicious[:, j]
                J[rows, j], error[rows, j], is_exact[rows, j] = careful.J[rows, c], careful.error[rows, c], False
                worst = int(np.argmax(np.where(wrong, gap, 0.0)))
                remarks.append(_disagreement(nearby, (worst, j), exact.J[worst, j], careful, c))
    # Columns alone do not show every kink: along each axis min(|x|, |u|) is zero.
    require_no_joint_kink(nearby, J)
    return Slopes(J, error, exact.jump, exact.bend), is_exact, remarks


def _disagreement(nearby: Neighbourhood, entry: tuple[int, int], claimed: float, careful: Slopes, c: int) -> Remark:
    row, column = nearby.rows[entry[0]], nearby.columns[entry[1]]
    measured, error = careful.J[entry[0], c], careful.error[entry[0], c]
    return Remark(
        "directional-derivative",
        f"The model's directional derivative with respect to '{column}' is wrong: d {row} / d {column} is said to be "
        f"{claimed:.9g}, a difference on the manifold gives {measured:.9g} +- {error:.2g}. The difference is used.",
    )


def _refuse_kinks(nearby: Neighbourhood, measured: Slopes, columns: list[int]) -> None:
    if not measured.jump.any():
        return
    i, c = np.unravel_index(int(np.argmax(np.abs(measured.jump) * nearby.scales[columns])), measured.jump.shape)
    row, column = nearby.rows[i], nearby.columns[columns[c]]
    output = ", or leave this output out" if i >= nearby.n else ""
    left, right = measured.J[i, c] - measured.jump[i, c] / 2, measured.J[i, c] + measured.jump[i, c] / 2
    text = (
        f"is {left:.6g} on the left and {right:.6g} on the right of '{column}'. There is no linear model of both sides"
        f": choose one with one_sided='left' or one_sided='right', or move the point{output}."
    )
    if np.isinf(measured.jump[i, c]):
        text = (
            f"has no value, as {row} jumps as soon as '{column}' moves, however little. There is no linear model: move "
            f"the point away from the switch, or replace it by a smooth one{output}."
        )
    text = f"The model jumps or has a kink at the point: d {row} / d {column} {text}"
    raise KinkError(text, variable=column)


def _narrow(nearby: Neighbourhood, measured: Slopes) -> tuple[Remark, ...]:
    """Remark where the slope that differs most farther away ends."""
    sizes = row_sizes(measured.J, nearby.scales)
    written_rows = {*nearby.pairs, *(nearby.n + row for row in nearby.model.copies)}
    parts = {
        (i, j): abs(beyond - measured.J[i, j]) / sizes[i, j]
        for (i, j), (_, beyond) in measured.narrow.items()
        if sizes[i, j] > 0 and i not in written_rows
    }
    if not parts or max(parts.values()) <= INACCURATE:
        return ()
    i, j = max(parts, key=lambda entry: parts[entry])
    far, beyond = measured.narrow[i, j]
    name = f"d {nearby.rows[i]} / d {nearby.columns[j]}"
    text = f"{name} = {measured.J[i, j]:.6g} holds near the point only: steps of {far:.1g} leave it, and farther away "
    return (Remark("narrow", f"{text}it is {beyond:.4g}. Larger motions of '{nearby.columns[j]}' see another slope."),)


def change_coordinates(
    nearby: Neighbourhood, slopes: TangentSlopes, selection: Selection
) -> tuple[Neighbourhood, TangentSlopes]:
    """Return the model near a point and its Jacobians in other coordinates: nothing is measured anew."""
    frame = nearby.frame
    other = with_selection(frame, nearby.point, selection)
    S = np.linalg.inv(selection.coordinates.R @ frame.T)
    size = np.abs(S)
    eps = EPS * (frame.selection.condition_number + other.selection.condition_number)

    def transform(J: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray]:
        jacobian, terms = J @ S, np.abs(J) @ size
        cancelled = np.abs(jacobian) <= ROUNDING * terms  # a zero that is none spreads double eigenvalues
        return np.where(cancelled, 0.0, jacobian), error @ size + eps * terms

    f_y, f_y_error = transform(slopes.f_y, slopes.f_y_error)
    c_y, c_y_error = transform(slopes.c_y, slopes.c_y_error)
    J = np.block([[f_y, slopes.f_u], [c_y, slopes.c_u]])
    error = np.block([[f_y_error, slopes.f_u_error], [c_y_error, slopes.c_u_error]])
    none = np.zeros_like(J)
    moved = nearby.in_frame(other)
    return moved, _split(moved, moved.with_exact_rows(Slopes(J, error, none, none)), slopes.method, slopes.remarks)


def _split(nearby: Neighbourhood, slopes: Slopes, method: str, remarks: tuple[Remark, ...]) -> TangentSlopes:
    """Cut the matrix into the four blocks."""
    n, p = nearby.n, nearby.p
    blocks = [(M[:n, :p], M[:n, p:], M[n:, :p], M[n:, p:]) for M in (slopes.J, slopes.error)]
    return TangentSlopes(nearby.frame.x_u, *blocks[0], *blocks[1], method, remarks)
