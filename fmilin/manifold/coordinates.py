"""Independent coordinates as functions of the state: R(x, y) = rho(x) - y = 0 (Spencer eq. 2.20).

Linear ones, y = R x (eq. 2.33), with the small system of eq. (2.37); nonlinear ones, given by an expression
each, with the full system of eqs. (2.29) and (2.31).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dgetrf

from fmilin.ground.errors import NumericalError
from fmilin.ground.signals import FloatArray
from fmilin.manifold.rank import singular_values
from fmilin.model.constraints.functions import ExpressionFunctions
from fmilin.numerics.saddle_point.factors import lu_solved

Solver = Callable[[FloatArray, FloatArray], FloatArray]
"""(r, h) -> d with D rho d = r and H d = h; r (P,) or (P, k), h (M,) or (M, k)."""


class Coordinates(ABC):
    """P coordinates y = rho(x)."""

    R: FloatArray  # (P, N), D rho at the point where they were chosen
    is_linear: bool

    @abstractmethod
    def values(self, x: FloatArray) -> FloatArray:
        """Return y, shape (P,)."""

    @abstractmethod
    def jacobian(self, x: FloatArray) -> FloatArray:
        """Return D rho at x, shape (P, N): y' = D rho x'."""

    @abstractmethod
    def curvature(self, x: FloatArray, w: FloatArray) -> FloatArray:
        """Return d/dx (D rho w) for a fixed vector w (N,), shape (P, N): zero for linear coordinates."""

    @abstractmethod
    def graph(self, x: Any) -> Any:
        """Return y as a column of CasADi's nodes for a column x."""

    @abstractmethod
    def solver(self, H: FloatArray, x: FloatArray) -> Solver:
        """Factor (D rho; H) at x, with H (M, N), rows normalized."""


@dataclass(frozen=True)
class LinearCoordinates(Coordinates):
    """y = R x and w = S x, so that x = Rbar y + Sbar w (eqs. 2.33 to 2.36)."""

    R: FloatArray  # shape (P, N)
    Rbar: FloatArray  # shape (N, P)
    Sbar: FloatArray  # shape (N, M)

    is_linear = True

    def values(self, x: FloatArray) -> FloatArray:
        """Return R x."""
        return self.R @ x

    def jacobian(self, x: FloatArray) -> FloatArray:
        """Return R, wherever x is."""
        del x
        return self.R

    def curvature(self, x: FloatArray, w: FloatArray) -> FloatArray:
        """Return zeros."""
        del x, w
        return np.zeros_like(self.R)

    def graph(self, x: Any) -> Any:
        """Return R x for a column of nodes."""
        import casadi as ca

        return ca.mtimes(ca.sparsify(ca.DM(self.R)), x)

    def solver(self, H: FloatArray, x: FloatArray) -> Solver:
        """Factor the M x M matrix H Sbar of eq. (2.37); a solution moves along Sbar alone where r = 0."""
        del x
        factors = _factor(H @ self.Sbar)

        def solve(r: FloatArray, h: FloatArray) -> FloatArray:
            along = self.Rbar @ r
            return along + self.Sbar @ _solve(factors, h - H @ along)

        return solve


class NonlinearCoordinates(Coordinates):
    """y_k = rho_k(x), an expression over the N states each; linear ones among them are welcome."""

    is_linear = False

    def __init__(self, functions: ExpressionFunctions, x0: FloatArray) -> None:
        self._functions = functions
        self.R = self.jacobian(x0)

    def values(self, x: FloatArray) -> FloatArray:
        """Return rho(x)."""
        return self._functions.values(x)

    def jacobian(self, x: FloatArray) -> FloatArray:
        """Return the exact Jacobian of rho."""
        return self._functions.jacobian(x)

    def curvature(self, x: FloatArray, w: FloatArray) -> FloatArray:
        """Return the second derivative of rho contracted with w."""
        return self._functions.curvature(x, w)

    def graph(self, x: Any) -> Any:
        """Return rho(x) for a column of nodes."""
        return self._functions.graph(x)

    def solver(self, H: FloatArray, x: FloatArray) -> Solver:
        """Factor the N x N matrix of eq. (2.29)."""
        D = self.jacobian(x)
        sizes = np.maximum(np.linalg.norm(D, axis=1), np.finfo(float).tiny)
        factors = _factor(np.vstack((D / sizes[:, None], H)))

        def solve(r: FloatArray, h: FloatArray) -> FloatArray:
            return _solve(factors, np.concatenate(((r.T / sizes).T, h)))

        return solve


def conditioning(R: FloatArray, H: FloatArray, scales: FloatArray) -> float:
    """Return the condition number of (R; H) with columns scaled and rows normalized."""
    matrix = np.vstack((R, H)) * scales
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    return np.inf if not np.isfinite(matrix).all() or (norms == 0).any() else condition_number(matrix / norms)


def condition_number(matrix: FloatArray) -> float:
    """Return the condition number of a finite matrix, square or wide; infinite where it is singular."""
    if matrix.size == 0:
        return 1.0
    sigma = singular_values(matrix)
    return float(sigma[0] / sigma[-1]) if sigma[-1] > 0 else np.inf


Factors = tuple[FloatArray, NDArray[np.int32]]


def _factor(matrix: FloatArray) -> Factors:
    if not np.isfinite(matrix).all():
        raise NumericalError("The gradient of the constraints or coordinates is not finite at the point.")
    if matrix.size == 0:
        return matrix, np.empty(0, dtype=np.int32)
    lu, pivots, singular = dgetrf(matrix)
    if singular > 0:
        raise NumericalError(
            "These coordinates do not determine the others at this point: choose another set.", condition_number=np.inf
        )
    return lu, pivots


def _solve(factors: Factors, right: FloatArray) -> FloatArray:
    return np.zeros_like(right) if factors[0].size == 0 or right.size == 0 else lu_solved(*factors, right)
