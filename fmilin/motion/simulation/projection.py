"""The underlying ODE, every accepted step projected onto the manifold: Spencer eqs. (3.10) and (3.11)."""

from __future__ import annotations

from dataclasses import dataclass

from fmilin.ground.errors import UsageError
from fmilin.ground.signals import FloatArray
from fmilin.motion.simulation.plant import Plant
from fmilin.motion.simulation.projector import Projector
from fmilin.motion.simulation.stabilization import IntegratedCoordinates, Moved, Stabilization

__all__ = ["Projection"]


@dataclass(frozen=True, slots=True)
class Projection(Stabilization):
    """Integrate all states; after every accepted step go to the nearest point of the manifold."""

    # whether the energy that :func:`fmilin.simulate` is told to record is an invariant, too. Only for models that lose
    # and gain none
    keeps_energy: bool = False
    tolerance: float = 1e-13  # distance from the manifold, in sizes of the states, that is left alone

    def __post_init__(self) -> None:
        if not 0 <= self.tolerance < 1:
            raise UsageError(f"The tolerance of the projection is 0 or more and less than 1, not {self.tolerance:g}.")

    def start(self, plant: Plant) -> IntegratedCoordinates:
        """Prepare a run of ``plant``."""
        if self.keeps_energy and plant.energy is None:
            raise UsageError("To keep the energy it must be known: name an output or an expression, energy=...")
        return _Projected(plant, Projector(plant, self.tolerance, keeps_energy=self.keeps_energy))


class _Projected(IntegratedCoordinates):
    def __init__(self, plant: Plant, projector: Projector) -> None:
        super().__init__(plant)
        self._projector = projector

    def begin(self, t: float, x: FloatArray) -> FloatArray:
        return self._projector(t, x)

    def rates(self, t: float, z: FloatArray) -> FloatArray:
        return self.plant.f(t, z)

    def states(self, t: float, z: FloatArray) -> FloatArray:
        return self._projector(t, z)

    def accepted(self, t: float, z: FloatArray) -> Moved | None:
        x = self._projector(t, z)
        if x is z:
            return None
        self.projections += 1
        return Moved(x, is_small=True)
