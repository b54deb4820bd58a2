"""Large sparse matrices, factorized."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fmilin.ground.errors import NumericalError
from fmilin.ground.signals import FloatArray
from fmilin.numerics.saddle_point.factors import DenseFactors, is_singular, require_regular, singular

LARGEST_DENSE = 250  # rows up to which a dense factorization is the quicker one
PIVOT = 0.1  # A pivot on the diagonal is kept when it is at least this fraction of the largest of its column


def regular_factors(W: Any, subject: str, *, estimate: bool = True) -> DenseFactors | SparseFactors:
    """Return the factors of W (k, k), sparse or not; refuse a singular one.

    Without ``estimate`` only a matrix without a pivot is: the condition number of fine finite elements is 1e16 and
    more though their accelerations are determined well.
    """
    is_dense = isinstance(W, np.ndarray)
    if not np.isfinite(W if is_dense else W.data).all():
        raise NumericalError(f"{subject} hold a NaN or an infinity at this point: choose another.")
    try:
        factors = DenseFactors(W) if is_dense else SparseFactors(W)
    except NumericalError:
        raise singular(0.0, subject) from None
    if estimate:
        require_regular(factors, subject)
    return factors


class SparseFactors:
    """LU factors of a sparse square matrix, real or complex, scaled, and ordered against fill-in (SuperLU)."""

    def __init__(self, W: Any, what: str = "the matrix") -> None:
        from scipy.sparse import csc_array
        from scipy.sparse.linalg import splu

        W = W.tocsc()
        # Rows and columns of one size: the full ones of a frame would attract pivots, and fill everything.
        columns = np.repeat(np.arange(W.shape[1]), np.diff(W.indptr))
        self._scale = _equilibrated(np.abs(W.data), W.indices, columns, W.shape[0])
        # Minimum degree leaves full rows for last, where pivots may stay on the diagonal; where multipliers have none
        # rows are exchanged, and the order must be good whatever the exchanges (COLAMD).
        order: Literal["MMD_AT_PLUS_A", "COLAMD"] = "MMD_AT_PLUS_A" if W.diagonal().all() else "COLAMD"
        data = np.ascontiguousarray(W.data * self._scale[W.indices] * self._scale[columns])
        self._norm = float(np.bincount(columns, np.abs(data), minlength=1).max())
        try:
            self._lu = splu(
                csc_array((data, W.indices, W.indptr), shape=W.shape), permc_spec=order, diag_pivot_thresh=PIVOT
            )
        except (RuntimeError, ValueError) as error:
            raise NumericalError(f"{what[0].upper()}{what[1:]} is singular: {error}.") from None

    @cached_property
    def rcond(self) -> float:
        """Estimated reciprocal condition number of the scaled matrix, in the 1-norm (Higham's estimate)."""
        from scipy.sparse.linalg import LinearOperator, onenormest

        factors: Any = self._lu  # its types do not know that it solves with W', too

        def transposed(right: Any) -> Any:
            return factors.solve(right, "H")

        solve, shape = self._lu.solve, self._lu.shape
        inverse = LinearOperator(shape, solve, transposed, solve, rmatmat=transposed, dtype=np.float64)
        size = self._norm * float(onenormest(inverse))
        return 1.0 / size if np.isfinite(size) else 0.0

    @property
    def is_singular(self) -> bool:
        """Whether W is singular to working precision."""
        return bool(is_singular(self.rcond))

    def solve(self, right: Any) -> Any:
        """Return W^-1 right, for right (k,) or (k, j)."""
        scale = self._scale if right.ndim == 1 else self._scale[:, None]
        return scale * self._lu.solve(np.ascontiguousarray(scale * right))

    def null_vector(self) -> None:
        """Return None: what a large singular matrix leaves open is not computed."""


def _equilibrated(sizes: FloatArray, rows: NDArray[np.integer], columns: NDArray[np.integer], count: int) -> FloatArray:
    """Return d with entries d_i |W_ij| d_j of one as the largest of each row and column (Ruiz), nearly."""
    d = np.ones(count)
    for _ in range(4):
        scaled, largest = sizes * d[rows] * d[columns], np.zeros(count)
        np.maximum.at(largest, rows, scaled)
        np.maximum.at(largest, columns, scaled)
        d /= np.sqrt(np.where(largest > 0, largest, 1.0))
    return d
