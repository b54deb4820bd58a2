"""Samples that are kept: libraries of any kind are searched on them, and more are asked for only where needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fmilin.discovery.invariant import Invariant
from fmilin.discovery.library import Library
from fmilin.discovery.projection import projected
from fmilin.discovery.sampling import Sampler
from fmilin.ground.signals import FloatArray

__all__ = ["ExcitedRates", "Samples"]

MORE_THAN_TERMS = 1.2
"""Samples per term, and some more."""

EXCITED = 16
"""Points at which the inputs are moved, besides as many as there are candidates."""


@dataclass(frozen=True)
class ExcitedRates:
    """What inputs do at some points: f(x, u) - f(x, u0)."""

    x: FloatArray  # shape (m, N)
    f: FloatArray  # shape (m, N)


@dataclass
class Samples:
    """Random states and the rates there, with the inputs of the point and with others."""

    sampler: Sampler
    manifold: Sequence[Invariant] = ()  # zero at all samples; none: samples everywhere
    x: FloatArray = field(init=False)
    f: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        n = len(self.sampler.reach)
        self.x, self.f = np.empty((0, n)), np.empty((0, n))

    def for_terms(self, count: int) -> tuple[FloatArray, FloatArray]:
        """Return states and rates, each (m, N), enough for ``count`` terms."""
        wanted = int(MORE_THAN_TERMS * count) + 10
        for _ in range(6):
            missing = wanted - len(self.x)
            if missing <= 0:
                break
            x = projected(self.sampler.states(missing), self.manifold, self.sampler.sizes)
            f = self.sampler.held_rates(x)
            fine = np.isfinite(f).all(axis=1)
            self.x, self.f = np.vstack((self.x, x[fine])), np.vstack((self.f, f[fine]))
        return self.x[:wanted], self.f[:wanted]

    def rows(self, library: Library) -> FloatArray:
        """Return Dphi f, shape (m, K), each row in its size; no rows where the model answers too seldom."""
        x, f = self.for_terms(len(library))
        if len(x) <= len(library):
            return np.empty((0, len(library)))
        rows = library.rates(x, f)
        found: FloatArray = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
        return found

    def excited(self, count: int, single: int | None = None) -> ExcitedRates:
        """Return what random inputs, or a ``single`` one, change of the rates at some of the points."""
        m = min(count + EXCITED, len(self.x))
        x, u = self.x[:m], self.sampler.inputs(m)
        if single is not None:
            moved = u[:, single].copy()
            u = np.tile(self.sampler.point.inputs, (m, 1))
            u[:, single] = moved
        f = self.sampler.changed(self.sampler.rates(x, u), self.f[:m])
        fine = np.isfinite(f).all(axis=1)
        return ExcitedRates(x[fine], f[fine])
