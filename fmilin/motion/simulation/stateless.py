"""What an integrator gets to integrate when there is nothing: a clock that stands still."""

from __future__ import annotations

import numpy as np

from fmilin.ground.signals import FloatArray
from fmilin.motion.simulation.stabilization import IntegratedCoordinates, Moved

__all__ = ["Clocked"]


class Clocked(IntegratedCoordinates):
    """Another stabilization that has no coordinates left, with one that never changes.

    ``inner``: of a model without states, or of a mechanism whose motion is prescribed completely.
    """

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
