"""Evaluations of a model at points: counted, and remembered during one task."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from math import prod

import numpy as np

from fmilin.errors import REFUSALS, ModelError, NumericalError
from fmilin.model.capabilities import (
    HasConstraintGradient,
    HasExactJacobian,
    differentiate_points,
    read_constraint_gradient,
    read_constraint_residuals,
    read_exact_slopes,
    read_products,
    read_tangents,
)
from fmilin.model.interface import UNCHANGED, Changes, Evaluation, ExactSlopes, Model, TangentBatch
from fmilin.signals import FloatArray

_Key = tuple[float, bytes, bytes]

POINTS_AT_ONCE = 128  # that are evaluated together by arrays: what fits into the processor's cache
MAX_REMEMBERED_NUMBERS = 2_000_000
MIN_REMEMBERED_POINTS = 64


def evaluate_each(
    model: Model, t: float, points: Sequence[tuple[FloatArray, FloatArray]]
) -> list[Evaluation | ModelError | NumericalError]:
    """Return what a model says at points (x, u), and its error at those that it rejects.

    They are evaluated together where the model takes batches: of an FMU they are one message to its process.
    """
    if model.batches and len(points) > 1:
        x, u = (np.array(part) for part in zip(*points, strict=True))
        with suppress(*REFUSALS):  # asked for one by one, the points that have values get them
            together = model.evaluate_points(np.full(len(points), t), x, u)
            rows = zip(together.derivatives, together.outputs, together.residuals, strict=True)
            return [Evaluation(*row) for row in rows]
    answers: list[Evaluation | ModelError | NumericalError] = []
    for point in points:
        try:
            answers.append(model.evaluate(t, *point))
        except (ModelError, NumericalError) as error:
            answers.append(error)
    return answers


class PointEvaluator:
    """Evaluates a model, counts the evaluations, and evaluates no point twice.

    Steps of one task ask for the same point: the constraints, their gradient, the derivatives and their checks. What
    the model can do else is asked of ``model``.

    Parameters
    ----------
    model : Model
    remembers : bool
        Whether evaluations at single points are remembered, as long as this object lives and the model stays in one
        mode; those of batches never are. A simulation, which never returns to a point, remembers nothing.
    """

    def __init__(self, model: Model, *, remembers: bool = True) -> None:
        self.model = model
        self.evaluations = 0  # points at which the model was evaluated
        self.directions = 0  # along which it gave exact directional derivatives
        numbers_per_point = len(model.states) + len(model.outputs) + 1
        most = max(MIN_REMEMBERED_POINTS, MAX_REMEMBERED_NUMBERS // numbers_per_point)
        self._most = most if remembers else 0
        self._has_gradient = isinstance(model, (HasConstraintGradient, HasExactJacobian))  # asked for in each iteration
        self._evaluations: dict[_Key, Evaluation] = {}
        self._ahead: deque[_Key] = deque()  # of these, the points that were evaluated ahead, the oldest first
        self._residuals: dict[_Key, FloatArray | None] = {}
        self._slopes: dict[_Key, ExactSlopes | None] = {}
        self._gradients: dict[_Key, tuple[FloatArray, FloatArray] | None] = {}

    def evaluate(self, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        """Return rates, outputs and residuals at a point."""
        if not self._most:
            return self.evaluate_again(t, x, u)
        key = (t, x.tobytes(), u.tobytes())
        evaluation = self._evaluations.get(key)
        if evaluation is None:
            evaluation = self.evaluate_again(t, x, u)
            if len(self._evaluations) < self._most:
                self._evaluations[key] = evaluation
        return evaluation

    def evaluate_again(self, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        """Evaluate the model even if the point is remembered: one with a solver inside may return other values."""
        self.evaluations += 1
        return self.model.evaluate(t, x, u)

    def evaluate_ahead(self, points: Sequence[tuple[float, FloatArray, FloatArray]]) -> None:
        """Evaluate the model at points (t, x, u) together and remember them, unless it raises an error at one.

        If the memory is full, those that were evaluated ahead before are forgotten.
        """
        new = {(t, x.tobytes(), u.tobytes()): (t, x, u) for t, x, u in points}
        for key in self._evaluations.keys() & new.keys():
            del new[key]
        if len(new) < 2 or len(self._evaluations) - len(self._ahead) + len(new) > self._most:
            return
        while len(self._evaluations) + len(new) > self._most:
            del self._evaluations[self._ahead.popleft()]
        t, x, u = (np.array(part) for part in zip(*new.values(), strict=True))
        try:
            together = self.model.evaluate_points(t, x, u)
        except REFUSALS:
            return  # asked for one by one, the points that have values get them
        self.evaluations += len(new)
        rows = zip(together.derivatives, together.outputs, together.residuals, strict=True)
        for key, row in zip(new, rows, strict=True):
            self._evaluations[key] = Evaluation(*row)
        self._ahead.extend(new)

    def evaluate_points(self, t: FloatArray, x: FloatArray, u: FloatArray) -> Evaluation:
        """Return the same at times t (k,) and points x (k, N), u (k, nu), none of which is remembered."""
        self.evaluations += len(x)
        return self.model.evaluate_points(t, x, u)

    def products(self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray) -> Evaluation | None:
        """Return exact directional derivatives along the columns of (dx, du); None without."""
        result = read_products(self.model, t, x, u, dx, du)
        if result is not None:
            self.directions += dx.shape[1]
        return result

    def exact_slopes(self, t: float, x: FloatArray, u: FloatArray) -> ExactSlopes | None:
        """Return the model's exact procedure at a point, None without; its evaluation is remembered, too."""
        key = (t, x.tobytes(), u.tobytes())
        if key in self._slopes:
            return self._slopes[key]
        slopes = read_exact_slopes(self.model, t, x, u)
        if slopes is not None:
            self.evaluations += slopes.points
        if len(self._slopes) < self._most:
            self._slopes[key] = slopes
            if slopes is not None:
                self._evaluations[key] = slopes.values
        return slopes

    def tangents(
        self, t: FloatArray, x: FloatArray, u: FloatArray, independent: Sequence[int], parameters: Changes = UNCHANGED
    ) -> TangentBatch | None:
        """Return exact derivatives along the independent states at many points; None without."""
        tangents = read_tangents(self.model, t, x, u, independent, parameters)
        if tangents is not None:
            self.evaluations += len(x)
        return tangents

    def differentiate_points(self, t: FloatArray, x: FloatArray, u: FloatArray) -> Evaluation | None:
        """Return derivatives at k points along all states, then all inputs (k, rows, N + nu); None if not compiled."""
        result = differentiate_points(self.model, t, x, u)
        if result is not None:
            self.directions += len(x) * (x.shape[1] + u.shape[1])
        return result

    def constraint_residuals(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray | None:
        """Return the residuals alone, None if they cost as much as an evaluation, and the point is not remembered."""
        if x.ndim > 1 or not self._most:
            return self._read_residuals(t, x, u)
        key = (t, x.tobytes(), u.tobytes())
        if key in self._evaluations:
            return self._evaluations[key].residuals
        if key in self._residuals:
            return self._residuals[key]
        residuals = self._read_residuals(t, x, u)
        if len(self._residuals) < self._most:
            self._residuals[key] = residuals
        return residuals

    def constraint_gradient(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Return residuals and their exact gradient; None if that costs as much as an evaluation."""
        if not self._has_gradient:
            return None
        key = (t, x.tobytes(), u.tobytes())
        if key in self._gradients:
            return self._gradients[key]
        slopes = self._slopes.get(key)
        if slopes is not None and slopes.constraint_gradient is not None:
            return slopes.values.residuals, slopes.constraint_gradient
        gradient = read_constraint_gradient(self.model, t, x, u)
        if gradient is not None:
            self.evaluations += 1
        if len(self._gradients) < self._most:
            self._gradients[key] = gradient
            if gradient is not None:
                self._residuals[key] = gradient[0]
        return gradient

    def _read_residuals(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray | None:
        residuals = read_constraint_residuals(self.model, t, x, u)
        if residuals is not None:
            self.evaluations += prod(x.shape[:-1])
        return residuals
