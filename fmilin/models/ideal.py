"""Accelerations under ideal constraints that may be redundant: what engines leave to an adapter.

    M a - G' lambda = r,   G a = s

M is symmetric positive definite; where rows of G depend on each other, lambda is that of least norm, as in
Gauss's principle: a is as near as it can be to M^-1 r in the metric of M (Udwadia and Kalaba 1992).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import lapack

from fmilin.errors import ModelError
from fmilin.signals import FloatArray
from fmilin.tolerances import RANK

__all__ = ["IdealConstraints"]


@dataclass(frozen=True)
class IdealConstraints:
    """M = L L' and (L^-1 G')' = U S V', redundant rows left out.

    LAPACK is called directly: for a dozen joints the wrappers of scipy.linalg cost more than the work.
    """

    G: FloatArray
    L: FloatArray
    U: FloatArray
    S: FloatArray
    V: FloatArray

    @classmethod
    def of(cls, M: FloatArray, G: FloatArray) -> Self:
        """Factorize; NaN in M or G goes through to the accelerations, where the caller names the variable.

        Parameters
        ----------
        M : array, shape (n, n)
            Its lower triangle is read.
        G : array, shape (m, n)

        Raises
        ------
        ModelError
            When M is not positive definite.
        """
        n = len(M)
        empty = (np.empty((len(G), 0)), np.empty(0), np.empty((0, n)))
        if not (np.isfinite(M).all() and np.isfinite(G).all()):
            return cls(G, np.full((n, n), np.nan), *empty)
        L, failed = lapack.dpotrf(M, lower=1)
        if failed:
            raise ModelError("The mass matrix is not positive definite: give every body that moves mass and inertia.")
        if not len(G):
            return cls(G, L, *empty)
        W, _ = lapack.dtrtrs(L, G.T, lower=1)
        U, S, V, _ = lapack.dgesdd(W.T, full_matrices=0)
        kept = RANK * S[0] < S
        return cls(G, L, U[:, kept], S[kept], V[kept])

    def solve(self, r: FloatArray, s: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return a, shape (n,) or (n, k), and lambda, (m,) or (m, k), for r and s of as many columns."""
        y, _ = lapack.dtrtrs(self.L, r, lower=1)
        free, _ = lapack.dtrtrs(self.L, y, lower=1, trans=1)
        return self.constrained(free.reshape(r.shape), s)

    def constrained(self, free: FloatArray, s: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return a and lambda as :meth:`solve` does, from the accelerations ``free`` = M^-1 r without constraints."""
        if np.isnan(self.L[0, 0]):
            return np.full(free.shape, np.nan), np.full(s.shape, np.nan)
        if not self.S.size:
            return free, np.zeros(s.shape)
        pull = ((self.U.T @ (s - self.G @ free)).T / self.S).T
        more, _ = lapack.dtrtrs(self.L, self.V.T @ pull, lower=1, trans=1)
        return free + more.reshape(free.shape), self.U @ (pull.T / self.S).T
