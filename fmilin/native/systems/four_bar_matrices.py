"""The N-loop four-bar linkage as sparse matrices at a point, without symbols: quick for thousands of loops.

The same linkage as :func:`fmilin.systems.four_bar`, at any angle and speed of its parallelogram motion, which is all
that it can do away from singular configurations. Every B_i moves like (cos(phi), sin(phi)).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy import sparse

from fmilin.ground.errors import UsageError
from fmilin.ground.signals import FloatArray
from fmilin.native.formulations.form import ConstrainedForm, Matrix, Motion
from fmilin.native.systems.four_bar_linkage import GRAVITY, NATURAL_LENGTH, STIFFNESS, equilibrium_angle
from fmilin.numerics.saddle_point.sparse import SparseFactors

__all__ = ["four_bar_form"]


def four_bar_form(
    loops: int = 1,
    damping: float = 0.0,
    *,
    branch: Literal["upper", "hanging"] = "upper",
    angle: float | None = None,
    speed: float = 0.0,
) -> ConstrainedForm:
    """Return the numeric form of the four-bar linkage: n = 2N + 3 coordinates, m = 2N + 2 constraints, sparse.

    ``loops``: N, at least 1. ``damping``: c in Ns/m. ``branch``: which equilibrium, unless ``angle`` is given.
    ``angle``: phi in rad: any posture, equilibrium or not. Singular are the multiples of pi. ``speed``: phi' in rad/s.
    Its matrices are scipy.sparse arrays. Its input is the torque on the last rod.
    """
    if loops < 1 or int(loops) != loops:
        raise UsageError(f"A four-bar linkage has 1 loop or more, not {loops}.")
    phi = equilibrium_angle(loops, branch) if angle is None else float(angle)
    if abs(np.sin(phi)) < 1e-8:
        raise UsageError(
            f"At phi = {phi:g} all rods of the linkage lie on one line, and the constraints depend on each other: the "
            "multipliers are not determined. Choose another angle, or use fmilin.systems.four_bar(singular=True)."
        )
    at_rest = angle is None and speed == 0.0
    linkage = _Linkage(int(loops), damping, phi, speed)
    acceleration = 0.0 if at_rest else linkage.angular_acceleration()
    q_ddot = linkage.accelerations(acceleration)
    multipliers = linkage.multipliers(q_ddot)
    size = 2 * linkage.N + 3
    return ConstrainedForm(
        M=linkage.M,
        C=linkage.damping_matrix(),
        K=linkage.stiffness_matrix(multipliers),
        Phi_q=linkage.Phi_q,
        B=sparse.csr_array(([1.0], ([size - 1], [0])), shape=(size, 1)),
        multipliers=multipliers,
        names=(*(f"{axis}{i}" for i in range(linkage.N + 1) for axis in "xy"), "phi"),
        motion=None if at_rest else linkage.rates(q_ddot),
    )


class _Linkage:
    """The matrices, point by point i = 0..N as pairs (x_i, y_i), and the angle last."""

    def __init__(self, N: int, c: float, phi: float, w: float) -> None:
        self.N, self.c, self.phi, self.w = N, c, phi, w
        self.along = np.array([np.cos(phi), np.sin(phi)])  # A_i B_i
        self.across = np.array([-np.sin(phi), np.cos(phi)])
        self.by_x = bool(abs(np.sin(phi)) > abs(np.cos(phi)))  # which equation gives phi its meaning
        self.M = self._mass_matrix()
        self.Phi_q = self._jacobian(self.along, np.array([1.0, 0.0]))
        self.d = self.along + np.array([1.0, 0.0])  # B_i - A_(i-1): the springs
        self.s = float(np.linalg.norm(self.d))

    def _mass_matrix(self) -> Matrix:
        """M: m/3 for each end of a rod that moves, m/6 between two of them; nothing for phi."""
        rods = np.full(self.N + 1, 3.0)
        rods[[0, -1]] = 2.0
        xy = sparse.kron(_tridiagonal(rods / 3, np.full(self.N, 1.0 / 6.0)), sparse.eye_array(2))
        return sparse.csr_array(sparse.block_diag((xy, sparse.csr_array((1, 1)))))

    def _jacobian(self, rod: FloatArray, coupler: FloatArray, angle: float | None = None) -> Matrix:
        """Rows of (|d|^2 - 1)/2: d of its rod; then the row of phi. ``angle``: the entry of phi in it."""
        N = self.N
        eye = sparse.eye_array(N + 1, format="csr")
        grounded = sparse.kron(eye, rod[None, :])
        between = sparse.kron(eye[1:] - eye[:-1], coupler[None, :])
        rods = sparse.hstack((sparse.vstack((grounded, between)), sparse.csr_array((2 * N + 1, 1))))
        if angle is None:
            entry = np.sin(self.phi) if self.by_x else -np.cos(self.phi)
            columns, values = [2 * N if self.by_x else 2 * N + 1, 2 * N + 2], [1.0, float(entry)]
        else:
            columns, values = [2 * N + 2], [angle]
        last = sparse.csr_array((values, ([0] * len(columns), columns)), shape=(1, 2 * N + 3))
        return sparse.csr_array(sparse.vstack((rods, last)))

    def _on_springs(self, block: FloatArray) -> Matrix:
        """Put a 2 x 2 block on every B_i that has a spring: i = 1..N."""
        has = sparse.diags_array(np.r_[0.0, np.ones(self.N)])
        return sparse.csr_array(sparse.block_diag((sparse.kron(has, block), sparse.csr_array((1, 1)))))

    def damping_matrix(self) -> Matrix:
        """C = c d d'/s^2."""
        return self._on_springs(self.c * np.outer(self.d, self.d) / self.s**2)

    def stiffness_matrix(self, multipliers: FloatArray) -> Matrix:
        """K: springs and dampers, and the curvature of the constraints times lambda."""
        d, s, v = self.d, self.s, self.w * self.across
        unit = np.outer(d, d) / s**2
        spring = STIFFNESS * (np.eye(2) - NATURAL_LENGTH / s * (np.eye(2) - unit))
        damper = self.c * (np.outer(d, v) + d @ v * (np.eye(2) - 2 * unit)) / s**2
        return sparse.csr_array(self._on_springs(spring + damper) + self._curvature(multipliers))

    def _curvature(self, multipliers: FloatArray) -> Matrix:
        """d(Phi_q' lambda)/dq."""
        N = self.N
        rods, couplers, angle = multipliers[: N + 1], multipliers[N + 1 : -1], multipliers[-1]
        points = _tridiagonal(rods + np.r_[couplers, 0.0] + np.r_[0.0, couplers], -couplers)
        bend = angle * (np.cos(self.phi) if self.by_x else np.sin(self.phi))
        last = sparse.csr_array(np.array([[bend]]))
        return sparse.csr_array(sparse.block_diag((sparse.kron(points, np.eye(2)), last)))

    def forces(self) -> FloatArray:
        """Return f without the torque: weights, springs, dampers."""
        rods = np.full(self.N + 1, 1.5)
        rods[[0, -1]] = 1.0
        F = np.outer(rods, [0.0, -GRAVITY])
        v = self.w * self.across
        F[1:] -= (STIFFNESS * (self.s - NATURAL_LENGTH) + self.c * float(self.d @ v) / self.s) / self.s * self.d
        return np.append(F.ravel(), 0.0)

    def angular_acceleration(self) -> float:
        """Return phi'' by virtual power along phi, the torque left out."""
        a0 = self.accelerations(0.0)
        along = np.r_[np.tile(self.across, self.N + 1), 1.0]
        return float(along @ (self.forces() - self.M @ a0) / (along @ (self.M @ along)))

    def accelerations(self, acceleration: float) -> FloatArray:
        """Return q'' of the parallelogram motion."""
        point = acceleration * self.across - self.w**2 * self.along
        return np.append(np.tile(point, self.N + 1), acceleration)

    def multipliers(self, q_ddot: FloatArray) -> FloatArray:
        """Lambda from M q'' + Phi_q' lambda = f, through the saddle point system: Phi_q' alone is not square."""
        m = self.Phi_q.shape[0]
        saddle = sparse.block_array(
            [[sparse.eye_array(2 * self.N + 3), self.Phi_q.T], [self.Phi_q, None]], format="csc"
        )
        right = np.r_[self.forces() - self.M @ q_ddot, np.zeros(m)]
        found: FloatArray = SparseFactors(saddle, "the matrix of the multipliers").solve(right)[-m:]
        return found

    def rates(self, q_ddot: FloatArray) -> Motion:
        """Return the slopes of Phi'' = Phi_q q'' + gamma: d.d'' + d'.d' for a rod; phi has a bend of its own."""
        phi, w, acceleration = self.phi, self.w, float(q_ddot[-1])
        if self.by_x:  # x_N - N - cos(phi)
            slope, bend = np.cos(phi) * w, np.cos(phi) * acceleration - np.sin(phi) * w**2
        else:  # y_N - sin(phi)
            slope, bend = np.sin(phi) * w, np.sin(phi) * acceleration + np.cos(phi) * w**2
        still = np.zeros(2)
        Phi_q_dot = self._jacobian(w * self.across, still, float(slope))
        gamma_q = self._jacobian(q_ddot[:2], still, float(bend))
        v = np.r_[np.tile(w * self.across, self.N + 1), w]
        return Motion(v, q_ddot, Phi_q_dot, gamma_q, 2 * Phi_q_dot)


def _tridiagonal(middle: FloatArray, beside: FloatArray) -> Matrix:
    """Return the symmetric matrix with these diagonals."""
    i, k = np.arange(len(middle)), np.arange(len(beside))
    places = (np.concatenate((i, k, k + 1)), np.concatenate((i, k + 1, k)))
    return sparse.csr_array((np.concatenate((middle, beside, beside)), places), shape=(len(i), len(i)))
