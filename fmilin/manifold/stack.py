"""A batch of points on the manifold in the same coordinates: its geometry, and points displaced from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import FmilinError, NumericalError
from fmilin.manifold.many_points import constraints_at
from fmilin.manifold.point_by_point import evaluations
from fmilin.model.capabilities import has_graph, read_constraint_residuals, read_tangents
from fmilin.model.interface import Model, TangentBatch
from fmilin.signals import FloatArray
from fmilin.tolerances import EPS

NOTHING = 1e-12  # rows of the gradient below this part of the largest are rounding of terms that cancel
NEWTON = 12
"""Steps of Newton's iteration back to the manifold. The gradient is kept, corrected by what each step tells of it, as
long as it leaves at most :data:`LEAST_GAIN` of the step before; the last step is below :data:`SQUARED` with the
gradient of its own point, which squares what is left, and below :data:`ROUNDED` with another."""

AT_ONCE = 128  # points that are visited together: what fits into the processor's cache
LEAST_GAIN, SQUARED, ROUNDED = 0.1, 1e-9, 1e-12

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


class StackGeometry:
    """Sizes, distances and conditioning of a stack in kept states, from ``rows`` of h that are independent."""

    def __init__(self, model: Model, points: PointBatch, tangents: TangentBatch, rows: Sequence[int]) -> None:
        self._tangents, self._rows = tangents, list(rows)
        self.sizes = model.states.scales(points.states)  # of the states, shape (k, N)
        self.y_sizes = self.sizes[:, list(tangents.kept)]
        self.u_sizes = model.inputs.scales(points.inputs)
        self.others = sorted(set(range(self.sizes.shape[1])).difference(tangents.kept))

    @cached_property
    def _scaled(self) -> FloatArray:
        return self._tangents.gradient * self.sizes[:, None]

    @cached_property
    def row_norms(self) -> FloatArray:
        """Of the rows of the scaled gradient, shape (k, m); of rows that are rounding, of the largest."""
        norms = np.sqrt(np.einsum("kmn,kmn->km", self._scaled, self._scaled))
        largest = norms.max(axis=1, initial=0.0, keepdims=True)
        return np.where(norms > NOTHING * largest, norms, np.where(largest > 0, largest, 1.0))

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
        bend = self._tangents.T[:, self.others] * self.y_sizes[:, None] / self.sizes[:, self.others, None]
        size = 1 + np.einsum("kij,kij->k", inverse, inverse) + np.einsum("kij,kij->k", bend, bend)
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
        rows = list(self._tangents.kept) if self.others else None
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
        return np.abs(self._tangents.T[:, self.others])

    @cached_property
    def largest_of_T(self) -> FloatArray:
        """The largest entry of T, shape (k,)."""
        return np.asarray(self._dependent.max(axis=(1, 2), initial=1.0 if self._tangents.kept else 0.0))

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
        if not self._tangents.kept:
            return np.zeros(len(self.sizes))
        errors = (self.row_errors_of_T / self.sizes).max(axis=1)
        turned = self._dependent * self.y_sizes[:, None] / self.sizes[:, self.others, None]
        return np.asarray(errors / turned.max(axis=(1, 2), initial=1.0))

    @property
    def is_finite(self) -> Mask:
        """Say where all slopes of the kept states and of the outputs, T and the rates of y are finite numbers."""
        kept = list(self._tangents.kept)
        sizes = self.slopes.sizes[:, kept], self.output_slopes.sizes, self._tangents.rates[:, kept]
        finite = np.concatenate((*sizes, self.largest_of_T[:, None]), axis=1)
        return np.asarray(np.isfinite(finite).all(axis=1))


def corrected(chord: FloatArray, chord_before: FloatArray, step: FloatArray) -> FloatArray:
    """Return steps (k, M) by a gradient kept from elsewhere and by what the step before told of it: Broyden's rule."""
    change = chord_before - chord
    along, square = (step * change).sum(axis=1), (step * step).sum(axis=1)
    told = along > square / 2  # steps that are rounding tell nothing
    part = np.where(told, (step * chord).sum(axis=1) / np.where(told, along, 1.0), 0.0)
    return np.asarray(chord + part[:, None] * (step - change))


class StackSurroundings:
    """The model beside a stack of points, at other kept states and inputs; others follow from ``rows`` of h."""

    def __init__(self, model: Model, rows: Sequence[int]) -> None:
        self._model, self._rows = model, list(rows)

    def reached(
        self, points: PointBatch, kept: Sequence[int], x0: FloatArray, sizes: FloatArray, back: FloatArray | None = None
    ) -> tuple[PointBatch, Mask]:
        """Return points with the kept states of a x0 (k, N), where they were reached; ``back``: H_z^-1 nearby."""
        others = sorted(set(range(x0.shape[1])).difference(kept))
        x, size, largest = x0.copy(), np.full(len(x0), np.inf if others else 0.0), np.inf
        before: tuple[FloatArray, FloatArray] | None = None
        reached, limit = PointBatch(points.time, x, points.inputs, points.parameters), SQUARED
        for _ in range(NEWTON if others else 0):
            try:
                if back is not None and (h := self._residuals(reached)) is not None:
                    limit = ROUNDED
                else:
                    h, H = self._constraints(reached, kept)
                    back, limit = np.asarray(np.linalg.inv(H[:, self._rows][:, :, others]), np.float64), SQUARED
                    before = None
            except (FmilinError, np.linalg.LinAlgError):
                return reached, np.zeros(len(x), dtype=bool)
            chord = (back @ h[:, self._rows, None])[..., 0] / sizes[:, others]
            step = chord if before is None else corrected(chord, *before)
            x[:, others] -= step * sizes[:, others]
            before, last, size = (chord, step), largest, np.abs(step).max(axis=1, initial=0.0)
            largest = float(size.max(initial=0.0))
            if largest <= limit:
                break
            if not largest <= LEAST_GAIN * last:
                back = None
        return reached, np.asarray(size <= limit)

    def _residuals(self, points: PointBatch) -> FloatArray | None:
        """Return the residuals (k, m) alone; None where they cost as much as their gradient."""
        constraints = self._model.constraints
        if points.parameters or constraints.time_dependent or constraints.hidden or not self._model.batches:
            return None
        return read_constraint_residuals(self._model, float(points.time[0]), points.states, points.inputs)

    def _constraints(self, points: PointBatch, kept: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        model = self._model
        shared = not (points.parameters or model.constraints.time_dependent)
        answer = constraints_at(model, float(points.time[0]), points.states, points.inputs) if shared else None
        if answer is not None:
            return answer
        tangents = read_tangents(model, points.time, points.states, points.inputs, kept, points.parameters)
        if tangents is None:
            raise NumericalError("The model does not answer at one of many points.")
        return tangents.residuals, tangents.gradient

    def visited(self, points: PointBatch, kept: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        """Return rates (k, N) and outputs (k, ny); NaN where the model cannot be evaluated."""
        model = self._model
        single = (model.autonomous or len(set(points.time.tolist())) <= 1) and not points.parameters
        with suppress(FmilinError, np.linalg.LinAlgError):
            if single and model.batches:
                parts = [points[i : i + AT_ONCE] for i in range(0, len(points), AT_ONCE)]
                visits = [model.evaluate(float(part.time[0]), part.states, part.inputs) for part in parts]
                return np.concatenate([v.derivatives for v in visits]), np.concatenate([v.outputs for v in visits])
            if model.batches and not has_graph(model) and not points.parameters:
                visited = evaluations(model, points.time, points.states, points.inputs)
                return visited.derivatives, visited.outputs
            tangents = read_tangents(model, points.time, points.states, points.inputs, kept, points.parameters)
            if tangents is not None:
                return tangents.rates, tangents.values
        nothing = np.full((len(points), len(model.states)), np.nan)
        return nothing, np.full((len(points), len(model.outputs)), np.nan)
