"""Many points of one model, as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from fmilin.model.interface import OperatingPoint
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass


@dataclass(frozen=True, eq=False)
class PointBatch:
    """Points of one model: times (k,), states (k, N), inputs (k, nu), and parameters (k,) that differ, by name."""

    time: FloatArray
    states: FloatArray
    inputs: FloatArray
    parameters: Mapping[str, FloatArray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.time)

    def __getitem__(self, subset: Any) -> PointBatch:
        parameters = {name: values[subset] for name, values in self.parameters.items()}
        return PointBatch(self.time[subset], self.states[subset], self.inputs[subset], parameters)

    def joined(self, batch: PointBatch) -> PointBatch:
        """Return these points and batch behind them."""
        parameters = {
            name: np.concatenate((values, batch.parameters[name])) for name, values in self.parameters.items()
        }
        return PointBatch(
            np.concatenate((self.time, batch.time)),
            np.concatenate((self.states, batch.states)),
            np.concatenate((self.inputs, batch.inputs)),
            parameters,
        )


def batch_points(points: Sequence[OperatingPoint]) -> PointBatch:
    """Return points of one model as a batch."""
    return PointBatch(
        np.array([point.time for point in points]),
        np.array([point.states for point in points]),
        np.array([point.inputs for point in points]),
    )
