"""What a random system is made from: its kind, and reduced dynamics with known eigenvalues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from fmilin.signals import FloatArray

__all__ = ["Family", "Level", "Recipe", "Reduced", "Values", "random_dynamics"]

Family = Literal["first order", "second order", "speeds"]

Level = Literal["position", "velocity"]

Values: TypeAlias = NDArray[Any]
"""Shape (n, k), float or complex."""


@dataclass(frozen=True)
class Recipe:
    """What kind of system; ``geometry`` decides the constraints, ``seed`` the dynamics and the point."""

    family: Family = "first order"
    p: int = 2
    """Independent quantities: P in first order, P/2 otherwise."""
    m: int = 1
    """Dependent quantities."""
    geometry: int = 0
    seed: int = 0
    at_rest: bool = True
    decades: float = 0.0
    """States, inputs and constraints have sizes between 10^-decades and 10^decades."""
    repeated: int = 0
    """Further constraints that follow from the others."""
    level: Level = "position"
    """How constraints of a first-order system are declared; others are always at position level."""
    measured: bool = False
    """Constraints are variables of the model instead of expressions."""
    exact: bool = True
    """The model has directional derivatives."""
    moving: bool = False
    """The constraints move with time."""
    noise: float = 0.0
    """In rates and outputs, relative to their size; repeats exactly, as the noise of a solver inside a model does."""

    @property
    def is_first_order(self) -> bool:
        return self.family == "first order"

    @property
    def names(self) -> list[str]:
        """Of the states."""
        n = self.p + self.m
        if self.is_first_order:
            return [f"x[{i}]" for i in range(n)]
        letter = "v" if self.family == "second order" else "s"
        return [f"q[{i}]" for i in range(n)] + [f"{letter}[{i}]" for i in range(n)]

    @property
    def size(self) -> int:
        """N."""
        return (self.p + self.m) * (1 if self.is_first_order else 2)


@dataclass(frozen=True)
class Reduced:
    """a(y, u) = f0 + A dy + B du + c dy_i dy_j + e dy_i du_j in quantities of size 1; one quadratic term a row."""

    f0: FloatArray
    A: FloatArray
    B: FloatArray
    c: FloatArray
    e: FloatArray
    i: NDArray[np.intp]
    j: NDArray[np.intp]

    def __call__(self, dy: Values, du: Values) -> Values:
        bent = self.c[:, None] * dy[self.i] * dy[self.j] + self.e[:, None] * dy[self.i] * du[self.j % len(du)]
        result: Values = self.f0[:, None] + self.A @ dy + self.B @ du + bent
        return result


def random_dynamics(random: np.random.Generator, recipe: Recipe) -> Reduced:
    """Return reduced dynamics with well-conditioned eigenvalues of size 1."""
    p = recipe.p
    count = p if recipe.is_first_order else 2 * p
    A = _random_matrix(random, p) if recipe.is_first_order else _random_second_order(random, p)
    f0 = np.zeros(p) if recipe.at_rest else random.uniform(-1.0, 1.0, p)
    return Reduced(
        f0=f0,
        A=A,
        B=random.uniform(-1.0, 1.0, (p, 2)),
        c=random.uniform(-0.5, 0.5, p),
        e=random.uniform(-0.5, 0.5, p),
        i=random.integers(0, count, p),
        j=random.integers(0, count, p),
    )


def _basis(random: np.random.Generator, p: int) -> FloatArray:
    Q: FloatArray = np.asarray(linalg.qr(random.normal(size=(p, p)))[0], dtype=np.float64)
    return Q * random.uniform(0.5, 2.0, p)


def _random_matrix(random: np.random.Generator, p: int) -> FloatArray:
    """Return V L V^-1 with pairs -d +- i w and, for odd p, one real eigenvalue."""
    L = np.diag(-np.linspace(0.1, 1.0, p) - random.uniform(0.0, 0.05, p))
    for i in range(0, p - 1, 2):
        w = 1.0 + 0.5 * i / p + random.uniform(0.0, 0.1)
        L[i, i] = L[i + 1, i + 1]
        L[i, i + 1], L[i + 1, i] = w, -w
    V = _basis(random, p)
    A: FloatArray = V @ L @ np.linalg.inv(V)
    return A


def _random_second_order(random: np.random.Generator, p: int) -> FloatArray:
    """Return (-K, -C), shape (p, 2p), with modal damping and one unstable mode at times."""
    w = np.linspace(0.7, 2.0, p) + random.uniform(0.0, 0.1, p)
    squared = w**2
    if random.uniform() < 0.3:
        squared[0] = -squared[0]
    V = _basis(random, p)
    inverse = np.linalg.inv(V)
    return np.hstack((-V @ np.diag(squared) @ inverse, -V @ np.diag(random.uniform(0.0, 0.3, p)) @ inverse))
