"""A flexible link in its floating frame: planar axial and Euler-Bernoulli finite elements, full rigid-elastic coupling.

A point of the link is r = R + A(theta) rho with rho = (s + u, w) = N(s) p in the frame: u is linear, w cubic
(Hermite) in each element, and p holds (s_i + u_i, w_i, phi_i) of every node, which N reproduces exactly. With
the constant matrices (mu = rho A is the mass per length, J turns by a right angle)

    B = int mu N ds,    F = int mu N' N ds,    Z = int mu N' J N ds,    K = int (EA u'^2 + EI w''^2) ds as a matrix

the kinetic energy 1/2 int mu |r'|^2 ds has the mass matrix, in the coordinates (R, theta, p),

    M = [[m I, A J B p, A B], [., p' F p, (Z p)'], [., ., F]]

(Shabana, Dynamics of Multibody Systems, chapter 5; González et al., section 4.2). All integrals are exact: the
integrands are polynomials within the reach of four Gauss points.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import pi

import numpy as np

from fmilin.ground.signals import FloatArray
from fmilin.native.sparse.pattern import Pattern

__all__ = ["FlexibleLink", "Rod"]

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


def _stiffening(h: float, pulls: tuple[float, float]) -> FloatArray:
    """Return int N0 w'^2 ds of one element as a matrix, N0 linear between ``pulls`` at its ends, shape (6, 6)."""
    points, weights = np.polynomial.legendre.leggauss(4)
    K = np.zeros((6, 6))
    for xi, weight in zip((points + 1) / 2, weights / 2 * h, strict=True):
        slope = _shapes(float(xi), h)[1][2]
        K += weight * (pulls[0] * (1 - xi) + pulls[1] * xi) * np.outer(slope, slope)
    return (K + K.T) / 2


class FlexibleLink:
    """The constant matrices of one link of equal elements.

    Shapes: reference (size,), p without deformation; B (2, size); F, Z, K (size, size).
    pull: weight that hangs at the end when the link hangs at rest, in N: its axial force is then N0(s) = pull + mu g (L
        - s).
    gravity: in m/s2.
    stiffened: whether the link has its length as it hangs, with N0 as initial stress: the energy int N0 (u' + w'^2/2)
        ds is then added, whose second part is the geometric stiffening.
    size: 3 (n_p + 1), the length of p.
    pattern (size, size): the places of F, Z and K.
    initial (size,): gradient of int N0 u' ds; zero without stiffening.
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
            parts = [_stiffening(h, (float(a), float(b))) for a, b in pairwise(ends)]
            self.values_K = self.values_K + np.array(parts).ravel()
            means = (ends[:-1] + ends[1:]) / 2
            self.initial[0::3] = np.concatenate(([0.0], means)) - np.concatenate((means, [0.0]))
        self.F, self.Z, self.K = (self.pattern.sparse(v) for v in (self.values_F, self.values_Z, self.values_K))

    @property
    def mass(self) -> float:
        """Of the whole link, kg."""
        return self.rod.mu * self.rod.length

    def axial_force(self, s: FloatArray) -> FloatArray:
        """Return N0 at the places s along the link, in N."""
        return self.pull + self.rod.mu * self.gravity * (self.rod.length - s)

    def hanging(self) -> FloatArray:
        """Return the displacements d of the link hanging at rest, its own axis pointing down.

        Stretched by its weight unless it has its length as it hangs; the linear elements give the exact
        displacements u(s) = (pull s + mu g (L s - s^2/2))/EA at their nodes.
        """
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
