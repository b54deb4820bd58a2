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

    def __getitem__(self, some: Any) -> PointBatch:
        parameters = {name: values[some] for name, values in self.parameters.items()}
        return PointBatch(self.time[some], self.states[some], self.inputs[some], parameters)

    def joined(self, others: PointBatch) -> PointBatch:
        """Return these points and others behind them."""
        parameters = {
            name: np.concatenate((values, others.parameters[name])) for name, values in self.parameters.items()
        }
        return PointBatch(
            np.concatenate((self.time, others.time)),
            np.concatenate((self.states, others.states)),
            np.concatenate((self.inputs, others.inputs)),
            parameters,
        )


def batch_points(points: Sequence[OperatingPoint]) -> PointBatch:
    """Return points of one model as a batch."""
    return PointBatch(
        np.array([point.time for point in points]),
        np.array([point.states for point in points]),
        np.array([point.inputs for point in points]),
    )
