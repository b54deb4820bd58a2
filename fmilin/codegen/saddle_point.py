"""The system of Lagrange's equations, solved through the null space of G or through the multipliers.

    W w = r:   [ M  G' ] [   v'   ]   [ b1 ]        b1 = F, b2 = -Gdot v
               [ G  0  ] [ lambda ] = [ b2 ]

Both have the interface of :class:`~fmilin.codegen.factorized.Factorized`, so that values and exact
directional derivatives follow from the same code. Equation numbers are Spencer's (thesis).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from fmilin.codegen.factorized import Factorized
from fmilin.signals import FloatArray

__all__ = ["ConstraintRank", "MultiplierFactors", "NullSpaceFactors"]


@dataclass(frozen=True, slots=True)
class ConstraintRank:
    """How independent the constraints are at one configuration.

    Parameters
    ----------
    singular_values : array, shape (min(m, n),)
        Of G, its columns times the nominal values of the coordinates; largest first.
    rank : int
        How many of them are above the threshold.
    """

    singular_values: FloatArray
    rank: int

    @property
    def smallest(self) -> float:
        """sigma_m, the smallest singular value, below the threshold or not."""
        return float(self.singular_values[-1]) if self.singular_values.size else np.inf

    @property
    def condition_number(self) -> float:
        """The ratio kappa = sigma_1 / sigma_m (section 3.1): infinite at a singular configuration."""
        if not self.singular_values.size:
            return 1.0
        return float(self.singular_values[0] / self.smallest) if self.smallest > 0 else np.inf

    @property
    def gap(self) -> float:
        """The smallest singular value that was kept over the largest that was not; infinite when all were kept."""
        if not 0 < self.rank < self.singular_values.size:
            return np.inf
        rejected = float(self.singular_values[self.rank])
        return float(self.singular_values[self.rank - 1]) / rejected if rejected > 0 else np.inf


class NullSpaceFactors:
    """W w = r through the null space of G, by the singular value decomposition G = U S (V1 V2)': eq. (3.5).

        v'     = V2 (V2' M V2)^-1 V2' (b1 - M a) + a,   a = G^+ b2
        lambda = (G')^+ (b1 - M v')

    Singular values below ``threshold`` times the largest count as zero (section 3.1: "by setting
    1/sigma_m = 0"): a constraint that depends on others, always or at this configuration only, is left out,
    and the multipliers are those of least norm.

    Parameters
    ----------
    W : array, shape (n + m, n + m)
    n : int
        The number of coordinates.
    threshold : float
    scales : array, shape (n,)
        Sizes of the coordinates: lengths are measured in q / scale.
    """

    def __init__(self, W: FloatArray, n: int, *, threshold: float, scales: FloatArray) -> None:
        self._n, self._D = n, scales
        self._M, G = W[:n, :n], W[n:, :n]
        m = len(G)
        if not np.isfinite(W).all():
            self.rank = ConstraintRank(np.full(min(m, n), np.nan), 0)
            self._reduced = Factorized(np.full((n, n), np.nan))
            return
        U, sigma, Vt = linalg.svd(G * scales, check_finite=False) if m else (np.eye(0), np.empty(0), np.eye(n))
        rank = int(np.count_nonzero(sigma > threshold * sigma[0])) if sigma.size else 0
        self.rank = ConstraintRank(sigma, rank)
        self.K: FloatArray = scales[:, None] * Vt[rank:].T
        """A basis of the null space of G, shape (n, n - rank): eq. (3.2)."""
        self._U1: FloatArray = U[:, :rank] / sigma[:rank]
        self._V1: FloatArray = scales[:, None] * Vt[:rank].T
        self._reduced = Factorized(self.K.T @ self._M @ self.K)

    @property
    def rcond(self) -> float:
        """Reciprocal condition number of V2' M V2: what has to be inverted."""
        return self._reduced.rcond

    @property
    def is_singular(self) -> bool:
        """Whether M leaves a velocity without inertia that the constraints leave free."""
        return self._reduced.is_singular

    def solve(self, right: FloatArray) -> FloatArray:
        """Return w for r = ``right``, shape (n + m,) or (n + m, k)."""
        if not np.isfinite(self.rcond):
            return np.full_like(right, np.nan)
        b1, b2 = right[: self._n], right[self._n :]
        a = self.pseudo_inverse(b2)
        v_dot = self.K @ self._reduced.solve(self.K.T @ (b1 - self._M @ a)) + a
        return np.concatenate((v_dot, self._U1 @ (self._V1.T @ (b1 - self._M @ v_dot))))

    def pseudo_inverse(self, b: FloatArray) -> FloatArray:
        """Return G^+ b, eq. (3.4), for b (m,) or (m, k)."""
        result: FloatArray = self._V1 @ (self._U1.T @ b)
        return result

    def null_vector(self) -> FloatArray:
        """Return the velocity without inertia, shape (n + m,), scaled to a largest entry of one."""
        direction = self.K @ self._reduced.null_vector()
        full = np.concatenate((direction, np.zeros(len(self._U1))))
        result: FloatArray = full / np.abs(full).max()
        return result


class MultiplierFactors:
    """W w = r through the multipliers, eqs. (2.4) and (2.5); needs M and G M^-1 G' to be invertible.

        lambda = (G M^-1 G')^-1 (G M^-1 b1 - b2),   v' = M^-1 (b1 - G' lambda)

    Parameters
    ----------
    W : array, shape (n + m, n + m)
    n : int
        The number of coordinates.
    """

    def __init__(self, W: FloatArray, n: int) -> None:
        self._n = n
        self._G = W[n:, :n]
        self._mass = Factorized(W[:n, :n])
        self._schur = Factorized(self._G @ self._mass.solve(self._G.T))
        self._worst = self._mass if self._mass.is_singular else self._schur

    @property
    def rcond(self) -> float:
        """Reciprocal condition number of G M^-1 G', or of M where that is singular."""
        return self._worst.rcond

    @property
    def is_singular(self) -> bool:
        """Whether one of the two matrices is singular to working precision."""
        return self._mass.is_singular or self._schur.is_singular

    def solve(self, right: FloatArray) -> FloatArray:
        """Return w for r = ``right``, shape (n + m,) or (n + m, k)."""
        b1, b2 = right[: self._n], right[self._n :]
        multipliers = self._schur.solve(self._G @ self._mass.solve(b1) - b2)
        return np.concatenate((self._mass.solve(b1 - self._G.T @ multipliers), multipliers))

    def null_vector(self) -> FloatArray:
        """Return what stays undetermined, shape (n + m,), scaled to a largest entry of one."""
        n, m = self._n, len(self._G)
        if self._mass.is_singular:
            return np.concatenate((self._mass.null_vector(), np.zeros(m)))
        return np.concatenate((np.zeros(n), self._schur.null_vector()))
