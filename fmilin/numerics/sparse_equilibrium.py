"""Whether a point of a large model is an equilibrium; for arrays see :mod:`fmilin.numerics.balanced`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fmilin.numerics.balanced import MEASURED, UNTOLD
from fmilin.numerics.sparse_rank import equilibrate, factorize
from fmilin.numerics.sparse_rows import reduce_rows
from fmilin.signals import FloatArray
from fmilin.tolerances import BALANCED_EXACTLY, DETERMINED, EQUILIBRIUM, ROUNDING

if TYPE_CHECKING:
    from scipy import sparse

LEAST_SQUARES_TOLERANCE = 1e-14
LEAST_SQUARES_STEPS = 4  # times the number of states


def is_sparse_equilibrium(
    rates: FloatArray, sizes: FloatArray, slopes: sparse.csr_array[Any], errors: sparse.csr_array[Any]
) -> bool:
    """Whether an equilibrium is so near to a point that it is one.

    ``rates`` and ``sizes`` (N,) are those of the states; ``slopes`` and their ``errors`` (N, N + nu) those of the rates
    along states and inputs, all in sizes of these. The step to the equilibrium is that of a sparse factorization where
    the states determine it, else the shortest one.
    """
    from scipy import sparse
    from scipy.sparse.linalg import lsmr

    count = len(rates)
    terms = reduce_rows(np.add, np.abs(slopes.data), slopes.indptr)
    measured = reduce_rows(np.maximum, errors.data, errors.indptr)
    noise = np.maximum(np.maximum(UNTOLD * sizes, ROUNDING * terms), MEASURED * measured)
    is_slow = bool((np.abs(rates) <= EQUILIBRIUM * sizes).all())
    if is_slow:
        if (np.abs(rates) <= noise).all():
            return True
        step = _solve(slopes[:, :count], -rates)
        is_short = step is not None and (np.abs(step) <= DETERMINED / 2).all()
        if is_short and (np.abs(rates + slopes[:, :count] @ step) <= noise).all():
            return True
    weights = 1.0 / np.maximum(terms, noise)
    scaled = sparse.diags_array(weights) @ slopes
    tolerance = LEAST_SQUARES_TOLERANCE
    step = lsmr(scaled, -rates * weights, atol=tolerance, btol=tolerance, maxiter=LEAST_SQUARES_STEPS * count)[0]
    return bool((np.abs(step) <= BALANCED_EXACTLY).all() and (np.abs(rates + slopes @ step) <= noise).all())


def _solve(matrix: sparse.csr_array[Any], right: FloatArray) -> FloatArray | None:
    """Return the solution of a square system, refined once; None where it is singular."""
    balanced, rows, columns = equilibrate(matrix)
    factors = factorize(balanced.tocsc())
    if factors is None:
        return None
    step = columns * factors.solve(rows * right)
    step = step + columns * factors.solve(rows * (right - matrix @ step))
    return step if np.isfinite(step).all() else None
