"""The local parametrization x = Psi(t, y) of a manifold (Spencer, ch. 2), near one point and near many.

Psi solves (rho(x) - y; h(t, x)) = 0 (eq. 2.23) by Newton's iteration with the contraction-rate criterion of section
2.3.1. The gradient of the constraints is kept, corrected by the change of the residuals over each step, as long as the
iteration contracts. Coordinates that are states keep their values to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import FmilinError, NumericalError
from fmilin.manifold.coordinates import (
    Coordinates,
    Inverse,
    StateCoordinates,
    compute_condition_numbers,
    conditioning,
)
from fmilin.manifold.differenced_points import ModelDifferencing
from fmilin.manifold.manifold_equations import ConstraintEquations, VectorizedEquations
from fmilin.manifold.point_arrays import PointBatch
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import TangentBatch
from fmilin.signals import FloatArray
from fmilin.tolerances import EPS, INVARIANT_TOLERANCE, MEASURED_INVARIANT_TOLERANCE

VANISHING_ROW_TOLERANCE = 1e-12  # rows of the gradient below this part of the largest are rounding of terms that cancel
MAX_NEWTON_ITERATIONS = 30  # from a start nearby; chord steps that contract slowly take a new gradient meanwhile
LAST_STEP = 1e-9  # of Newton's method, in sizes of the states, by the gradient of its own point: its square is rounding
SLOW_CONTRACTION_RATIO = 0.25  # contraction rate above which the gradient is computed anew
SMALLEST_STEP = 1e-100  # to divide by
FARTHEST_STEP = 1e3  # in sizes of the states: it has left every neighbourhood of the point
CHEAP_CONDITIONING = 20_000
"""Number of points times the cube of that of the states, up to which condition numbers are computed from singular
values; of more a bound is."""

NOT_DEFINED = "the constraints or coordinates are not defined there"
LEFT_NEIGHBOURHOOD = "Newton's iteration left the neighbourhood of the point"
TOO_SLOW = "Newton's iteration converges too slowly"

Mask = NDArray[np.bool_]
Numbers = NDArray[np.intp]


class SolvedPoints(NamedTuple):
    """Points of the manifold with given coordinates."""

    points: PointBatch
    is_reached: Mask  # (j,)
    failure: str  # why the first of the others was not reached; empty without any


class LocalParametrization:
    """x = Psi(y) near k points: sizes, distances, conditioning, tangents T with errors, and points nearby.

    Of the constraints the ``rows`` are independent.
    """

    def __init__(
        self,
        equations: ConstraintEquations,
        points: PointBatch,
        coordinates: Coordinates,
        rows: Sequence[int],
        H: FloatArray,
        sizes: FloatArray,
        *,
        row_norms: FloatArray | None = None,
        T: FloatArray | None = None,
        condition_number: float | None = None,
        H_error: FloatArray | None = None,
        residuals: FloatArray | None = None,
    ) -> None:
        """Take the gradient H (k, m, N) of all constraints, with its error where it was measured, and what is known.

        ``sizes`` (k, N) are those of the states, ``row_norms`` (k, m) those of H in these sizes.
        """
        self._residuals = residuals
        self.equations, self.points, self.coordinates, self.rows = equations, points, coordinates, list(rows)
        self.sizes = sizes
        self.H, self._H_error = H, H_error
        self._row_norms, self._T, self._condition_number = row_norms, T, condition_number

    @classmethod
    def of_batch(
        cls,
        evaluator: PointEvaluator,
        points: PointBatch,
        tangents: TangentBatch,
        rows: Sequence[int],
        *,
        H_error: FloatArray | None = None,
        differencing: ModelDifferencing | None = None,
    ) -> LocalParametrization:
        """Return that of points in kept states, with the derivatives that the model gave there.

        Those of other points nearby are measured with ``differencing`` where the model has no exact ones.
        """
        sizes = evaluator.model.states.scales(points.states)
        coordinates = StateCoordinates(tangents.independent, sizes.shape[1])
        equations = VectorizedEquations(evaluator, tangents.independent, differencing)
        H, residuals = tangents.gradient, tangents.residuals
        return cls(equations, points, coordinates, rows, H, sizes, T=tangents.T, H_error=H_error, residuals=residuals)

    def __len__(self) -> int:
        return len(self.points)

    @property
    def H_errors(self) -> FloatArray:
        """The errors of the gradient, shape (k, m, N): zeros unless it was measured."""
        return np.zeros_like(self.H) if self._H_error is None else self._H_error

    @property
    def invariant_tolerance(self) -> float:
        """The size of H f and H f_u, relative to their terms, that counts as zero."""
        return INVARIANT_TOLERANCE if self._H_error is None else MEASURED_INVARIANT_TOLERANCE

    @property
    def independent(self) -> list[int]:
        """The states that the coordinates are; empty where they are functions of states."""
        return self.coordinates.independent or []

    @property
    def dependent_states(self) -> list[int]:
        """The states that are not kept."""
        moving = self.coordinates.moving
        return moving if isinstance(moving, list) else list(range(self.sizes.shape[1]))

    @cached_property
    def y0(self) -> FloatArray:
        """The coordinates of the points, shape (k, P)."""
        return self.coordinates.values(self.points.states)

    @cached_property
    def y_sizes(self) -> FloatArray:
        """A size for each coordinate, shape (k, P)."""
        return self.coordinates.sizes(self.sizes)

    @cached_property
    def scales(self) -> FloatArray:
        """Sizes of y and u, shape (k, P + nu)."""
        return np.concatenate((self.y_sizes, self.u_sizes), axis=1)

    @cached_property
    def u_sizes(self) -> FloatArray:
        """Sizes of the inputs, shape (k, nu)."""
        return self.equations.model.inputs.scales(self.points.inputs)

    @cached_property
    def row_norms(self) -> FloatArray:
        """Of the rows of H in sizes of the states, shape (k, m); of the largest for rows that are rounding."""
        if self._row_norms is not None:
            return self._row_norms
        scaled = self.H * self.sizes[:, None]
        norms = np.sqrt(np.einsum("kmn,kmn->km", scaled, scaled))
        largest = norms.max(axis=1, initial=0.0, keepdims=True)
        return np.where(norms > VANISHING_ROW_TOLERANCE * largest, norms, np.where(largest > 0, largest, 1.0))

    @cached_property
    def _normalized(self) -> FloatArray:
        """The gradient of the independent constraints with rows normalized, shape (k, M, N)."""
        return self.H[:, self.rows] / self.row_norms[:, self.rows, None]

    @cached_property
    def distance(self) -> FloatArray:
        """How far the points are from the manifold, in sizes of the states, shape (k,)."""
        if not self.H.shape[1]:
            return np.zeros(len(self.points))
        residuals = self._residuals
        if residuals is None:
            residuals = self.equations.compute_gradient(self.points)[0]
        return np.asarray((np.abs(residuals) / self.row_norms).max(axis=1, initial=0.0))

    @cached_property
    def inverse(self) -> Inverse | None:
        """The inverse of (D rho; H) at the points; None where the coordinates are singular at all of them."""
        with suppress(NumericalError):
            return self.coordinates.invert(self._normalized, self.points.states)
        return None

    @cached_property
    def T(self) -> FloatArray:
        """DPsi at the points, shape (k, N, P); NumericalError if the coordinates do not determine the states."""
        if self._T is not None:
            return self._T
        return self.coordinates.compute_tangents(self._normalized, self.points.states)

    @property
    def is_condition_exact(self) -> bool:
        """Whether condition numbers are those of (R; H): known, or cheap to compute; else they are bounds."""
        k, n = self.sizes.shape
        return self._condition_number is not None or not self.independent or k * n**3 <= CHEAP_CONDITIONING

    @cached_property
    def condition_number(self) -> FloatArray:
        """Condition numbers (k,) of (R; H), rows and columns scaled, infinite where singular; or bounds of them."""
        k = len(self.sizes)
        if self._condition_number is not None:  # the choice of coordinates has computed it
            return np.full(k, self._condition_number)
        # Without constraints all states are kept: the matrix is a unit matrix.
        if not self.rows and self.coordinates.independent is not None:
            return np.ones(k)
        R = self.coordinates.R
        # The rows of functions of states have any length, and are normalized there.
        if not self.independent:
            return np.array([conditioning(R, H, sizes) for H, sizes in zip(self._normalized, self.sizes, strict=True)])
        if self.is_condition_exact:
            return compute_condition_numbers(R, self._normalized * self.sizes[:, None])
        return self._bound_condition_numbers()

    def _bound_condition_numbers(self) -> FloatArray:
        """Return bounds from Frobenius norms, shape (k,)."""
        # The rows of R are unit vectors: |(R; H)|^2 <= 1 + M and |(R; H)^-1|^2 <= 1 + |H_z^-1 H_y|^2 + |H_z^-1|^2.
        if self.inverse is None:
            return np.full(len(self.sizes), np.inf)
        scaled = self.inverse.back / self.sizes[:, self.dependent_states, None]
        turned = self._dependent * self.y_sizes[:, None] / self.sizes[:, self.dependent_states, None]
        size = 1 + np.einsum("kij,kij->k", scaled, scaled) + np.einsum("kij,kij->k", turned, turned)
        bound = np.sqrt((1 + len(self.rows)) * size)
        return np.where(np.isfinite(bound), bound, np.inf)

    @cached_property
    def _dependent(self) -> FloatArray:
        """The size of the rows of T that are not those of kept states, which are rows of the unit matrix."""
        if self.coordinates.moving == []:  # without the unit matrix that T is, which is large for many states
            return np.zeros((len(self.sizes), 0, len(self.independent)))
        return np.abs(self.T[:, self.coordinates.moving])

    @cached_property
    def T_errors(self) -> FloatArray:
        """The errors of T times the sizes of the coordinates, (k, N, P), or (k, N, 1) if the same in each row."""
        moving, terms = self.coordinates.moving, self.sizes.copy()
        largest = (self._dependent * self.y_sizes[:, None]).max(axis=2, initial=0.0)
        terms[:, moving] = np.maximum(largest, terms[:, moving])  # rounding follows the largest term
        rounding = (EPS * self.condition_number[:, None] * terms)[..., None]
        if self._H_error is None:
            return np.asarray(rounding)
        # To first order, d(DPsi) = -(D rho; H)^-1 (0; dH DPsi).
        measured = (self._H_error[:, self.rows] / self.row_norms[:, self.rows, None]) @ np.abs(self.T)
        errors = np.repeat(rounding, self.T.shape[2], axis=2)
        # Without an inverse the condition number is infinite, and so is the rounding.
        if self.inverse is not None:
            errors[:, moving] += np.abs(self.inverse.back) @ measured * self.y_sizes[:, None]
        return np.asarray(errors)

    @property
    def relative_error_of_derivatives(self) -> FloatArray:
        """How large errors of exact derivatives along the coordinates are, over the largest of a row, shape (k,)."""
        # Eight: the sums of products with T round a few times each.
        return 8 * EPS * self.condition_number + self.relative_error_of_T

    @property
    def relative_error_of_T(self) -> FloatArray:
        """The largest estimated error of an entry of T over its largest entry, both in sizes of x and y, shape (k,)."""
        if not self.dependent_states and self._H_error is None:
            return np.asarray(EPS * self.condition_number)  # T is a permutation
        moving = self.coordinates.moving
        errors = (self.T_errors / self.sizes[..., None]).max(axis=(1, 2), initial=0.0)
        turned = self._dependent * self.y_sizes[:, None] / self.sizes[:, moving, None]
        # The rows of kept states are those of a unit matrix: their largest entry is 1.
        largest = turned.max(axis=(1, 2), initial=1.0 if self.independent else 0.0)
        return np.asarray(errors / np.where(largest > 0, largest, 1.0))

    def reach(self, guess: FloatArray, numbers: Numbers, inputs: FloatArray | None = None) -> tuple[PointBatch, Mask]:
        """Return points of the manifold with the kept states of a guess (j, N), and where they were reached.

        ``numbers`` (j,) are those of the points near which they are; ``inputs`` (j, nu) those of the points by default.
        Nothing is reached if the model cannot be evaluated at one of them.
        """
        near = self.points[numbers]
        points = PointBatch(near.time, guess, near.inputs if inputs is None else inputs, near.parameters)
        if not self.rows and self.coordinates.is_linear:
            return points, np.ones(len(guess), dtype=bool)
        try:
            return self.solve(points, numbers)[:2]
        except (FmilinError, np.linalg.LinAlgError):
            return points, np.zeros(len(guess), dtype=bool)

    def solve(self, points: PointBatch, numbers: Numbers, y: FloatArray | None = None) -> SolvedPoints:
        """Return points of the manifold from guesses, with coordinates y (j, P), by default those of the guesses.

        ``numbers`` (j,) are those of the points near which they are.
        """
        coordinates, rows, moving = self.coordinates, self.rows, self.coordinates.moving
        x = points.states.copy()
        points = PointBatch(points.time, x, points.inputs, points.parameters)
        if not rows and coordinates.is_linear:
            return SolvedPoints(points, np.ones(len(x), dtype=bool), "")
        if coordinates.is_linear:
            y = None  # guesses have them already, and steps do not change them
        elif y is None:
            y = coordinates.values(x)
        sizes = self.sizes[numbers]
        if (compiled := self.equations.reach_manifold(points, sizes)) is not None:
            states, is_reached = compiled
            points = PointBatch(points.time, states, points.inputs, points.parameters)
            return SolvedPoints(points, is_reached, "" if is_reached.all() else TOO_SLOW)
        row_norms = self.row_norms[numbers][:, rows]
        moving_sizes = sizes[:, moving]
        # Shorter steps are the rounding of the states, also of those that are many times their size.
        limit = 4 * EPS * np.maximum(1.0, (np.abs(x) / sizes).max(axis=1, initial=0.0))
        inverse = None if self.inverse is None else self.inverse.select(numbers)
        converged, failed, failure = np.zeros(len(x), dtype=bool), np.zeros(len(x), dtype=bool), ""
        previous, last = np.full(len(x), np.inf), None
        for iteration in range(MAX_NEWTON_ITERATIONS):
            h = None if inverse is None else self.equations.compute_residuals(points)
            is_fresh = h is None
            if h is None or inverse is None:
                h, H = self.equations.compute_newton_matrix(points)
                inverse, last = coordinates.invert(H[:, rows] / row_norms[..., None], x), None
            r = None if y is None else coordinates.values(x) - y
            displacement = inverse.compute_displacement(h[:, rows] / row_norms, r) / moving_sizes
            step = displacement if last is None else correct_chord(displacement, *last)
            last = displacement, step
            size = np.abs(step).max(axis=1, initial=0.0)
            # A point at which the model is not defined stays where it is: the others may still arrive.
            if not (is_finite := np.isfinite(size)).all():
                step = np.where(is_finite[:, None], step, 0.0)
            x[:, moving] -= step * moving_sizes
            rho = size / np.maximum(previous, SMALLEST_STEP)  # 0 at first
            converged |= _find_converged(size, rho, previous, limit, iteration, is_fresh=is_fresh)
            # The first steps may grow: they are by the gradient of the start, and where the manifold is curved (a
            # five-bar a radian away) they shrink only when it is taken anew.
            lost = ~(size <= FARTHEST_STEP) | ((rho > 1.0) & (iteration > 5))
            if not failure and (lost & ~converged).any():
                failure = LEFT_NEIGHBOURHOOD if is_finite[lost & ~converged].all() else NOT_DEFINED
            failed |= lost & ~converged
            remaining = ~(converged | failed)
            if not remaining.any():
                break
            # Steps with the gradient of the start shrink too slowly: take it at the points reached.
            if (rho[remaining] > SLOW_CONTRACTION_RATIO).any():
                inverse = None
            previous = size
        else:
            failure = failure or TOO_SLOW
        return SolvedPoints(points, converged & ~failed, failure)


def _find_converged(
    size: FloatArray, rho: FloatArray, previous: FloatArray, limit: FloatArray, iteration: int, *, is_fresh: bool
) -> Mask:
    """Return where no further step is needed, from its size (j,) and the contraction rate rho (j,)."""
    # Section 2.3.1: |x_{j+1} - x| <= rho / (1 - rho) |x_{j+1} - x_j|
    predicted = (rho < 0.5) & (size * rho <= limit * (1.0 - rho)) & (iteration > 0)
    rounding = (rho >= 0.5) & (previous <= 1e3 * limit)  # which keeps it from getting any better
    return np.asarray((size <= (LAST_STEP if is_fresh else limit)) | (size <= limit) | predicted | rounding)


def correct_chord(chord: FloatArray, last_chord: FloatArray, last_step: FloatArray) -> FloatArray:
    """Return steps (k, N') by a gradient of another point, corrected by the last step: Broyden's rule."""
    change = last_chord - chord
    along, square = (last_step * change).sum(axis=1), (last_step * last_step).sum(axis=1)
    significant = along > square / 2  # steps that are rounding correct nothing
    part = np.where(significant, (last_step * chord).sum(axis=1) / np.where(significant, along, 1.0), 0.0)
    return np.asarray(chord + part[:, None] * (last_step - change))
