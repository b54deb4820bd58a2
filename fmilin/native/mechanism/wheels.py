"""The lowest point of a wheel: where it is, how it moves, and what forces on it are on the centre and the axle.

With the axle e, the normal n of the plane, N = n.e and s = sqrt(1 - N^2), the lowest point lies at the centre plus
r d - rho n, d = (N e - n) / s: down in the plane of the wheel, then down through the tyre. A ball has r = 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fmilin.native.mechanism.screws import Array, root

__all__ = ["Rims"]

Floats = NDArray[np.float64]
FLAT = 1e-7
"""Sine of the angle between axle and normal below which a wheel lies flat."""


@dataclass(frozen=True)
class Rims:
    """Wheels as constant arrays."""

    centers: NDArray[np.intp]  # (k,), points
    axles: NDArray[np.intp]  # (k,), directions
    normals: Floats  # shape (k, 3)
    radii: Floats  # (k,), r
    tubes: Floats  # (k,), rho

    def __len__(self) -> int:
        return len(self.centers)

    def some(self, chosen: NDArray[np.intp]) -> Rims:
        """Return some of the wheels, in the given order."""
        return Rims(
            self.centers[chosen], self.axles[chosen], self.normals[chosen], self.radii[chosen], self.tubes[chosen]
        )

    def axle_matrix(self, e: Array) -> Array:
        """Return the transpose of d down/de, shape (..., k, 3, 3)."""
        s, N = (a[..., None, None] for a in self._lean(e))
        n, e = self.normals, e[..., None, :]
        across = e - N * n[:, None, :]
        return self.radii[:, None, None] * (n[:, :, None] * across / s**3 + N / s * np.eye(3))

    def down(self, e: Array) -> Array:
        """Return the way from the centres to the lowest points, for axles e (..., k, 3)."""
        s, N = (a[..., None] for a in self._lean(e))
        d = (N * e - self.normals) / s
        return self.radii[:, None] * d - self.tubes[:, None] * self.normals

    def down_rate(self, e: Array, e_dot: Array) -> Array:
        """Return its rate: (1/s)' = N N'/s^3 and (N/s)' = N'/s^3."""
        s, N = (a[..., None] for a in self._lean(e))
        N_dot = self._along_normal(e_dot)
        return self.radii[:, None] * (N_dot / s**3 * (e - N * self.normals) + N / s * e_dot)

    def on_axle(self, e: Array, e_dot: Array, f: Array, f_rate: Array) -> tuple[Array, Array]:
        """Return the gradients by e and e' of f . down + f_rate . down_rate; e, e_dot, f, f_rate (..., k, 3)."""
        s, N = (a[..., None] for a in self._lean(e))
        n, N_dot = self.normals, self._along_normal(e_dot)
        across = e - N * n
        dot = self._dot
        by_N = dot(across, f) + 3 * N_dot * N / s**2 * dot(across, f_rate)
        by_N = by_N - N_dot * self._along_normal(f_rate) + dot(e_dot, f_rate)
        on_e = n * by_N / s**3 + N / s * f + N_dot / s**3 * f_rate
        on_rate = n * dot(across, f_rate) / s**3 + N / s * f_rate
        return self.radii[:, None] * on_e, self.radii[:, None] * on_rate

    def _lean(self, e: Array) -> tuple[Array, Array]:
        N = (self.normals * e).sum(axis=-1)
        s = root(1 - N * N * (self.radii > 0))
        if s.dtype.kind == "f":  # a wheel that lies flat has no lowest point: it says so without a warning
            s = np.where(s > FLAT, s, np.nan)
        return s, N

    def _along_normal(self, a: Array) -> Array:
        return self._dot(self.normals, a)

    @staticmethod
    def _dot(a: Array, b: Array) -> Array:
        return (a * b).sum(axis=-1, keepdims=True)
