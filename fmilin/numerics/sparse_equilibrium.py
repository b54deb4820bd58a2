"""Whether a point of a large model is an equilibrium; for arrays see :mod:`fmilin.numerics.balanced`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fmilin.numerics.balanced import HIDDEN_ROUNDING_RATE, MAX_DIFFERENCE_STEP, NewtonStep
from fmilin.numerics.sparse_rank import equilibrate, factorize
from fmilin.numerics.sparse_rows import reduce_rows
from fmilin.signals import FloatArray
from fmilin.tolerances import (
    EQUILIBRIUM_RATE_TOLERANCE,
    EXACT_BALANCE_TOLERANCE,
    ROUNDING_TOLERANCE,
    TRIM_DISTANCE_TOLERANCE,
)

if TYPE_CHECKING:
    from scipy import sparse

LEAST_SQUARES_TOLERANCE = 1e-14  # to rounding, since the size of the step decides whether the point is an equilibrium
LEAST_SQUARES_STEPS = 4  # times the number of states


def find_sparse_step(
    rates: FloatArray, sizes: FloatArray, slopes: sparse.csr_array[Any], errors: sparse.csr_array[Any]
) -> NewtonStep:
    """Return the Newton step from rates (N,) with derivatives and errors (N, N) along states in their sizes.

    It is that of a sparse factorization where the states determine it, else the shortest one.
    """
    noise = _find_noise(sizes, slopes, errors)
    nothing = np.zeros(len(rates))
    if (np.abs(rates) <= noise).all():
        return NewtonStep(nothing, nothing, balances=True)
    step = _solve(slopes, -rates)
    if step is None:
        step = _find_shortest_step(rates, slopes, noise)
    return NewtonStep(step, nothing, balances=bool((np.abs(rates + slopes @ step) <= noise).all()))


def is_sparse_equilibrium(
    rates: FloatArray, sizes: FloatArray, slopes: sparse.csr_array[Any], errors: sparse.csr_array[Any]
) -> bool:
    """Whether an equilibrium is so near to a point that it is one.

    ``rates`` and ``sizes`` (N,) are those of the states; ``slopes`` and their ``errors`` (N, N + nu) those of the rates
    along states and inputs, all in sizes of these.
    """
    count = len(rates)
    is_slow = bool((np.abs(rates) <= EQUILIBRIUM_RATE_TOLERANCE * sizes).all())
    along_states = slopes[:, :count], errors[:, :count]
    if is_slow and find_sparse_step(rates, sizes, *along_states).has_near_equilibrium(TRIM_DISTANCE_TOLERANCE / 2):
        return True
    noise = _find_noise(sizes, slopes, errors)
    step = _find_shortest_step(rates, slopes, noise)
    return bool((np.abs(step) <= EXACT_BALANCE_TOLERANCE).all() and (np.abs(rates + slopes @ step) <= noise).all())


def _find_noise(sizes: FloatArray, slopes: sparse.csr_array[Any], errors: sparse.csr_array[Any]) -> FloatArray:
    """Return the rates that say nothing, shape (N,)."""
    terms = reduce_rows(np.add, np.abs(slopes.data), slopes.indptr)
    measured = reduce_rows(np.maximum, errors.data, errors.indptr)
    return np.maximum(
        np.maximum(HIDDEN_ROUNDING_RATE * sizes, ROUNDING_TOLERANCE * terms), MAX_DIFFERENCE_STEP * measured
    )


def _find_shortest_step(rates: FloatArray, slopes: sparse.csr_array[Any], noise: FloatArray) -> FloatArray:
    """Return the shortest step that removes the rates as far as derivatives can, rows in their sizes."""
    from scipy import sparse
    from scipy.sparse.linalg import lsmr

    terms = reduce_rows(np.add, np.abs(slopes.data), slopes.indptr)
    weights = 1.0 / np.maximum(terms, noise)
    scaled = sparse.diags_array(weights) @ slopes
    tolerance, most = LEAST_SQUARES_TOLERANCE, LEAST_SQUARES_STEPS * len(rates)
    return np.asarray(lsmr(scaled, -rates * weights, atol=tolerance, btol=tolerance, maxiter=most)[0])


def _solve(matrix: sparse.csr_array[Any], right: FloatArray) -> FloatArray | None:
    """Return the solution of a square system, refined once; None where it is singular."""
    balanced, rows, columns = equilibrate(matrix)
    factors = factorize(balanced.tocsc())
    if factors is None:
        return None
    step = columns * factors.solve(rows * right)
    step = step + columns * factors.solve(rows * (right - matrix @ step))
    return step if np.isfinite(step).all() else None
