"""A model in motion, with the inputs of that time, and what all ways to integrate it on its manifold have in common.

Its energy is recorded along the motion, and where wanted kept as one more invariant.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite

import numpy as np

from fmilin.constraints.declared import Constraint
from fmilin.constraints.expressions import parse
from fmilin.errors import ConstraintError, FmilinError, ModelError, NumericalError, UsageError
from fmilin.manifold.invariants import Gradient, Invariants
from fmilin.model.capabilities import HasFormulas, compile_model, read_event_indicators
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Evaluation, Model, OperatingPoint
from fmilin.model.stepping import Hybrid
from fmilin.signals import FloatArray
from fmilin.simulation.inputs import InputCourse
from fmilin.simulation.trajectory import Switch


class Energy:
    """An expression over the variables of a model, and how far it is from its first value; errors name ``what``."""

    def __init__(
        self,
        model: Model,
        text: str,
        start: OperatingPoint,
        *,
        pairs: Mapping[int, int],
        scales: FloatArray,
        what: str = "energy",
    ) -> None:
        declared = model.constraints.declared
        self._row = len(declared)
        expression = parse(text)
        if expression.is_variable and isinstance(model, HasFormulas):
            expression = model.formula(expression.names[0]) or expression

        def view(level: float) -> PointEvaluator:
            row = Constraint(expression.minus(level), name=what, level="velocity")
            try:
                shifted = model.with_constraints([*declared, row])
                return PointEvaluator(compile_model(shifted, 0), remembers=False)
            except ConstraintError as error:
                raise UsageError(f"The {what} '{text}' cannot be computed. {error}") from None

        self._first = float(view(0.0).evaluate(start.time, start.states, start.inputs).residuals[self._row])
        self.evaluator = view(self._first)
        self._invariants = Invariants(self.evaluator, start.inputs, pairs, scales)
        self._scales = scales
        self.size = abs(self._first)  # the largest slope met so far: what a difference is compared with

    def value(self, t: float, x: FloatArray, u: FloatArray) -> float:
        """Return the energy at a point, in the units of the expression."""
        return self._first + self.excess(t, x, u)

    def excess(self, t: float, x: FloatArray, u: FloatArray) -> float:
        """Return how much more it is than at the start."""
        return float(self._invariants.values(t, x, u)[self._row])

    def slope(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        """Return its gradient with the states, shape (N,)."""
        row: FloatArray = self._invariants.gradient(t, x, u).H[self._row]
        self.size = max(self.size, float(np.linalg.norm(row * self._scales)))
        return row


def is_finite(values: FloatArray) -> bool:
    """Whether all values (n,) are finite: a sum of squares tells most of it in a tenth of the time."""
    return isfinite(values.dot(values)) or bool(np.isfinite(values).all())


FLOAT_SPACING_COUNT = 16.0  # of floats, before a jump, at which the rates of the step that ends there are examined


class Plant:
    """The plant of stabilizations; ``pairs`` are states with another state as derivative, ``scales`` (N,)."""

    def __init__(
        self, model: Model, start: OperatingPoint, course: InputCourse, pairs: Mapping[int, int], energy: str | None
    ) -> None:
        self.model = model
        self.evaluator = PointEvaluator(model, remembers=False)
        self.scales = model.states.scales(start.states)
        self.invariants = Invariants(self.evaluator, start.inputs, pairs, self.scales)
        self.energy = None if energy is None else Energy(model, energy, start, pairs=pairs, scales=self.scales)
        self.course = course
        # of the last evaluation: a step that ends there is tried again, shorter
        self.trouble: FmilinError | None = None
        self._dynamics = self.evaluator
        self._evaluators = [self.evaluator]
        if self.energy is not None:
            self._evaluators.append(self.energy.evaluator)
        self._inputs: Callable[[float], FloatArray] = course.piece(start.time, start.time)
        self._latest = np.inf  # the last time at which rates are examined in this piece

    @property
    def evaluations(self) -> int:
        """Evaluations of the model so far."""
        return sum(evaluator.evaluations for evaluator in self._evaluators)

    def replace_dynamics(self, model: Model) -> None:
        """Take the rates from another model of the same states, inputs and outputs."""
        self._dynamics = PointEvaluator(compile_model(model, 0), remembers=False)
        self._evaluators.append(self._dynamics)

    def enter(self, start: float, end: float, *, before_end: bool = False) -> None:
        """Take the inputs of the piece [start, end]; with ``before_end`` the rates at its end are those before it."""
        # At the first time after a jump the model is on its other side already, and the step that ends there is not.
        self._latest = (
            end - FLOAT_SPACING_COUNT * float(np.spacing(max(abs(end), end - start))) if before_end else np.inf
        )
        self._inputs = self.course.piece(start, end)
        if self.invariants.prescribing and end > start:
            for part in (0.25, 0.5, 0.75):
                self._require_derivatives(start + part * (end - start), end - start)

    def _require_derivatives(self, t: float, length: float) -> None:
        h = 1e-3 * length
        slope = (8 * (self.u(t + h) - self.u(t - h)) - (self.u(t + 2 * h) - self.u(t - 2 * h))) / (12 * h)
        names = self.model.inputs.names
        for j, k in self.invariants.chain.items():
            declared_rate = self.u(t)[k]
            if abs(slope[j] - declared_rate) > 1e-4 * (
                abs(slope[j]) + abs(declared_rate) + 1e-6 * abs(self.u(t)[j]) / length
            ):
                raise UsageError(
                    f"The input '{names[j]}' prescribes a motion and changes at {slope[j]:.6g} per second at t = "
                    f"{t:g} s, but its derivative, the input '{names[k]}', is {declared_rate:.6g}: make the two agree."
                )

    def u(self, t: float) -> FloatArray:
        """Return the inputs, shape (nu,)."""
        return self._inputs(t)

    def evaluate(self, t: float, x: FloatArray) -> Evaluation:
        """Return everything that the model says at a point."""
        return self._dynamics.evaluate(t, x, self.u(t))

    def f(self, t: float, x: FloatArray) -> FloatArray:
        """Return the rates, shape (N,); NaN where the model has none, with the reason in :attr:`trouble`."""
        if not is_finite(x):
            return np.full(len(x), np.nan)  # a stage of a step that has failed already
        try:
            rates = self.evaluate(min(t, self._latest), x).derivatives
        except (ModelError, NumericalError) as error:
            source = self._dynamics.model
            if isinstance(source, Hybrid) and not source.remembers_mode:
                raise  # it would go on in another mode
            self.trouble = error
            return np.full(len(x), np.nan)
        if not is_finite(rates):
            name = self.model.states.names[int(np.flatnonzero(~np.isfinite(rates))[0])]
            self.trouble = NumericalError(
                f"The model returns NaN for the derivative of the state '{name}' near t = {t:.9g} s.",
                variable=name,
            )
        return rates

    def h(self, t: float, x: FloatArray) -> FloatArray:
        """Return the invariants, shape (m,)."""
        return self.invariants.values(t, x, self.u(t))

    def gradient(self, t: float, x: FloatArray) -> Gradient:
        """Return H = Dh and its error."""
        return self.invariants.gradient(t, x, self.u(t))

    def indicators(self, t: float, x: FloatArray) -> FloatArray:
        """Return the event indicators, shape (ne,)."""
        indicators: FloatArray = read_event_indicators(self.model, t, x, self.u(t))
        return indicators

    def point(self, t: float, x: FloatArray) -> OperatingPoint:
        """Return the operating point at a time of the motion."""
        return OperatingPoint(t, x.copy(), self.u(t).copy(), self.model.start.parameters)


@dataclass(frozen=True, slots=True)
class CorrectedState:
    """Where to go on after an accepted step, when not from its end."""

    z: FloatArray
    is_small: bool  # whether z is the same quantity as before, corrected by about the error of a step


class Stabilization(ABC):
    """A choice of what to integrate; :meth:`start` begins a run."""

    @abstractmethod
    def start(self, plant: Plant) -> IntegratedCoordinates:
        """Prepare a run of ``plant``."""


class IntegratedCoordinates:
    """The integrated coordinates: z with z' = rates(t, z), here all states as they are, and the states of z."""

    def __init__(self, plant: Plant) -> None:
        self.plant = plant
        self.switches: list[Switch] = []
        self.projections = 0

    @property
    def sizes(self) -> FloatArray:
        """Sizes of z."""
        return self.plant.scales

    def begin(self, t: float, x: FloatArray) -> FloatArray:
        """Return z for the states x (N,), from which the integration goes on."""
        return x.copy()

    def rates(self, t: float, z: FloatArray) -> FloatArray:
        """Return z'; NaN where there is none, with the reason in ``plant.trouble``."""
        return self.plant.f(t, z)

    def states(self, t: float, z: FloatArray) -> FloatArray:
        """Return the states that belong to z, shape (N,)."""
        return z

    def accept_step(self, t: float, z: FloatArray) -> CorrectedState | None:
        """Take note of an accepted step; return where to go on when not from its end."""

    def rescue(self, t: float, z: FloatArray) -> CorrectedState | None:
        """Take note that no step can be made from here; return another z for the same point, or None."""


class Clocked(IntegratedCoordinates):
    """Another stabilization without coordinates (no states, or all motion prescribed), with one that never changes."""

    def __init__(self, inner: IntegratedCoordinates) -> None:
        super().__init__(inner.plant)
        self._inner = inner
        self._nothing: FloatArray = np.empty(0)
        self.switches = inner.switches

    @property
    def sizes(self) -> FloatArray:
        """Return one."""
        return np.ones(1)

    def begin(self, t: float, x: FloatArray) -> FloatArray:
        """Return a zero."""
        self._nothing = self._inner.begin(t, x)
        return np.zeros(1)

    def rates(self, t: float, z: FloatArray) -> FloatArray:
        """Return a zero."""
        return np.zeros(1)

    def states(self, t: float, z: FloatArray) -> FloatArray:
        """Return the states of this time, shape (N,)."""
        return self._inner.states(t, self._nothing)

    def accept_step(self, t: float, z: FloatArray) -> CorrectedState | None:
        """Pass on."""
        self._inner.accept_step(t, self._nothing)
        return None
