"""The fields of the linear model of a repeated point that are computed when they are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from fmilin.linear_model.arrays import ALONG_INPUTS, MATRICES, Mask
from fmilin.linear_model.builder import name_point
from fmilin.linear_model.model import Accuracy, EntryErrors
from fmilin.model.interface import OperatingPoint
from fmilin.model.point_derivatives import ValuesWithJacobian
from fmilin.signals import FloatArray, Signals
from fmilin.support.dataclass import dataclass
from fmilin.tolerances import EPS


class MatrixRowErrors(NamedTuple):
    """Errors of the rows of the matrices, times the sizes of their columns."""

    A: FloatArray  # (N,)
    B: FloatArray  # (N,)
    C: FloatArray  # (ny,)
    D: FloatArray  # (ny,)
    T: FloatArray  # (N,)


@dataclass(frozen=True, eq=False)
class ModelSignals:
    """The signals of a model, without the model: a linear model that is kept keeps no FMU open."""

    states: Signals
    inputs: Signals
    outputs: Signals


@dataclass(frozen=True, eq=False)
class RepeatedFields:
    """Computes fields from arrays that no user of the linear model can write to."""

    signals: ModelSignals
    coordinates: Signals
    point: OperatingPoint
    answer: ValuesWithJacobian
    scales: FloatArray  # of states, then inputs
    row_errors: MatrixRowErrors
    structural_zeros: Mapping[str, Mask]  # by matrix

    def compute_field(self, name: str) -> object:
        """Return the value of a field of the linear model."""
        compute = _FIELDS.get(name)
        if compute is None:
            raise AttributeError(f"'LinearModel' object has no attribute '{name}'")
        return compute(self)

    def read_matrix(self, name: str) -> FloatArray:
        """Return a matrix, not to be written to."""
        count, J = len(self.point.states), self.answer.J
        if name == "T":
            return np.eye(count)
        rows = J[:count] if name in "AB" else J[count:]
        return rows[:, count:] if name in ALONG_INPUTS else rows[:, :count]

    def compute_states(self) -> Signals:
        """Return the coordinates, which start at the point."""
        return self.coordinates.with_start(self.point.states.tolist())

    def compute_errors(self) -> EntryErrors:
        """Return the errors of the entries; those that are zero by the structure of the model have none."""
        count = len(self.point.states)
        errors = {}
        for name in MATRICES:
            sizes = self.scales[count:] if name in ALONG_INPUTS else self.scales[:count]
            rows: FloatArray = getattr(self.row_errors, name)
            errors[name] = rows[:, None] / sizes
            if name in self.structural_zeros:
                errors[name][self.structural_zeros[name] & (self.read_matrix(name) == 0)] = 0.0
        return EntryErrors(**errors)

    def compute_accuracy(self) -> Accuracy:
        """Return the largest error of each matrix over its largest entry."""
        errors = self.compute_errors()
        relative = {}
        for name in MATRICES:
            largest = float(np.abs(self.read_matrix(name)).max(initial=0.0))
            worst = float(getattr(errors, name).max(initial=0.0))
            relative[name] = worst / largest if largest > 0 else worst
        f0 = EPS if self.answer.rates.any() else 0.0
        return Accuracy(**relative, f0=f0, constraint_residual=0.0, conditioning=1.0)


_FIELDS: Mapping[str, Callable[[RepeatedFields], object]] = {
    "T": lambda fields: np.eye(len(fields.point.states)),
    "T_u": lambda fields: np.zeros((len(fields.point.states), len(fields.point.inputs))),
    "states": RepeatedFields.compute_states,
    "errors": RepeatedFields.compute_errors,
    "accuracy": RepeatedFields.compute_accuracy,
    "point": lambda fields: name_point(fields.signals, fields.point, fields.answer.outputs),
}
