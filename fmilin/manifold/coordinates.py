"""Independent coordinates y = rho(x), and the local parametrization x = Psi(t, y) of the manifold (Spencer, ch. 2).

Linear ones, y = R x (eq. 2.33), have the M x M system of eq. (2.37); nonlinear ones, given by an expression each, the
full system of eqs. (2.29) and (2.31). Psi solves (rho(x) - y; h(t, x)) = 0 (eq. 2.23) by Newton's iteration with the
contraction-rate criterion of section 2.3.1. Coordinates that are states keep their values to the last bit.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dgetrf

from fmilin.constraints.functions import ExpressionFunctions
from fmilin.errors import NumericalError
from fmilin.manifold.invariants import Invariants
from fmilin.manifold.rank import singular_values
from fmilin.model.capabilities import read_constraint_gradient
from fmilin.numerics.factors import lu_solved
from fmilin.signals import FloatArray
from fmilin.tolerances import EPS

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
        return self.R

    def curvature(self, x: FloatArray, w: FloatArray) -> FloatArray:
        """Return zeros."""
        return np.zeros_like(self.R)

    def graph(self, x: Any) -> Any:
        """Return R x for a column of nodes."""
        import casadi as ca

        return ca.mtimes(ca.sparsify(ca.DM(self.R)), x)

    def solver(self, H: FloatArray, x: FloatArray) -> Solver:
        """Factor the M x M matrix H Sbar of eq. (2.37); a solution moves along Sbar alone where r = 0."""
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


MAX_NEWTON_ITERATIONS = 30
LAST_STEP = 1e-9  # of Newton's method, in sizes of the states: its square is rounding
SLOW_CONTRACTION = 0.25  # contraction rate above which the matrix of the iteration is renewed
FARTHEST_STEP = 1e3  # in sizes of the states: it has left every neighbourhood of the point


class LocalParametrization:
    """Psi near a point x0 of the manifold; of the rows of h the M in ``rows`` are independent."""

    def __init__(
        self,
        invariants: Invariants,
        rows: list[int],
        coordinates: Coordinates,
        time: float,
        x0: FloatArray,
        *,
        condition_number: float | None = None,
    ) -> None:
        self.invariants = invariants
        self.rows = rows
        self.coordinates = coordinates
        self.time = time
        self.x0 = x0
        self.y0 = coordinates.values(x0)
        self.scales = invariants.scales
        self.gradient = invariants.gradient(time, x0)
        self._row_scales = self.gradient.sizes[rows]
        self._solver = self._factored(self.gradient.H, x0)
        self.condition_number = (
            conditioning(coordinates.R, self.gradient.H[rows], self.scales)
            if condition_number is None
            else condition_number
        )
        """Of (R; H) at x0, rows and columns scaled: how far the coordinates are from dependent."""
        self.y_scales: FloatArray = np.abs(coordinates.R) @ self.scales  # a size for each coordinate, (P,)
        p, m = len(self.y0), len(rows)
        self.derivative = self._solver(np.eye(p), np.zeros((m, p)))  # DPsi at x0, shape (N, P)
        self._is_identity = not m and coordinates.is_linear and np.array_equal(coordinates.R, np.eye(p))
        self.derivative_error = self._derivative_error()  # (N, P), absolute, from the error of H

    def psi(
        self,
        y: FloatArray,
        *,
        time: float | None = None,
        inputs: FloatArray | None = None,
        near: FloatArray | None = None,
    ) -> FloatArray:
        """Return x (N,) on the manifold with coordinates y (P,), sought from ``near``, by default along the tangent."""
        if self._is_identity:
            return y.copy()
        start = self.x0 + self.derivative @ (y - self.y0) if near is None else near.copy()
        if self.coordinates.is_linear:
            # In exact arithmetic R start = y already; make it so to the last bit before the others are solved for.
            r = y - self.coordinates.values(start)
            start += self._solver(r, np.zeros(len(self.rows))) if r.any() else 0.0
        return self._newton(start, y, self.time if time is None else time, inputs)

    def dpsi(self, x: FloatArray) -> FloatArray:
        """Return DPsi at any point x of the manifold, shape (N, P)."""
        p, m = len(self.y0), len(self.rows)
        return self._factored(self.invariants.gradient(self.time, x).H, x)(np.eye(p), np.zeros((m, p)))

    def along_inputs(self) -> FloatArray:
        """Return dPsi/du at the point, y held, shape (N, nu): zero unless inputs enter the constraints."""
        if not self.invariants.prescribing:
            return np.zeros((len(self.x0), len(self.invariants.inputs)))
        h_u = self.invariants.input_gradient(self.time, self.x0)[self.rows] / self._row_scales[:, None]
        return self._solver(np.zeros((len(self.y0), h_u.shape[1])), -h_u)

    def _newton(self, start: FloatArray, y: FloatArray, t: float, inputs: FloatArray | None) -> FloatArray:
        if not self.rows and self.coordinates.is_linear:
            return start
        x, solver, rho, previous = start.copy(), self._solver, 0.0, np.inf
        limit = 4 * EPS * max(1.0, float((np.abs(x) / self.scales).max(initial=0.0)))
        none = np.zeros(len(y))
        for iteration in range(MAX_NEWTON_ITERATIONS):
            # Whether the model gives residuals and their gradient in one visit: Newton's own steps are fewer then.
            u = self.invariants.inputs if inputs is None else inputs
            cheap = read_constraint_gradient(self.invariants.model, t, x, u) is not None
            if cheap:
                solver = self._factored(self.invariants.gradient(t, x, inputs).H, x)
            h = self.invariants.values(t, x, inputs)[self.rows]
            r = none if self.coordinates.is_linear else self.coordinates.values(x) - y
            if not (np.isfinite(h).all() and (r is none or np.isfinite(r).all())):
                raise self._failure(x, t, "the constraints or coordinates are not defined there")
            step = -solver(r, h / self._row_scales)
            size = float((np.abs(step) / self.scales).max(initial=0.0))
            x += step
            rho = size / previous if previous < np.inf else 0.0
            # Section 2.3.1: |x_{j+1} - x| <= rho / (1 - rho) |x_{j+1} - x_j|
            near = rho < 0.5 and size * rho / (1 - rho) <= limit and iteration > 0
            if size <= limit or (cheap and size <= LAST_STEP) or near:
                return x
            if rho >= 0.5 and previous <= 1e3 * limit:
                return x  # rounding keeps it from getting any better
            if size > FARTHEST_STEP or (iteration > 5 and rho > 1.0):
                raise self._failure(x, t, "Newton's iteration left the neighbourhood of the point")
            if rho > SLOW_CONTRACTION and not cheap:
                solver = self._factored(self.invariants.gradient(t, x, inputs).H, x)
            previous = size
        raise self._failure(x, t, "Newton's iteration converges too slowly")

    def _factored(self, H: FloatArray, x: FloatArray) -> Solver:
        return self.coordinates.solver(H[self.rows] / self._row_scales[:, None], x)

    def _derivative_error(self) -> FloatArray:
        """To first order, d(DPsi) = -(D rho; H)^-1 (0; dH DPsi)."""
        T, y_scales = np.abs(self.derivative), self.y_scales
        rows = np.maximum((T * y_scales).max(axis=1, initial=0.0), self.scales)  # rounding follows the largest term
        error: FloatArray = EPS * self.condition_number * rows[:, None] / y_scales
        if not self.gradient.is_exact:
            measured = self.gradient.error[self.rows]
            p, m = len(self.y0), len(self.rows)
            inverse = np.abs(self._solver(np.zeros((p, m)), np.eye(m)))
            error = error + inverse @ ((measured / self._row_scales[:, None]) @ T)
        return error

    def _failure(self, x: FloatArray, t: float, why: str) -> NumericalError:
        worst = ""
        if self.rows:
            h = np.abs(self.invariants.values(t, x)[self.rows]) / self._row_scales
            name = self.invariants.names[self.rows[int(np.argmax(np.where(np.isfinite(h), h, np.inf)))]]
            worst = f" (constraint '{name}')"
        return NumericalError(
            f"No point of the manifold was found with the wanted coordinates: {why}{worst}. The coordinates may be "
            "close to singular here; choose others with independent= or coordinates='tangent'."
        )
