"""Screws in R^6: velocities (w, v) and moment-force pairs (m, f), with the operators of Spencer (thesis), A.1.

Arrays may have any leading axes; the last is that of the screw (6) or the vector (3). Only multiplication by constants,
sums and products of elements are used: the same code computes one point, thousands, complex numbers, and symbols.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = Any  # an array of the array API standard, real or complex


class Partials(NamedTuple):
    """Derivatives by displacements theta, velocities v and inputs u: (..., k, n), (..., k, n), (..., k, nu)."""

    q: Array
    v: Array
    u: Array

    def with_rows(self, rows: Any, further: Partials) -> Partials:
        """Return the same with what others add to some rows."""
        sums = []
        for a, more in zip(self, further, strict=True):
            shape = np.broadcast_shapes(a.shape[:-2], more.shape[:-2])
            both = np.broadcast_to(a, (*shape, *a.shape[-2:])).astype(np.result_type(a, more))
            both[..., rows, :] += more
            sums.append(both)
        return Partials(*sums)


def _levi_civita() -> np.ndarray[Any, np.dtype[np.float64]]:
    e = np.zeros((3, 3, 3))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        e[i, j, k], e[i, k, j] = 1.0, -1.0
    return e


def _ad_table() -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return T with ad_g = (g @ T) as 6 x 6: [[w], 0; [v], [w]] (A.1.4)."""
    table = np.zeros((6, 6, 6))
    skews = np.transpose(_levi_civita(), (1, 0, 2))  # [w]_ik = sum_j e_ijk w_j
    table[:3, :3, :3] = skews
    table[:3, 3:, 3:] = skews
    table[3:, 3:, :3] = skews
    return table.reshape(6, 36)


def _inertia_table() -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return T with I = (P @ T) as 6 x 6, P the pseudo-inertia as 16 numbers."""
    table = np.zeros((4, 4, 6, 6))
    for i in range(3):
        for j in range(3):
            table[i, i, j, j] += 1.0  # tr(Sigma) 1 - Sigma
            table[i, j, i, j] -= 1.0
    skews = np.transpose(_levi_civita(), (1, 0, 2))
    for j in range(3):
        table[j, 3, :3, 3:] += skews[j]  # m [c], and its transpose
        table[j, 3, 3:, :3] -= skews[j]
    table[3, 3, 3:, 3:] += np.eye(3)
    return table.reshape(16, 36)


AD, INERTIA = _ad_table(), _inertia_table()
FORCE = -np.transpose(AD.reshape(6, 6, 6), (1, 2, 0)).reshape(6, 36)  # H(h) = (h @ FORCE) as 6 x 6: H(h) x = -ad_x^* h
BEFORE, AFTER = np.array([1, 2, 0, 2, 0, 1]), np.array([2, 0, 1, 1, 2, 0])


def cross(a: Array, b: Array) -> Array:
    """Return a x b, shapes (..., 3)."""
    products = a[..., BEFORE] * b[..., AFTER]
    return products[..., :3] - products[..., 3:]


def ad(g: Array) -> Array:
    """Return the matrix of the Lie bracket, ad_g h = [g, h] (A.1.4), shape (..., 6, 6)."""
    return (g @ AD).reshape((*g.shape[:-1], 6, 6))


def along(matrix: Array, g: Array) -> Array:
    """Return matrix g for screws or vectors g, shape (..., m)."""
    return (matrix @ g[..., None])[..., 0]


def moment_of(h: Array) -> Array:
    """Return the matrix H with H x = -ad_x^* h, shape (..., 6, 6): the same bilinear form, as a function of x."""
    return (h @ FORCE).reshape((*h.shape[:-1], 6, 6))


def root(a: Array) -> Array:
    """Return the square roots of the elements: of symbols, too, where some may be plain numbers."""
    if a.dtype != object:
        return np.sqrt(a)
    flat = [x.sqrt() if hasattr(x, "sqrt") else float(np.sqrt(x)) for x in a.ravel()]
    return np.array([*flat, None], dtype=object)[:-1].reshape(a.shape)


def limited(a: Array, limits: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[Array, Array]:
    """Return the elements a (..., k) within their limits (k, 2), and 1 where they are inside of them, 0 beyond."""
    if not np.isfinite(limits).any():
        return a, np.ones(len(limits))
    low, high = limits.T
    if a.dtype != object:
        inside = (np.real(a) >= low) & (np.real(a) <= high)
        return np.where(inside, a, np.where(np.real(a) < low, low, high)), inside.astype(float)
    pairs = [
        x.limited(*pair) if hasattr(x, "limited") else (min(max(x, pair[0]), pair[1]), float(pair[0] <= x <= pair[1]))
        for x, pair in zip(a, limits.tolist(), strict=True)
    ]
    values, insides = (np.array([*(pair[i] for pair in pairs), None], dtype=object)[:-1] for i in (0, 1))
    return values, insides


def pseudo_inertia(mass: float, center: Array, J: Array) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return P = int (r, 1) (r, 1)' dm about the body's frame (4, 4), which moves by X P X' and adds up (A.2.4)."""
    c = np.asarray(center)
    sigma = np.trace(J) / 2 * np.eye(3) - J + mass * np.outer(c, c)
    return np.block([[sigma, mass * c[:, None]], [mass * c[None, :], np.full((1, 1), mass)]])


def inertia_tensor(P: Array) -> Array:
    """Return the generalized inertia tensor I of a pseudo-inertia P (..., 4, 4), shape (..., 6, 6)."""
    return (P.reshape((*P.shape[:-2], 16)) @ INERTIA).reshape((*P.shape[:-2], 6, 6))
