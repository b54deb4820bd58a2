"""Factorized matrices: one interface, dense and sparse ones, and the error of a singular one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import NumericalError, join_first
from fmilin.numerics.lapack import lapack
from fmilin.signals import FloatArray
from fmilin.tolerances import MIN_RECIPROCAL_CONDITION_NUMBER

MAX_LISTED_NAMES = 6  # names of undetermined unknowns in a message
MAX_SEPARATE_MATRICES = (
    3  # matrices that are solved one by one: an inverse is not as exact where a matrix is ill-conditioned
)
MAX_INVERSE_SIZE = 1e4
"""Of scaled matrices (mean Frobenius norm) up to which products with inverses are exact enough as they are."""
MIN_SEPARATE_ROWS = 48  # rows from which each of a few matrices is factorized alone
MAX_SINGLE_COLUMN_SIZE = 40_000
"""Entries of a right-hand side below which its columns are solved one by one: given several at once OpenBLAS starts
its threads, which takes microseconds on an idle machine and ten milliseconds on a busy one."""


class Factors(Protocol):
    """A matrix W (k, k), factorized so that W w = r can be solved many times; some members take stacks (..., k, k)."""

    @property
    def rcond(self) -> float | FloatArray:
        """Reciprocal condition number of what is inverted, for each matrix; NaN where W holds a NaN."""

    @property
    def is_singular(self) -> bool | NDArray[np.bool_]:
        """Whether w is not determined, for each matrix; False where W holds a NaN."""

    def solve(self, right: FloatArray) -> FloatArray:
        """Return w for r = ``right``, shape (k,) or (k, j), or (..., k, j) for stacks; NaN where W holds a NaN."""

    def null_vector(self) -> FloatArray | None:
        """Return the direction of w, (k,), that is least determined, for a single matrix; None when not computed."""


def is_singular(rcond: float | FloatArray) -> bool | NDArray[np.bool_]:
    """Whether a matrix with this reciprocal condition number, scaled, is singular to working precision."""
    singular = rcond <= MIN_RECIPROCAL_CONDITION_NUMBER
    return singular if isinstance(singular, np.ndarray) else bool(singular)


def require_regular(
    factors: Factors, subject: str, unknowns: Sequence[object] = (), when: str = "at this point"
) -> None:
    """Raise a NumericalError for a singular matrix.

    ``subject`` names the equations, ``unknowns`` their unknowns, and ``when`` the point, for the message.
    """
    is_singular = factors.is_singular
    if is_singular.any() if isinstance(is_singular, np.ndarray) else is_singular:
        raise singular(float(np.nanmin(factors.rcond)), subject, unknowns, when, factors.null_vector())


def singular(
    rcond: float,
    subject: str,
    unknowns: Sequence[object] = (),
    when: str = "at this point",
    direction: FloatArray | None = None,
) -> NumericalError:
    """Return the error that says which unknowns a singular matrix leaves open, those along its null ``direction``."""
    loose: list[str] = []
    if direction is not None and len(unknowns):
        order = np.argsort(-np.abs(direction), kind="stable")
        loose = [str(unknowns[i]) for i in order if abs(direction[i]) > 1e-6 * np.abs(direction).max()]
    undetermined = f" and leaves {join_first(loose, MAX_LISTED_NAMES)} undetermined" if loose else ""
    return NumericalError(
        f"{subject} have no unique solution {when}: the matrix that multiplies the unknown rates and multipliers is "
        f"singular (reciprocal condition number {rcond:.1e}){undetermined}. Constraints depend on each other here, a "
        "free motion has no mass, or angles are singular: choose another point, remove the redundant constraints, or "
        "add the mass.",
        condition_number=1.0 / rcond if rcond > 0 else float("inf"),
        variable=loose[0] if loose else None,
    )


class DenseFactors:
    """LU factors of W (..., n, n), rows and columns scaled to largest entries of one, in a stack to lengths of one."""

    def __init__(self, W: FloatArray) -> None:
        *stack, n, _ = W.shape
        self._is_one = math.prod(stack) == 1
        self._row_scale, self._column_scale = _scales(W) if self._is_one and n else _scales_of_stack(W)
        self._scaled = W * self._row_scale[..., None] * self._column_scale[..., None, :]
        # A few large matrices are factorized one by one: their inverses take three times as long.
        is_separate = 1 < math.prod(stack) <= MAX_SEPARATE_MATRICES and n >= MIN_SEPARATE_ROWS
        self._each = [DenseFactors(one) for one in W.reshape(-1, n, n)] if is_separate else []
        if self._is_one and n:
            scaled = self._scaled.reshape(n, n)
            self._norm = float(lapack.dlange("1", scaled))  # type: ignore[call-arg]  # the stubs know one argument
            if math.isfinite(self._norm):
                self._lu, self._pivots, self._zero_pivot = lapack.dgetrf(scaled)

    @cached_property
    def rcond(self) -> float | FloatArray:
        """Reciprocal 1-norm condition number of each scaled W, of a single one estimated; NaN where W is not finite."""
        *stack, n, _ = self._scaled.shape
        if n == 0:
            return np.ones(stack)[()]
        if self._each:
            return np.array([one.rcond for one in self._each]).reshape(stack)
        if not self._is_one:
            with np.errstate(all="ignore"):
                reciprocals: FloatArray = 1.0 / (norms(self._scaled) * norms(self._inverse))
            return reciprocals
        one = math.nan
        if math.isfinite(self._norm):
            one = 0.0 if self._zero_pivot else float(lapack.dgecon(self._lu, self._norm)[0])
        return np.full(stack, one) if stack else one

    @property
    def is_singular(self) -> bool | NDArray[np.bool_]:
        """Whether each W is singular to working precision."""
        if (
            not self._is_one and not self._each
        ):  # columns have length one: rcond is not below 1 / (n |W^-1|) in the Frobenius norm
            bound = self._scaled.shape[-1] * math.sqrt(np.vdot(self._inverse, self._inverse))
            if bound * MIN_RECIPROCAL_CONDITION_NUMBER < 1.0:
                return np.zeros(self._scaled.shape[:-2], dtype=np.bool_)
        return is_singular(self.rcond)

    @cached_property
    def _inverse(self) -> FloatArray:
        return inverses(self._scaled)

    def solve(self, right: FloatArray) -> FloatArray:
        """Return W^-1 right, for right (n,) or (n, k) or (..., n, k); NaN where W holds a NaN. No W may be singular."""
        if right.size == 0:
            return np.zeros_like(right)
        if (
            1 < math.prod(self._scaled.shape[:-2]) <= MAX_SEPARATE_MATRICES
            and right.shape[:-2] == self._scaled.shape[:-2]
        ):
            one_by_one = right.shape[-1] == 1 or math.prod(right.shape[-2:]) >= MAX_SINGLE_COLUMN_SIZE
            if self._each and one_by_one:
                return np.stack(
                    [one.solve(b) for one, b in zip(self._each, right.reshape(-1, *right.shape[-2:]), strict=True)]
                ).reshape(right.shape)
            solution = np.linalg.solve(self._scaled, right * self._row_scale[..., None])
            return np.asarray(solution * self._column_scale[..., None], dtype=np.float64)
        if not self._is_one or math.prod(right.shape[:-2]) > 1:
            return self._multiply_inverse(right * self._row_scale[..., None]) * self._column_scale[..., None]
        if not math.isfinite(self._norm):
            return np.full_like(right, np.nan)
        row, column = self._row_scale.reshape(-1), self._column_scale.reshape(-1)
        if right.ndim == 1:
            return lu_solved(self._lu, self._pivots, right * row) * column
        scaled = right.reshape(right.shape[-2:]) * row[:, None]
        return (lu_solved(self._lu, self._pivots, scaled) * column[:, None]).reshape(right.shape)

    def _multiply_inverse(self, right: FloatArray) -> FloatArray:
        """Return the solutions by the inverses, which are corrected where the matrices are ill-conditioned.

        Products with an inverse have errors of the condition number times those of an elimination. One correction by
        the residuals takes them away (Higham, Accuracy and Stability of Numerical Algorithms, chapter 12).
        """
        solution = self._inverse @ right
        if self._is_ill_conditioned:
            with np.errstate(all="ignore"):
                solution += self._inverse @ (right - self._scaled @ solution)
        return solution

    @cached_property
    def _is_ill_conditioned(self) -> bool:
        largest = math.sqrt(np.vdot(self._inverse, self._inverse) / max(1, math.prod(self._scaled.shape[:-2])))
        return largest > MAX_INVERSE_SIZE

    def null_vector(self) -> FloatArray:
        """Return the direction of w, (n,), of which the first singular W says least, its largest entry one."""
        n = self._scaled.shape[-1]
        worst = int(np.nanargmin(np.ravel(self.rcond)))
        scaled, scale = self._scaled.reshape(-1, n, n)[worst], self._column_scale.reshape(-1, n)[worst]
        direction = np.linalg.svd(scaled)[2][-1] * scale
        result: FloatArray = direction / np.abs(direction).max()
        return result


def lu_solved(lu: FloatArray, pivots: NDArray[np.int32], right: FloatArray) -> FloatArray:
    """Return A^-1 right for the factors of A (n, n) by LAPACK's ``dgetrf``, and right (n,) or (n, k), not empty."""
    if right.ndim == 1 or right.size >= MAX_SINGLE_COLUMN_SIZE:
        solution: FloatArray = lapack.dgetrs(lu, pivots, right)[0]
        return solution
    return np.array([lapack.dgetrs(lu, pivots, column)[0] for column in right.T]).T


def _scales(W: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return what rows and columns of a single W (..., n, n) are to be multiplied with, each (..., n)."""
    *stack, n, _ = W.shape
    row, column, _, _, _, lost = lapack.dgeequ(W.reshape(n, n))
    return (row.reshape(*stack, n), column.reshape(*stack, n)) if lost == 0 else _scales_of_stack(W)


def _scales_of_stack(W: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the same for a stack, to lengths of one: maxima of short rows take NumPy ten times longer."""
    row = _reciprocal(np.sqrt(np.einsum("...ij,...ij->...i", W, W)))
    scaled = W * row[..., None]
    return row, _reciprocal(np.sqrt(np.einsum("...ij,...ij->...j", scaled, scaled)))


def _reciprocal(sizes: FloatArray) -> FloatArray:
    return 1.0 / np.where(sizes > 0, sizes, 1.0)


def inverses(W: FloatArray) -> FloatArray:
    """Return the inverses of a stack, infinite where W is singular."""
    try:
        with np.errstate(invalid="ignore"):
            return np.linalg.inv(W).astype(np.float64, copy=False)
    except np.linalg.LinAlgError:  # one of them: find out which
        return np.full_like(W, np.inf) if W.ndim == 2 else np.stack([inverses(one) for one in W])


def norms(W: FloatArray) -> FloatArray:
    """Return the 1-norm of each matrix."""
    norm: FloatArray = np.abs(W).sum(axis=-2).max(axis=-1)
    return norm


MAX_DENSE_ROWS = 250  # rows up to which a dense factorization is the quicker one
MAX_SPARSE_FRACTION = 0.05  # part of the entries up to which the factors of a matrix are sparse
PIVOT_THRESHOLD = 0.1  # A pivot on the diagonal is kept when it is at least this fraction of the largest of its column


def regular_factors(W: Any, subject: str, *, estimate: bool = True) -> DenseFactors | SparseFactors:
    """Return the factors of W (k, k), sparse or not; reject a singular one, without ``estimate`` by its pivots only."""
    is_dense = isinstance(W, np.ndarray)
    if not np.isfinite(W if is_dense else W.data).all():
        raise NumericalError(f"{subject} contain a NaN or an infinity at this point: choose another.")
    try:
        factors = DenseFactors(W) if is_dense else SparseFactors(W)
    except NumericalError:
        raise singular(0.0, subject) from None
    if estimate:
        require_regular(factors, subject)
    return factors


def mass_factors(M: FloatArray) -> DenseFactors | SparseFactors:
    """Return the factors of M (..., n, n): sparse ones of a single large matrix of free bodies, mostly zeros."""
    is_sparse = M.ndim == 2 and len(M) > MAX_DENSE_ROWS and np.count_nonzero(M) < MAX_SPARSE_FRACTION * M.size
    if not is_sparse or not np.isfinite(M).all():
        return DenseFactors(M)
    from scipy.sparse import csc_array

    with suppress(NumericalError):
        factors = SparseFactors(csc_array(M))
        if not factors.is_singular:
            return factors
    return DenseFactors(M)  # which tells what a singular matrix leaves undetermined


class SparseFactors:
    """LU factors of a sparse square matrix, real or complex, scaled, and ordered against fill-in (SuperLU)."""

    def __init__(self, W: Any, what: str = "the matrix") -> None:
        from scipy.sparse import csc_array
        from scipy.sparse.linalg import splu

        W = W.tocsc()
        # Rows and columns of one size: the full ones of a frame would attract pivots, and fill everything.
        columns = np.repeat(np.arange(W.shape[1]), np.diff(W.indptr))
        self._scale = _equilibrate(np.abs(W.data), W.indices, columns, W.shape[0])
        # Minimum degree leaves full rows for last, where pivots may stay on the diagonal; where multipliers have none
        # rows are exchanged, and the order must be good whatever the exchanges (COLAMD).
        order: Literal["MMD_AT_PLUS_A", "COLAMD"] = "MMD_AT_PLUS_A" if W.diagonal().all() else "COLAMD"
        data = np.ascontiguousarray(W.data * self._scale[W.indices] * self._scale[columns])
        self._norm = float(np.bincount(columns, np.abs(data), minlength=1).max())
        try:
            self._lu = splu(
                csc_array((data, W.indices, W.indptr), shape=W.shape),
                permc_spec=order,
                diag_pivot_thresh=PIVOT_THRESHOLD,
            )
        except (RuntimeError, ValueError) as error:
            raise NumericalError(f"{what[0].upper()}{what[1:]} is singular: {error}.") from None

    @cached_property
    def rcond(self) -> float:
        """Estimated reciprocal condition number of the scaled matrix, in the 1-norm (Higham's estimate)."""
        from scipy.sparse.linalg import LinearOperator, onenormest

        factors: Any = self._lu  # its types do not know that it solves with W', too

        def solve_transposed(right: Any) -> Any:
            return factors.solve(right, "H")

        solve, shape = self._lu.solve, self._lu.shape
        inverse = LinearOperator(shape, solve, solve_transposed, solve, rmatmat=solve_transposed, dtype=np.float64)
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


def _equilibrate(sizes: FloatArray, rows: NDArray[np.integer], columns: NDArray[np.integer], count: int) -> FloatArray:
    """Return d with entries d_i |W_ij| d_j of one as the largest of each row and column (Ruiz), nearly."""
    d = np.ones(count)
    for _ in range(4):
        scaled, largest = sizes * d[rows] * d[columns], np.zeros(count)
        np.maximum.at(largest, rows, scaled)
        np.maximum.at(largest, columns, scaled)
        d /= np.sqrt(np.where(largest > 0, largest, 1.0))
    return d
