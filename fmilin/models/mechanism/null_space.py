"""Accelerations and multipliers from M, F, G and Gdot v in the null space form (2.43) of Spencer (thesis).

With K a basis of the null space of G and N a right inverse, G N = 1,

    vdot = K z - N Gdot v,   (K' M K) z = K' (F + M N Gdot v),   lambda = N' (F - M vdot).

K comes from an orthogonal factorization of G', N is the pseudo-inverse: the singularity robust choice of chapter 3.
Where rows of G depend on each other, a singular value decomposition takes the place of the QR factorization, and
accelerations and multipliers are those of least norm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fmilin.errors import NumericalError
from fmilin.models.mechanism.screws import Array
from fmilin.tolerances import RANK

__all__ = ["NullSpace", "null_space", "robust_null_space"]


@dataclass(frozen=True)
class NullSpace:
    """The linear part of M vdot + G' lambda = F, G vdot = -c, ready to solve.

    Attributes
    ----------
    M : array, shape (..., n, n)
    K : array, shape (..., n, p)
    N : array, shape (..., n, m)
    Z : array, shape (..., n, n), or None
        K (K' M K)^-1 K': accelerations that forces cause; None without constraints, where it is the inverse of M.
    """

    M: Array
    K: Array
    N: Array
    Z: Array | None

    def solve(self, F: Array, c: Array) -> tuple[Array, Array]:
        """Return vdot (..., n, k) and lambda (..., m, k) for columns F (..., n, k) and c (..., m, k)."""
        if self.Z is None:
            v = _solved(self.M, F)
            return v, np.zeros((*v.shape[:-2], 0, v.shape[-1]))
        v = -(self.N @ c)
        v = v + self.Z @ (F - self.M @ v)
        return v, np.swapaxes(self.N, -1, -2) @ (F - self.M @ v)


def null_space(M: Array, G: Array) -> tuple[NullSpace, Array]:
    """Return the null space for independent rows G (..., m, n), and where they are not, shape (...).

    Raises
    ------
    NumericalError
        When K' M K is singular: a freedom moves no mass.
    """
    m, n = G.shape[-2:]
    if m == 0:
        none = np.zeros((*M.shape[:-2], n, 0))
        return NullSpace(M, np.broadcast_to(np.eye(n), M.shape), none, None), np.zeros(M.shape[:-2], dtype=bool)
    Q, R = np.linalg.qr(np.swapaxes(G, -1, -2), mode="complete")
    diagonal = np.abs(np.diagonal(R, axis1=-2, axis2=-1))
    dependent = diagonal.min(axis=-1) <= RANK * diagonal.max(axis=-1)
    triangle = R[..., :m, :]
    if dependent.any():
        triangle = np.where(dependent[..., None, None], np.eye(m), triangle)
    K, N = Q[..., m:], Q[..., :m] @ np.swapaxes(np.linalg.inv(triangle), -1, -2)
    return NullSpace(M, K, N, _reduced(M, K)), dependent


def robust_null_space(M: Array, G: Array) -> NullSpace:
    """Return the null space of any G (m, n), at one point: what is below the threshold counts as zero (chapter 3)."""
    U, sigma, Vt = np.linalg.svd(G)
    rank = int(np.count_nonzero(sigma > RANK * max(sigma.max(initial=0.0), 1e-300)))
    K = Vt[rank:].T
    N = Vt[:rank].T @ (U[:, :rank] / sigma[:rank]).T
    return NullSpace(M, K, N, _reduced(M, K))


def _reduced(M: Array, K: Array) -> Array:
    K_t = np.swapaxes(K, -1, -2)
    if K.shape[-1] == 0:
        return np.zeros_like(M)
    return K @ _solved(K_t @ M @ K, K_t)


def _solved(M: Array, right: Any) -> Array:
    try:
        return np.linalg.solve(M, right)
    except np.linalg.LinAlgError:
        raise NumericalError(
            "The mass matrix of the mechanism is singular: a freedom moves no mass. Give mass or inertia to what the "
            "joint moves, or fix the joint."
        ) from None
