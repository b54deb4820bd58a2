"""Baumgarte's stabilization: the manifold attracts. Spencer eqs. (3.8) and (3.9).

Where every state is a position or its velocity (q' = v), the constraints on the accelerations become

    0 = g'' + 2 alpha g' + beta^2 g,

for a nonholonomic constraint 0 = a' + 2 alpha a. A model that can do this itself (Lagrange's equations, in the
metric of the masses) is asked to; any other one gets the correction of its accelerations of least norm,
v' = f_v - D (G D)^+ (2 alpha g' + beta^2 g), with D the sizes of the velocities. States of other kinds are
attracted at first order, x' = f - alpha D (H D)^+ h, so that h' = -alpha h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from fmilin.ground.errors import UsageError
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import RANK
from fmilin.model.interface import Model
from fmilin.motion.simulation.plant import Plant
from fmilin.motion.simulation.stabilization import IntegratedCoordinates, Stabilization

__all__ = ["Baumgarte"]


@dataclass(frozen=True, slots=True)
class Baumgarte(Stabilization):
    """Integrate all states with rates that lead back to the manifold."""

    # alpha, beta: in 1/s. alpha = beta is critical damping; the thesis uses 10. Steps must resolve them
    alpha: float = 10.0
    beta: float = 10.0

    def __post_init__(self) -> None:
        if not all(np.isfinite(c) and c >= 0 for c in (self.alpha, self.beta)):
            raise UsageError(f"Baumgarte's alpha and beta are rates, 0 or more, not {self.alpha:g} and {self.beta:g}.")

    def start(self, plant: Plant) -> IntegratedCoordinates:
        """Prepare a run of ``plant``."""
        own = plant.model.source.stabilized(self.alpha, self.beta)
        if own is not None:
            return _OwnStabilization(plant, own)
        if 2 * len(plant.invariants.pairs) == len(plant.scales) and plant.scales.size:
            return _SecondOrder(plant, self)
        return _FirstOrder(plant, self)


class _OwnStabilization(IntegratedCoordinates):
    def __init__(self, plant: Plant, stabilized: Model) -> None:
        super().__init__(plant)
        plant.replace_dynamics(stabilized)

    def rates(self, t: float, z: FloatArray) -> FloatArray:
        return self.plant.f(t, z)


class _FirstOrder(IntegratedCoordinates):
    def __init__(self, plant: Plant, options: Baumgarte) -> None:
        super().__init__(plant)
        self._alpha = options.alpha

    def rates(self, t: float, z: FloatArray) -> FloatArray:
        f = self.plant.f(t, z)
        if not len(self.plant.invariants) or not np.isfinite(f).all():
            return f
        h, H = self.plant.h(t, z), self.plant.gradient(t, z).H
        return f - self._alpha * _least(H, self.plant.scales, h)


class _SecondOrder(IntegratedCoordinates):
    """Corrects the accelerations alone, by the rows of velocity level."""

    def __init__(self, plant: Plant, options: Baumgarte) -> None:
        super().__init__(plant)
        self._alpha, self._beta = options.alpha, options.beta
        invariants = plant.invariants
        rows = plant.model.constraints.rows
        declared = len(plant.model.constraints.declared)
        own_rates = iter(range(declared, len(rows)))
        hidden = iter(range(invariants.declared, len(invariants)))
        self._position: dict[int, int] = {}  # the row of g by the row of its rate
        for i, row in enumerate(rows[:declared]):
            if row.level == "position":
                self._position[next(hidden) if row.needs_rate else next(own_rates)] = i
        nonholonomic = [i for i, row in enumerate(rows[:declared]) if row.level == "velocity"]
        self._rows = [*self._position, *nonholonomic]
        self._velocities = np.array(sorted(invariants.pairs.values()), dtype=np.intp)

    def rates(self, t: float, z: FloatArray) -> FloatArray:
        f = self.plant.f(t, z)
        if not self._rows or not np.isfinite(f).all():
            return f
        h, H = self.plant.h(t, z), self.plant.gradient(t, z).H
        c = np.array([2 * self._alpha * h[i] + self._beta**2 * h[self._position[i]] if i in self._position
                      else 2 * self._alpha * h[i] for i in self._rows])  # fmt: skip
        v = self._velocities
        f[v] -= _least(H[self._rows][:, v], self.plant.scales[v], c)
        return f


def _least(G: FloatArray, D: FloatArray, c: FloatArray) -> FloatArray:
    """Return the least D^-1 a with G a = c."""
    result: FloatArray = D * (linalg.pinv(G * D, rtol=RANK, check_finite=False) @ c)
    return result
