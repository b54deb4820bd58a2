"""The problem of each formulation in sparse matrices: (s^2 M + s C + K) x + G' l = 0, G x = 0.

- MCS: R' M R, R' C R, R' K R and no border; R from the elimination.
- RCS: M, C, K bordered by Phi_q; in motion, where the terms of the turning tangent space would fill the matrices, with
  the accelerations as unknowns of their own (:func:`motion_pencil`).
- UCS: the penalized matrices, no border.

Systems are solved twice over: the stiffness of finite elements grows with the fourth power of their number against that
of the slowest motion, and a factorization loses as many digits. A residual in extended precision, solved for with the
same factors, corrects the solution until it is right to double precision, as long as the factors have one digit right
(Wilkinson; Higham, Accuracy and Stability of Numerical Algorithms, chapter 12). Where the machine's long double is no
longer than a double, nothing is gained and nothing lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from fmilin.errors import NumericalError
from fmilin.formulations.form import ConstrainedForm, ConstraintMotion
from fmilin.formulations.formulation import UCS, ComplexArray
from fmilin.formulations.formulation_matrices import (
    compute_motion_terms,
    follow_positions,
    penalize_equations,
    project_equations,
)
from fmilin.formulations.sparse.elimination import SparseNullSpace, sparse_null_space
from fmilin.numerics.factors import SparseFactors
from fmilin.signals import FloatArray
from fmilin.tolerances import EPS, REAL_SQUARE_TOLERANCE

EXTENDED = float(np.finfo(np.longdouble).eps)  # what the residuals are rounded to
MAX_CORRECTIONS = 4  # corrections; one is enough unless the matrix is very stiff
GAIN = 0.1  # A correction that is not smaller than this part of the one before gains nothing


def to_extended_precision(matrix: Any) -> Any:
    """Return a sparse matrix with entries in extended precision, real or complex."""
    return matrix.astype(np.clongdouble if np.iscomplexobj(matrix) else np.longdouble)


class RefinedFactors:
    """LU factors of a sparse matrix W (k, k) of :func:`extended` parts, with iterative refinement."""

    def __init__(self, W: Any, what: str) -> None:
        self._W = W.tocsr()
        self._kind = np.complex128 if np.iscomplexobj(W) else np.float64
        self._factors = SparseFactors(W.tocsc().astype(self._kind), what)

    def solve(self, right: Any) -> Any:
        """Return W^-1 right, for right (k,) or (k, j), in double precision."""
        right = to_extended_precision(np.asarray(right))
        x = to_extended_precision(self._factors.solve(right.astype(self._kind)))
        before = np.inf
        for _ in range(MAX_CORRECTIONS):
            change = self._factors.solve((right - self._W @ x).astype(self._kind))
            size = float(np.max(np.abs(change), initial=0.0))
            if not size < GAIN * before:
                break  # what is left is the residual's own rounding, or the factors have no digit right
            x, before = x + change, size
            if size <= EPS * float(np.max(np.abs(x), initial=0.0)):
                break
        return x.astype(self._kind)


MAX_FILL_SIZE = 20_000_000  # entries that the terms of a moving point may have


@dataclass(frozen=True, eq=False)
class QuadraticProblem:
    """(s^2 M + s C + K) x + G' l = 0, G x = 0."""

    M: Any  # shape (k, k)
    C: Any  # shape (k, k)
    K: Any  # shape (k, k)
    G: Any = None  # shape (r, k)
    # lift_x, lift_sx: (2n, k), (dq, dv) = lift_x x + lift_sx (s x); None: x itself is dq and s x is dv
    lift_x: Any = None
    lift_sx: Any = None
    # whether the problem itself is off by more than rounding is: no digits are then spent on that
    is_approximate: bool = False

    @property
    def is_symmetric(self) -> bool:
        """Whether nothing damps, nothing turns, and M and K are symmetric: s^2 is then real."""
        if not self.M.shape[0]:
            return True
        if abs(self.C).max() > 0:
            return False
        return all(abs(m - m.T).max() <= REAL_SQUARE_TOLERANCE * abs(m).max() for m in (self.M, self.K))

    def border_matrix(self, s: complex) -> Any:
        """Return [[s^2 M + s C + K, G'], [G, 0]]."""
        return self._with_border(s * s * self.M + s * self.C + self.K)

    def shift_matrix(self, mu: float) -> Any:
        """Return [[K - mu M, G'], [G, 0]]."""
        return self._with_border(self.K - mu * self.M)

    def _with_border(self, Q: Any) -> Any:
        return Q.tocsc() if self.G is None else sparse.block_array([[Q, self.G.T], [self.G, None]], format="csc")

    def to_extended_precision(self) -> QuadraticProblem:
        """Return the same matrices in extended precision."""
        M, C, K = (to_extended_precision(a) for a in (self.M, self.C, self.K))
        return QuadraticProblem(M, C, K, None if self.G is None else to_extended_precision(self.G))

    @property
    def border(self) -> int:
        """The number of rows of G."""
        return 0 if self.G is None else int(self.G.shape[0])

    def within(self, V: FloatArray) -> QuadraticProblem:
        """Return the problem for x = V z, the columns of V (k, j) being all that the border allows."""
        M, C, K = (sparse.csc_array(V.T @ (a @ V)) for a in (self.M, self.C, self.K))
        no = np.zeros_like(V)
        return QuadraticProblem(M, C, K, None, np.vstack((V, no)), np.vstack((no, V)))

    def extract_motion(self, x: ComplexArray, s: ComplexArray) -> ComplexArray:
        """Return (dq, dv), shape (2n, j), for vectors x (k, j) of the eigenvalues s (j,)."""
        if self.lift_x is None:
            return np.vstack((x, x * s))
        lifted: ComplexArray = self.lift_x @ x + self.lift_sx @ (x * s)
        return lifted


@dataclass(frozen=True, eq=False)
class LinearPencil:
    """E z' = A z; z starts with dq (n,) and dv (n,)."""

    E: Any
    A: Any
    n: int


def minimal(form: ConstrainedForm, independent: Sequence[int] | None) -> tuple[QuadraticProblem, SparseNullSpace]:
    """Return the problem in independent coordinates (MCS)."""
    Z = sparse_null_space(form.Phi_q, independent)
    R = Z.R
    L = follow_positions(form, R, Z.lift)
    M, C, K = project_equations(form, R, L, Z.lift)
    problem = QuadraticProblem(
        M=M.tocsc(),
        C=C.tocsc(),
        K=K.tocsc(),
        lift_x=sparse.vstack((R, L), format="csc"),
        lift_sx=sparse.vstack((form.zeros(*R.shape), R), format="csc"),
    )
    return problem, Z


def redundant(form: ConstrainedForm) -> QuadraticProblem:
    """Return the problem with multipliers (RCS), at a point of rest; redundant constraints are left out."""
    rows = sparse_null_space(form.Phi_q).rows
    G = sparse.csr_array(form.Phi_q)
    return QuadraticProblem(form.M, form.C, form.K, G if len(rows) == form.m else G[np.sort(rows)])


def motion_pencil(form: ConstrainedForm, independent: Sequence[int] | None) -> LinearPencil:
    """Return E z' = A z with z = (dq, dv, da, dlambda), exact at any consistent point, all its indices one.

        S dq' = S dv,    S dv' = S da,    M da + C dv + K dq + Phi_q' dlambda = 0
        Phi_q dq = 0,    Phi_q dv + Phi_q_dot dq = 0,    Phi_q da + gamma_q dq + gamma_v dv = 0

    S picks the independent coordinates.
    """
    if form.motion is None:
        zero = sparse.csr_array(form.Phi_q.shape)
        rate = by_q = by_v = zero
    else:
        rate, by_q, by_v = form.motion.Phi_q_dot, form.motion.gamma_q, form.motion.gamma_v
    Z = sparse_null_space(form.Phi_q, independent)
    rows = np.sort(Z.rows)
    G, rate, by_q, by_v = (sparse.csr_array(a)[rows] for a in (form.Phi_q, rate, by_q, by_v))
    n, r, p = form.n, len(rows), len(Z.independent)
    S = sparse.csr_array((np.ones(p), (np.arange(p), Z.independent)), shape=(p, n))
    k = 3 * n + r
    A = sparse.block_array(
        [
            [None, S, None, None],
            [None, None, S, None],
            [form.K, form.C, form.M, G.T],
            [G, None, None, None],
            [rate, G, None, None],
            [by_q, by_v, G, sparse.csr_array((r, r))],
        ],
        format="csc",
    )
    E = sparse.block_array([[S, None], [None, S]], format="csc")
    E = sparse.csc_array(
        (E.data, E.indices, np.concatenate((E.indptr, np.full(n + r, E.indptr[-1])))), shape=(2 * p, k)
    )
    return LinearPencil(sparse.vstack((E, sparse.csc_array((k - 2 * p, k))), format="csc"), A, n)


def penalize_problem(form: ConstrainedForm, options: UCS, independent: Sequence[int] | None) -> QuadraticProblem:
    """Return the penalized problem (UCS)."""
    M, C, K = (matrix.tocsc() for matrix in penalize_equations(form, options))
    penalized = QuadraticProblem(M, C, K, is_approximate=True)
    if form.motion is None:
        return penalized
    return _carry_motion(form, form.motion, penalized, sparse_null_space(form.Phi_q, independent))


def _carry_motion(
    form: ConstrainedForm, motion: ConstraintMotion, penalized: QuadraticProblem, Z: SparseNullSpace
) -> QuadraticProblem:
    """Return the problem with the terms N P, N Q, N W of a moving point: dv = (s - N P) dq."""
    filled = len(Z.dependent) * len(np.unique(sparse.csc_array(motion.gamma_v).nonzero()[1]))
    if filled > MAX_FILL_SIZE:
        raise NumericalError(
            f"The penalty formulation of this moving point would need a matrix of about {filled:,} entriesfor the "
            "dependent coordinates. Use the formulation mcs or rcs, or an equilibrium."
        )
    terms = compute_motion_terms(form, Z.lift)
    NP = terms.NP
    M, C, K = penalized.M, penalized.C + penalized.M @ terms.NW, penalized.K + penalized.M @ terms.NQ
    eye = sparse.eye_array(form.n, format="csc")
    # s dv = a - NQ dq - NW dv with dv = (s - NP) dq
    return QuadraticProblem(
        M=M,
        C=(C - M @ NP).tocsc(),
        K=(K - C @ NP).tocsc(),
        lift_x=sparse.vstack((eye, -NP), format="csc"),
        lift_sx=sparse.vstack((form.zeros(*eye.shape), eye), format="csc"),
        is_approximate=True,
    )
