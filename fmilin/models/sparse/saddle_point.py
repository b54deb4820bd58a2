"""The matrix of Lagrange's equations, [[M, G'], [G, 0]], factorized: dense when small, sparse when large."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fmilin.codegen.factorized import Factorized
from fmilin.errors import NumericalError
from fmilin.models.sparse.pattern import Pattern
from fmilin.signals import FloatArray

__all__ = ["LARGEST_DENSE", "SaddleFactors", "SaddlePoint", "SparseFactors"]

LARGEST_DENSE = 250
"""Rows up to which a dense factorization is the quicker one."""


PIVOT = 0.1
"""A pivot on the diagonal is kept when it is at least this fraction of the largest of its column."""


class SparseFactors:
    """LU factors of a sparse square matrix, scaled, and ordered against fill-in (SuperLU).

    Parameters
    ----------
    W : scipy.sparse array, shape (k, k)
        Real or complex.

    Raises
    ------
    NumericalError
        When W is singular, with the kind of matrix in words.
    """

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

        inverse = LinearOperator(
            self._lu.shape,
            matvec=self._lu.solve,
            rmatvec=transposed,
            matmat=self._lu.solve,
            rmatmat=transposed,
            dtype=np.float64,
        )
        size = self._norm * float(onenormest(inverse))
        return 1.0 / size if np.isfinite(size) else 0.0

    @property
    def fill(self) -> int:
        """Entries in both factors."""
        return int(self._lu.nnz)

    def solve(self, right: Any) -> Any:
        """Return W^-1 right, for right (k,) or (k, j)."""
        scale = self._scale if right.ndim == 1 else self._scale[:, None]
        return scale * self._lu.solve(np.ascontiguousarray(scale * right))


def _equilibrated(sizes: FloatArray, rows: NDArray[np.integer], columns: NDArray[np.integer], count: int) -> FloatArray:
    """Return d with entries d_i |W_ij| d_j of one as the largest of each row and column (Ruiz), nearly."""
    d = np.ones(count)
    for _ in range(4):
        scaled, largest = sizes * d[rows] * d[columns], np.zeros(count)
        np.maximum.at(largest, rows, scaled)
        np.maximum.at(largest, columns, scaled)
        d /= np.sqrt(np.where(largest > 0, largest, 1.0))
    return d


class SaddlePoint:
    """[[M, G'], [G, 0]] (a; lambda) = (f; -b), for one pattern and any number of points.

    Parameters
    ----------
    M : Pattern, shape (n, n)
    G : Pattern, shape (m, n)
    """

    def __init__(self, M: Pattern, G: Pattern) -> None:
        n, m = self._n, _ = M.shape[0], G.shape[0]
        single = np.flatnonzero(np.bincount(G.rows, minlength=m)[G.rows] == 1)
        self._single = single, G.rows[single], G.columns[single]
        self.pattern = Pattern.joined([(M, 0, 0), (G.T, 0, n), (G, n, 0)], (n + m, n + m))

    def factorized(self, mass: FloatArray, jacobian: FloatArray) -> SaddleFactors:
        """Return the factors at one point, from the values of M and G.

        Raises
        ------
        NumericalError
            When the matrix is singular.
        """
        values = np.concatenate((mass, jacobian, jacobian))
        if not np.isfinite(values).all():
            raise NumericalError("The equations of motion hold a NaN or an infinity at this point: choose another.")
        places, rows, columns = self._single
        held = columns, self._n + rows, jacobian[places]
        if self.pattern.shape[0] > LARGEST_DENSE:
            sparse = SparseFactors(self.pattern.sparse(values), "the matrix of the equations of motion")
            return SaddleFactors(sparse.solve, *held)
        factors = Factorized(self.pattern.dense(values))
        if factors.is_singular:
            raise NumericalError(
                "The accelerations cannot be solved for: the matrix of the equations of motion is singular at this "
                "point. The constraints depend on each other here, or a velocity that they leave free has no inertia.",
                condition_number=1 / factors.rcond if factors.rcond > 0 else float("inf"),
            )
        return SaddleFactors(factors.solve, *held)


@dataclass(frozen=True)
class SaddleFactors:
    """The factorized matrix; what a constraint on a single coordinate says is taken from it alone.

    A coordinate that is held then has the acceleration zero, not one of 1e-17: rounding is no motion.

    Parameters
    ----------
    solver : callable
    columns, rows : array of int
        Coordinates that a constraint determines alone, and the places of these constraints in the right-hand side.
    entries : array
        Their entries of G.
    """

    solver: Callable[[FloatArray], FloatArray]
    columns: NDArray[np.intp]
    rows: NDArray[np.intp]
    entries: FloatArray

    def solve(self, right: FloatArray) -> FloatArray:
        """Return (a; lambda) for a right-hand side of shape (n + m,) or (n + m, k)."""
        w = self.solver(right)
        w[self.columns] = (right[self.rows].T / self.entries).T
        return w
