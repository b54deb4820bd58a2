"""Second-order equations with constraints, as numbers at one point: what the three formulations start from.

González et al., eq. (1), with the constraint reactions -Phi_q' lambda:

    M(q) q'' + Phi_q' lambda = f(q, q', t, u),    Phi(q, t) = 0

Its slopes at a point, q'' and lambda held in K:

    M dq'' + C dq' + K dq + Phi_q' dlambda = B du
    C = -df/dq',    K = d(M q'' + Phi_q' lambda - f)/dq,    B = df/du

Matrices may be dense or sparse (scipy.sparse arrays); nothing here makes one from the other unasked.

A moving point adds terms, for the tangent space turns while the system moves. With q = q0 + dq, v = v0 + dv, the
constraints ask for

    Phi_q dq = 0,   Phi_q dv + Phi_q_dot dq = 0,   Phi_q a + gamma_q dq + gamma_v dv = 0

for the change a of the accelerations, while an eigenvalue problem with constant matrices makes dq' and dv' of the
same small vectors, whose constraint is Phi_q dv' + Phi_q_dot dq' = 0. What lies between is a motion of the
coordinates themselves, along N, which the independent coordinates z = S q do not see (S N = 0):

    dq' = dv + N P dq,    dv' = a - N (Q dq + W dv)

    P = (Phi_q N)^+ Phi_q_dot,   W = (Phi_q N)^+ (Phi_q_dot - gamma_v),   Q = (Phi_q N)^+ (Phi_q_dot N P - gamma_q)

With these terms the vectors (dq, dv) that satisfy the constraints are an invariant subspace of every formulation, and
on it z = S q obeys the same A as the general procedure (Spencer section 2.2). At an equilibrium all of them vanish, and
what is left are the equations of the paper.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fmilin.ground.signals import FloatArray
from fmilin.native.formulations.bases import Basis

Matrix = Any  # A dense array of float, or a scipy.sparse array of the same shape


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
        return bool(sparse.issparse(self.M))

    def dense(self) -> ConstrainedForm:
        """Return the same form with dense matrices."""
        return self._with(_dense) if self.is_sparse else self

    def sparse(self) -> ConstrainedForm:
        """Return the same form with sparse matrices."""
        return self if self.is_sparse else self._with(sparse.csc_array)

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
    return np.asarray(matrix if isinstance(matrix, np.ndarray) else matrix.toarray(), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class MotionTerms:
    """N P, N Q, N W and N (Phi_q N)^+, all zero at an equilibrium but the last."""

    NP: FloatArray  # shape (n, n)
    NQ: FloatArray  # shape (n, n)
    NW: FloatArray  # shape (n, n)
    G: FloatArray  # (n, m), N (Phi_q N)^+
    L: FloatArray  # (n, p), dv = R dz' + L dz: how the velocities follow the positions


def motion_terms(form: ConstrainedForm, basis: Basis) -> MotionTerms:
    """Return the terms of a dense ``form`` in the coordinates of ``basis``."""
    n, p = form.n, basis.R.shape[1]
    G = basis.N @ np.linalg.pinv(form.Phi_q @ basis.N) if basis.N.size else np.zeros((n, form.m))
    if form.motion is None:
        zero = np.zeros((n, n))
        return MotionTerms(zero, zero, zero, G, np.zeros((n, p)))
    motion = form.motion
    NP: FloatArray = G @ motion.Phi_q_dot
    NW: FloatArray = G @ (motion.Phi_q_dot - motion.gamma_v)
    NQ: FloatArray = G @ (motion.Phi_q_dot @ NP - motion.gamma_q)
    return MotionTerms(NP, NQ, NW, G, -NP @ basis.R)
