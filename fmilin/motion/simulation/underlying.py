"""The underlying ODE x' = f(t, x) as it is (Spencer eq. 2.6): the invariants drift."""

from __future__ import annotations

from dataclasses import dataclass

from fmilin.ground.signals import FloatArray
from fmilin.motion.simulation.plant import Plant
from fmilin.motion.simulation.stabilization import IntegratedCoordinates, Stabilization

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
