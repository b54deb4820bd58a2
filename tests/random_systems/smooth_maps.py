"""Smooth maps with an explicit inverse, for values, first and second derivatives along a path, and as text.

A path is an array of shape (d, n, k): the value of n quantities and their derivatives with respect to time, the second
at most (d = 1, 2 or 3), for k points at once, real or complex (complex steps give derivatives to the last digit).
Nothing here is shared with the code under test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Path: TypeAlias = NDArray[Any]
"""Shape (d, n, k), float or complex."""

Indices: TypeAlias = NDArray[np.intp]


def path(*derivatives: NDArray[Any]) -> Path:
    """Return the path with this value and these derivatives, each (n, k)."""
    return np.array(derivatives)


def extended(p: Path) -> Path:
    """Return the path with one more derivative, zero."""
    return np.concatenate((p, np.zeros_like(p[:1])))


def sine(p: Path, phase: NDArray[np.float64]) -> Path:
    """Return the path of ``sin(p + phase)``, phase (n,)."""
    angle = p[0] + phase[:, None]
    s, c = np.sin(angle), np.cos(angle)
    parts = [s]
    if len(p) > 1:
        parts.append(c * p[1])
    if len(p) > 2:
        parts.append(c * p[2] - s * p[1] ** 2)
    return np.array(parts)


def product(p: Path, q: Path) -> Path:
    parts = [p[0] * q[0]]
    if len(p) > 1:
        parts.append(p[1] * q[0] + p[0] * q[1])
    if len(p) > 2:
        parts.append(p[2] * q[0] + 2 * p[1] * q[1] + p[0] * q[2])
    return np.array(parts)


@dataclass(frozen=True)
class Turn:
    """Rotates the planes (i, j) by constant angles."""

    i: Indices
    j: Indices
    angle: NDArray[np.float64]
    n: int

    @cached_property
    def matrix(self) -> NDArray[np.float64]:
        """The rotation, orthogonal, shape (n, n)."""
        R, c, s = np.eye(self.n), np.cos(self.angle), np.sin(self.angle)
        R[self.i, self.i], R[self.i, self.j] = c, -s
        R[self.j, self.i], R[self.j, self.j] = s, c
        return R

    def forward(self, p: Path) -> Path:
        turned: Path = self.matrix @ p
        return turned

    def backward(self, p: Path) -> Path:
        turned: Path = self.matrix.T @ p
        return turned

    def backward_texts(self, texts: Sequence[str]) -> list[str]:
        result = list(texts)
        for i, j, angle in zip(self.i, self.j, self.angle, strict=True):
            c, s = float(np.cos(angle)), float(np.sin(angle))
            result[i] = f"({c!r}*{texts[i]} + {s!r}*{texts[j]})"
            result[j] = f"({c!r}*{texts[j]} - {s!r}*{texts[i]})"
        return result


@dataclass(frozen=True)
class Shear:
    """Adds ``strength sin(z_j + phase)`` to z_i; no j is an i."""

    i: Indices
    j: Indices
    strength: NDArray[np.float64]
    phase: NDArray[np.float64]
    n: int

    @cached_property
    def gain(self) -> NDArray[np.float64]:
        """What the sines add to each quantity, shape (n, len(i))."""
        gain: NDArray[np.float64] = self.strength * (np.arange(self.n)[:, None] == self.i)
        return gain

    def forward(self, p: Path) -> Path:
        sheared: Path = p + self.gain @ sine(p.take(self.j, axis=1), self.phase)
        return sheared

    def backward(self, p: Path) -> Path:
        sheared: Path = p - self.gain @ sine(p.take(self.j, axis=1), self.phase)
        return sheared

    def backward_texts(self, texts: Sequence[str]) -> list[str]:
        result = list(texts)
        for i, j, c, b in zip(self.i, self.j, self.strength, self.phase, strict=True):
            result[i] = f"({texts[i]} - {float(c)!r}*sin({texts[j]} + {float(b)!r}))"
        return result


@dataclass(frozen=True)
class SmoothMap:
    """z -> xi, one step after the other; one-to-one on all of R^n."""

    steps: tuple[Turn | Shear, ...]

    def forward(self, p: Path) -> Path:
        for step in self.steps:
            p = step.forward(p)
        return p

    def backward(self, p: Path) -> Path:
        for step in reversed(self.steps):
            p = step.backward(p)
        return p

    def backward_texts(self, texts: Sequence[str]) -> list[str]:
        """Return z as expressions in the expressions ``texts`` for xi."""
        for step in reversed(self.steps):
            texts = step.backward_texts(texts)
        return list(texts)


def random_map(random: np.random.Generator, n: int) -> SmoothMap:
    """Return a random map of n quantities: some planes turned, then some quantities sheared along others, twice."""

    def pairs(count: int) -> tuple[Indices, Indices]:
        order = random.permutation(n)
        return order[:count], order[count : 2 * count]

    def shear() -> Shear:
        i, j = pairs((n + 1) // 3)
        return Shear(i, j, random.uniform(-0.5, 0.5, len(i)), random.uniform(-2.0, 2.0, len(i)), n)

    i, j = pairs((n + 2) // 4)
    return SmoothMap((Turn(i, j, random.uniform(-1.0, 1.0, len(i)), n), shear(), shear()))


@dataclass(frozen=True)
class Graph:
    """w = phi(t, y) = a y_i + b sin(y_j + phase) + c y_i y_j + d sin(t + phase): shape (m,)."""

    i: Indices
    j: Indices
    a: NDArray[np.float64]
    b: NDArray[np.float64]
    c: NDArray[np.float64]
    d: NDArray[np.float64]
    phase: NDArray[np.float64]

    def __call__(self, y: Path, time: Path) -> Path:
        """Return the path of w along paths of y (d, p, k) and of time (3, 1, k)."""
        a, b, c, d = (coefficient[:, None] for coefficient in (self.a, self.b, self.c, self.d))
        yi, yj = y.take(self.i, axis=1), y.take(self.j, axis=1)
        w: Path = a * yi + b * sine(yj, self.phase) + c * product(yi, yj)
        if self.d.any():
            clock = np.broadcast_to(time[: len(y)], (len(y), len(self.d), time.shape[2]))
            w = w + d * sine(clock, self.phase)
        return w

    def texts(self, y: Sequence[str]) -> list[str]:
        result = []
        for i, j, a, b, c, d, e in zip(self.i, self.j, self.a, self.b, self.c, self.d, self.phase, strict=True):
            moving = f" + {float(d)!r}*sin(time + {float(e)!r})" if d else ""
            terms = f"{float(a)!r}*{y[i]} + {float(b)!r}*sin({y[j]} + {float(e)!r}) + {float(c)!r}*{y[i]}*{y[j]}"
            result.append(f"({terms}{moving})")
        return result


def random_graph(random: np.random.Generator, p: int, m: int, *, moving: bool) -> Graph:
    """Return a random graph of m dependent over p independent quantities, moving with time on demand."""
    a, b, c, d, phase = random.uniform(-1.0, 1.0, (5, m))
    return Graph(
        random.integers(0, p, m), random.integers(0, p, m), a, b, 0.5 * c, d if moving else np.zeros(m), 2 * phase
    )
