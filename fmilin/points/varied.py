"""A model at a point, with other values of some parameters, the point following."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from fmilin.ground.errors import NumericalError, UsageError
from fmilin.ground.signals import FloatArray
from fmilin.linear_model.builder import with_parameters_as_inputs
from fmilin.linear_model.model import LinearModel
from fmilin.linearization.procedure import linearize
from fmilin.manifold.operating_points import assembled_from, model_at, operating_point
from fmilin.model.interface import Model, OperatingPoint
from fmilin.points.procedure import search
from fmilin.points.report import TrimmedPoint

Box = Mapping[str, tuple[float, float]]


class VariedModel:
    """Linear models over a box of parameters: a trimmed point is trimmed again, others keep independent states.

    Parameters of the box are counted as p = middle + half q, q in [-1, 1].
    """

    def __init__(self, model: Model, point: OperatingPoint | None, box: Box) -> None:
        for name, limits in box.items():
            if len(limits) != 2 or not np.isfinite(limits).all() or not limits[0] < limits[1]:
                raise UsageError(f"The range of '{name}' is {limits}: give its lowest and its highest value.")
        if not box:
            raise UsageError("No parameter may vary: give a mapping of names to (lowest, highest).")
        self.model, self.box = model, dict(box)
        low, high = np.array([*box.values()], dtype=np.float64).T
        self.middle, self.half = (low + high) / 2, (high - low) / 2
        self.point = operating_point(model) if point is None else point
        self._states = linearize(model, self.point).states.names

    def values(self, q: FloatArray) -> dict[str, float]:
        """Return the parameters, by name."""
        return dict(zip(self.box, (self.middle + self.half * q).tolist(), strict=True))

    def q_of(self, linear: LinearModel) -> FloatArray:
        """Return where a linear model with derivatives by the parameters stands."""
        values: FloatArray = np.array([linear.derivatives[name].value for name in self.box])
        return np.asarray((values - self.middle) / self.half)

    def at(self, values: Mapping[str, float]) -> tuple[Model, OperatingPoint]:
        """Return the model and the point with other parameters, which are inputs where these are what can be changed.

        Other parameters of a model stand in the point: what was made of the model's graph serves for all of them.
        """
        model, point = self.model, self.point
        if model.moves_parameters:
            model, point = with_parameters_as_inputs(model, point, [n for n in values if n not in model.parameters])
        if isinstance(point, TrimmedPoint) and point.request is not None:
            request = replace(point.request, fixed={**point.request.fixed, **values})
            guess = zip(model.states.names, point.states.tolist(), strict=True)
            return model, search(model, request, {n: v for n, v in guess if n not in request.fixed})
        inputs = point.inputs.copy()
        for name in [name for name in values if model.inputs.has(name)]:
            inputs[model.inputs.index_of(name)] = values[name]
        own = {name: float(value) for name, value in values.items() if not model.inputs.has(name)}
        at = OperatingPoint(point.time, point.states, inputs, {**point.parameters, **own})
        changed = model_at(model, at)
        if not len(model.constraints):
            return model, at
        kept = {n: float(point.states[model.states.index_of(n)]) for n in self._states}
        return model, replace(assembled_from(changed, at.time, at.states, inputs, kept), parameters=at.parameters)

    def linear(self, values: Mapping[str, float], *, derivatives: bool = True) -> LinearModel:
        """Return the linear model there, in the same coordinates, with its derivatives by the box's parameters."""
        kept = self._states if len(self.model.constraints) else None
        names, inputs = list(self.box) if derivatives else [], self.model.inputs.names
        try:
            return linearize(*self.at(values), independent=kept, inputs=inputs, parameters=names)
        except NumericalError as error:
            where = ", ".join(f"{name} = {value:.6g}" for name, value in values.items())
            raise NumericalError(f"With {where}: {error}", variable=error.variable) from None
