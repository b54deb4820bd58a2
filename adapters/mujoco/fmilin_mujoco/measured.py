"""A tree as a native mechanism with linear models from MuJoCo's engine where that takes less time.

Everything else (parameters, sweeps, simulation, FMUs) stays with the mechanism. The time of each method is measured
once per model, when the first linear model is computed; both agree to the errors that they state.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Self

import numpy as np

from fmilin import Evaluation
from fmilin.adapters import ExactSlopes, InterfaceChoice, MechanismEngine, NativeModel
from fmilin.models.mechanism import Mechanism
from fmilin.signals import FloatArray
from fmilin_mujoco.engine import MujocoEngine
from fmilin_mujoco.stated import EngineSlopes, MujocoModel

__all__ = ["MeasuredEngine", "MeasuredMechanism"]

WORTH = 1.3
"""How many times as long the mechanism takes before the engine is asked instead: noise does not decide."""
MAX_MEASURED = 500
"""States of a model up to which both ways are tried: MuJoCo's loop in C over many bodies is the quicker one."""
VISITS = 6
"""Evaluations of values per evaluation of all derivatives, as in a checked linear model."""
NOTHING = np.empty(0)


class MeasuredEngine(MechanismEngine):
    """A described mechanism; where ``through`` is set, MuJoCo's engine says the same.

    Attributes
    ----------
    through : MujocoEngine, optional
    engine_here : MujocoEngine, optional
        As it is seen at a point: what linear models come from there.
    """

    through: MujocoEngine | None = None
    engine_here: MujocoEngine | None = None

    def resolve_limits(self, t: float, x: FloatArray, u: FloatArray) -> Self:
        """Return the mechanism as it is seen at a point, by whichever way is quicker."""
        if self.through is None or not self._is_slower:
            return super().resolve_limits(t, x, u)
        engine_here = self.through.resolve_limits(t, x, u)
        if id(engine_here) not in self._views:
            view = self._views[id(engine_here)] = copy(self)
            view.engine_here, view.batches, view.compilable, view.names_limits = (
                engine_here,
                False,
                False,
                engine_here.names_limits,
            )
            view.info = replace(self.info, tool=f"{self.info.tool}, derivatives by its engine, which were faster")
            view.notes = (*self.notes, *engine_here.notes[len(self.through.notes) :])
        return self._views[id(engine_here)]

    @property
    def _is_slower(self) -> bool:
        """Whether the mechanism takes longer than the engine: of a large model it does, and to try it is dear."""
        return len(self.states) > MAX_MEASURED or self.seconds[0] >= WORTH * self.seconds[1]

    @cached_property
    def _views(self) -> dict[int, Self]:
        return {}

    @cached_property
    def seconds(self) -> tuple[float, float]:
        """Processor time of what a linear model takes, by the mechanism and by the engine: measured once."""
        assert self.through is not None  # noqa: S101 - asked for by seen_at() alone
        return _seconds(Mechanism._of(self, InterfaceChoice())), _seconds(MujocoModel(self.through))

    def with_parameters(self, values: Mapping[str, float]) -> Self:
        """Return the mechanism with other values, which the engine does not have."""
        other = super().with_parameters(values)
        for name in ("through", "engine_here", "batches", "compilable", "seconds"):
            vars(other).pop(name, None)
        return other


class MeasuredMechanism(Mechanism):
    """The model of a :class:`MeasuredEngine`."""

    engine: MeasuredEngine

    @property
    def used_alone(self) -> tuple[object, ...]:
        """MuJoCo's engine, which all views share."""
        return () if self.engine.through is None else (self.engine.through,)

    @cached_property
    def _engine_model(self) -> MujocoModel | None:
        """The engine's model with the same inputs and outputs; None where the mechanism is asked."""
        engine_here, names = self.engine.engine_here, [quantity.signal.name for quantity in self._chosen]
        if (
            engine_here is None
            or not self._has_own_constraints
            or not all(name in engine_here.available for name in names)
        ):
            return None
        return MujocoModel._of(engine_here, InterfaceChoice(self._choice.inputs, tuple(names)))

    def evaluate(self, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        """Return derivatives, outputs and residuals at a point."""
        if self._engine_model is None or x.ndim > 1:
            return super().evaluate(t, x, u)
        return replace(self._engine_model.evaluate(t, x, u), residuals=self._residuals(t, x, u, NOTHING))

    def products(self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray) -> Evaluation | None:
        """Return directional derivatives along the columns of (dx, du)."""
        slopes = None if self._engine_model is None else self._engine_model.products(t, x, u, dx, du)
        if slopes is None:
            return super().products(t, x, u, dx, du)
        return replace(slopes, residuals=self._differentiate_residuals((t, x, u), dx, du, np.empty((0, dx.shape[1]))))

    def exact_slopes(self, t: float, x: FloatArray, u: FloatArray) -> ExactSlopes | None:
        """Return the derivatives at a point, by either way."""
        n, k = len(x), len(u)
        slopes = None if self._engine_model is None else self.products(t, x, u, np.eye(n, n + k), np.eye(n + k)[n:])
        engine_here = self.engine.engine_here
        if slopes is None or engine_here is None or self._engine_model is None:
            return super().exact_slopes(t, x, u)
        errors = self._engine_model.slope_errors(t, x, u)
        return EngineSlopes(self.evaluate(t, x, u), slopes, errors, engine_here.compiled.nq, smooth=self._is_smooth)


def _seconds(model: NativeModel) -> float:
    """Return the processor time of all derivatives and some evaluations near the start; the first of three warms up."""
    x, u = model.start.states, model.start.inputs
    taken = []
    for i in range(3):
        begin = time.process_time()
        for j in range(VISITS):
            nearby = x.copy()
            nearby[-1] += 1e-9 * (1 + j + VISITS * i)  # an engine may know a point again
            if not j:
                model.exact_slopes(0.0, nearby, u)
            model.evaluate(0.0, nearby, u)
        taken.append(time.process_time() - begin)
    return min(taken[1:])
