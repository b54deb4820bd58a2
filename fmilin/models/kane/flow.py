"""The procedure along a trajectory, for Lyapunov exponents: A at each point in states that can be switched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fmilin.model.interface import OperatingPoint
from fmilin.signals import FloatArray

if TYPE_CHECKING:
    from fmilin.models.kane.model import KaneModel
    from fmilin.models.kane.partition import Partition

__all__ = ["KaneFlow", "KaneTangent"]


@dataclass(frozen=True, slots=True)
class KaneTangent:
    """The linear model at one point: x', A, dx = T dy, and the condition number of the independent states."""

    rates: FloatArray
    A: FloatArray
    T: FloatArray
    condition_number: float


class KaneFlow:
    """The linear models of a KaneModel along a trajectory, inputs held."""

    def __init__(self, model: KaneModel, inputs: FloatArray) -> None:
        self._model, self._inputs = model, inputs
        self._partitions: dict[tuple[int, ...], Partition] = {}

    def choose(self, t: float, x: FloatArray) -> tuple[int, ...]:
        """Return the states that pivoting keeps."""
        return self._model.best_partition(OperatingPoint(t, x, self._inputs)).states

    def at(self, t: float, x: FloatArray, independent: Sequence[int]) -> KaneTangent:
        """Return the linear model at a point.

        Raises
        ------
        NumericalError
            When the independent states do not determine the others there.
        """
        key = tuple(independent)
        if key not in self._partitions:
            self._partitions[key] = self._model.partition([self._model.states.names[i] for i in key])
        found = self._model.matrices(OperatingPoint(t, x, self._inputs), independent=self._partitions[key])
        return KaneTangent(found.rates, found.A, found.T, found.condition_number)
