"""The underlying ODE x' = f(t, x) as it is (Spencer eq. 2.6): the invariants drift."""

from __future__ import annotations

from dataclasses import dataclass

from fmilin.signals import FloatArray
from fmilin.simulation.plant import Plant
from fmilin.simulation.stabilization import IntegratedCoordinates, Stabilization

__all__ = ["Underlying"]


@dataclass(frozen=True, slots=True)
class Underlying(Stabilization):
    """Integrate all states and do nothing about the invariants."""

    def start(self, plant: Plant) -> IntegratedCoordinates:
        """Prepare a run of ``plant``."""
        return _Underlying(plant)


class _Underlying(IntegratedCoordinates):
    def rates(self, t: float, z: FloatArray) -> FloatArray:
        return self.plant.f(t, z)
