"""The numbers that are solved for, as one scaled vector z."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fmilin.ground.signals import FloatArray
from fmilin.model.interface import Model
from fmilin.points.request import TrimRequest, quantity

__all__ = ["Place", "Unknowns"]


@dataclass(frozen=True, eq=False)
class Place:
    """A point with the model that belongs to it: its parameters may be among the unknowns."""

    model: Model
    time: float
    states: FloatArray
    inputs: FloatArray
    parameters: Mapping[str, float]
    """Those that were fixed or solved for."""


class Unknowns:
    """z: the free states, inputs and parameters, each divided by its size.

    Shapes: scales (n,), low, high (n,). ``start``: values of everything; those of the unknowns are the guess. ``z0``
    (n,): the guess, inside the bounds. ``states``, ``state_columns``: which states are free, and their places in z.
    """

    def __init__(self, start: Place, request: TrimRequest) -> None:
        self.start = start
        model = start.model
        fixed = request.fixed
        self.states = np.array([i for i, name in enumerate(model.states.names) if name not in fixed], dtype=np.intp)
        kinds = {name: quantity(model, name) for name in request.free}
        self.inputs = np.array([i for kind, i in kinds.values() if kind == "input"], dtype=np.intp)
        self.parameters = tuple(name for name, (kind, _) in kinds.items() if kind == "parameter")
        n, k = len(self.states), len(self.inputs)
        self.state_columns, self.input_columns = np.arange(n), np.arange(n, n + k)
        states, inputs = model.states.select(self.states), model.inputs.select(self.inputs)
        self.names = (*states.names, *inputs.names, *self.parameters)
        self.units = (*states.units, *inputs.units, *[""] * len(self.parameters))
        values = np.concatenate(
            (start.states[self.states], start.inputs[self.inputs], [model.parameters[name] for name in self.parameters])
        )
        sizes = np.abs(values[n + k :])
        self.scales = np.concatenate(
            (
                model.states.scales(start.states)[self.states],
                model.inputs.scales(start.inputs)[self.inputs],
                np.where(sizes > 0, sizes, 1.0),
            )
        )
        bounds = np.array([request.bounds.get(name, (-np.inf, np.inf)) for name in self.names]).reshape(-1, 2)
        self.low, self.high = bounds[:, 0] / self.scales, bounds[:, 1] / self.scales
        self.z0 = np.clip(values / self.scales, self.low, self.high)
        self._models: dict[tuple[float, ...], Model] = {}

    def __len__(self) -> int:
        return len(self.names)

    def resize_inputs(self, sizes: FloatArray) -> None:
        """Measure the free inputs in other sizes, (k,); those given as 0 keep theirs."""
        columns = self.input_columns[sizes > 0]
        ratio = sizes[sizes > 0] / self.scales[columns]
        self.scales[columns] *= ratio
        for part in (self.low, self.high, self.z0):
            part[columns] /= ratio

    def at(self, z: FloatArray) -> Place:
        """Return the point that z means."""
        values = z * self.scales
        x, u = self.start.states.copy(), self.start.inputs.copy()
        x[self.states] = values[self.state_columns]
        u[self.inputs] = values[self.input_columns]
        found = dict(zip(self.parameters, values[len(values) - len(self.parameters) :].tolist(), strict=True))
        return Place(self._model(found), self.start.time, x, u, {**self.start.parameters, **found})

    def _model(self, found: Mapping[str, float]) -> Model:
        """Return the model with these parameters; a few are kept, because making one may cost."""
        if not found:
            return self.start.model
        key = tuple(found.values())
        if key not in self._models:
            if len(self._models) >= 8:
                self._models.pop(next(iter(self._models)))
            self._models[key] = self.start.model.with_parameters(found)
        return self._models[key]
