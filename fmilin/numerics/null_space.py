"""The dense saddle-point system, through the null space of G or through the multipliers: Spencer (thesis)."""

import math
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from fmilin.numerics.factors import DenseFactors, mass_factors
from fmilin.numerics.lapack import lapack
from fmilin.signals import FloatArray
from fmilin.tolerances import RANK


class NullSpaceFactors:
    """The singularity robust null space formulation of chapter 3 of the thesis, of M (..., n, n) and G (..., m, n).

    With a basis K of the null space of G, eq. (3.2), N = G^+, eq. (3.4), b1 = F and b2 = -Gdot v, eq. (3.5): v' = K (K'
    M K)^-1 K' (b1 - M N b2) + N b2, lambda = N' (b1 - M v'). Singular values of G below ``threshold`` times the largest
    count as zero, lengths in q / ``scales``. M need not be invertible. No singular value is below ``1 / |N|`` or above
    ``|G|``: G = U S V' is computed where G' = (Q_1 Q_2) R does not tell the rank.
    """

    def __init__(
        self, M: FloatArray, G: FloatArray, *, scales: FloatArray | None = None, threshold: float = RANK
    ) -> None:
        *stack, m, n = G.shape
        self._M, self._n = M, n
        self._lost: NDArray[np.bool_] | None = None
        self.rank: NDArray[np.intp] = np.full(stack, min(m, n))
        if m == 0:
            self._scaled, self._K, self.N, self._reduced = G, None, np.zeros((*stack, n, 0)), mass_factors(M)
            return
        if not (_is_finite(M) and _is_finite(G)):
            finite = [np.isfinite(part).all(axis=(-1, -2), keepdims=True) for part in (M, G)]
            self._lost = np.asarray(~(finite[0] & finite[1]))
            G = np.where(self._lost, 0.0, G)
        self._G = G
        if scales is not None:
            G = G * scales
        self._scaled = G
        V, N, is_full = _orthogonal(G, threshold)
        least, nowhere = m, None
        if not is_full.all():
            rest = ~is_full
            V[rest], N[rest], self.rank[rest] = _by_singular_values(G[rest], threshold)
            least = int(self.rank.min(initial=n))
            nowhere = (np.arange(least, n) < self.rank[..., None])[..., None, :]
        if scales is not None:
            V, N = scales[:, None] * V, scales[:, None] * N
        K = V[..., least:]
        if nowhere is not None:  # where the rank is higher, the first columns of K are zero
            K = np.where(nowhere, 0.0, K)
        self._K, self.N = K, N
        reduced = np.swapaxes(K, -1, -2) @ M @ K
        self._reduced = DenseFactors(reduced if nowhere is None else reduced + nowhere * np.eye(n - least))

    @property
    def K(self) -> FloatArray:
        """A basis of the null space, (..., n, n - rank), as wide as the lowest rank asks; zero columns stand first."""
        return np.broadcast_to(np.eye(self._n), self._M.shape) if self._K is None else self._K

    @cached_property
    def singular_values(self) -> FloatArray:
        """Of G, its columns times ``scales``, shape (..., min(m, n)); largest first."""
        return np.asarray(np.linalg.svd(self._scaled, compute_uv=False), dtype=np.float64)

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
        if self._K is None:
            return self._reduced.solve(right)
        n, is_one = self._n, right.ndim == 1
        b1, b2 = (right[:n], right[n:]) if is_one else (right[..., :n, :], right[..., n:, :])
        a = self.N @ b2
        v_dot = self.accelerations(b1 - self._M @ a) + a
        # once more with what is left: small inertias do not magnify the rounding of other forces
        rest = b1 - self._M @ v_dot
        constraint_part = np.swapaxes(self._G, -1, -2) @ (np.swapaxes(self.N, -1, -2) @ rest)
        v_dot = v_dot + self.accelerations(rest - constraint_part)
        w = np.concatenate((v_dot, np.swapaxes(self.N, -1, -2) @ (b1 - self._M @ v_dot)), axis=0 if is_one else -2)
        if self._lost is None:
            return w
        return np.where(self._lost[0] if is_one else self._lost, np.nan, w)

    def accelerations(self, forces: FloatArray) -> FloatArray:
        """Return K (K' M K)^-1 K' b, what forces b cause: shape (n,) or (..., n, k)."""
        if self._K is None:
            return self._reduced.solve(forces)
        return self._K @ self._reduced.solve(np.swapaxes(self._K, -1, -2) @ forces)

    def null_vector(self) -> FloatArray | None:
        """Return the velocity without inertia, shape (n + m,), its largest entry one; None for a stack."""
        if self.K.ndim > 2:
            return None
        direction = self._reduced.null_vector()
        if direction is None:
            return None
        if self._K is not None:
            direction = self._K @ direction
        full: FloatArray = np.concatenate((direction, np.zeros(self.N.shape[-1])))
        result: FloatArray = full / np.abs(full).max()
        return result


def _orthogonal(G: FloatArray, threshold: float) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """Return Q (..., n, n), N (..., n, m), and where the rank of G is m for certain: elsewhere they mean nothing."""
    *stack, m, n = G.shape
    if m > n:
        return np.empty((*stack, n, n)), np.empty((*stack, n, m)), np.zeros(stack, dtype=np.bool_)
    if not stack:
        factors, tau, _, _ = lapack.dgeqrf(G.T)
        Q = np.zeros((n, n), order="F")
        Q[:, :m] = factors
        Q = lapack.dorgqr(Q, tau, overwrite_a=1)[0]
        inverse, dependent = lapack.dtrtri(factors[:m])
        N = Q[:, :m] @ (_upper(m) * inverse).T
        return Q, N, np.array(dependent == 0 and threshold**2 * np.vdot(G, G) * np.vdot(N, N) < 1.0)
    Q, R = np.linalg.qr(np.swapaxes(G, -1, -2), mode="complete")
    R, diagonal = R[..., :m, :], np.abs(np.diagonal(R, axis1=-2, axis2=-1))
    independent = diagonal.min(axis=-1) > threshold * diagonal.max(axis=-1)
    if not independent.all():
        R = np.where(independent[..., None, None], R, np.eye(m))
    N = Q[..., :m] @ np.swapaxes(np.linalg.inv(R), -1, -2)
    sizes = [np.einsum("...ij,...ij->...", part, part) for part in (G, N)]
    return Q, N, independent & (threshold**2 * sizes[0] * sizes[1] < 1.0)


def _by_singular_values(G: FloatArray, threshold: float) -> tuple[FloatArray, FloatArray, NDArray[np.intp]]:
    """Return V (k, n, n), N (k, n, m) and the rank (k,) of a stack G (k, m, n), from G = U S V'."""
    U, sigma, Vt = np.linalg.svd(G)
    above, V = sigma > threshold * sigma[:, :1], np.swapaxes(Vt, -1, -2)
    least = sigma.shape[-1]
    inverse = np.where(above, 1.0, 0.0) / np.where(above, sigma, 1.0)
    return V, V[..., :least] * inverse[:, None, :] @ np.swapaxes(U[..., :least], -1, -2), above.sum(axis=-1)


@lru_cache(maxsize=32)
def _upper(m: int) -> FloatArray:
    return np.tri(m).T


def _is_finite(a: FloatArray) -> bool:
    return math.isfinite(np.vdot(a, a)) or bool(np.isfinite(a).all())


class MultiplierFactors:
    """The multipliers first, eqs. (2.4) and (2.5) of the thesis; M (n, n) and G M^-1 G', G (m, n), are invertible.

    lambda = (G M^-1 G')^-1 (G M^-1 b1 - b2),   v' = M^-1 (b1 - G' lambda)
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
