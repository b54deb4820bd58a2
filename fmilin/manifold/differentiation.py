"""Derivatives of rates and outputs along the manifold: exact ones where the model has them, differences elsewhere."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fmilin.diagnostics import Remark
from fmilin.errors import FmilinError, KinkError, NumericalError, UsageError
from fmilin.manifold.branches import take_one_branch
from fmilin.manifold.derivatives import Source, TangentDerivatives
from fmilin.manifold.frame import with_selection
from fmilin.manifold.neighbourhood import Neighbourhood, Observations
from fmilin.manifold.selection import Selection
from fmilin.manifold.structural_zeros import find_structural_zeros
from fmilin.model.capabilities import HasDerivativeErrors
from fmilin.model.interface import ExactSlopes
from fmilin.numerics.differences.differences import Differences, Slopes
from fmilin.numerics.rounding import move_some_bits
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass
from fmilin.tolerances import EPS, INACCURATE_ENTRY_ERROR, PRODUCT_ROUNDING_TOLERANCE, ROUNDING_TOLERANCE


def by_procedure(nearby: Neighbourhood) -> Slopes | None:
    """Let the model's own procedure eliminate the dependent states; None where it has none for these coordinates."""
    independent, point = nearby.frame.selection.independent, nearby.point
    exact = None if independent is None else nearby.evaluator.exact_slopes(point.time, point.states, point.inputs)
    if exact is None or independent is None:
        return None
    J = _along(exact, independent)
    if J is None:
        return None
    error, rounding_error = _estimate_error(nearby, J), _rounding_error(nearby, exact, J, independent)
    if rounding_error is not None:
        error = np.maximum(error, rounding_error)
    return nearby.with_exact_rows(_smooth(J, _without_zeros(nearby, J, error)))


def _along(exact: ExactSlopes, independent: Sequence[int]) -> FloatArray | None:
    try:
        answer = exact.along(independent)
    except NumericalError:
        return None
    J = np.concatenate((answer.derivatives, answer.outputs))
    # A procedure that divides by zero at the point says nothing: directional derivatives or differences may.
    return J if np.isfinite(J).all() else None


def _rounding_error(
    nearby: Neighbourhood, exact: ExactSlopes, J: FloatArray, independent: Sequence[int]
) -> FloatArray | None:
    """Return what rounding changes in a procedure's derivatives, shape of J, some bits further on; or None."""
    point = nearby.point
    if (change := exact.rounding(independent)) is not None:
        return row_sizes(change, nearby.scales)
    # Across a kink derivatives change by more than rounding.
    if not exact.smooth:
        return None
    nudged = move_some_bits(point.states, nearby.frame.invariants.scales)
    try:
        again = nearby.evaluator.exact_slopes(point.time, nudged, point.inputs)
    except FmilinError:
        return None
    other = None if again is None else _along(again, independent)
    return None if other is None else row_sizes(other - J, nearby.scales)


def by_products(nearby: Neighbourhood) -> Slopes | None:
    """Ask the model for exact products along T and along each input; None when it has none, NaN where it has none."""
    frame, point, p, k = nearby.frame, nearby.point, nearby.p, nearby.k
    if p + k == 0:
        return _smooth(np.zeros((len(nearby.base), 0)), np.zeros((len(nearby.base), 0)))
    dx = np.hstack((frame.T, frame.x_u))
    du = np.hstack((np.zeros((k, p)), np.eye(k)))
    answer = nearby.evaluator.products(point.time, point.states, point.inputs, dx, du)
    if answer is None:
        return None
    J = np.concatenate((answer.derivatives, answer.outputs))
    slopes = nearby.with_exact_rows(_smooth(J, _without_zeros(nearby, J, _estimate_error(nearby, J))))
    model = nearby.model
    if not isinstance(model, HasDerivativeErrors):
        return slopes
    errors = model.product_errors(point.time, point.states, point.inputs, dx, du)
    if errors is None:
        return slopes
    return replace(slopes, error=slopes.error + np.concatenate((errors.derivatives, errors.outputs)))


def _estimate_error(nearby: Neighbourhood, J: FloatArray) -> FloatArray:
    """Return the error of derivatives that are as good as the coordinates are conditioned, shape of J."""
    relative = float(nearby.frame.parametrization.batch.relative_error_of_derivatives[0])
    return relative * row_sizes(J, nearby.scales)


def _without_zeros(nearby: Neighbourhood, J: FloatArray, error: FloatArray) -> FloatArray:
    """Return the errors of exact derivatives, 0 where a slope is zero by the structure of the model."""
    # No zeros: the evaluation at another point is saved.
    if (J != 0).all():
        return error
    frame = nearby.frame
    structural = find_structural_zeros(nearby.evaluator, nearby.point, frame.invariants, frame.T, frame.x_u)
    return np.where((J == 0) & structural, 0.0, error)


def row_sizes(J: FloatArray, scales: FloatArray) -> FloatArray:
    """Return the largest slope of each row, compared in scaled columns, in units of each entry; same shape as J."""
    entries = np.abs(J)
    # Entries without exact derivatives are NaN here, and are differenced later: the others tell the size of the row.
    if not np.isfinite(entries).all():
        entries = np.nan_to_num(entries, nan=0.0, posinf=0.0)
    return np.asarray((entries * scales).max(axis=1, keepdims=True, initial=0.0) / scales)


def _smooth(J: FloatArray, error: FloatArray) -> Slopes:
    """Return derivatives with no jumps and no kinks."""
    none = np.zeros(J.shape)
    return Slopes(J, error, none, none)


def differentiate(nearby: Neighbourhood, derivatives: str | Differences) -> TangentDerivatives:
    """Return the Jacobians along coordinates and inputs with errors: exact where the model has them, else differences.

    Raises
    ------
    KinkError
        When the two sides of the point differ.
    NumericalError
        When an event lies at the point, or the model cannot be evaluated near it.
    UsageError
        When exact derivatives are requested of a model that has none.
    """
    nearby = nearby.observing()
    if isinstance(derivatives, Differences):
        measured = _difference(nearby, derivatives)
        remarks: tuple[Remark, ...] = ()
        if derivatives.side is not None:
            measured, remarks = take_one_branch(nearby, measured, derivatives)
        return _record(nearby, measured, "differences", np.zeros(measured.J.shape, dtype=bool), remarks)
    if derivatives != "differences":
        exact = by_procedure(nearby)
        if exact is not None:
            return _record(nearby, exact, "procedure", np.ones(exact.J.shape, dtype=bool))
        exact = by_products(nearby)
        if exact is not None:
            return _complete(nearby, exact)
    if derivatives == "exact":
        raise UsageError(
            f"The model '{nearby.model.info.name}' provides no exact directional derivatives. Use derivatives='auto' "
            "or derivatives='differences'."
        )
    measured = _difference(nearby, Differences())
    is_exact = np.zeros(measured.J.shape, dtype=bool)
    return _record(nearby, measured, "differences", is_exact, _describe_narrow_slopes(nearby, measured))


def _complete(nearby: Neighbourhood, exact: Slopes) -> TangentDerivatives:
    """Return exact derivatives, with differences where the model has no exact ones."""
    is_exact = np.isfinite(exact.J)
    if not is_exact.all():
        measured = _difference(nearby, Differences())
        J = np.where(is_exact, exact.J, measured.J)
        error = np.where(is_exact, exact.error, measured.error)
        exact = Slopes(J, error, measured.jump, measured.bend)
    return _record(nearby, exact, "products", is_exact)


def _record(
    nearby: Neighbourhood, slopes: Slopes, source: Source, is_exact: NDArray[np.bool_], remarks: tuple[Remark, ...] = ()
) -> TangentDerivatives:
    """Return the record of derivatives at one point."""
    base, n, scales = nearby.base_evaluation, nearby.n, nearby.scales
    J = slopes.J[None]
    return TangentDerivatives(
        base.derivatives[None],
        base.outputs[None],
        J[:, :n],
        J[:, n:],
        nearby.frame.T[None],
        nearby.frame.x_u[None],
        scales[None],
        (slopes.error * scales)[None],
        source,
        is_exact,
        remarks,
        nearby.observations,
    )


def _difference(nearby: Neighbourhood, options: Differences) -> Slopes:
    measured = nearby.with_exact_rows(nearby.on_manifold().by_differences(options))
    require_no_kink(nearby, measured, list(range(len(nearby.columns))))
    return measured


def require_no_kink(nearby: Neighbourhood, measured: Slopes, columns: list[int]) -> None:
    """Raise KinkError where the derivatives on the two sides of the point differ."""
    if not measured.jump.any():
        return
    i, c = np.unravel_index(int(np.argmax(np.abs(measured.jump) * nearby.scales[columns])), measured.jump.shape)
    row, column = nearby.rows[i], nearby.columns[columns[c]]
    output = ", or leave this output out" if i >= nearby.n else ""
    lower, upper = measured.J[i, c] - measured.jump[i, c] / 2, measured.J[i, c] + measured.jump[i, c] / 2
    text = (
        f"is {lower:.6g} on the left and {upper:.6g} on the right of '{column}'. There is no linear model of both sides"
        f": choose one with one_sided='left' or one_sided='right', or move the point{output}."
    )
    if np.isinf(measured.jump[i, c]):
        text = (
            f"has no value, because {row} jumps with the smallest change of '{column}'. There is no linear model: "
            f"move the point away from the switch, or replace it by a smooth one{output}."
        )
    text = f"The model jumps or has a kink at the point: d {row} / d {column} {text}"
    raise KinkError(text, variable=column)


@dataclass(frozen=True, eq=False)
class SuspiciousColumns:
    """Columns of exact derivatives with a quick difference that contradicts them or has curvature."""

    columns: list[int]
    entries: NDArray[np.bool_]  # (N + ny, P + nu), which entries it contradicts
    allowed: FloatArray  # (N + ny, P + nu), deviations that rounding explains
    quick: Slopes  # the differences in all columns


@dataclass(frozen=True, eq=False)
class MoreCareful:
    """A request for derivatives that are computed more carefully."""

    observations: Observations  # what was observed when the doubt came up
    errors: FloatArray  # (N + ny, P + nu), of the entries, at least
    suspicious: SuspiciousColumns | None = None  # to be measured by a sweep of step sizes


def differentiate_carefully(
    nearby: Neighbourhood, derivatives: TangentDerivatives, request: MoreCareful
) -> TangentDerivatives:
    """Return the derivatives at a point with requested errors, and with careful differences where they are wrong.

    Raises KinkError where the two sides of the point differ.
    """
    exact = derivatives.slopes
    suspicious = request.suspicious
    if suspicious is None:
        slopes = replace(exact, error=request.errors)
        return replace(derivatives.with_slopes(slopes), observations=request.observations)
    nearby = nearby.observing(request.observations)
    careful = nearby.on_manifold().by_differences(Differences(), suspicious.columns)
    require_no_kink(nearby, careful, suspicious.columns)
    quick = suspicious.quick
    J, error, is_exact = exact.J.copy(), request.errors.copy(), derivatives.is_exact.copy()
    remarks: list[Remark] = []
    for c, j in enumerate(suspicious.columns):
        rows = suspicious.entries[:, j]
        gap = np.abs(exact.J[:, j] - careful.J[:, c])
        # A column that is measured for its curvature alone has no deviation to explain.
        rounding = _estimate_rounding_of_product(nearby, exact.J, j) if rows.any() else 0.0
        # Where both differences are exactly zero, the smaller of their error bounds holds.
        still = (careful.J[:, c] == 0) & (quick.J[:, j] == 0)
        careful.error[still, c] = np.minimum(careful.error[still, c], quick.error[still, j])
        # Ten times: the error of a difference is an estimate of its order of magnitude.
        wrong = (gap > 10 * careful.error[:, c] + suspicious.allowed[:, j] + rounding) & rows
        error[:, j] = np.where(rows, np.maximum(error[:, j], gap), error[:, j])
        if wrong.any():
            J[rows, j], error[rows, j], is_exact[rows, j] = careful.J[rows, c], careful.error[rows, c], False
            worst = int(np.argmax(np.where(wrong, gap, 0.0)))
            remarks.append(_describe_disagreement(nearby, (worst, j), exact.J[worst, j], careful, c))
    measured = derivatives.with_slopes(Slopes(J, error, exact.jump, exact.bend))
    return replace(measured, is_exact=is_exact, remarks=tuple(remarks), observations=nearby.observations)


def _estimate_rounding_of_product(nearby: Neighbourhood, J: FloatArray, j: int) -> FloatArray:
    """Return ten times what some bits of the states change in a column of exact derivatives, (N + ny,).

    Where an implicit model solves for a rate that symmetry makes zero, as the zero current of a balanced machine, terms
    of 1e5 cancel in its derivative: 1e-12 is left, and jumps with every bit. The differences of such a rate are zero.
    """
    point, frame = nearby.point, nearby.frame
    direction = np.hstack((frame.T, frame.x_u))[:, [j]]
    du = np.hstack((np.zeros((nearby.k, nearby.p)), np.eye(nearby.k)))[:, [j]]
    nudged = move_some_bits(point.states, frame.invariants.scales)
    try:
        answer = nearby.evaluator.products(point.time, nudged, point.inputs, direction, du)
    except FmilinError:
        # Without an answer there the rounding is unknown, and excuses nothing.
        answer = None
    if answer is None:
        return np.zeros(len(J))
    change = np.concatenate((answer.derivatives, answer.outputs))[:, 0] - J[:, j]
    terms = nearby.terms((np.abs(J) * nearby.scales).max(axis=1, initial=0.0)) / nearby.scales[j]
    return np.asarray(np.minimum(10 * np.nan_to_num(np.abs(change)), PRODUCT_ROUNDING_TOLERANCE * terms))


def _describe_disagreement(
    nearby: Neighbourhood, entry: tuple[int, int], claimed: float, careful: Slopes, c: int
) -> Remark:
    row, column = nearby.rows[entry[0]], nearby.columns[entry[1]]
    measured, error = careful.J[entry[0], c], careful.error[entry[0], c]
    return Remark(
        "directional-derivative",
        f"The model's directional derivative with respect to '{column}' is wrong: d {row} / d {column} is declared as "
        f"{claimed:.9g}, and a difference on the manifold is {measured:.9g} +- {error:.2g}. The difference is used.",
    )


def _describe_narrow_slopes(nearby: Neighbourhood, measured: Slopes) -> tuple[Remark, ...]:
    """Note where the derivative that differs most farther away ends."""
    sizes = row_sizes(measured.J, nearby.scales)
    # Rows that are written exactly hold at any distance.
    written_rows = {*nearby.pairs, *(nearby.n + row for row in nearby.model.copies)}
    parts = {
        (i, j): abs(beyond - measured.J[i, j]) / sizes[i, j]
        for (i, j), (_, beyond) in measured.narrow.items()
        if sizes[i, j] > 0 and i not in written_rows
    }
    if not parts or max(parts.values()) <= INACCURATE_ENTRY_ERROR:
        return ()
    i, j = max(parts, key=lambda entry: parts[entry])
    longest_step, beyond = measured.narrow[i, j]
    name = f"d {nearby.rows[i]} / d {nearby.columns[j]}"
    text = f"{name} = {measured.J[i, j]:.6g} is valid near the point only: with steps of {longest_step:.1g} and larger "
    return (
        Remark("narrow", f"{text}it is {beyond:.4g}. Larger motions of '{nearby.columns[j]}' have another derivative."),
    )


def change_coordinates(
    nearby: Neighbourhood, derivatives: TangentDerivatives, selection: Selection
) -> tuple[Neighbourhood, TangentDerivatives]:
    """Return the model near a point and its Jacobians in other coordinates: nothing is measured anew."""
    frame = nearby.frame
    other = with_selection(frame, nearby.point, selection)
    S = np.linalg.inv(selection.coordinates.R @ frame.T)
    size = np.abs(S)
    eps = EPS * (frame.selection.condition_number + other.selection.condition_number)

    p = S.shape[1]
    J, error = derivatives.J[0], derivatives.errors[0] / derivatives.scales
    along_y = J[:, :p] @ S
    terms = np.abs(J[:, :p]) @ size
    cancelled = np.abs(along_y) <= ROUNDING_TOLERANCE * terms  # a false zero spreads double eigenvalues
    J[:, :p] = np.where(cancelled, 0.0, along_y)
    error[:, :p] = error[:, :p] @ size + eps * terms
    moved = nearby.in_frame(other)
    none = np.zeros_like(J)
    changed = moved.with_exact_rows(Slopes(J, error, none, none))
    is_exact = derivatives.is_exact.copy()
    is_exact[:, :p] = derivatives.is_exact[:, :p].all(axis=1, keepdims=True)
    changed_record = _record(moved, changed, derivatives.source, is_exact, derivatives.remarks)
    return moved, replace(changed_record, observations=derivatives.observations.in_other_coordinates())
