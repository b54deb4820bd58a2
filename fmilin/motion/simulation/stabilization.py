"""What all ways to integrate on a manifold have in common; and what is integrated without states."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from fmilin.ground.signals import FloatArray
from fmilin.motion.simulation.plant import Plant


@dataclass(frozen=True, slots=True)
class Switch:
    """A change of independent coordinates on the way."""

    time: float  # in seconds
    before: tuple[str, ...]  # the coordinates
    after: tuple[str, ...]  # the coordinates
    # condition_before, condition_after: their condition numbers at this point
    condition_before: float
    condition_after: float


@dataclass(frozen=True, slots=True)
class Moved:
    """Where to go on after an accepted step, when not from its end."""

    z: FloatArray
    is_small: bool  # whether z is the same quantity as before, corrected by about the error of a step


class Stabilization(ABC):
    """A choice of what to integrate; :meth:`start` begins a run."""

    @abstractmethod
    def start(self, plant: Plant) -> IntegratedCoordinates:
        """Prepare a run of ``plant``."""


class IntegratedCoordinates:
    """What is integrated in a run: z with z' = rates(t, z), here all states as they are, and the states of z."""

    def __init__(self, plant: Plant) -> None:
        self.plant = plant
        self.switches: list[Switch] = []
        self.projections = 0

    @property
    def sizes(self) -> FloatArray:
        """Sizes of z."""
        return self.plant.scales

    def begin(self, t: float, x: FloatArray) -> FloatArray:
        """Return z for the states x (N,), from which the integration goes on."""
        del t
        return x.copy()

    def rates(self, t: float, z: FloatArray) -> FloatArray:
        """Return z'; NaN where there is none, with the reason in ``plant.trouble``."""
        return self.plant.f(t, z)

    def states(self, t: float, z: FloatArray) -> FloatArray:
        """Return the states that belong to z, shape (N,)."""
        del t
        return z

    def accepted(self, t: float, z: FloatArray) -> Moved | None:
        """Take note of an accepted step; return where to go on when not from its end."""

    def rescue(self, t: float, z: FloatArray) -> Moved | None:
        """Take note that no step can be made from here; return another z for the same point, or None."""


class Clocked(IntegratedCoordinates):
    """Another stabilization without coordinates (no states, or all motion prescribed), with one that never changes."""

    def __init__(self, inner: IntegratedCoordinates) -> None:
        super().__init__(inner.plant)
        self._inner = inner
        self._nothing: FloatArray = np.empty(0)
        self.switches = inner.switches

    @property
    def sizes(self) -> FloatArray:
        """Return one."""
        return np.ones(1)

    def begin(self, t: float, x: FloatArray) -> FloatArray:
        """Return a zero."""
        self._nothing = self._inner.begin(t, x)
        return np.zeros(1)

    def rates(self, t: float, z: FloatArray) -> FloatArray:
        """Return a zero."""
        del t, z
        return np.zeros(1)

    def states(self, t: float, z: FloatArray) -> FloatArray:
        """Return the states of this time, shape (N,)."""
        del z
        return self._inner.states(t, self._nothing)

    def accepted(self, t: float, z: FloatArray) -> Moved | None:
        """Pass on."""
        del z
        self._inner.accepted(t, self._nothing)
        return None
