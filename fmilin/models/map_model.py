"""Sampled nonlinear models: x[k+1] = F(t, x[k], u[k]), out = c(t, x, u), with a sample time.

The model evaluates the increments F(t, x, u) - x where a continuous one evaluates rates. Fixed points are then what
equilibria are, and constraints that the map keeps, g(F(x)) = 0 wherever g(x) = 0, are the same manifold. The linear
model of the increments is that of the map less the identity: A = R F_x T because R T = 1. :mod:`fmilin.linearization`
adds it, and the sample time. Periodic points are fixed points of an iterated map.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fmilin.constraints.declared import Constraint
from fmilin.errors import UsageError
from fmilin.model.interface import Evaluation, OperatingPoint
from fmilin.models.declaration import Declaration, SymbolicConstraint
from fmilin.models.function import Function, FunctionModel
from fmilin.models.labels import Expr, Labels, Name
from fmilin.models.native_model import NativeModel
from fmilin.models.ode import OdeModel
from fmilin.signals import FloatArray, Signals, as_numbers
from fmilin.support.kinds import containers_checked

MAX_PERIOD = 1000  # samples


class MapModel(NativeModel):
    """A model of a map, of which ``evaluate`` returns increments x[k+1] - x[k] as derivatives."""

    @property
    def sample_time(self) -> float:
        """Seconds between two samples."""
        return self.engine.sample_time * self.engine.repetitions

    @property
    def map_period(self) -> float:  # type: ignore[override]
        """The same, for functions that tell maps from models with rates in time."""
        return self.sample_time

    def next_states(self, point: OperatingPoint) -> FloatArray:
        """Return x[k+1] (N,) of a point."""
        return point.states + self.evaluate(point.time, point.states, point.inputs).derivatives

    def orbit(self, point: OperatingPoint, samples: int) -> FloatArray:
        """Return x[k] (samples + 1, N) from a point on, the inputs held.

        >>> model = DiscreteModel("halving", {"x": "x/2"}, sample_time=1.0, start={"x": 8.0})
        >>> model.orbit(model.start, 3).ravel()
        array([8., 4., 2., 1.])
        """
        states, h = [point.states], self.sample_time
        for k in range(samples):
            states.append(self.next_states(replace(point, time=point.time + k * h, states=states[-1])))
        return np.array(states)

    def iterate(self, period: int) -> Self:
        """Return the map of ``period`` samples together, the inputs held over them.

        Its fixed points are the periodic points of this model, its eigenvalues there their multipliers, and its sample
        time is ``period`` times as long. Outputs are those of the first sample.

        >>> import fmilin as fl
        >>> flip = DiscreteModel("flip", {"x": "3.2*x*(1 - x)"}, sample_time=1.0, start={"x": 0.5})
        >>> twice = flip.iterate(2)
        >>> point = fl.trim(twice, guess={"x": 0.5})
        >>> round(point["x"], 6), float(fl.linearize(twice, point).eigenvalues()[0].real.round(6))
        (0.513045, 0.16)
        """
        if not 1 <= period <= MAX_PERIOD:
            raise UsageError(f"The period {period} is not possible: give a whole number of samples, 1 to {MAX_PERIOD}.")
        engine = copy(self.engine)
        engine.repetitions = self.engine.repetitions * period
        return self._replace_choice(engine)

    def evaluate(self, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        """Return increments, outputs and residuals at a point; see :meth:`fmilin.Model.evaluate`."""
        first = super().evaluate(t, x, u)
        if self.engine.repetitions == 1:
            return first
        states, h = x + first.derivatives, self.engine.sample_time
        for k in range(1, self.engine.repetitions):
            states = states + super().evaluate(t + k * h, states, u).derivatives
        return Evaluation(states - x, first.outputs, first.residuals)

    def evaluate_points(self, t: FloatArray, x: FloatArray, u: FloatArray) -> Evaluation:
        """Return the same at many points; see :meth:`fmilin.Model.evaluate_points`."""
        first = super().evaluate_points(t, x, u)
        if self.engine.repetitions == 1 or not len(t):
            return first
        states, h = x + first.derivatives, self.engine.sample_time
        for k in range(1, self.engine.repetitions):
            states = states + super().evaluate_points(t + k * h, states, u).derivatives
        return Evaluation(states - x, first.outputs, first.residuals)

    def products(self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray) -> Evaluation | None:
        """Return exact directional derivatives of them; see ``HasDirectionalDerivatives``."""
        first = super().products(t, x, u, dx, du)
        if self.engine.repetitions == 1 or first is None:
            return first
        states, changes, h = x.copy(), dx.copy(), self.engine.sample_time
        for k in range(self.engine.repetitions):
            step = super().products(t + k * h, states, u, changes, du)
            if step is None:
                return None
            changes = changes + step.derivatives
            states = states + super().evaluate(t + k * h, states, u).derivatives
        return Evaluation(changes - dx, first.outputs, first.residuals)

    # Code that takes the equations themselves would take the increments for rates.

    def has_graph(self) -> bool:
        """Say that the equations are not those of a continuous model."""
        return False

    def in_graph(self) -> None:
        """Return None for the same reason."""
        return

    def exact_slopes(self, t: float, x: FloatArray, u: FloatArray) -> None:
        """Return None: directional derivatives are exact, too."""
        return

    def tangents(self, *_: object, **__: object) -> None:
        """Return None for the same reason."""
        return

    def second_order_form(self, t: float, x: FloatArray, u: FloatArray) -> None:
        """Return None: a map has none."""
        return

    def compile_for_evaluations(self, evaluations: int) -> Self:
        """Return itself."""
        return self


class DiscreteModel(MapModel, OdeModel):
    """x[k+1] = F(x[k], u[k], p) every ``sample_time`` seconds, with constraints that the map keeps.

    Expressions are texts, numbers or sympy expressions, as in :class:`fmilin.models.OdeModel`; of a function or a
    ``casadi.Function`` :meth:`from_function` makes a model. ``fl.trim`` finds fixed points, ``model.iterate(p)`` has
    the points of period p as fixed points, ``fl.linearize`` returns linear models with a ``sample_time``,
    ``fl.simulate`` runs the map, and ``fl.sweep`` varies anything. Functions that need rates in time reject it.

    Parameters
    ----------
    name : str
    next : mapping
        For each state, in their order, its value at the next sample.
    sample_time : float
        In seconds.
    inputs, parameters, outputs, start, labels
        As in :class:`fmilin.models.OdeModel`.
    constraints : sequence
        Expressions that are zero at every sample.

    Examples
    --------
    >>> import fmilin as fl
    >>> logistic = DiscreteModel(
    ...     "logistic", {"x": "r*x*(1 - x)"}, sample_time=1.0, parameters={"r": 2.8}, start={"x": 0.6}
    ... )
    >>> point = fl.trim(logistic)
    >>> lin = fl.linearize(logistic, point)
    >>> round(point["x"], 6), lin.A.round(6).tolist(), lin.sample_time, lin.stability().stable
    (0.642857, [[-0.8]], 1.0, True)
    """

    def __new__(cls, *_: object, **__: object) -> Self:
        """Return a model of this class: no map is a DAE."""
        return object.__new__(cls)

    @containers_checked
    def __init__(
        self,
        name: str,
        next: Mapping[Name, Expr],  # noqa: A002 - the contract's name
        *,
        sample_time: float,
        inputs: Sequence[Name] = (),
        parameters: Mapping[Name, float] | None = None,
        outputs: Mapping[str, Expr] | None = None,
        constraints: Sequence[Expr | SymbolicConstraint | Constraint] = (),
        start: Mapping[Name, float] | None = None,
        labels: Labels | None = None,
    ) -> None:
        if not isinstance(next, Mapping):
            raise UsageError(
                "'next' must give each state its value at the next sample: {'x': 'x + u'}. For a function use "
                "DiscreteModel.from_function."
            )
        period = _require_sample_time(name, sample_time)
        declaration = Declaration(name)
        states = declaration.declare(next, "a state")
        for group in (inputs, parameters or {}):
            declaration.declare(group, "an input or a parameter")
        increments: dict[Name, Expr] = {
            state: declaration.expression(value, f"the next value of '{state}'") - symbol
            for (state, value), symbol in zip(next.items(), states, strict=True)
        }
        super().__init__(
            name, increments, inputs=inputs, parameters=parameters, outputs=outputs, start=start, labels=labels,
            constraints=[keep_in_level(c) for c in constraints],
        )  # fmt: skip
        self.engine.sample_time = period

    @staticmethod
    def from_function(
        name: str,
        states: Mapping[str, float] | Signals,
        next: Callable[..., Any],  # noqa: A002 - as above
        *,
        sample_time: float,
        inputs: Sequence[str] | Signals = (),
        outputs: Mapping[str, Function] | None = None,
        constraints: Sequence[str | Constraint] = (),
        parameters: Mapping[str, float] | None = None,
        analytic: bool = False,
    ) -> DiscreteFunctionModel:
        """Return a model of a function ``next(t, x, u)`` or of a ``casadi.Function`` of (x, u).

        Derivatives of a ``casadi.Function`` are exact.

        Parameters
        ----------
        name : str
        states : mapping or Signals
            Names with start values, in the order of x.
        next : callable
            Returns the states at the next sample, shape (N,).
        sample_time : float
            In seconds.
        inputs, outputs, parameters, analytic
            As in :class:`fmilin.models.FunctionModel`.
        constraints : sequence
            Expressions that are zero at every sample.

        Returns
        -------
        DiscreteFunctionModel

        Examples
        --------
        >>> import fmilin as fl
        >>> model = DiscreteModel.from_function("decay", {"x": 1.0}, lambda t, x, u: 0.5 * x, sample_time=0.1)
        >>> round(float(fl.linearize(model, fl.trim(model)).A[0, 0]), 9)
        0.5
        """
        period = _require_sample_time(name, sample_time)
        model = DiscreteFunctionModel(
            name,
            states,
            _Increments(next),
            inputs=inputs,
            outputs=outputs,
            constraints=[keep_in_level(c) for c in constraints],
            parameters=parameters,
            analytic=analytic,
        )
        model.engine.sample_time = period
        return model


class DiscreteFunctionModel(MapModel, FunctionModel):
    """A sampled model of a function; :meth:`DiscreteModel.from_function` makes it."""

    def products(self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray) -> Evaluation | None:
        """Return exact directional derivatives: of a ``casadi.Function`` its own where outputs are states or inputs."""
        increments: Any = self.engine.rates  # type: ignore[attr-defined]
        if not increments.is_casadi or len(self.copies) < len(self.outputs) or self.constraints.observed:
            return super().products(t, x, u, dx, du)
        states, changes = x.copy(), dx.copy()
        for _ in range(self.engine.repetitions):
            J_x, J_u = increments.jacobian(states, u)
            changes = changes + J_x @ changes + J_u @ du
            states = states + increments(t, states, u)
        rows = [dx[copy.index] if copy.kind == "state" else du[copy.index] for _, copy in sorted(self.copies.items())]
        outputs = np.array(rows).reshape(len(self.outputs), dx.shape[1])
        residuals = self._differentiate_residuals((t, x, u), dx, du, np.empty((0, dx.shape[1])))
        return Evaluation(changes - dx, outputs, residuals)


class _Increments:
    """F(t, x, u) - x of a function or of a ``casadi.Function`` of (x, u)."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.is_casadi = type(function).__module__.startswith("casadi")
        self._jacobian: Any = None

    def __call__(self, t: float, x: NDArray[Any], u: NDArray[Any]) -> NDArray[Any]:
        """Return the increments."""
        if self.is_casadi:
            return np.asarray(self.function(x, u).full().ravel() - x)
        return np.asarray(np.asarray(self.function(t, x, u)) - x)

    def jacobian(self, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return their derivatives along x and u."""
        if self._jacobian is None:
            function: Any = self.function
            self._jacobian = function.jacobian()
        J_x, J_u = self._jacobian(x, u, np.zeros(len(x)))
        return J_x.full() - np.eye(len(x)), J_u.full()


def keep_in_level(constraint: Any) -> Any:
    """Return a constraint without a hidden one: the map keeps it as it is, and there is no velocity."""
    if isinstance(constraint, Constraint):
        return replace(constraint, level="velocity", rate=None)
    if isinstance(constraint, SymbolicConstraint):
        return replace(constraint, level="velocity")
    if isinstance(constraint, str):
        return Constraint.from_text(constraint, level="velocity")
    return SymbolicConstraint(constraint, level="velocity")


def _require_sample_time(name: str, sample_time: float) -> float:
    period = float(as_numbers(sample_time, f"The sample time of '{name}'"))
    if not (np.isfinite(period) and period > 0):
        raise UsageError(f"The sample time of '{name}' is {sample_time!r}: give a positive number of seconds.")
    return period
