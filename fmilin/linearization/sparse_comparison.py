"""Sparse exact derivatives compared with differences: what :mod:`fmilin.manifold.comparison` does for arrays.

At the first point of a model every group of columns is moved together (no row but a full one depends on two of them),
so that each entry is compared as it is column by column; what a row shows that depends on no column of a group betrays
a dependence that was not declared. At later points one direction through all columns is compared.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import ModelError, NumericalError
from fmilin.manifold.branches import require_no_joint_kink
from fmilin.manifold.comparison import SMALL_STEP, TRUNCATION_ERROR_FACTOR, random_direction
from fmilin.manifold.manifold_verification import VerifiedFacts
from fmilin.manifold.neighbourhood import Neighbourhood
from fmilin.model.sparse_model_derivatives import SparseJacobian
from fmilin.numerics.differences.differences import Differences
from fmilin.numerics.sparse_rows import reduce_rows
from fmilin.signals import FloatArray
from fmilin.tolerances import (
    DERIVATIVE_AGREEMENT_TOLERANCE,
    EPS,
    KINK_TOLERANCE,
    LARGE_MODEL_AGREEMENT_TOLERANCE,
    NOISE_FREE_ERROR,
    ROUNDING_TOLERANCE,
)

if TYPE_CHECKING:
    from scipy import sparse

AGREEMENT_STEP = 1e-4  # of the difference along all columns at once, in sizes of the variables


def compare_sparsely(
    nearby: Neighbourhood, derivatives: SparseJacobian, errors: FloatArray, facts: VerifiedFacts
) -> tuple[FloatArray, VerifiedFacts] | None:
    """Return the errors of the stored entries as a comparison shows them, and what it says of the model as a whole.

    None where a difference contradicts the derivatives, or has curvature: each column is then compared with care.
    """
    if facts.precision is not None:
        directional_error = _compare_along_one_direction(nearby, derivatives, errors, facts.precision, facts.solving)
        if directional_error is not None:
            return directional_error, facts
    return _compare_groups(nearby, derivatives, errors, facts)


def _compare_groups(
    nearby: Neighbourhood, derivatives: SparseJacobian, errors: FloatArray, facts: VerifiedFacts
) -> tuple[FloatArray, VerifiedFacts] | None:
    from scipy import sparse

    J, groups, scales = derivatives.J, derivatives.groups, nearby.scales
    quick = nearby.along_groups(groups, Differences(order=2, retries=2))
    units = np.array([scales[group[0]] if len(group) == 1 else 1.0 for group in groups])  # of one column: its scale
    measured, measured_errors = quick.J * units, quick.error * units
    group_of = np.zeros(J.shape[1], dtype=np.intp)
    for number, group in enumerate(groups):
        group_of[group] = number
    moved = sparse.csr_array((scales, (np.arange(len(scales)), group_of)), shape=(len(scales), len(groups)))
    exact = (J @ moved).toarray()
    sizes = reduce_rows(np.maximum, np.abs(J.data) * scales[J.indices], J.indptr)
    terms = nearby.terms(np.abs(measured).max(axis=1, initial=0.0))
    agreement = np.where(np.abs(measured) <= measured_errors, 0.0, DERIVATIVE_AGREEMENT_TOLERANCE * sizes[:, None])
    deviation = np.abs(exact - measured)
    # measured errors are estimates: within a factor of ten they are right
    is_suspicious = deviation > 10 * measured_errors + agreement + ROUNDING_TOLERANCE * terms[:, None]
    # A sum over many columns is curved as many times as one of them is.
    members = np.ones(exact.shape)
    members[derivatives.full_rows] = np.maximum(_count_entries(J[derivatives.full_rows], group_of, len(groups)), 1)
    is_bent = quick.bend * units > KINK_TOLERANCE * float(sizes.max(initial=0.0)) * members
    if is_suspicious.any() or is_bent.any() or not _agrees_along_all(nearby, J, measured_errors):
        return None
    # the same factor: smaller deviations add nothing to the errors
    visible = np.where(deviation > 10 * measured_errors, deviation, 0.0)
    rows = np.repeat(np.arange(J.shape[0]), np.diff(J.indptr))
    errors = np.maximum(errors, visible[rows, group_of[J.indices]] / scales[J.indices])
    largest = measured_errors.max(axis=1, initial=0.0)
    row_sizes = sizes + np.abs(nearby.base)
    precision = np.where(row_sizes > 0, largest / np.where(row_sizes > 0, row_sizes, 1.0), 0.0)
    is_precise = bool((precision <= NOISE_FREE_ERROR).all())
    facts = replace(facts, precision=np.maximum(precision, EPS / SMALL_STEP) if is_precise else None)
    require_no_joint_kink(nearby, sizes)
    return errors, facts


def _count_entries(rows: sparse.csr_array[Any], group_of: NDArray[np.intp], count: int) -> FloatArray:
    """Return how many entries of each row stand in each group of columns, (r, count)."""
    return np.array(
        [
            np.bincount(group_of[rows.indices[begin:end]], minlength=count)
            for begin, end in zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
        ]
    ).reshape(rows.shape[0], count)


def _agrees_along_all(nearby: Neighbourhood, J: sparse.csr_array[Any], group_errors: FloatArray) -> bool:
    """Whether the derivatives agree with a difference along all columns at once: the structure is a claim."""
    # any fixed direction that is not an axis: equal calls give equal results
    direction = np.random.default_rng(1974).uniform(0.5, 1.0, len(nearby.scales)) * nearby.scales
    try:
        ahead, behind = nearby.at(AGREEMENT_STEP * direction), nearby.at(-AGREEMENT_STEP * direction)
    except (ModelError, NumericalError):
        return False
    gap = np.abs((ahead - behind) / (2 * AGREEMENT_STEP) - J @ direction)
    size = abs(J) @ direction
    # rows that hardly depend on the direction count as a thousandth of the largest: their sums cancel
    size += 1e-3 * size.max(initial=0.0)
    # a sum over all columns: ten times the allowed difference of one
    return bool((gap <= 10 * LARGE_MODEL_AGREEMENT_TOLERANCE * size + 10 * group_errors.sum(axis=1)).all())


def _compare_along_one_direction(
    nearby: Neighbourhood,
    derivatives: SparseJacobian,
    errors: FloatArray,
    precision: FloatArray,
    floor: FloatArray | float,
) -> FloatArray | None:
    """Return the errors raised where a comparison along one direction shows one; None where it contradicts."""
    J, scales, base = derivatives.J, nearby.scales, nearby.base
    direction = random_direction(len(scales)) * scales
    nearby.evaluate_ahead([SMALL_STEP * direction, -SMALL_STEP * direction])
    try:
        ahead, behind = nearby.at(SMALL_STEP * direction), nearby.at(-SMALL_STEP * direction)
    except (ModelError, NumericalError):
        return None
    gap = np.abs((ahead - behind) / (2 * SMALL_STEP) - J @ direction)
    bend = np.abs(ahead + behind - 2 * base) / SMALL_STEP
    sizes = reduce_rows(np.maximum, np.abs(J.data) * scales[J.indices], J.indptr)
    # The error of a sum grows with its terms: a row of a large model has few, however many columns there are.
    visible = 10 * np.diff(J.indptr) * precision * (sizes + np.abs(base))
    allowed = np.maximum(
        np.maximum(visible, floor),
        np.maximum(TRUNCATION_ERROR_FACTOR * SMALL_STEP * bend, DERIVATIVE_AGREEMENT_TOLERANCE * sizes),
    )
    members = np.ones(len(base))  # a sum over many columns is curved as many times as one of them is
    members[derivatives.full_rows] = np.diff(J.indptr)[derivatives.full_rows]
    is_straight = bend <= KINK_TOLERANCE / 4 * sizes.max(initial=0.0) * members
    if not ((gap <= allowed) & is_straight).all():
        return None
    visible_gap = np.where(gap > visible, gap, 0.0)
    return np.maximum(errors, np.repeat(visible_gap, np.diff(J.indptr)) / scales[J.indices])
