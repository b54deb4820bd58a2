"""The local parametrization x = Psi(y) of the manifold at many points, y being the same states at all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import FmilinError, NumericalError
from fmilin.manifold.many_points import constraints_at
from fmilin.manifold.point_by_point import evaluate_each
from fmilin.model.capabilities import has_graph, reach_manifold, read_constraint_residuals, read_tangents
from fmilin.model.interface import Model, TangentBatch
from fmilin.signals import FloatArray
from fmilin.tolerances import EPS

VANISHING_ROW = 1e-12  # rows of the gradient below this part of the largest are rounding of terms that cancel
POINTS_AT_ONCE = 128  # that are evaluated together: what fits into the processor's cache
MAX_NEWTON_ITERATIONS = 12
"""Steps of Newton's iteration back to the manifold. The gradient is kept, corrected by the change of the residuals over
each step, as long as a step is at most :data:`LEAST_CONTRACTION` of the one before; the last step is below
:data:`LAST_STEP` with the gradient of its own point, which squares the error, and below :data:`LAST_CHORD_STEP` with
another."""

LEAST_CONTRACTION, LAST_STEP, LAST_CHORD_STEP = 0.1, 1e-9, 1e-12

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class PointBatch:
    """Points of one model: times (k,), states (k, N), inputs (k, nu), and parameters (k,) that differ, by name."""

    time: FloatArray
    states: FloatArray
    inputs: FloatArray
    parameters: Mapping[str, FloatArray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.time)

    def __getitem__(self, some: Any) -> PointBatch:
        parameters = {name: values[some] for name, values in self.parameters.items()}
        return PointBatch(self.time[some], self.states[some], self.inputs[some], parameters)

    def joined(self, others: PointBatch) -> PointBatch:
        """Return these points and others behind them."""
        parameters = {
            name: np.concatenate((values, others.parameters[name])) for name, values in self.parameters.items()
        }
        return PointBatch(
            np.concatenate((self.time, others.time)),
            np.concatenate((self.states, others.states)),
            np.concatenate((self.inputs, others.inputs)),
            parameters,
        )


class SlopeSizes(NamedTuple):
    """How large slopes along y and u are, in sizes of y and u: rows are those of all rates, or of all outputs."""

    sizes: FloatArray  # (k, rows), the largest of each row
    terms: FloatArray  # (k, rows), their sum
    largest: FloatArray  # (k, P + nu), of each column the largest entry as it is, of rates only those of kept states

    @classmethod
    def of(cls, slopes: FloatArray, scales: FloatArray, rows: Sequence[int] | None = None) -> SlopeSizes:
        """Return those of slopes (k, rows, columns), ``rows``: those that are compared entry by entry."""
        entries = np.abs(slopes)
        largest = (entries if rows is None else entries[:, rows]).max(axis=1, initial=0.0)
        entries *= scales[:, None]
        return cls(entries.max(axis=2, initial=0.0), entries.sum(axis=2), largest)


class BatchParametrization:
    """x = Psi(y) near k points in kept states y: sizes, distances, conditioning, errors of T, and points nearby.

    The dependent states follow from ``rows`` of h that are independent, by Newton's iteration.
    """

    def __init__(self, model: Model, points: PointBatch, tangents: TangentBatch, rows: Sequence[int]) -> None:
        self._model, self._tangents, self._rows = model, tangents, list(rows)
        self.points = points
        self.evaluations = 0  # of the model at points nearby, so far
        self.kept = list(tangents.kept)
        self.T = tangents.T
        self.sizes = model.states.scales(points.states)  # of the states, shape (k, N)
        self.y_sizes = self.sizes[:, self.kept]
        self.u_sizes = model.inputs.scales(points.inputs)
        self.others = sorted(set(range(self.sizes.shape[1])).difference(self.kept))

    def __len__(self) -> int:
        return len(self.points)

    @cached_property
    def _scaled(self) -> FloatArray:
        return self._tangents.gradient * self.sizes[:, None]

    @cached_property
    def row_norms(self) -> FloatArray:
        """Of the rows of the scaled gradient, shape (k, m); of rows that are rounding, of the largest."""
        norms = np.sqrt(np.einsum("kmn,kmn->km", self._scaled, self._scaled))
        largest = norms.max(axis=1, initial=0.0, keepdims=True)
        return np.where(norms > VANISHING_ROW * largest, norms, np.where(largest > 0, largest, 1.0))

    @cached_property
    def distance(self) -> FloatArray:
        """How far the points are from the manifold, in sizes of the states, shape (k,)."""
        return np.asarray((np.abs(self._tangents.residuals) / self.row_norms).max(axis=1, initial=0.0))

    @cached_property
    def condition_number(self) -> FloatArray:
        """A bound (k,) of the condition number of (R; H), scaled, from Frobenius norms; infinite where singular."""
        # The rows of R are unit vectors: |(R; H)|^2 <= 1 + M and |(R; H)^-1|^2 <= 1 + |H_z^-1 H_y|^2 + |H_z^-1|^2.
        if not self._rows:
            return np.ones(len(self.sizes))
        inverse = self._inverse
        if inverse is None:
            return np.full(len(self.sizes), np.inf)
        scaled_T = self.T[:, self.others] * self.y_sizes[:, None] / self.sizes[:, self.others, None]
        size = 1 + np.einsum("kij,kij->k", inverse, inverse) + np.einsum("kij,kij->k", scaled_T, scaled_T)
        bound = np.sqrt((1 + len(self._rows)) * size)
        return np.where(np.isfinite(bound), bound, np.inf)

    @cached_property
    def _inverse(self) -> FloatArray | None:
        """H_z^-1, scaled, shape (k, M, M); None where one is singular."""
        Hz = (self._scaled[:, self._rows] / self.row_norms[:, self._rows, None])[:, :, self.others]
        try:
            return np.asarray(np.linalg.inv(Hz))
        except np.linalg.LinAlgError:
            return None

    @cached_property
    def back(self) -> FloatArray | None:
        """What takes residuals of the rows to steps of the other states, H_z^-1, shape (k, M, M); None if singular."""
        if not self._rows or self._inverse is None:
            return None
        return self.sizes[:, self.others, None] * self._inverse / self.row_norms[:, None, self._rows]

    @cached_property
    def slopes(self) -> SlopeSizes:
        """Of the rates."""
        rows = self.kept if self.others else None
        return SlopeSizes.of(self._tangents.derivatives, self.scales, rows)

    @cached_property
    def output_slopes(self) -> SlopeSizes:
        """Of the outputs."""
        return SlopeSizes.of(self._tangents.outputs, self.scales)

    @cached_property
    def scales(self) -> FloatArray:
        """Of y and u, shape (k, P + nu)."""
        return np.concatenate((self.y_sizes, self.u_sizes), axis=1)

    @cached_property
    def _dependent(self) -> FloatArray:
        """The size of the rows of T that are not those of kept states, which are rows of the unit matrix."""
        return np.abs(self.T[:, self.others])

    @cached_property
    def largest_of_T(self) -> FloatArray:
        """The largest entry of T, shape (k,)."""
        return np.asarray(self._dependent.max(axis=(1, 2), initial=1.0 if self.kept else 0.0))

    @cached_property
    def row_errors_of_T(self) -> FloatArray:
        """What the rows of T, in sizes of y, may be off by, shape (k, N): over the sizes of y the error of an entry."""
        terms = self.sizes.copy()
        turned = (self._dependent * self.y_sizes[:, None]).max(axis=2, initial=0.0)
        terms[:, self.others] = np.maximum(turned, terms[:, self.others])
        return np.asarray(EPS * (self.condition_number[:, None] * terms))

    @property
    def relative_error_of_T(self) -> FloatArray:
        """The largest estimated error of an entry of T over its largest entry, both in sizes of x and y, shape (k,)."""
        if not self.kept:
            return np.zeros(len(self.sizes))
        errors = (self.row_errors_of_T / self.sizes).max(axis=1)
        turned = self._dependent * self.y_sizes[:, None] / self.sizes[:, self.others, None]
        return np.asarray(errors / turned.max(axis=(1, 2), initial=1.0))

    @property
    def is_finite(self) -> Mask:
        """Say where all slopes of the kept states and of the outputs, T and the rates of y are finite numbers."""
        rates = self._tangents.rates[:, self.kept]
        sizes = self.slopes.sizes[:, self.kept], self.output_slopes.sizes, rates
        finite = np.concatenate((*sizes, self.largest_of_T[:, None]), axis=1)
        return np.asarray(np.isfinite(finite).all(axis=1))

    def reach(
        self, guess: FloatArray, numbers: NDArray[np.intp], inputs: FloatArray | None = None
    ) -> tuple[PointBatch, Mask]:
        """Return points of the manifold with the kept states of a guess (j, N), and where they were reached.

        ``numbers`` (j,) are those of the points near which they are; ``inputs`` (j, nu) those of the points by default.
        """
        near = self.points[numbers]
        x, sizes, others = guess.copy(), self.sizes[numbers][:, self.others], self.others
        reached = replace(near, states=x, inputs=near.inputs if inputs is None else inputs)
        if not others:
            return reached, np.ones(len(x), dtype=bool)
        if not near.parameters:
            compiled = reach_manifold(self._model, near.time, x, reached.inputs, self.kept, self.sizes[numbers])
            if compiled is not None:
                return replace(reached, states=compiled[0]), compiled[1]
        back = None if self.back is None else self.back[numbers]
        last_step: tuple[FloatArray, FloatArray] | None = None
        size, largest, limit = np.full(len(x), np.inf), np.inf, LAST_STEP
        for _ in range(MAX_NEWTON_ITERATIONS):
            try:
                if back is not None and (h := self._compute_residuals(reached)) is not None:
                    limit = LAST_CHORD_STEP
                else:
                    h, H = self._compute_gradient(reached)
                    back = np.asarray(np.linalg.inv(H[:, self._rows][:, :, others]), np.float64)
                    last_step, limit = None, LAST_STEP
            except (FmilinError, np.linalg.LinAlgError):
                return reached, np.zeros(len(x), dtype=bool)
            chord = (back @ h[:, self._rows, None])[..., 0] / sizes
            step = chord if last_step is None else correct_chord(chord, *last_step)
            x[:, others] -= step * sizes
            last_step, last_size = (chord, step), largest
            size = np.abs(step).max(axis=1, initial=0.0)
            largest = float(size.max(initial=0.0))
            if largest <= limit:
                break
            if not largest <= LEAST_CONTRACTION * last_size:
                back = None
        return reached, np.asarray(size <= limit)

    def evaluate(self, points: PointBatch) -> tuple[FloatArray, FloatArray]:
        """Return rates (j, N) and outputs (j, ny) at points; NaN where the model cannot be evaluated."""
        model = self._model
        self.evaluations += len(points)
        same_time = (model.autonomous or len(set(points.time.tolist())) <= 1) and not points.parameters
        with suppress(FmilinError, np.linalg.LinAlgError):
            if same_time and model.batches:
                parts = [points[i : i + POINTS_AT_ONCE] for i in range(0, len(points), POINTS_AT_ONCE)]
                answers = [model.evaluate(float(part.time[0]), part.states, part.inputs) for part in parts]
                rates = np.concatenate([answer.derivatives for answer in answers])
                return rates, np.concatenate([answer.outputs for answer in answers])
            if model.batches and not has_graph(model) and not points.parameters:
                answer = evaluate_each(model, points.time, points.states, points.inputs)
                return answer.derivatives, answer.outputs
            tangents = self._differentiate(points)
            if tangents is not None:
                return tangents.rates, tangents.values
        nothing = np.full((len(points), len(model.states)), np.nan)
        return nothing, np.full((len(points), len(model.outputs)), np.nan)

    def compute_A(self, points: PointBatch) -> FloatArray | None:
        """Return the model's own A (j, P, P) at points; None where it has none."""
        self.evaluations += len(points)
        with suppress(FmilinError, np.linalg.LinAlgError):
            tangents = self._differentiate(points)
            return None if tangents is None else tangents.A
        return None

    def _differentiate(self, points: PointBatch) -> TangentBatch | None:
        return read_tangents(self._model, points.time, points.states, points.inputs, self.kept, points.parameters)

    def _compute_residuals(self, points: PointBatch) -> FloatArray | None:
        """Return the residuals (j, m) alone; None where they cost as much as their gradient."""
        constraints = self._model.constraints
        if points.parameters or constraints.time_dependent or constraints.hidden or not self._model.batches:
            return None
        return read_constraint_residuals(self._model, float(points.time[0]), points.states, points.inputs)

    def _compute_gradient(self, points: PointBatch) -> tuple[FloatArray, FloatArray]:
        """Return the residuals (j, m) and their gradient (j, m, N)."""
        model = self._model
        if not (points.parameters or model.constraints.time_dependent):
            answer = constraints_at(model, float(points.time[0]), points.states, points.inputs)
            if answer is not None:
                return answer
        tangents = self._differentiate(points)
        if tangents is None:
            raise NumericalError("The model does not answer at one of many points.")
        return tangents.residuals, tangents.gradient


def correct_chord(chord: FloatArray, last_chord: FloatArray, last_step: FloatArray) -> FloatArray:
    """Return steps (k, M) by a gradient of another point, corrected by the last step: Broyden's rule."""
    change = last_chord - chord
    along, square = (last_step * change).sum(axis=1), (last_step * last_step).sum(axis=1)
    significant = along > square / 2  # steps that are rounding correct nothing
    part = np.where(significant, (last_step * chord).sum(axis=1) / np.where(significant, along, 1.0), 0.0)
    return np.asarray(chord + part[:, None] * (last_step - change))
