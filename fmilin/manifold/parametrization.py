"""The local parametrization x = Psi(t, y) of the manifold, its derivative and its conditioning.

Psi solves (Spencer eq. 2.23)

    phi(x, y) = ( rho(x) - y ; h(t, x) ) = 0

by Newton's iteration with the contraction-rate criterion of section 2.3.1. The derivative is eq. (2.29), which
for linear coordinates takes the form (2.37) with an M x M system; coordinates that are states then keep their
values to the last bit.
"""

from __future__ import annotations

import numpy as np

from fmilin.ground.errors import NumericalError
from fmilin.ground.signals import FloatArray
from fmilin.manifold.coordinates import Coordinates, Solver, conditioning
from fmilin.manifold.invariants import Invariants

EPSILON = float(np.finfo(np.float64).eps)
ITERATIONS = 30
SQUARED = 1e-9  # A step of Newton's method, in sizes of the states, whose square is rounding
SLOW = 0.25  # contraction rate above which the matrix of the iteration is renewed
FAR = 1e3  # A step of this many sizes of the states has left every neighbourhood


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
        self.y_scales: FloatArray = np.abs(coordinates.R) @ self.scales
        """A size for each coordinate, shape (P,)."""
        p, m = len(self.y0), len(rows)
        self.derivative = self._solver(np.eye(p), np.zeros((m, p)))
        """DPsi at x0, shape (N, P)."""
        self.derivative_error = self._derivative_error()
        """Estimated absolute error of DPsi, shape (N, P): from the error of H."""

    def psi(
        self,
        y: FloatArray,
        *,
        time: float | None = None,
        inputs: FloatArray | None = None,
        near: FloatArray | None = None,
    ) -> FloatArray:
        """Return x (N,) on the manifold with coordinates y (P,), sought from ``near``, by default along the tangent."""
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
        x, solver, rho, previous = start.copy(), self._solver, 0.0, np.inf
        limit = 4 * EPSILON * max(1.0, float((np.abs(x) / self.scales).max(initial=0.0)))
        if not self.rows and self.coordinates.is_linear:
            return x
        none = np.zeros(len(y))
        for iteration in range(ITERATIONS):
            # Whether the model gives residuals and their gradient in one visit: Newton's own steps are fewer then.
            u = self.invariants.inputs if inputs is None else inputs
            cheap = self.invariants.model.constraint_gradient(t, x, u) is not None
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
            if size <= limit or (cheap and size <= SQUARED) or near:
                return x
            if rho >= 0.5 and previous <= 1e3 * limit:
                return x  # rounding keeps it from getting any better
            if size > FAR or (iteration > 5 and rho > 1.0):
                raise self._failure(x, t, "Newton's iteration left the neighbourhood of the point")
            if rho > SLOW and not cheap:
                solver = self._factored(self.invariants.gradient(t, x, inputs).H, x)
            previous = size
        raise self._failure(x, t, "Newton's iteration converges too slowly")

    def _factored(self, H: FloatArray, x: FloatArray) -> Solver:
        return self.coordinates.solver(H[self.rows] / self._row_scales[:, None], x)

    def _derivative_error(self) -> FloatArray:
        """To first order, d(DPsi) = -(D rho; H)^-1 (0; dH DPsi)."""
        T, y_scales = np.abs(self.derivative), self.y_scales
        rows = np.maximum((T * y_scales).max(axis=1, initial=0.0), self.scales)  # rounding follows the largest term
        error: FloatArray = EPSILON * self.condition_number * rows[:, None] / y_scales
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
            "close to singular here; choose others with --independent or --coordinates tangent."
        )
