"""The local parametrization near one point: a thin view, for callers that work with single vectors."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from fmilin.errors import NumericalError
from fmilin.manifold.coordinates import Coordinates
from fmilin.manifold.invariants import Invariants
from fmilin.manifold.manifold_equations import PointwiseEquations
from fmilin.manifold.parametrization import LocalParametrization, SolvedPoints
from fmilin.manifold.point_arrays import PointBatch
from fmilin.signals import FloatArray


class PointParametrization:
    """One point of a :class:`LocalParametrization`, without the leading axis."""

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
        self.invariants, self.rows, self.coordinates = invariants, rows, coordinates
        self.time, self.x0, self.scales = time, x0, invariants.scales
        self.gradient = gradient = invariants.gradient(time, x0)
        self.batch = LocalParametrization(
            PointwiseEquations(invariants),
            PointBatch(np.array([time]), x0[None], invariants.inputs[None]),
            coordinates,
            rows,
            gradient.H[None],
            self.scales[None],
            row_norms=gradient.sizes[None],
            condition_number=condition_number,
            H_error=None if gradient.is_exact else gradient.error[None],
        )
        self.y0: FloatArray = self.batch.y0[0]
        self.y_scales: FloatArray = self.batch.y_sizes[0]
        self._is_identity = not rows and coordinates.independent == list(range(len(x0)))

        # A large unit matrix is made only where it is read; others raise an error where coordinates are singular.
        self._derivative: FloatArray | None = None if self._is_identity else self.batch.T[0]

    @property
    def derivative(self) -> FloatArray:
        """DPsi at x0, shape (N, P)."""
        return self.batch.T[0] if self._derivative is None else self._derivative

    @cached_property
    def condition_number(self) -> float:
        """Of (R; H) at x0, rows and columns scaled: how far the coordinates are from dependent."""
        return float(self.batch.condition_number[0])

    @cached_property
    def derivative_error(self) -> FloatArray:
        """Of DPsi, absolute, shape (N, P)."""
        return np.broadcast_to(self.batch.T_errors[0] / self.y_scales, self.derivative.shape)

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
        coordinates = self.coordinates
        start = self._follow_tangent(y) if near is None else near.copy()
        # Along the tangent the other states are near already; from states further on they have to move along.
        if coordinates.independent is not None and near is None:
            start[coordinates.independent] = y
        elif coordinates.is_linear:
            # In exact arithmetic R start = y already; make it so to the last bit before the others are solved for.
            r = y - coordinates.values(start)
            start += self.derivative @ r if r.any() else 0.0
        u = self.invariants.inputs if inputs is None else inputs
        points = PointBatch(np.array([self.time if time is None else time]), start[None], u[None])
        solved = self.batch.solve(points, np.zeros(1, dtype=np.intp), y[None])
        if not solved.is_reached[0]:
            raise self._explain_failure(solved)
        return np.asarray(solved.points.states[0])

    def psi_together(self, y: FloatArray, inputs: FloatArray) -> FloatArray | None:
        """Return the states (j, N) with coordinates y (j, P) and inputs (j, nu), all sought from the tangent.

        Returns None where one of them is not found, or where each has to be sought alone.
        """
        independent = self.coordinates.independent
        if independent is None:
            return None
        start = np.array([self._follow_tangent(each) for each in y])
        start[:, independent] = y
        points = PointBatch(np.full(len(y), self.time), start, inputs)
        solved = self.batch.solve(points, np.zeros(len(y), dtype=np.intp), y)
        return solved.points.states if solved.is_reached.all() else None

    def _follow_tangent(self, y: FloatArray) -> FloatArray:
        return np.asarray(self.x0 + self.derivative @ (y - self.y0))

    def dpsi(self, x: FloatArray) -> FloatArray:
        """Return DPsi at any point x of the manifold, shape (N, P)."""
        H = self.invariants.gradient(self.time, x).H[self.rows] / self.gradient.sizes[self.rows, None]
        return np.asarray(self.coordinates.compute_tangents(H[None], x[None])[0])

    def along_inputs(self) -> FloatArray:
        """Return dPsi/du at the point, y held, shape (N, nu): zero unless inputs enter the constraints."""
        x_u = np.zeros((len(self.x0), len(self.invariants.inputs)))
        if not self.invariants.prescribing or self.batch.inverse is None:
            return x_u
        h_u = self.invariants.input_gradient(self.time, self.x0)[self.rows] / self.gradient.sizes[self.rows, None]
        x_u[self.coordinates.moving] = -self.batch.inverse.back[0] @ h_u
        return x_u

    def _explain_failure(self, solved: SolvedPoints) -> NumericalError:
        worst, (x,) = "", solved.points.states
        if self.rows:
            h = (
                np.abs(self.invariants.values(float(solved.points.time[0]), x)[self.rows])
                / self.gradient.sizes[self.rows]
            )
            name = self.invariants.names[self.rows[int(np.argmax(np.where(np.isfinite(h), h, np.inf)))]]
            worst = f" (constraint '{name}')"
        return NumericalError(
            f"No point of the manifold was found with the requested coordinates: {solved.failure}{worst}. The "
            "coordinates may be close to singular here; choose others with independent= or coordinates='tangent'."
        )
