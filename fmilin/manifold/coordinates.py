"""Independent coordinates y = rho(x) of a manifold h(t, x) = 0 (Spencer, ch. 2), at one point and at many.

Linear ones, y = R x (eq. 2.33), have the M x M system of eq. (2.37); nonlinear ones, given by an expression each, the
full system of eqs. (2.29) and (2.31). Coordinates that are states keep their values to the last bit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmilin.constraints.expression_functions import ExpressionFunctions
from fmilin.errors import NumericalError
from fmilin.manifold.rank import singular_values
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass

NOT_FINITE = "The gradient of the constraints or coordinates is not finite at the point."
SINGULAR_COORDINATES = "These coordinates do not determine the others at this point: choose another set."


class Inverse(NamedTuple):
    """A right inverse of the independent constraints: it maps residuals h to displacements x that cancel them."""

    back: FloatArray  # (k, N', M), of the states that move
    tangent: FloatArray | None = None  # (k, N', P), the same for coordinates; None where these are linear, and met

    def select(self, numbers: NDArray[np.intp]) -> Inverse:
        """Return those of some points."""
        return Inverse(self.back[numbers], None if self.tangent is None else self.tangent[numbers])

    def compute_displacement(self, h: FloatArray, r: FloatArray | None) -> FloatArray:
        """Return the displacement (k, N') for residuals h (k, M) and coordinates that are too large by r (k, P)."""
        displacement = (self.back @ h[..., None])[..., 0]
        if r is not None and self.tangent is not None:
            displacement = displacement + (self.tangent @ r[..., None])[..., 0]
        return np.asarray(displacement)


class Coordinates(ABC):
    """P coordinates y = rho(x)."""

    R: FloatArray  # (P, N), D rho at the point where they were chosen
    is_linear: bool
    moving: slice | list[int] = slice(None)  # states that may move while the coordinates stay
    independent: list[int] | None = None  # the states that the coordinates are; None where they are none

    @abstractmethod
    def values(self, x: FloatArray) -> FloatArray:
        """Return y (..., P) at states x (..., N)."""

    def sizes(self, sizes: FloatArray) -> FloatArray:
        """Return a size for each coordinate (..., P) from those of the states (..., N)."""
        return np.asarray((np.abs(self.R) @ sizes[..., None])[..., 0])

    def project(self, vectors: FloatArray) -> FloatArray:
        """Return R V (..., P, c) for V (..., N, c)."""
        return np.asarray(self.R @ vectors)

    def project_errors(self, errors: FloatArray) -> FloatArray:
        """Return |R| E (..., P, c) for errors E (..., N, c)."""
        return np.asarray(np.abs(self.R) @ errors)

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
    def compute_tangents(self, H: FloatArray, x: FloatArray) -> FloatArray:
        """Return T = DPsi (k, N, P) at states x (k, N), with H (k, M, N) of independent constraints, rows normalized.

        Raises NumericalError if H is not finite, or the coordinates do not determine the states at one of the points.
        """

    @abstractmethod
    def invert(self, H: FloatArray, x: FloatArray) -> Inverse:
        """Return the inverse of (D rho; H) at states x (k, N), with H (k, M, N); errors as of ``compute_tangents``."""


@dataclass(frozen=True)
class LinearCoordinates(Coordinates):
    """y = R x and w = S x, so that x = Rbar y + Sbar w (eqs. 2.33 to 2.36)."""

    R: FloatArray  # shape (P, N)
    Rbar: FloatArray  # shape (N, P)
    Sbar: FloatArray  # shape (N, M)

    is_linear = True

    def values(self, x: FloatArray) -> FloatArray:
        """Return R x."""
        return np.asarray((self.R @ x[..., None])[..., 0])

    def jacobian(self, x: FloatArray) -> FloatArray:
        """Return R, wherever x is."""
        return self.R

    def curvature(self, x: FloatArray, w: FloatArray) -> FloatArray:
        """Return zeros."""
        return np.zeros_like(self.R)

    def graph(self, x: Any) -> Any:
        """Return R x for a column of nodes."""
        import casadi as ca

        return ca.mtimes(ca.sparsify(ca.DM(self.R)), x)

    def compute_tangents(self, H: FloatArray, x: FloatArray) -> FloatArray:
        """Return Rbar - Sbar (H Sbar)^-1 H Rbar."""
        along = solve_regular(H @ self.Sbar, H @ self.Rbar)
        return np.asarray(self.Rbar - self.Sbar @ along)

    def invert(self, H: FloatArray, x: FloatArray) -> Inverse:
        """Return Sbar (H Sbar)^-1: a solution moves along Sbar alone."""
        return Inverse(self.Sbar @ invert_regular(H @ self.Sbar))


class StateCoordinates(Coordinates):
    """P of N states, by number: the other states move."""

    is_linear = True

    def __init__(self, independent: Sequence[int], count: int) -> None:
        self.independent: list[int] = list(independent)
        chosen = set(self.independent)
        self.moving: list[int] = [i for i in range(count) if i not in chosen]
        self._count = count

    @cached_property
    def R(self) -> FloatArray:  # type: ignore[override]
        """Rows of the unit matrix, shape (P, N)."""
        return np.eye(self._count)[self.independent]

    def values(self, x: FloatArray) -> FloatArray:
        """Return the kept states."""
        return x[..., self.independent]

    def sizes(self, sizes: FloatArray) -> FloatArray:
        """Return those of the kept states."""
        return sizes[..., self.independent]

    def project(self, vectors: FloatArray) -> FloatArray:
        """Return the rows of the kept states."""
        are_first = self.independent == list(range(len(self.independent)))  # a view then
        return vectors[..., : len(self.independent), :] if are_first else vectors[..., self.independent, :]

    def project_errors(self, errors: FloatArray) -> FloatArray:
        """Return the rows of the kept states."""
        return self.project(errors)

    def jacobian(self, x: FloatArray) -> FloatArray:
        """Return R, wherever x is."""
        return self.R

    def curvature(self, x: FloatArray, w: FloatArray) -> FloatArray:
        """Return zeros."""
        return np.zeros((len(self.independent), self._count))

    def graph(self, x: Any) -> Any:
        """Return the kept rows of a column of nodes."""
        import casadi as ca

        return ca.mtimes(ca.sparsify(ca.DM(self.R)), x)

    def compute_tangents(self, H: FloatArray, x: FloatArray) -> FloatArray:
        """Return T with rows of the unit matrix for the kept states, -H_z^-1 H_y for the others."""
        T = np.zeros((len(x), self._count, len(self.independent)))
        T[:, self.independent] = np.eye(len(self.independent))
        if self.moving:
            T[:, self.moving] = -solve_regular(H[..., self.moving], H[..., self.independent])
        return T

    def invert(self, H: FloatArray, x: FloatArray) -> Inverse:
        """Return H_z^-1."""
        return Inverse(invert_regular(H[..., self.moving]))


class NonlinearCoordinates(Coordinates):
    """y_k = rho_k(x), an expression over the N states each; linear ones among them are welcome."""

    is_linear = False

    def __init__(self, functions: ExpressionFunctions, x0: FloatArray) -> None:
        self._functions = functions
        self.R = self.jacobian(x0)

    def values(self, x: FloatArray) -> FloatArray:
        """Return rho(x)."""
        if x.ndim > 1:
            return np.array([self._functions.values(point) for point in x])
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

    def compute_tangents(self, H: FloatArray, x: FloatArray) -> FloatArray:
        """Return the first P columns of the inverse of eq. (2.29)."""
        return self._invert_all(H, x)[..., : len(self.R)]

    def invert(self, H: FloatArray, x: FloatArray) -> Inverse:
        """Return the inverse of the N x N matrix of eq. (2.29)."""
        inverse = self._invert_all(H, x)
        p = len(self.R)
        return Inverse(inverse[..., p:], inverse[..., :p])

    def _invert_all(self, H: FloatArray, x: FloatArray) -> FloatArray:
        D = np.array([self.jacobian(point) for point in x])
        # A coordinate that nothing moves leaves a row of zeros, which makes the matrix singular, instead of NaN.
        sizes = np.maximum(np.linalg.norm(D, axis=2, keepdims=True), np.finfo(float).tiny)
        inverse = invert_regular(np.concatenate((D / sizes, H), axis=1))
        inverse[..., : D.shape[1]] /= np.swapaxes(sizes, 1, 2)
        return inverse


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


def compute_condition_numbers(R: FloatArray, Hs: FloatArray) -> FloatArray:
    """Return the condition numbers (k,) of (R; Hs), R (P, N) and Hs (k, M, N), with rows and columns scaled."""
    k = len(Hs)
    matrices = np.concatenate((np.broadcast_to(R, (k, *R.shape)), Hs), axis=1)
    if k == 1:  # most calls are for one point, and take half the time without a batch
        return np.array([condition_number(matrices[0]) if np.isfinite(matrices).all() else np.inf])
    sigma = np.linalg.svd(np.where(np.isfinite(matrices), matrices, 0.0), compute_uv=False)
    smallest = np.where(np.isfinite(matrices).all(axis=(1, 2)), sigma[:, -1], 0.0)
    return np.where(smallest > 0, sigma[:, 0] / np.where(smallest > 0, smallest, 1.0), np.inf)


def solve_regular(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """Return the solutions of k systems, NaN where a matrix is singular; NumericalError if all of them are."""
    return _solve_each(np.linalg.solve, matrix, right)


def invert_regular(matrix: FloatArray) -> FloatArray:
    """Return the inverses of k matrices, NaN where one is singular; NumericalError if all of them are."""
    return _solve_each(np.linalg.inv, matrix)


def _solve_each(function: Callable[..., FloatArray], matrix: FloatArray, *right: FloatArray) -> FloatArray:
    """Call a function of numpy that raises LinAlgError if one of many matrices is singular."""
    finite = np.isfinite(matrix)
    # NaN in some of the matrices becomes NaN in their solutions: only without any finite one is it an error.
    if not finite.all() and not finite.all(axis=(1, 2)).any():
        raise NumericalError(NOT_FINITE)
    try:
        return np.asarray(function(matrix, *right))
    except np.linalg.LinAlgError:
        if len(matrix) == 1:
            raise NumericalError(SINGULAR_COORDINATES, condition_number=np.inf) from None
    solutions = []
    for k in range(len(matrix)):
        one = slice(k, k + 1)
        try:
            solutions.append(function(matrix[one], *(array[one] for array in right)))
        except np.linalg.LinAlgError:
            shape = right[0].shape[1:] if right else matrix.shape[1:]
            solutions.append(np.full((1, *shape), np.nan))
    return np.concatenate(solutions)
