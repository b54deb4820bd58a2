"""A flexible link in its floating frame: planar axial and Euler-Bernoulli finite elements, full rigid-elastic coupling.

A point of the link is r = R + A(theta) rho with rho = (s + u, w) = N(s) p in the frame: u is linear, w cubic
(Hermite) in each element, and p holds (s_i + u_i, w_i, phi_i) of every node, which N reproduces exactly. With
the constant matrices (mu = rho A is the mass per length, J turns by a right angle), integrated exactly,

    B = int mu N ds,    F = int mu N' N ds,    Z = int mu N' J N ds,    K = int (EA u'^2 + EI w''^2) ds as a matrix

the mass matrix in (R, theta, p) and the forces, with gravity g along -y and p = d + p of the undeformed link, are

    M = [[m I, A J B p, A B], [., p' F p, (Z p)'], [., ., F]]
    f_R     = A (omega^2 B p - 2 omega J B p') - m g e_y
    f_theta = -2 omega p' F p' - g e_y . A J B p          (the second p' is dp/dt)
    f_p     = omega^2 F p - 2 omega Z p' - g B' A' e_y - K d

(Shabana, Dynamics of Multibody Systems, chapter 5; González et al., section 4.2).
"""

from dataclasses import dataclass
from itertools import pairwise
from math import cos, pi, sin

import numpy as np
from numpy.typing import NDArray

from fmilin.models.sparse.numeric_equations import Pattern
from fmilin.signals import FloatArray

J = np.array([[0.0, -1.0], [1.0, 0.0]])


@dataclass(frozen=True)
class Rod:
    """A straight uniform rod of circular section."""

    length: float = 4.0  # in m
    radius: float = 0.15  # r in m: the area is pi r^2, its second moment pi r^4/4
    density: float = 1500.0  # in kg/m3
    modulus: float = 1e8  # Young's, in N/m2

    @property
    def mu(self) -> float:
        """Mass per length, kg/m."""
        return self.density * pi * self.radius**2

    @property
    def EA(self) -> float:
        """Axial stiffness, N."""
        return self.modulus * pi * self.radius**2

    @property
    def EI(self) -> float:
        """Bending stiffness, N m2."""
        return self.modulus * pi * self.radius**4 / 4


@dataclass(frozen=True, slots=True)
class _Element:
    """Matrices of one element of length h in (u, w, phi) of both its nodes, shape (6, 6), and B, shape (2, 6)."""

    B: FloatArray
    F: FloatArray
    Z: FloatArray
    K: FloatArray


def _shapes(xi: float, h: float) -> tuple[FloatArray, FloatArray]:
    """Return N at xi in 0..1, shape (2, 6), and (u', w'', w') as rows, shape (3, 6)."""
    N, D = np.zeros((2, 6)), np.zeros((3, 6))
    bending = [1, 2, 4, 5]
    N[0, [0, 3]] = 1 - xi, xi
    N[1, bending] = 1 - 3 * xi**2 + 2 * xi**3, h * (xi - 2 * xi**2 + xi**3), 3 * xi**2 - 2 * xi**3, h * (xi**3 - xi**2)
    D[0, [0, 3]] = -1 / h, 1 / h
    D[1, bending] = np.array([12 * xi - 6, h * (6 * xi - 4), 6 - 12 * xi, h * (6 * xi - 2)]) / h**2
    D[2, bending] = (
        np.array([6 * xi**2 - 6 * xi, h * (1 - 4 * xi + 3 * xi**2), 6 * xi - 6 * xi**2, h * (3 * xi**2 - 2 * xi)]) / h
    )
    return N, D


def _element(rod: Rod, h: float) -> _Element:
    points, weights = np.polynomial.legendre.leggauss(4)
    B, F, Z, K = np.zeros((2, 6)), np.zeros((6, 6)), np.zeros((6, 6)), np.zeros((6, 6))
    for xi, weight in zip((points + 1) / 2, weights / 2 * h, strict=True):
        N, D = _shapes(float(xi), h)
        B += weight * rod.mu * N
        F += weight * rod.mu * N.T @ N
        Z += weight * rod.mu * N.T @ J @ N
        K += weight * (rod.EA * np.outer(D[0], D[0]) + rod.EI * np.outer(D[1], D[1]))
    return _Element(B, (F + F.T) / 2, (Z - Z.T) / 2, (K + K.T) / 2)


def _stiffness_by_tension(h: float, pulls: tuple[float, float]) -> FloatArray:
    """Return int N0 w'^2 ds of one element as a matrix, N0 linear between ``pulls`` at its ends, shape (6, 6)."""
    points, weights = np.polynomial.legendre.leggauss(4)
    K = np.zeros((6, 6))
    for xi, weight in zip((points + 1) / 2, weights / 2 * h, strict=True):
        slope = _shapes(float(xi), h)[1][2]
        K += weight * (pulls[0] * (1 - xi) + pulls[1] * xi) * np.outer(slope, slope)
    return (K + K.T) / 2


class FlexibleLink:
    """The constant matrices of one link of equal elements: B (2, size); F, Z, K (size, size), size = 3 (n_p + 1).

    ``reference`` (size,) is p without deformation. ``pull`` (N) hangs at the end when the link hangs at rest, with
    the axial force N0(s) = pull + mu g (L - s). A ``stiffened`` link has its length as it hangs, with N0 as initial
    stress: it adds the energy int N0 (u' + w'^2/2) ds; its second part is the geometric stiffening and
    ``initial`` (size,) the gradient of the first.
    """

    def __init__(self, rod: Rod, elements: int, *, pull: float, gravity: float, stiffened: bool) -> None:
        self.rod, self.elements, self.pull, self.gravity, self.stiffened = rod, elements, pull, gravity, stiffened
        self.size, h = 3 * (elements + 1), rod.length / elements
        element = _element(rod, h)
        dofs = 3 * np.arange(elements)[:, None] + np.arange(6)
        self.pattern = Pattern(np.repeat(dofs, 6, axis=1).ravel(), np.tile(dofs, 6).ravel(), (self.size, self.size))
        self.reference = np.zeros(self.size)
        self.reference[0::3] = np.linspace(0.0, rod.length, elements + 1)
        self.B = np.array([np.bincount(dofs.ravel(), np.tile(row, elements), self.size) for row in element.B])
        self.values_F = np.tile(element.F.ravel(), elements)
        self.values_Z = np.tile(element.Z.ravel(), elements)
        self.values_K = np.tile(element.K.ravel(), elements)
        self.initial = np.zeros(self.size)
        if stiffened:
            ends = self.axial_force(self.reference[0::3])
            parts = [_stiffness_by_tension(h, (float(a), float(b))) for a, b in pairwise(ends)]
            self.values_K = self.values_K + np.array(parts).ravel()
            means = (ends[:-1] + ends[1:]) / 2
            self.initial[0::3] = np.concatenate(([0.0], means)) - np.concatenate((means, [0.0]))
        self.F, self.Z, self.K = (self.pattern.sparse(v) for v in (self.values_F, self.values_Z, self.values_K))

    @property
    def mass(self) -> float:
        """Of the whole link, kg."""
        return self.rod.mu * self.rod.length

    def axial_force(self, s: FloatArray) -> FloatArray:
        """Return N0 at the distances s along the link, in N."""
        return self.pull + self.rod.mu * self.gravity * (self.rod.length - s)

    def deflection_under_gravity(self) -> FloatArray:
        """Return d of the link hanging at rest: u(s) = (pull s + mu g (L s - s^2/2))/EA at its nodes, exactly."""
        d = np.zeros(self.size)
        if not self.stiffened:
            s, L = self.reference[0::3], self.rod.length
            d[0::3] = (self.pull * s + self.rod.mu * self.gravity * (L * s - s**2 / 2)) / self.rod.EA
        return d

    def elastic_force(self, d: FloatArray) -> FloatArray:
        """Return the force that the displacements d bring about, shape (size,)."""
        result: FloatArray = -(self.K @ d) - self.initial
        return result

    def elastic_energy(self, d: FloatArray) -> float:
        """Return the energy of the displacements d in J."""
        return float(d @ (self.K @ d) / 2 + self.initial @ d)


IntArray = NDArray[np.intp]

E_Y = np.array([0.0, 1.0])


def rotation(theta: float) -> FloatArray:
    """Return A(theta), shape (2, 2); its derivative is A J."""
    return np.array([[cos(theta), -sin(theta)], [sin(theta), cos(theta)]])


class LinkMotion:
    """Mass matrix, forces and derivatives of one link in q = (R, theta, d), 3 + 3 (n_p + 1) entries, and patterns."""

    def __init__(self, link: FlexibleLink) -> None:
        self.link, self.g = link, link.gravity
        self.size = 3 + link.size
        p, shape = np.arange(3, self.size), (self.size, self.size)
        inner = (link.pattern, 3, 3)

        def to_block(*blocks: tuple[IntArray, IntArray]) -> tuple[Pattern, int, int]:
            pairs = [np.broadcast_arrays(i, j) for i, j in blocks]
            rows, columns = (np.concatenate([pair[k].ravel() for pair in pairs]) for k in (0, 1))
            return Pattern(rows, columns, shape), 0, 0

        R, theta = np.array([[0], [1]]), np.array([[2]])
        corner = ((R, R.T), (R, theta), (theta, R.T), (theta, theta))
        edges = ((R, p), (p[:, None], R.T), (theta, p), (p[:, None], theta))
        self.pattern_M = Pattern.from_blocks([to_block(*corner, *edges), inner], shape)
        slopes = to_block((R, theta), (theta, theta), (R, p), (theta, p), (p[:, None], theta))
        self.pattern_e_q = self.pattern_f_v = Pattern.from_blocks([slopes, inner], shape)

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
