"""Second-order equations with constraints, as numbers at one point: what the three formulations start from.

González et al., eq. (1), with the constraint reactions -Phi_q' lambda:

    M(q) q'' + Phi_q' lambda = f(q, q', t, u),    Phi(q, t) = 0

Its slopes at a point, q'' and lambda held in K:

    M dq'' + C dq' + K dq + Phi_q' dlambda = B du
    C = -df/dq',    K = d(M q'' + Phi_q' lambda - f)/dq,    B = df/du

Matrices may be dense or sparse (scipy.sparse arrays); nothing here makes one from the other unasked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmilin.ground.signals import FloatArray

__all__ = ["ConstrainedForm", "Matrix", "Motion", "is_sparse"]

Matrix = Any
"""A dense array of float, or a scipy.sparse array of the same shape."""


def is_sparse(matrix: Matrix) -> bool:
    """Whether ``matrix`` is a scipy.sparse array or matrix."""
    from scipy import sparse

    return bool(sparse.issparse(matrix))


@dataclass(frozen=True, eq=False)
class Motion:
    """What the constraints add where the point moves or accelerates: Phi'' = Phi_q q'' + gamma = 0."""

    velocities: FloatArray  # (n,), q'
    accelerations: FloatArray  # (n,), q''
    Phi_q_dot: Matrix  # (m, n), d(Phi')/dq = d(Phi_q q' + Phi_t)/dq
    gamma_q: Matrix  # (m, n), d(Phi'')/dq with q' and q'' held
    gamma_v: Matrix  # (m, n), d(Phi'')/dq'; twice Phi_q_dot


@dataclass(frozen=True, eq=False)
class ConstrainedForm:
    """M q'' + Phi_q' lambda = f and Phi = 0 at one point, with their slopes; n coordinates, m constraints."""

    M: Matrix  # (n, n), symmetric; definite on the velocities with Phi_q v = 0 at least
    C: Matrix  # (n, n), -df/dq'
    K: Matrix  # (n, n), d(M q'' + Phi_q' lambda - f)/dq with q'' and lambda held
    Phi_q: Matrix  # (m, n), the Jacobian of the constraints, redundant ones included
    B: Matrix  # (n, nu), df/du
    multipliers: FloatArray  # (m,), lambda at the point; of least norm where the constraints depend on each other
    names: tuple[str, ...] = ()  # of the coordinates, n of them, or empty
    motion: Motion | None = None  # None at an equilibrium

    @property
    def n(self) -> int:
        """The number of coordinates."""
        return int(self.M.shape[0])

    @property
    def m(self) -> int:
        """The number of constraints, redundant ones included."""
        return int(self.Phi_q.shape[0])

    @property
    def is_equilibrium(self) -> bool:
        """Whether nothing moves or accelerates."""
        return self.motion is None

    @property
    def is_sparse(self) -> bool:
        """Whether the matrices are scipy.sparse arrays."""
        return is_sparse(self.M)

    def dense(self) -> ConstrainedForm:
        """Return the same form with dense matrices."""
        if not self.is_sparse:
            return self
        return self._with(_dense)

    def sparse(self) -> ConstrainedForm:
        """Return the same form with sparse matrices."""
        if self.is_sparse:
            return self
        from scipy import sparse

        return self._with(sparse.csc_array)

    def _with(self, kind: Callable[[Matrix], Matrix]) -> ConstrainedForm:
        M, C, K, Phi_q, B = (kind(a) for a in (self.M, self.C, self.K, self.Phi_q, self.B))
        motion = self.motion
        if motion is not None:
            rows = (kind(a) for a in (motion.Phi_q_dot, motion.gamma_q, motion.gamma_v))
            motion = Motion(motion.velocities, motion.accelerations, *rows)
        return replace(self, M=M, C=C, K=K, Phi_q=Phi_q, B=B, motion=motion)

    def rate_of(self, seen: NDArray[np.complex128]) -> NDArray[np.complex128]:
        """Return by how much columns (dq, dv), shape (2n, k), violate the constraints of velocity, shape (m, k)."""
        rate: NDArray[np.complex128] = self.Phi_q @ seen[self.n :]
        return rate if self.motion is None else rate + self.motion.Phi_q_dot @ seen[: self.n]


def _dense(matrix: Matrix) -> FloatArray:
    return np.asarray(matrix.toarray() if is_sparse(matrix) else matrix, dtype=np.float64)
