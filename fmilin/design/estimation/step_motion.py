"""Models that step from sample to sample by themselves, as filters need them: maps and co-simulation FMUs.

Noise of inputs is held over each sample: the last k states of an estimate are this noise, w, and every point has the
inputs u + G w of its own.
"""

from __future__ import annotations

import numpy as np

from fmilin.design.estimation.charts import CoordinateSplit, RowTerms
from fmilin.design.estimation.filter_motion import ManifoldStepper, triangular
from fmilin.errors import UsageError
from fmilin.manifold.invariants import Invariants
from fmilin.model.capabilities import read_products
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.stepping import Stepped
from fmilin.signals import FloatArray

Slopes = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


class StepEvaluator:
    """Outputs and steps of a model at points with inputs of their own."""

    def __init__(self, model: Model, point: OperatingPoint, noisy_inputs: list[int], sample_time: float) -> None:
        self.model, self._point, self._sample_time = model, point, sample_time
        self._noisy_inputs = noisy_inputs
        self._N = len(model.states)

    def fork(self) -> StepEvaluator:
        """Return itself: nothing is remembered."""
        return self

    def set_turn(self, output: int, turn: float) -> None:
        """Ignore turns: outputs are compared modulo theirs by the filters."""

    def split(self, X: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the states (k, N) of the model and the inputs (k, nu) of points with noise states."""
        inputs = np.tile(u, (len(X), 1))
        inputs[:, self._noisy_inputs] += X[:, self._N :]
        return X[:, : self._N], inputs

    def compute_points(self, t: float, X: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return no rates, and the outputs (k, ny) at states X."""
        states, inputs = self.split(X, u)
        if isinstance(self.model, Stepped):  # at the time of the point: its steps do not depend on time
            outputs = self.model.respond_points(self._point, states, inputs, 0.0).at_once
        else:
            outputs = self.model.evaluate_points(np.full(len(X), t), states, inputs).outputs
        return np.zeros_like(X), outputs

    def advance(self, t: float, X: FloatArray, u: FloatArray) -> FloatArray:
        """Return the points a sample later, the noise states as they were."""
        states, inputs = self.split(X, u)
        later = X.copy()
        if isinstance(self.model, Stepped):
            later[:, : self._N] = self.model.respond_points(self._point, states, inputs, self._sample_time).states
        else:
            later[:, : self._N] += self.model.evaluate_points(np.full(len(X), t), states, inputs).derivatives
        return later

    def along(self, t: float, x: FloatArray, u: FloatArray, X: FloatArray, U: FloatArray | None = None) -> Slopes:
        """Return increments and outputs at a point, and their exact derivatives along directions X (N + k, c)."""
        (state,), (inputs,) = self.split(x[None], u)
        directions = np.zeros((len(u), X.shape[1]))
        directions[self._noisy_inputs] = X[self._N :]
        products = read_products(self.model, t, state, inputs, X[: self._N], directions)
        if products is None or not np.isfinite(products.derivatives).all():
            raise UsageError(
                f"'{self.model.info.name}' has no exact derivatives of its steps: take kind='ukf', 'enkf' or "
                "'particle'."
            )
        values = self.model.evaluate(t, state, inputs)
        changes = np.vstack((products.derivatives, np.zeros_like(X[self._N :])))
        rates = np.concatenate((values.derivatives, np.zeros(len(x) - self._N)))
        return rates, values.outputs, changes, products.outputs


class StepMotion(ManifoldStepper):
    """A model that steps, from sample to sample; all its states are coordinates."""

    def __init__(
        self,
        model: Model,
        point: OperatingPoint,
        noisy_inputs: list[int],
        renewed: FloatArray,
        sample_time: float,
    ) -> None:
        N, k = len(model.states), len(renewed)
        invariants = Invariants(PointEvaluator(model), point.inputs, {}, model.states.scales(point.states))
        scales = np.concatenate((invariants.scales, np.ones(k)))
        evaluator = StepEvaluator(model, point, noisy_inputs, sample_time)
        super().__init__(
            evaluator,  # type: ignore[arg-type]  # of rates it has increments alone
            CoordinateSplit(list(range(N + k)), [], []),
            scales,
            noise=(np.zeros((N + k, 0)), np.zeros((len(model.inputs), 0))),
            substeps=1,
            row_terms=RowTerms(invariants, point.time, point.states, point.inputs),
            renewed=renewed,
        )
        self._steps = evaluator

    def predict(
        self, t: float, x: FloatArray, u: FloatArray, S: FloatArray, sample_time: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the states and the factor of the covariance a sample later, by exact derivatives."""
        rates, _, changes, _ = self._steps.along(t, x, u, S)
        return x + rates, triangular((S + changes).T)

    def transition(self, t: float, x: FloatArray, u: FloatArray, sample_time: float) -> tuple[FloatArray, FloatArray]:
        """Return no noise: that of inputs is among the states."""
        P = len(self.chart.coordinates)
        return np.eye(P), np.zeros((P, 0))

    def points_later(self, t: float, X: FloatArray, u: FloatArray, sample_time: float) -> FloatArray:
        """Return points a sample later than those in X (k, N)."""
        return self._steps.advance(t, X, u)
