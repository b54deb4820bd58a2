"""States of a large model that seem as if they depended on each other; for arrays see the module ``dependence``.

Rows of [A B f0] that are combinations of each other are found by the structural rank and a sparse factorization
(:mod:`fmilin.numerics.sparse_rank`) instead of a singular value decomposition. The diagnostics are decided in the same
way, by perturbing the states.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fmilin.linear_model.sparse import SparseLinearModel
from fmilin.linearization.combinations import Speeds, examine_combinations
from fmilin.manifold.rank import TINY
from fmilin.model.interface import Model, OperatingPoint
from fmilin.numerics.sparse_rank import equilibrate, find_left_null_space
from fmilin.numerics.sparse_rows import reduce_rows
from fmilin.signals import FloatArray
from fmilin.tolerances import EQUILIBRIUM_RATE_TOLERANCE, RANK, ROUNDING_TOLERANCE

if TYPE_CHECKING:
    from scipy import sparse

MAX_STILL_STATES = 512  # states without a rate, each of which is a column of an array of combinations


def find_sparse_combinations(linear: SparseLinearModel, model: Model, point: OperatingPoint) -> FloatArray | None:
    """Return the gradients of what seems to be kept of a model's states, (N, k); None where arrays are to tell."""
    sizes = linear.states.scales(linear.y0)
    both = find_visible_entries(linear, sizes)
    candidates = find_sparse_unmovable(both)
    if candidates is None:
        return None
    columns = np.bincount(both.indices, minlength=both.shape[1])
    return examine_combinations(candidates, model, point, sizes, columns[: len(sizes)] > 0)


def find_visible_entries(linear: SparseLinearModel, sizes: FloatArray) -> sparse.csr_array[Any]:
    """Return [A B f0] in sizes of states and inputs, with those entries only that are larger than their errors."""
    from scipy import sparse

    matrices = linear.sparse
    units = np.concatenate((sizes, linear.inputs.scales()))
    both: sparse.csr_array[Any] = sparse.hstack((matrices.A, matrices.B), format="csr")
    errors = sparse.hstack((matrices.errors.A, matrices.errors.B), format="csr")
    rows = np.repeat(np.arange(len(sizes)), np.diff(both.indptr))
    factors = units[both.indices] / sizes[rows]
    entries = np.abs(both.data) * factors
    rounding = ROUNDING_TOLERANCE * reduce_rows(np.maximum, entries, both.indptr)
    is_visible = entries > np.maximum(errors.data * factors, rounding[rows])
    both.data = np.where(is_visible, both.data * factors, 0.0)
    rates = linear.f0 / sizes
    fastest = float(np.abs(rates).max(initial=0.0))
    if fastest > EQUILIBRIUM_RATE_TOLERANCE:
        column = sparse.csr_array(np.where(np.abs(rates) > RANK * fastest, rates, 0.0)[:, None])
        both = sparse.hstack((both, column), format="csr")
    both.eliminate_zeros()
    return both


def find_sparse_unmovable(both: sparse.csr_array[Any]) -> FloatArray | None:
    """Return combinations w (N, r) of rows that cannot change to first order; None where there are very many."""
    count = both.shape[0]
    is_moving = np.diff(both.indptr) > 0
    still = np.flatnonzero(~is_moving)
    if len(still) > MAX_STILL_STATES:
        return None
    alone = np.zeros((count, len(still)))
    alone[still, np.arange(len(still))] = 1.0
    if not is_moving.any():
        return alone
    moving = both[is_moving]
    moving = moving[:, np.bincount(moving.indices, minlength=moving.shape[1]) > 0]
    balanced, weights, _ = equilibrate(moving)
    null = find_left_null_space(balanced, RANK)
    if null is None:
        return None
    combinations = np.zeros((count, null.shape[1]))
    null = null * weights[:, None]
    combinations[is_moving] = null / np.maximum(np.linalg.norm(null, axis=0), TINY)
    return np.hstack((alone, combinations))


def find_sparse_speeds(linear: SparseLinearModel) -> Speeds:
    """Return (position, speed) of the states with another state as rate."""
    matrices = linear.sparse
    A, B = matrices.A, matrices.B
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    present = A.data != 0
    is_alone = np.bincount(rows[present], minlength=A.shape[0]) == 1
    has_input = np.bincount(np.repeat(np.arange(B.shape[0]), np.diff(B.indptr))[B.data != 0], minlength=B.shape[0]) > 0
    pairs = []
    entries = rows[present].tolist(), A.indices[present].tolist(), A.data[present].tolist()
    for i, other, value in zip(*entries, strict=True):
        is_speed = is_alone[i] and not has_input[i] and value == 1.0 and i != other
        if is_speed and linear.f0[i] == linear.y0[other]:
            pairs.append((i, other))
    return tuple(pairs)
