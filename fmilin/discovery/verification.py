"""Beside the samples: whether an invariant is kept at other consistent points, under other inputs, along a motion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fmilin.discovery.invariant import Invariant
from fmilin.discovery.projection import projected
from fmilin.discovery.sampling import Sampler
from fmilin.ground.signals import FloatArray
from fmilin.model.stepping import Stepped

__all__ = ["Residuals", "Verification"]

POINTS = 10
STEPS = 20

FURTHEST = 0.02
"""How far the fastest state moves in one step, in its size."""

LATER = 0.7
"""Seconds after the point, where the other inputs are looked at: what depends on time is kept at one time only."""

TINY = 1e-300


class Residuals(NamedTuple):
    """The largest h along a motion, H f and H f_u, relative to the sizes of their terms.

    NaN where there is nothing that they could be seen at.
    """

    value: float
    along_motion: float
    along_inputs: float


class Verification:
    """Consistent points that no search has seen, and a short motion with inputs that jump."""

    def __init__(self, sampler: Sampler, manifold: Sequence[Invariant]) -> None:
        self._sampler = sampler
        self._x = projected(sampler.states(4 * POINTS), manifold, sampler.sizes)[:POINTS]
        self._f = sampler.held_rates(self._x)
        later = 0.0 if isinstance(sampler.model, Stepped) else LATER
        self._excited = sampler.rates(self._x, sampler.inputs(len(self._x)), later=later)
        fine = np.isfinite(self._f).all(axis=1) & np.isfinite(self._excited).all(axis=1)
        self._x, self._f, self._excited = self._x[fine], self._f[fine], self._excited[fine]
        self._motion = self._moved(manifold)

    def of(self, h: Invariant) -> Residuals:
        """Return how well h is kept."""
        if not len(self._x):
            return Residuals(np.nan, np.nan, np.nan)
        size = np.maximum(h.size(self._motion), h.size(self._motion).max(initial=TINY))
        value = float((np.abs(h.values(self._motion)) / size).max())
        change = self._sampler.changed(self._excited, self._f)
        moved = change.any(axis=1)
        through = h.rates(self._x[moved], change[moved]) if moved.any() else np.full(1, 0.0)
        return Residuals(value, float(h.rates(self._x, self._f).max()), float(through.max()))

    def _moved(self, manifold: Sequence[Invariant]) -> FloatArray:
        """Return the states of a short motion from the point, by Runge's and Kutta's rule."""
        sampler = self._sampler
        x = projected(sampler.point.states[None], manifold, sampler.sizes)
        path = [x[0] if len(x) else sampler.point.states]
        if not manifold:
            return np.array(path)
        for u in np.repeat(sampler.inputs(STEPS // 5), 5, axis=0):
            x = path[-1]
            k1 = self._rates(x, u)
            h = FURTHEST / max(float((np.abs(k1) / sampler.sizes).max(initial=0.0)), 1.0)
            k2 = self._rates(x + h / 2 * k1, u)
            k3 = self._rates(x + h / 2 * k2, u)
            k4 = self._rates(x + h * k3, u)
            following = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            if not np.isfinite(following).all():
                break
            path.append(following)
        return np.array(path)

    def _rates(self, x: FloatArray, u: FloatArray) -> FloatArray:
        found: FloatArray = self._sampler.rates(x[None], u[None])[0]
        return found
