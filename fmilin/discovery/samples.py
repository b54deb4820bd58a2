"""States, and the rates there, on which candidates are searched: anywhere, on the manifold, at rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fmilin.discovery.invariant import Invariant, projected
from fmilin.discovery.library import Library
from fmilin.discovery.sampler import Sampler
from fmilin.ground.signals import FloatArray

MORE_THAN_TERMS = 1.2  # samples per term, and some more
EXCITED = 16  # points at which the inputs are moved, besides as many as there are candidates


@dataclass(frozen=True)
class ExcitedRates:
    """What inputs do at some points: f(x, u) - f(x, u0)."""

    x: FloatArray  # shape (m, N)
    f: FloatArray  # shape (m, N)
    noise: FloatArray  # shape (m, N), of that


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
            x = self.sampled(missing)
            f = self.rates(x)
            fine = np.isfinite(f).all(axis=1)
            self.x, self.f = np.vstack((self.x, x[fine])), np.vstack((self.f, f[fine]))
        return self.x[:wanted], self.f[:wanted]

    def sampled(self, count: int) -> FloatArray:
        """Return random states on the manifold, of those that get there, shape (<= count, N)."""
        return projected(self.sampler.states(count), self.manifold, self.sampler.sizes)

    def rates(self, x: FloatArray, u: FloatArray | None = None) -> FloatArray:
        """Return the rates at states x (m, N), with the inputs of the point or others (m, nu)."""
        return self.sampler.held_rates(x) if u is None else self.sampler.rates(x, u)

    def rows(self, library: Library) -> FloatArray:
        """Return Dphi f, shape (m, K), each row in its size; no rows where the model answers too seldom."""
        x, f = self.for_terms(len(library))
        if len(x) <= len(library):
            return np.empty((0, len(library)))
        rows = library.rates(x, f)
        return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300))

    def excited(self, count: int, single: int | None = None) -> ExcitedRates:
        """Return what random inputs, or a ``single`` one, change of the rates at some of the points."""
        m = min(count + EXCITED, len(self.x))
        x, u = self.x[:m], self.sampler.inputs(m)
        if single is not None:
            moved = u[:, single].copy()
            u = np.tile(self.sampler.point.inputs, (m, 1))
            u[:, single] = moved
        f = self.sampler.changed(self.rates(x, u), self.f[:m])
        fine = np.isfinite(f).all(axis=1)
        return ExcitedRates(x[fine], f[fine], self.sampler.noise_of(self.f[:m][fine]))


@dataclass
class SamplesAtRest(Samples):
    """States whose speeds are zero, and for rates of positions the accelerations there."""

    rate_of: Mapping[int, int] = field(default_factory=dict)  # of positions, their speeds

    def resting(self, x: FloatArray) -> FloatArray:
        """Return the same states (m, N) with those speeds zero."""
        resting = x.copy()
        resting[:, list(self.rate_of.values())] = 0.0
        return resting

    def sampled(self, count: int) -> FloatArray:
        """Return random states at rest, shape (m, N)."""
        return self.resting(super().sampled(count))

    def rates(self, x: FloatArray, u: FloatArray | None = None) -> FloatArray:
        """Return the accelerations in place of the positions' rates, zeros elsewhere."""
        f = super().rates(x, u)
        accelerations = np.zeros_like(f)
        accelerations[:, list(self.rate_of)] = f[:, list(self.rate_of.values())]
        return accelerations

    def rows(self, library: Library) -> FloatArray:
        """Return Dphi r'' at rest, and what it differs by when all speeds are reversed, shape (<= 2 m, K)."""
        rows = super().rows(library)
        x = self.x[: len(rows)]
        v = self.sampler.states(len(x))
        v = v - self.resting(v)
        ahead, behind = self.rates(x + v), self.rates(x - v)
        sizes = np.linalg.norm(library.rates(x, np.abs(ahead) + np.abs(behind)), axis=1, keepdims=True)
        turned = library.rates(x, ahead - behind) / np.maximum(sizes, 1e-300)
        return np.vstack((rows, turned[np.isfinite(turned).all(axis=1)]))
