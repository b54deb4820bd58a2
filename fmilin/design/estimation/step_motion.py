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
DIFFERENCE_STEP_SIZE = 2.0**-11
"""Of a difference, in sizes of states and inputs: rounding and truncation of fourth order are below 1e-12."""
KINK_RATIO = 0.02
"""Disagreement of differences, relative to the largest of a direction, above which there is a kink."""


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
        """Return increments and outputs at a point, and their derivatives along directions X (N + k, c).

        Derivatives are exact where the model has them, and differences otherwise.
        """
        (state,), (inputs,) = self.split(x[None], u)
        directions = np.zeros((len(u), X.shape[1]))
        directions[self._noisy_inputs] = X[self._N :]
        products = read_products(self.model, t, state, inputs, X[: self._N], directions)
        if products is None or not np.isfinite(products.derivatives).all():
            derivatives, outputs = self._difference(t, state, inputs, X[: self._N], directions)
        else:
            derivatives, outputs = products.derivatives, products.outputs
        values = self.model.evaluate(t, state, inputs)
        changes = np.vstack((derivatives, np.zeros_like(X[self._N :])))
        rates = np.concatenate((values.derivatives, np.zeros(len(x) - self._N)))
        return rates, values.outputs, changes, outputs

    def _difference(
        self, t: float, state: FloatArray, inputs: FloatArray, X: FloatArray, U: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return derivatives of increments (N, c) and outputs (ny, c) along columns of X and U, by differences.

        Central differences over h and 2 h, evaluated together, give one of fourth order. Where both differ by more than
        a part of it, or those ahead and behind do, a step has a kink there, as of a saturation, and no derivative.
        """
        sizes = np.concatenate((self.model.states.scales(state), self.model.inputs.scales(inputs)))
        directions = np.concatenate((X, U)).T
        lengths = np.abs(directions / sizes).max(axis=1, initial=0.0)
        steps = DIFFERENCE_STEP_SIZE / np.where(lengths > 0, lengths, 1.0)
        sides = np.array([1.0, -1.0, 2.0, -2.0, 0.0])
        displaced = np.concatenate((state, inputs)) + (sides[:, None, None] * steps[:, None]) * directions
        points = displaced.reshape(-1, displaced.shape[2])
        evaluation = self.model.evaluate_points(np.full(len(points), t), points[:, : self._N], points[:, self._N :])
        values = np.hstack((evaluation.derivatives, evaluation.outputs)).reshape(len(sides), len(directions), -1)
        narrow = (values[0] - values[1]) / (2 * steps[:, None])
        wide = (values[2] - values[3]) / (4 * steps[:, None])
        slopes = (4 * narrow - wide) / 3
        bends = (values[0] + values[1] - 2 * values[4]) / (2 * steps[:, None])
        allowed = KINK_RATIO * np.abs(narrow).max(axis=1, initial=0.0, keepdims=True) + KINK_RATIO * lengths[:, None]
        if not (np.maximum(np.abs(narrow - wide), np.abs(bends)) <= allowed).all():
            raise UsageError(
                f"The steps of '{self.model.info.name}' have no derivatives at an estimate: differences over two "
                "lengths, or ahead and behind, do not agree, as at a saturation. Take kind='ukf', 'enkf' or 'particle'."
            )
        return slopes[:, : self._N].T, slopes[:, self._N :].T


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
