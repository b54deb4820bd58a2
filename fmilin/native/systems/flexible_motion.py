"""The equations of motion of one flexible link, and their slopes, in (R, theta, d): see flexible_link for the letters.

    r'' = R'' + A (alpha J rho - omega^2 rho + 2 omega J N p' + N p''),    alpha = omega' = theta''

weighed with mu and the variation of r, and with gravity g along -y, gives the forces

    f_R     = A (omega^2 B p - 2 omega J B p') - m g e_y
    f_theta = -2 omega p' F p' - g e_y . A J B p          (the second p' is dp/dt)
    f_p     = omega^2 F p - 2 omega Z p' - g B' A' e_y - K d,     p = d + p of the undeformed link
"""

from __future__ import annotations

from math import cos, sin

import numpy as np
from numpy.typing import NDArray

from fmilin.ground.signals import FloatArray
from fmilin.native.sparse.pattern import Pattern
from fmilin.native.systems.flexible_link import FlexibleLink, J

__all__ = ["LinkMotion", "rotation"]

IntArray = NDArray[np.intp]

E_Y = np.array([0.0, 1.0])


def rotation(theta: float) -> FloatArray:
    """Return A(theta), shape (2, 2); its derivative is A J."""
    return np.array([[cos(theta), -sin(theta)], [sin(theta), cos(theta)]])


class LinkMotion:
    """Mass matrix, forces and slopes of one link; q = (R, theta, d) has 3 + 3 (n_p + 1) entries.

    Shapes: pattern_M, pattern_e_q, pattern_f_v (size, size).
    """

    def __init__(self, link: FlexibleLink) -> None:
        self.link, self.g = link, link.gravity
        self.size = 3 + link.size
        p, shape = np.arange(3, self.size), (self.size, self.size)
        inner = (link.pattern, 3, 3)

        def places(*blocks: tuple[IntArray, IntArray]) -> tuple[Pattern, int, int]:
            pairs = [np.broadcast_arrays(i, j) for i, j in blocks]
            rows, columns = (np.concatenate([pair[k].ravel() for pair in pairs]) for k in (0, 1))
            return Pattern(rows, columns, shape), 0, 0

        R, theta = np.array([[0], [1]]), np.array([[2]])
        corner = ((R, R.T), (R, theta), (theta, R.T), (theta, theta))
        edges = ((R, p), (p[:, None], R.T), (theta, p), (p[:, None], theta))
        self.pattern_M = Pattern.joined([places(*corner, *edges), inner], shape)
        slopes = places((R, theta), (theta, theta), (R, p), (theta, p), (p[:, None], theta))
        self.pattern_e_q = self.pattern_f_v = Pattern.joined([slopes, inner], shape)

    def mass(self, q: FloatArray) -> FloatArray:
        """Return the values of M on ``pattern_M``."""
        link, A, p = self.link, rotation(q[2]), q[3:] + self.link.reference
        AB, AJBp, Fp, Zp = A @ link.B, A @ J @ (link.B @ p), link.F @ p, link.Z @ p
        corner = (link.mass * np.eye(2).ravel(), AJBp, AJBp, [p @ Fp])
        return np.concatenate((*corner, AB.ravel(), AB.T.ravel(), Zp, Zp, link.values_F))

    def forces(self, q: FloatArray, v: FloatArray) -> FloatArray:
        """Return f, shape (size,)."""
        link, A, p, w, dp = self.link, rotation(q[2]), q[3:] + self.link.reference, v[2], v[3:]
        Bp, down = link.B @ p, A.T @ E_Y
        f_R = A @ (w**2 * Bp - 2 * w * J @ (link.B @ dp)) - link.mass * self.g * E_Y
        f_theta = -2 * w * p @ (link.F @ dp) - self.g * down @ J @ Bp
        f_p = link.F @ (w**2 * p) - 2 * w * (link.Z @ dp) - self.g * (link.B.T @ down) + link.elastic_force(q[3:])
        return np.concatenate((f_R, [f_theta], f_p))

    def slopes_by_v(self, q: FloatArray, v: FloatArray) -> FloatArray:
        """Return the values of df/dv on ``pattern_f_v``."""
        link, A, p, w, dp = self.link, rotation(q[2]), q[3:] + self.link.reference, v[2], v[3:]
        Fp, BJ = link.F @ p, J @ link.B
        f_R_w = 2 * A @ (w * (link.B @ p) - BJ @ dp)
        f_p_w = 2 * (w * Fp - link.Z @ dp)
        f_R_dp, f_theta_dp = -2 * w * A @ BJ, -2 * w * Fp
        return np.concatenate((f_R_w, [-2 * Fp @ dp], f_R_dp.ravel(), f_theta_dp, f_p_w, -2 * w * link.values_Z))

    def slopes_by_q(self, q: FloatArray, v: FloatArray, a: FloatArray) -> FloatArray:
        """Return the values of d(f - M a)/dq, a held, on ``pattern_e_q``."""
        link, A, p, w, dp = self.link, rotation(q[2]), q[3:] + self.link.reference, v[2], v[3:]
        a_R, alpha, a_p = A.T @ a[:2], a[2], a[3:]  # the first seen from the frame
        B, Bp = link.B, link.B @ p
        # The force on R is A times a vector of the frame; so is M's part of it.
        inner = w**2 * Bp - 2 * w * J @ (B @ dp) - alpha * J @ Bp - B @ a_p
        e_R_theta = A @ J @ inner
        e_R_p = A @ (w**2 * B - alpha * J @ B)
        pull = a_R + self.g * E_Y @ A  # gravity is an acceleration of the frame
        e_theta_theta = pull @ Bp
        e_theta_p = -2 * w * (link.F @ dp) - pull @ J @ B - 2 * alpha * (link.F @ p) - link.Z.T @ a_p
        e_p_theta = -(pull @ J @ B)
        e_p_p = w**2 * link.values_F - link.values_K - alpha * link.values_Z
        return np.concatenate((e_R_theta, [e_theta_theta], e_R_p.ravel(), e_theta_p, e_p_theta, e_p_p))

    def energy(self, q: FloatArray, v: FloatArray) -> float:
        """Return kinetic, elastic and potential energy together, in J; the height counts from y = 0."""
        link, A, p = self.link, rotation(q[2]), q[3:] + self.link.reference
        M = self.pattern_M.sparse(self.mass(q))
        height = link.mass * q[1] + E_Y @ A @ (link.B @ p)
        return float(v @ (M @ v) / 2 + self.g * height) + link.elastic_energy(q[3:])
