"""The dense saddle-point system, through the null space of G or through the multipliers: Spencer (thesis).

Both take M and G apart; the equations are those of :mod:`fmilin.saddle_point.factors`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fmilin.saddle_point.dense import DenseFactors
from fmilin.signals import FloatArray
from fmilin.tolerances import RANK

__all__ = ["MultiplierFactors", "NullSpaceFactors"]


class NullSpaceFactors:
    """The singularity robust null space formulation of chapter 3 of the thesis, at one point or at many.

    From the singular value decomposition G = U S (V1 V2)' come a basis K = V2 of the null space of G, eq. (3.2), and
    its pseudo-inverse N = G^+ = V1 S^-1 U1', eq. (3.4). Then, eq. (3.5) for b1 = F and b2 = -Gdot v,

        v' = K (K' M K)^-1 K' (b1 - M N b2) + N b2,   lambda = N' (b1 - M v').

    Singular values below ``threshold`` times the largest count as zero (section 3.1: "by setting 1/sigma_m = 0"): a
    constraint that depends on others, always or at this configuration only, is left out; multipliers are those of least
    norm, and what contradicts itself is satisfied in the sense of least squares. M need not be invertible.

    Parameters
    ----------
    M : array, shape (..., n, n)
    G : array, shape (..., m, n)
        With the leading axes of M.
    scales : array, shape (n,)
        Sizes of the coordinates: lengths are measured in q / scale. One by default.
    threshold : float

    Attributes
    ----------
    K : array, shape (..., n, n - rank)
        Where the rank differs among the points as wide as the lowest asks for; zero columns stand first.
    N : array, shape (..., n, m)
    singular_values : array, shape (..., min(m, n))
        Of G, its columns times ``scales``; largest first.
    rank : int or array of int, shape (...)
        How many of them are above the threshold.
    """

    def __init__(
        self, M: FloatArray, G: FloatArray, *, scales: FloatArray | None = None, threshold: float = RANK
    ) -> None:
        m, n = G.shape[-2:]
        self._M, self._n, self._lost = M, n, None
        scales = None if m == 0 else scales
        if scales is not None:
            G = G * scales
        if not (np.isfinite(M).all() and np.isfinite(G).all()):
            finite = [np.isfinite(part).all(axis=(-1, -2), keepdims=True) for part in (M, G)]
            self._lost = ~(finite[0] & finite[1])
            G = np.where(self._lost, 0.0, G)
        U, sigma, Vt = np.linalg.svd(G)
        kept = sigma > threshold * sigma[..., :1]
        self.singular_values: FloatArray = sigma
        self.rank: NDArray[np.intp] = np.asarray(kept.sum(axis=-1))
        least, k = int(self.rank.min(initial=n)), sigma.shape[-1]
        V = np.swapaxes(Vt, -1, -2) if scales is None else scales[:, None] * np.swapaxes(Vt, -1, -2)
        self.K: FloatArray = V[..., least:]
        if least < k:
            free = np.arange(least, n) >= self.rank[..., None]
            sigma, self.K = np.where(kept, sigma, np.inf), self.K * free[..., None, :]
        self.N: FloatArray = V[..., :k] / sigma[..., None, :] @ np.swapaxes(U[..., :k], -1, -2)
        reduced = np.swapaxes(self.K, -1, -2) @ M @ self.K if m else M
        if least < k:  # where the rank is higher, some columns of K are zero
            reduced = reduced + np.where(free, 0.0, 1.0)[..., None] * np.eye(n - least)
        self._reduced = DenseFactors(reduced)

    @property
    def rcond(self) -> float | FloatArray:
        """Reciprocal condition number of K' M K: what has to be inverted."""
        return self._reduced.rcond

    @property
    def is_singular(self) -> bool | NDArray[np.bool_]:
        """Whether M leaves a velocity without inertia that the constraints leave free."""
        return self._reduced.is_singular

    def solve(self, right: FloatArray) -> FloatArray:
        """Return (v', lambda) for (b1, b2) = ``right``, shape (n + m,) or (..., n + m, k)."""
        if right.ndim == 1:
            return self.solve(right[:, None])[:, 0]
        if self.N.shape[-1] == 0:
            return self._reduced.solve(right)
        b1, b2 = right[..., : self._n, :], right[..., self._n :, :]
        a = self.N @ b2
        v_dot = self.K @ self._reduced.solve(np.swapaxes(self.K, -1, -2) @ (b1 - self._M @ a)) + a
        w = np.concatenate((v_dot, np.swapaxes(self.N, -1, -2) @ (b1 - self._M @ v_dot)), axis=-2)
        return w if self._lost is None else np.where(self._lost, np.nan, w)

    def null_vector(self) -> FloatArray | None:
        """Return the velocity without inertia, shape (n + m,), its largest entry one; None for a stack."""
        if self.K.ndim > 2:
            return None
        direction = self.K @ self._reduced.null_vector()
        full = np.concatenate((direction, np.zeros(self.N.shape[-1])))
        result: FloatArray = full / np.abs(full).max()
        return result


class MultiplierFactors:
    """The multipliers first, eqs. (2.4) and (2.5) of the thesis; needs M and G M^-1 G' to be invertible.

        lambda = (G M^-1 G')^-1 (G M^-1 b1 - b2),   v' = M^-1 (b1 - G' lambda)

    Parameters
    ----------
    M : array, shape (n, n)
    G : array, shape (m, n)
    """

    def __init__(self, M: FloatArray, G: FloatArray) -> None:
        self._G = G
        self._mass = DenseFactors(M)
        self._schur = DenseFactors(G @ self._mass.solve(G.T))
        self._worst = self._mass if self._mass.is_singular else self._schur

    @property
    def rcond(self) -> float | FloatArray:
        """Reciprocal condition number of G M^-1 G', or of M where that is singular."""
        return self._worst.rcond

    @property
    def is_singular(self) -> bool | NDArray[np.bool_]:
        """Whether one of the two matrices is singular to working precision."""
        return self._worst.is_singular

    def solve(self, right: FloatArray) -> FloatArray:
        """Return (v', lambda) for (b1, b2) = ``right``, shape (n + m,) or (n + m, k)."""
        b1, b2 = np.split(right, [self._G.shape[1]])
        multipliers = self._schur.solve(self._G @ self._mass.solve(b1) - b2)
        return np.concatenate((self._mass.solve(b1 - self._G.T @ multipliers), multipliers))

    def null_vector(self) -> FloatArray:
        """Return what stays undetermined, shape (n + m,), its largest entry one."""
        m, n = self._G.shape
        parts = np.zeros(n), np.zeros(m)
        parts[self._worst is self._schur][:] = self._worst.null_vector()
        return np.concatenate(parts)
