"""The equations of a model that a parametrization of its manifold needs: residuals of the constraints, and gradients.

:class:`PointwiseEquations` evaluate one point after another, with invariants closed under the motion;
:class:`VectorizedEquations` evaluate many points together, of a model that allows that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import FmilinError, NumericalError
from fmilin.manifold.differenced_points import ModelDifferencing
from fmilin.manifold.invariants import Invariants
from fmilin.manifold.many_points import evaluate_constraints
from fmilin.manifold.point_arrays import PointBatch
from fmilin.model.capabilities import has_compiled_derivatives, reach_manifold
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Evaluation, Model, TangentBatch
from fmilin.signals import FloatArray

Mask = NDArray[np.bool_]


class ConstraintEquations(ABC):
    """Residuals h of the constraints at points, and their gradient H = dh/dx."""

    evaluator: PointEvaluator

    @property
    def model(self) -> Model:
        """The model."""
        return self.evaluator.model

    @abstractmethod
    def compute_residuals(self, points: PointBatch) -> FloatArray | None:
        """Return the residuals (j, m) alone; None where they cost as much as their gradient."""

    @abstractmethod
    def compute_gradient(self, points: PointBatch) -> tuple[FloatArray, FloatArray]:
        """Return the residuals (j, m) and their gradient (j, m, N)."""

    def compute_newton_matrix(self, points: PointBatch) -> tuple[FloatArray, FloatArray]:
        """Return the same as Newton's method needs it, which does without its last digits."""
        return self.compute_gradient(points)

    @abstractmethod
    def evaluate(self, points: PointBatch) -> tuple[FloatArray, FloatArray]:
        """Return rates (j, N) and outputs (j, ny) at points."""

    def expect(self, points: PointBatch) -> ExpectedEvaluation:
        """Return the evaluation of points that goes along with the next one, where both cost what one does."""
        return ExpectedEvaluation(self, points)

    def compute_A(self, points: PointBatch) -> FloatArray | None:
        """Return the model's own A (j, P, P) at points; None where it has none."""
        return None

    def reach_manifold(self, points: PointBatch, sizes: FloatArray) -> tuple[FloatArray, Mask] | None:
        """Return states (j, N) on the manifold with the kept ones of points, and where they were reached.

        ``sizes`` (j, N) are those of the states. Returns None without compiled code for that.
        """
        return None


class PointwiseEquations(ConstraintEquations):
    """The invariants of a model, at one point after another."""

    def __init__(self, invariants: Invariants) -> None:
        self.invariants, self.evaluator = invariants, invariants.evaluator

    def compute_residuals(self, points: PointBatch) -> FloatArray | None:
        """Return the residuals; None where the model gives residuals and their gradient in one evaluation."""
        together = self._compute_together(points)
        if together is not None:
            return together
        residuals = []
        for t, x, u in _list_points(points):
            if self.evaluator.constraint_gradient(t, x, u) is not None:
                return None
            residuals.append(self.invariants.values(t, x, u))
        return np.array(residuals)

    def _compute_together(self, points: PointBatch) -> FloatArray | None:
        """Return the residuals of points that the model itself evaluates together: of an FMU, in one message."""
        invariants, model = self.invariants, self.model
        # One point gains nothing, and hidden constraints need the rates.
        if len(points) < 2 or not model.batches or len(invariants) > invariants.declared:
            return None
        # Expressions need no evaluation of the model, and one message to a model has one time.
        if model.constraints.analytic.all() or (points.time != points.time[0]).any():
            return None
        return self.evaluator.constraint_residuals(float(points.time[0]), points.states, points.inputs)

    def compute_gradient(self, points: PointBatch) -> tuple[FloatArray, FloatArray]:
        """Return both, exact or measured."""
        gradients = [self.invariants.gradient(*point).H for point in _list_points(points)]
        residuals = [self.invariants.values(*point) for point in _list_points(points)]
        return np.array(residuals), np.array(gradients)

    def compute_newton_matrix(self, points: PointBatch) -> tuple[FloatArray, FloatArray]:
        """Return both, the gradient as Newton's method needs it."""
        matrices = [self.invariants.newton_matrix(*point) for point in _list_points(points)]
        residuals = [self.invariants.values(*point) for point in _list_points(points)]
        return np.array(residuals), np.array(matrices)

    def evaluate(self, points: PointBatch) -> tuple[FloatArray, FloatArray]:
        """Return both; the errors of the model where it cannot be evaluated."""
        answer = Evaluation.joined([self.evaluator.evaluate(*point) for point in _list_points(points)])
        return answer.derivatives, answer.outputs


def _list_points(points: PointBatch) -> list[tuple[float, FloatArray, FloatArray]]:
    return list(zip(points.time.tolist(), points.states, points.inputs, strict=True))


class ExpectedEvaluation:
    """Rates (j, N) and outputs (j, ny) at points, which are evaluated with others, or else when they are read."""

    def __init__(self, equations: ConstraintEquations, points: PointBatch) -> None:
        self._equations, self.points = equations, points
        self.answer: tuple[FloatArray, FloatArray] | None = None

    def read(self) -> tuple[FloatArray, FloatArray]:
        """Return both; NaN where the model cannot be evaluated."""
        if self.answer is None:
            self.answer = self._equations.evaluate(self.points)
        return self.answer


class VectorizedEquations(ConstraintEquations):
    """A model at many points at once, with derivatives along P kept states."""

    def __init__(
        self, evaluator: PointEvaluator, independent: Sequence[int], differencing: ModelDifferencing | None = None
    ) -> None:
        """Take exact derivatives of the model; with ``differencing`` differences."""
        self.evaluator, self.independent, self._differencing = evaluator, list(independent), differencing
        self._expected: ExpectedEvaluation | None = None  # goes along with the next evaluation

    def expect(self, points: PointBatch) -> ExpectedEvaluation:
        """Return the evaluation of points that goes along with the next one: few points cost what one does."""
        self._expected = ExpectedEvaluation(self, points)
        return self._expected

    def compute_residuals(self, points: PointBatch) -> FloatArray | None:
        """Return the residuals; None where the model gives them with the rates only."""
        constraints = self.model.constraints
        # One evaluation has one time and the model's own parameters, and gives declared constraints alone.
        if points.parameters or constraints.time_dependent or constraints.hidden or not self.model.batches:
            return None
        return self.evaluator.constraint_residuals(float(points.time[0]), points.states, points.inputs)

    def compute_gradient(self, points: PointBatch) -> tuple[FloatArray, FloatArray]:
        """Return both; NumericalError if the model cannot be evaluated at one of the points."""
        model = self.model
        # Here, too, one time and the model's own parameters serve all points.
        if not (points.parameters or model.constraints.time_dependent):
            answer = evaluate_constraints(self.evaluator, float(points.time[0]), points.states, points.inputs)
            if answer is not None:
                return answer
        tangents = self._differentiate(points)
        if tangents is None:
            raise NumericalError("The model cannot be evaluated at one of many points.")
        return tangents.residuals, tangents.gradient

    def evaluate(self, points: PointBatch) -> tuple[FloatArray, FloatArray]:
        """Return rates (j, N) and outputs (j, ny) at points; NaN where the model cannot be evaluated."""
        expected, self._expected = self._expected, None
        # Points that are needed next are evaluated in the same call of the model, unless these are those points.
        if expected is not None and expected.points is not points:
            rates, outputs = self._evaluate(points.joined(expected.points))
            # NaN may be due to the other points.
            if np.isfinite(rates).all():
                count = len(points)
                expected.answer = rates[count:], outputs[count:]
                return rates[:count], outputs[:count]
        return self._evaluate(points)

    def _evaluate(self, points: PointBatch) -> tuple[FloatArray, FloatArray]:
        model = self.model
        # Otherwise derivatives take as long as values. Parameters that differ by point are taken by derivatives alone.
        is_evaluated_together = model.batches or has_compiled_derivatives(model)
        try:
            if is_evaluated_together and not points.parameters:
                answer = self.evaluator.evaluate_points(points.time, points.states, points.inputs)
                return answer.derivatives, answer.outputs
            tangents = self._differentiate(points)
            if tangents is not None:
                return tangents.rates, tangents.values
        except (FmilinError, np.linalg.LinAlgError):
            pass
        nothing = np.full((len(points), len(model.states)), np.nan)
        return nothing, np.full((len(points), len(model.outputs)), np.nan)

    def compute_A(self, points: PointBatch) -> FloatArray | None:
        """Return the model's own A (j, P, P) at points; None where it has none."""
        with suppress(FmilinError, np.linalg.LinAlgError):
            tangents = self._differentiate(points)
            return None if tangents is None else tangents.A
        return None

    def reach_manifold(self, points: PointBatch, sizes: FloatArray) -> tuple[FloatArray, Mask] | None:
        """Return both if the model is compiled."""
        # Compiled code has the parameters of the model, the same at all points.
        if points.parameters:
            return None
        return reach_manifold(self.model, points.time, points.states, points.inputs, self.independent, sizes)

    def _differentiate(self, points: PointBatch) -> TangentBatch | None:
        if self._differencing is not None:
            return self._differencing.difference_quickly(self.evaluator, points)
        return self.evaluator.tangents(points.time, points.states, points.inputs, self.independent, points.parameters)
