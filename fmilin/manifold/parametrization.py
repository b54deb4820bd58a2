"""The local parametrization x = Psi(t, y) of the manifold, its derivative and its conditioning.

Linear coordinates y = R x (Spencer eq. 2.33), completed by w = S x so that (R; S) is invertible with the
inverse (Rbar, Sbar) (eqs. 2.34 to 2.36). The derivative is eq. (2.37),

    DPsi = Rbar - Sbar (H Sbar)^-1 H Rbar,

which needs an M x M system instead of the N x N one of eq. (2.29). Newton's iteration for Psi moves along
Sbar alone: the coordinates y keep their values to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from fmilin.errors import NumericalError
from fmilin.manifold.invariants import Invariants
from fmilin.signals import FloatArray

__all__ = ["Coordinates", "LocalParametrization"]

Factors = tuple[FloatArray, NDArray[np.int32]]
"""L and U in one matrix, and the pivots."""

ITERATIONS = 30
SLOW = 0.25
"""Contraction rate above which the matrix of the iteration is renewed."""


@dataclass(frozen=True, slots=True)
class Coordinates:
    """A linear choice of coordinates: y = R x, w = S x, and x = Rbar y + Sbar w.

    Attributes
    ----------
    R : array, shape (P, N)
    Rbar : array, shape (N, P)
    Sbar : array, shape (N, M)
    """

    R: FloatArray
    Rbar: FloatArray
    Sbar: FloatArray


class LocalParametrization:
    """Psi near a point of the manifold.

    Parameters
    ----------
    invariants : Invariants
    rows : sequence of int
        The M independent ones among the rows of h.
    coordinates : Coordinates
    time : float
    x0 : array, shape (N,)
        A point on the manifold.

    Raises
    ------
    NumericalError
        When the coordinates do not determine the point (eq. 2.22 violated).
    """

    def __init__(
        self, invariants: Invariants, rows: list[int], coordinates: Coordinates, time: float, x0: FloatArray
    ) -> None:
        self.invariants = invariants
        self.rows = rows
        self.coordinates = coordinates
        self.time = time
        self.x0 = x0
        self.y0 = coordinates.R @ x0
        self.scales = invariants.scales
        self.gradient = invariants.gradient(time, x0)
        self._row_scales = self._row_sizes(self.gradient.H)
        self._factors = self._factor(self.gradient.H)
        self.derivative = self._dpsi(self.gradient.H)
        """DPsi at x0, shape (N, P)."""
        self.derivative_error = self._dpsi_error()
        """Estimated absolute error of DPsi, shape (N, P): from the error of H."""

    @property
    def condition_number(self) -> float:
        """Condition number of (R; H) at x0, rows and columns scaled: how far the coordinates are from dependent."""
        return conditioning(self.coordinates.R, self.gradient.H[self.rows], self.scales)

    def psi(self, y: FloatArray) -> FloatArray:
        """Return x on the manifold with coordinates y, shape (N,).

        Raises
        ------
        NumericalError
            When Newton's iteration does not converge: y is outside the neighbourhood of the point.
        """
        dy = y - self.y0
        start = self.x0 + self.derivative @ dy
        # In exact arithmetic R start = y already; make it so to the last bit before w is corrected.
        start += self.coordinates.Rbar @ (y - self.coordinates.R @ start)
        return self.solve(start)

    def solve(self, start: FloatArray) -> FloatArray:
        """Return the point of the manifold that has the coordinates of ``start``, by Newton's iteration along Sbar."""
        x = start.copy()
        if not self.rows:
            return x
        factors, rho, previous = self._factors, 0.0, np.inf
        for iteration in range(ITERATIONS):
            h = self.invariants.values(self.time, x)[self.rows]
            if not np.isfinite(h).all():
                raise self._failure(x, "the constraints are not defined there")
            step = -self.coordinates.Sbar @ linalg.lu_solve(factors, h / self._row_scales)
            size = float(np.max(np.abs(step) / self.scales, initial=0.0))
            x += step
            rho = size / previous if previous < np.inf else 0.0
            # Section 2.3.1: |x_{j+1} - x| <= rho / (1 - rho) |x_{j+1} - x_j|
            limit = 4 * np.finfo(float).eps * max(1.0, float(np.max(np.abs(x) / self.scales)))
            if size <= limit or (rho < 0.5 and size * rho / (1 - rho) <= limit and iteration > 0):
                return x
            if rho >= 0.5 and previous <= 1e3 * limit:
                return x  # rounding keeps it from getting any better
            if size > 1e3 or (iteration > 5 and rho > 1.0):
                break
            if rho > SLOW:
                factors = self._factor(self.invariants.gradient(self.time, x).H)
            previous = size
        raise self._failure(
            x, "Newton's iteration left the neighbourhood of the point" if rho > 1 else "it converges too slowly"
        )

    def dpsi(self, x: FloatArray) -> FloatArray:
        """Return DPsi at any point x of the manifold, shape (N, P): eq. (2.37)."""
        return self._dpsi(self.invariants.gradient(self.time, x).H)

    def _row_sizes(self, H: FloatArray) -> FloatArray:
        size = np.linalg.norm(H[self.rows] * self.scales, axis=1)
        return np.where(size > 0, size, 1.0)

    def _factor(self, H: FloatArray) -> Factors:
        matrix = (H[self.rows] / self._row_scales[:, None]) @ self.coordinates.Sbar
        if not np.isfinite(matrix).all():
            raise NumericalError("The gradient of the constraints is not finite at the point.")
        if matrix.size == 0:
            return matrix, np.empty(0, dtype=np.int32)
        lu, pivots = linalg.lu_factor(matrix, check_finite=False)
        if np.min(np.abs(np.diag(lu))) == 0.0:
            raise NumericalError(
                "These coordinates do not determine the others at this point: choose another set.",
                condition_number=np.inf,
            )
        return lu, pivots.astype(np.int32)

    def _dpsi(self, H: FloatArray) -> FloatArray:
        Rbar, Sbar = self.coordinates.Rbar, self.coordinates.Sbar
        if not self.rows:
            return Rbar.copy()
        Hn = H[self.rows] / self._row_scales[:, None]
        return Rbar - Sbar @ linalg.lu_solve(self._factor(H), Hn @ Rbar)

    def _dpsi_error(self) -> FloatArray:
        """To first order, d(DPsi) = -Sbar (H Sbar)^-1 dH DPsi."""
        T = self.derivative
        if not self.rows:
            return np.zeros_like(T)
        size = np.maximum(np.abs(T), 0.0)
        error: FloatArray = (
            np.finfo(float).eps * self.condition_number * np.maximum(size, 1e-3 * np.max(size, initial=0))
        )
        measured = self.gradient.error[self.rows]
        if measured.any():
            inverse: FloatArray = linalg.lu_solve(self._factors, np.eye(len(self.rows)))
            spread = np.abs(self.coordinates.Sbar @ inverse) @ ((measured / self._row_scales[:, None]) @ np.abs(T))
            error = error + spread
        return error

    def _failure(self, x: FloatArray, why: str) -> NumericalError:
        h = np.abs(self.invariants.values(self.time, x)[self.rows]) / self._row_scales
        worst = self.invariants.names[self.rows[int(np.nanargmax(np.where(np.isfinite(h), h, np.inf)))]]
        return NumericalError(
            f"No point of the manifold was found with the wanted coordinates: {why} (constraint '{worst}'). "
            "The coordinates may be close to singular here; choose others with --independent or --coordinates tangent."
        )


def conditioning(R: FloatArray, H: FloatArray, scales: FloatArray) -> float:
    """Return the condition number of (R; H) with columns scaled and rows normalized."""
    matrix = np.vstack((R, H)) * scales
    if matrix.size == 0:
        return 1.0
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    if not np.isfinite(matrix).all() or (norms == 0).any():
        return np.inf
    sigma = linalg.svdvals(matrix / norms)
    return float(sigma[0] / sigma[-1]) if sigma[-1] > 0 else np.inf
