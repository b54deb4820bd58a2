"""Derivatives of models without exact ones at many points at once, by differences along all states and inputs.

The derivatives along the manifold are those along the states times its tangents, f_x T, as where a model has exact
directional derivatives: f is differenced off the manifold, too, and in the same evaluations the constraints are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from fmilin.manifold.point_arrays import PointBatch
from fmilin.manifold.point_by_point import EvaluationWithDerivatives, compute_tangents
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Evaluation, Model, TangentBatch
from fmilin.numerics.differences.directional import choose_direction
from fmilin.numerics.differences.point_differences import PointDifferences, difference_points
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass

QUICK_STEP_SIZE = 2.0**-17  # in sizes of the variables, of one difference of order 2: about the cube root of rounding


@dataclass(frozen=True, eq=False)
class DifferencedTangents:
    """Derivatives at k points, measured with care, along the kept states and the inputs."""

    tangents: TangentBatch
    errors: FloatArray  # (k, N + ny, P + nu), of the derivatives of rates and outputs where T is exact
    along_states: FloatArray  # (k, N + ny, N), absolute derivatives of rates and outputs along the states
    gradient_errors: FloatArray  # (k, m, N)
    is_doubtful: NDArray[np.bool_]  # (k,), where one point alone would be examined more closely


@dataclass(frozen=True, eq=False)
class ModelDifferencing:
    """How a model without exact derivatives is differenced at many points in the coordinates of a reference."""

    model: Model
    independent: Sequence[int]
    pairs: Mapping[int, int]  # states with another state as derivative
    T: FloatArray  # (N, P), tangents at the reference: derivatives are compared along them

    def difference_quickly(self, evaluator: PointEvaluator, points: PointBatch) -> TangentBatch | None:
        """Return derivatives by one central difference in each column, without errors; None without tangents."""
        count, n = points.states.shape
        scales = self._compute_scales(points)
        width = scales.shape[1]
        steps = QUICK_STEP_SIZE * scales
        displacements = np.zeros((count, 1 + 2 * width, width))
        columns = np.arange(width)
        displacements[:, 1 + columns, columns] = steps
        displacements[:, 1 + width + columns, columns] = -steps
        rows = displacements.shape[1]
        numbers = np.repeat(np.arange(count), rows)
        values = self._evaluate(evaluator, points, numbers, displacements.reshape(-1, width)).reshape(count, rows, -1)
        difference = (values[:, 1 : 1 + width] - values[:, 1 + width :]) / (2 * steps[..., None])
        J = difference.swapaxes(1, 2)
        self._write_exact_rows(J)
        return self._compute_tangents(points, values[:, 0], J, n + len(self.model.outputs))

    def difference(self, evaluator: PointEvaluator, points: PointBatch) -> DifferencedTangents | None:
        """Return derivatives with errors; None where there are no tangents."""
        x, u, n, ny = points.states, points.inputs, points.states.shape[1], len(self.model.outputs)
        scales = self._compute_scales(points)
        measured = difference_points(
            partial(self._evaluate, evaluator, points),
            scales,
            np.concatenate((x, u), axis=1),
            self._choose_directions(points, scales),
            partial(self._estimate_terms, points),
        )
        J, error = measured.J.copy(), measured.error.copy()
        self._write_exact_rows(J)
        self._write_exact_rows(error, are_errors=True)
        tangents = self._compute_tangents(points, measured.base, J, n + ny)
        if tangents is None:
            return None
        return DifferencedTangents(
            tangents,
            self._project_errors(error[:, : n + ny], tangents),
            np.abs(J[:, : n + ny, :n]),
            error[:, n + ny :, :n],
            measured.is_doubtful | self._find_moving_inputs(measured, n, ny),
        )

    def _compute_scales(self, points: PointBatch) -> FloatArray:
        """Return the sizes of states and inputs, (k, N + nu)."""
        model = self.model
        return np.concatenate((model.states.scales(points.states), model.inputs.scales(points.inputs)), axis=1)

    def _choose_directions(self, points: PointBatch, scales: FloatArray) -> FloatArray:
        """Return directions (k, N + nu) along the manifold through all coordinates and inputs."""
        n, p = self.T.shape
        y_scales = np.concatenate((scales[:, list(self.independent)], scales[:, n:]), axis=1)
        along = choose_direction(np.ones(y_scales.shape[1])) * y_scales
        directions = np.concatenate((along[:, :p] @ self.T.T, along[:, p:]), axis=1)
        # Shortened where a dependent state would move by more than its size.
        longest = (np.abs(directions) / scales).max(axis=1, initial=1.0, keepdims=True)
        return np.asarray(directions / longest)

    def _evaluate(
        self, evaluator: PointEvaluator, points: PointBatch, numbers: NDArray[np.intp], displacements: FloatArray
    ) -> FloatArray:
        """Return rates, outputs and residuals (j, N + ny + m) at displaced points."""
        n = points.states.shape[1]
        near = points[numbers]
        answer = evaluator.evaluate_points(
            near.time, near.states + displacements[:, :n], near.inputs + displacements[:, n:]
        )
        return np.concatenate((answer.derivatives, answer.outputs, answer.residuals), axis=1)

    def _estimate_terms(self, points: PointBatch, base: FloatArray, slope: FloatArray) -> FloatArray:
        """Return the size of the terms that each row sums (k, r), as far as its largest scaled slope (k, r) tells.

        ``base`` (k, r) are the values at the points.
        """
        model, n, ny = self.model, points.states.shape[1], len(self.model.outputs)
        sizes = model.states.scales(points.states)
        fastest = (slope[:, :n] / sizes).max(axis=1, initial=0.0, keepdims=True)
        terms = np.zeros_like(slope)
        terms[:, :n] = sizes * fastest
        terms[:, n : n + ny] = model.outputs.scales(base[:, n : n + ny])
        return terms

    def _write_exact_rows(self, J: FloatArray, *, are_errors: bool = False) -> None:
        """Write rates that are states, and outputs that are states or inputs, into derivatives (k, r, N + nu)."""
        n = len(self.model.states)
        one = 0.0 if are_errors else 1.0
        for row, column in self.pairs.items():
            J[:, row] = 0.0
            J[:, row, column] = one
        for row, origin in self.model.copies.items():
            J[:, n + row] = 0.0
            J[:, n + row, origin.index if origin.kind == "state" else n + origin.index] = one

    def _compute_tangents(self, points: PointBatch, base: FloatArray, J: FloatArray, end: int) -> TangentBatch | None:
        """Return the derivatives along the kept states of values (k, r), ``end`` of which are rates and outputs."""
        n = points.states.shape[1]
        J[:, end:, n:] = 0.0  # no input stands in a constraint
        values = Evaluation(base[:, :n], base[:, n:end], base[:, end:])
        derivatives = Evaluation(J[:, :n], J[:, n:end], J[:, end:])
        answer = EvaluationWithDerivatives(values, derivatives)
        return compute_tangents(answer, self.model.states, points.states, self.independent)

    def _project_errors(self, error: FloatArray, tangents: TangentBatch) -> FloatArray:
        """Return the errors (k, N + ny, P + nu) of f_x T and f_u, from those of f_x and f_u."""
        n = tangents.T.shape[1]
        return np.concatenate((error[..., :n] @ np.abs(tangents.T), error[..., n:]), axis=2)

    def _find_moving_inputs(self, measured: PointDifferences, n: int, ny: int) -> NDArray[np.bool_]:
        """Return where an input changes a residual (k,): the model's own code lets it prescribe a motion."""
        by_inputs = measured.J[:, n + ny :, n:], measured.error[:, n + ny :, n:]
        # Ten times: the error of a difference is an estimate of its order of magnitude.
        return np.asarray((np.abs(by_inputs[0]) > 10 * by_inputs[1]).any(axis=(1, 2)))
