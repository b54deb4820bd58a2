"""A function of the states that stays what it is, and how it is written down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fmilin.discovery.library import Library
from fmilin.discovery.numbers import Numbers
from fmilin.ground.signals import FloatArray

__all__ = ["Invariant"]

TINY = 1e-300

LEVEL = 0.3
"""How much the level's number counts beside those of the terms when the simplest ones are chosen."""


@dataclass(frozen=True, eq=False)
class Invariant:
    """h(x) = c . phi(x) - level."""

    library: Library  # the terms in it, K of them
    coefficients: FloatArray  # shape (K,)
    level: float = 0.0  # what c . phi is at the point

    @cached_property
    def states(self) -> frozenset[int]:
        """The states in it."""
        return frozenset().union(*(t.states for t in self.library.terms))

    def at(self, x0: FloatArray, tolerance: float = 1e-9) -> Invariant:
        """Return the invariant with its level at the point x0 (N,); a sum that is zero but for rounding is zero."""
        level = float(self.values(x0[None])[0] + self.level)
        return replace(self, level=0.0 if abs(level) <= tolerance * self.size(x0[None])[0] else level)

    def values(self, x: FloatArray) -> FloatArray:
        """Return h at points x (m, N), shape (m,)."""
        found: FloatArray = self.library.values(x) @ self.coefficients - self.level
        return found

    def size(self, x: FloatArray) -> FloatArray:
        """Return the size of the terms of h at points x (m, N), shape (m,)."""
        found: FloatArray = np.abs(self.library.values(x)) @ np.abs(self.coefficients) + abs(self.level)
        return found

    def gradients(self, x: FloatArray) -> FloatArray:
        """Return Dh at points x (m, N), shape (m, N)."""
        found: FloatArray = np.einsum("mkn,k->mn", self.library.gradients(x), self.coefficients)
        return found

    def rates(self, x: FloatArray, f: FloatArray) -> FloatArray:
        """Return Dh f relative to the size of its terms, at points x (m, N) for rates f (m, N), shape (m,)."""
        slopes = self.gradients(x)
        terms = np.abs(slopes) * np.maximum(np.abs(f), 1e-3 * np.abs(f).max(axis=1, initial=0.0, keepdims=True))
        found: FloatArray = np.abs((slopes * f).sum(axis=1)) / np.maximum(terms.sum(axis=1), TINY)
        return found

    def degree(self, among: Sequence[int] | frozenset[int]) -> int:
        """Return the largest degree in some of the states."""
        return max(t.degree(among) for t in self.library.terms)

    @property
    def is_linear(self) -> bool:
        """Whether it is a sum of states with constant factors."""
        return all(not t.harmonic[0] and t.degree() == 1 for t in self.library.terms)

    def written(self, numbers: Numbers) -> Invariant:
        """Return the invariant with the factor that makes its numbers the simplest, and these as they are written."""
        given = [c for c in (*self.coefficients, self.level) if c]

        def cost(factor: float) -> float:
            return sum(numbers.cost(c * factor) for c in self.coefficients) + LEVEL * numbers.cost(self.level * factor)

        factor = min((1 / c for c in given), key=cost)
        if self.coefficients[0] * factor < 0:
            factor = -factor
        exact = np.array([numbers.value(c * factor) for c in self.coefficients])
        return replace(self, coefficients=exact, level=numbers.value(self.level * factor))

    def text(self, names: Sequence[str], numbers: Numbers) -> str:
        """Return the invariant, as :meth:`written`, in the grammar of expressions."""
        terms = zip(self.coefficients, self.library.terms, strict=True)
        parts = [numbers.product(c, t.text(names)) for c, t in terms]
        if self.level:
            parts.append(numbers.product(-self.level, ""))
        return parts[0] + "".join(f" - {p[1:]}" if p.startswith("-") else f" + {p}" for p in parts[1:])
