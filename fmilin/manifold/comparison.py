"""Exact derivatives are a claim, not a truth: they are compared with differences.

At the first point of a model each column is compared with a central difference; at later points one direction through
all columns is. Where the two contradict each other, a more careful computation is requested: a sweep of step sizes
decides then, and its difference is used (:func:`fmilin.manifold.differentiation.differentiate_carefully`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import ModelError, NumericalError
from fmilin.manifold.derivatives import TangentDerivatives
from fmilin.manifold.differentiation import MoreCareful, SuspiciousColumns, row_sizes
from fmilin.manifold.manifold_verification import VerifiedFacts
from fmilin.manifold.neighbourhood import Neighbourhood
from fmilin.manifold.noisy_comparison import confirm_within_noise
from fmilin.manifold.rank import fixed_direction
from fmilin.numerics.differences.differences import Differences, Slopes
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass
from fmilin.tolerances import DERIVATIVE_AGREEMENT_TOLERANCE, EPS, KINK_TOLERANCE, NOISE_FREE_ERROR, ROUNDING_TOLERANCE

random_direction = partial(fixed_direction, 1848, 0.5)
SMALL_STEP = 2.0**-17  # for one direction through all columns, in sizes of the variables
TRUNCATION_ERROR_FACTOR = 4.0  # times step squared and second derivative: a central difference's own error at a zero
SOLUTION_ROUNDING_FACTOR = 8.0  # times the rounding of all states: what solving for constraints may leave of them


@dataclass(frozen=True, eq=False)
class DerivativeComparison:
    """The result of comparing exact derivatives with differences at a point."""

    facts: VerifiedFacts  # of the model
    request: MoreCareful | None = None  # for errors that the comparison shows, and for columns in doubt
    is_complete: bool = True  # whether every column was compared, or all are differences


def compare_derivatives(
    nearby: Neighbourhood, jacobians: TangentDerivatives, facts: VerifiedFacts
) -> DerivativeComparison:
    """Return what differences show of the derivatives at a point: of exact ones along a direction, or in each column.

    Every column is compared at the first point of a model, and where one direction shows a difference.
    """
    if jacobians.source == "differences":
        return DerivativeComparison(facts)
    nearby = nearby.observing(jacobians.observations)
    if jacobians.source == "procedure":
        return _compare_procedure(nearby, jacobians, facts)
    # All columns agreed at another point: one direction is enough here.
    if jacobians.is_exact.all() and facts.precision is not None:
        slopes = compare_along_one_direction(nearby, jacobians.slopes, facts.precision, facts.solving)
        if slopes is not None:
            return DerivativeComparison(facts, MoreCareful(nearby.observations, slopes.error), is_complete=False)
    return compare_columns(nearby, jacobians, facts)


def _compare_procedure(
    nearby: Neighbourhood, jacobians: TangentDerivatives, facts: VerifiedFacts
) -> DerivativeComparison:
    """Compare the derivatives of a model's own procedure along one direction, and in every column where they differ."""
    # Smooth equations with derivatives that agreed at one point are right at the others.
    if facts.procedure:
        return DerivativeComparison(facts, is_complete=False)
    point, exact = nearby.point, jacobians.slopes
    procedure = nearby.evaluator.exact_slopes(point.time, point.states, point.inputs)
    is_smooth = procedure is not None and procedure.smooth
    confirmation = confirm_procedure(nearby, exact, is_smooth=is_smooth)
    if confirmation is not None:
        request = MoreCareful(nearby.observations, exact.error)
        return DerivativeComparison(replace(facts, procedure=confirmation), request, is_complete=False)
    columns = compare_columns(nearby, jacobians, facts)
    is_verified = columns.facts.precision is not None and is_smooth
    return replace(columns, facts=replace(columns.facts, procedure=is_verified))


def confirm_procedure(nearby: Neighbourhood, exact: Slopes, *, is_smooth: bool) -> bool | None:
    """Return whether differences verify the derivatives of a model's procedure; None where they contradict them.

    False says that they agree at this point only: the equations may have a kink elsewhere (they are not known to be
    smooth), or noise may hide an error.
    """
    # A difference shows no more than rounding over its step; where large terms cancel, ten times that of these terms.
    precision = np.full(len(exact.J), EPS / SMALL_STEP)
    floor = 10 / SMALL_STEP * np.max(estimate_cancellation(nearby, exact.J) * nearby.scales, axis=1, initial=0.0)
    if compare_along_one_direction(nearby, exact, precision, floor) is not None:
        return is_smooth
    # A kink may pass for noise: only smooth equations are compared within it.
    return confirm_within_noise(nearby, exact, floor) if is_smooth else None


def compare_columns(nearby: Neighbourhood, jacobians: TangentDerivatives, facts: VerifiedFacts) -> DerivativeComparison:
    """Compare each exact column with a difference; request careful differences where it disagrees or has curvature."""
    exact, is_finite = jacobians.slopes, jacobians.is_exact
    quick = nearby.with_exact_rows(nearby.by_differences(Differences(order=2, retries=2)))
    # A zero is compared in its own size: 1e-8 is the step of a difference that passes for exact.
    inexact = np.where(
        np.abs(quick.J) <= quick.error, 0.0, DERIVATIVE_AGREEMENT_TOLERANCE * row_sizes(exact.J, nearby.scales)
    )
    allowed = inexact + estimate_cancellation(nearby, quick.J)
    deviation = np.abs(exact.J - quick.J)
    # Ten times: the error of a difference is an estimate of its order of magnitude.
    suspicious = (deviation > 10 * quick.error + allowed) & is_finite
    # The rounding of Newton's method takes an evaluation: it is estimated where it may explain a deviation.
    if suspicious.any():
        solving = estimate_solving(nearby)
        facts = replace(facts, solving=solving)
        suspicious &= deviation * nearby.scales > solving[:, None]
    errors = exact.error.copy()
    visible = (deviation > 10 * quick.error) & is_finite & ~suspicious
    errors[visible] = np.maximum(errors[visible], deviation[visible])
    largest = float(np.max(np.abs(exact.J) * nearby.scales, initial=0.0))
    bent = quick.bend * nearby.scales > KINK_TOLERANCE * largest
    columns = np.flatnonzero((suspicious | bent).any(axis=0)).tolist()
    clean = is_finite.all() and not columns
    facts = replace(facts, precision=_find_precision(nearby, exact, quick) if clean else None)
    in_doubt = SuspiciousColumns(columns, suspicious, allowed, quick) if columns else None
    return DerivativeComparison(facts, MoreCareful(nearby.observations, errors, in_doubt))


def compare_along_one_direction(
    nearby: Neighbourhood, exact: Slopes, precision: FloatArray, floor: FloatArray | float = 0.0
) -> Slopes | None:
    """Return the products, errors raised where a comparison shows one; None where every column must be examined."""
    direction = random_direction(len(nearby.scales)) * nearby.scales
    nearby.evaluate_ahead([SMALL_STEP * direction, -SMALL_STEP * direction])
    try:
        values = nearby.at(SMALL_STEP * direction), nearby.base, nearby.at(-SMALL_STEP * direction)
    except (ModelError, NumericalError):
        return None
    ahead, base, behind = (value[None] for value in values)
    agrees, directional_error = compare_directional_derivatives(
        exact.J[None], nearby.scales[None], (ahead, base, behind), precision, floor
    )
    if not agrees[0]:
        return None
    return replace(exact, error=np.maximum(exact.error, directional_error[0][:, None] / nearby.scales))


def compare_directional_derivatives(
    J: FloatArray,
    scales: FloatArray,
    values: tuple[FloatArray, FloatArray, FloatArray],
    precision: FloatArray | float,
    floor: FloatArray | float = 0.0,
) -> tuple[NDArray[np.bool_], FloatArray]:
    """Compare derivatives J (k, r, c) along one direction with ``values`` (k, r) ahead, here and behind.

    Returns where all rows agree (k,), and the gaps that are visible (k, r).
    """
    base = values[1]
    direction = random_direction(scales.shape[1]) * scales
    products = (J @ direction[..., None])[..., 0]
    sizes = (np.abs(J) * scales[:, None]).max(axis=2, initial=0.0)
    # Each column may add the error that its difference had at the first point, which is an estimate: ten times.
    noise = 10 * scales.shape[1] * precision * (sizes + np.abs(base))
    agrees, gaps = judge_difference(products, values, sizes, noise, floor)
    return np.asarray(agrees.all(axis=1)), gaps


def judge_difference(
    products: FloatArray,
    values: tuple[FloatArray, FloatArray, FloatArray],
    sizes: FloatArray,
    noise: FloatArray,
    floor: FloatArray | float = 0.0,
) -> tuple[NDArray[np.bool_], FloatArray]:
    """Judge products along the direction by ``values`` ahead, here and behind: where they agree, and visible gaps.

    The last axis of all arrays is that of the rows. ``sizes`` are their largest entries, ``noise`` that of differences.
    """
    # Where a derivative vanishes a gap is what the difference leaves out, of the order of the step squared times the
    # curvature. Where the model has curvature they do not agree.
    ahead, base, behind = values
    gap = np.abs((ahead - behind) / (2 * SMALL_STEP) - products)
    bend = np.abs(ahead + behind - 2 * base) / SMALL_STEP
    allowed = np.maximum(
        np.maximum(noise, floor),
        np.maximum(TRUNCATION_ERROR_FACTOR * SMALL_STEP * bend, DERIVATIVE_AGREEMENT_TOLERANCE * sizes),
    )
    # A quarter: a column moves by half its size at least, and other columns may cancel a part of its jump.
    is_straight = bend <= KINK_TOLERANCE / 4 * sizes.max(axis=-1, initial=0.0, keepdims=True)
    return (gap <= allowed) & is_straight, np.where(gap > noise, gap, 0.0)


def _find_precision(nearby: Neighbourhood, exact: Slopes, quick: Slopes) -> FloatArray | None:
    """Return the error of quick differences over the size of their rows, shape (r,); None where that is not small."""
    error = np.max(quick.error * nearby.scales, axis=1, initial=0.0)
    sizes = np.max(np.abs(exact.J) * nearby.scales, axis=1, initial=0.0) + np.abs(nearby.base)
    precision: FloatArray = np.where(sizes > 0, error / np.where(sizes > 0, sizes, 1.0), 0.0)
    rounding = EPS / SMALL_STEP  # also of exact rows
    return np.maximum(precision, rounding) if (precision <= NOISE_FREE_ERROR).all() else None


def estimate_cancellation(nearby: Neighbourhood, J: FloatArray) -> FloatArray:
    """Return what rounding may leave of derivatives with terms that cancel, in units of each entry; shape of J."""
    slope = (np.abs(J) * nearby.scales).max(axis=1, initial=0.0)
    return ROUNDING_TOLERANCE * nearby.terms(slope)[:, None] / nearby.scales


def estimate_solving(nearby: Neighbourhood) -> FloatArray:
    """Return what Newton's last correction on the manifold may leave of differences over small steps, (r,), scaled."""
    point, sizes = nearby.point, nearby.model.states.scales(nearby.point.states)
    du = np.zeros((nearby.k, len(sizes)))
    answer = nearby.evaluator.products(point.time, point.states, point.inputs, np.diag(sizes), du)
    # Without constraints no states are solved for; without products the effect is unknown, and excuses nothing.
    if answer is None or not nearby.frame.parametrization.rows:
        return np.zeros(len(nearby.base))
    off = np.abs(np.concatenate((answer.derivatives, answer.outputs))).sum(axis=1)
    return np.asarray(SOLUTION_ROUNDING_FACTOR * EPS / SMALL_STEP * np.nan_to_num(off))
