"""Mechanisms at rest a second time: Lagrange's function of the independent coordinates alone, in 40 digits.

No joints, no loops, no null space: the test writes down where each body is for given independent coordinates, from
plane geometry, and M(y) y'' = u - dV/dy - 1/2 dM/dy [y', y'] .. is differentiated by differences of many digits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

from fmilin.signals import FloatArray

__all__ = ["Reduced", "Rigid", "circles", "linearized_at_rest"]

DIGITS = 40
STEP = mpmath.mpf(10) ** -10


@dataclass(frozen=True)
class Rigid:
    """A plane body: mass, inertia about its centre of mass, where that is, and its angle."""

    mass: float
    inertia: float
    x: Any
    y: Any
    angle: Any


@dataclass(frozen=True)
class Reduced:
    """A plane mechanism: its bodies and its potential energy beside weight, both functions of y."""

    bodies: Callable[[Sequence[Any]], Sequence[Rigid]]
    energy: Callable[[Sequence[Any]], Any] = lambda y: mpmath.mpf(0) * y[0]
    gravity: float = 9.81

    def potential(self, y: Sequence[Any]) -> Any:
        return self.energy(y) + sum(self.gravity * b.mass * b.y for b in self.bodies(y))

    def mass(self, y: Sequence[Any]) -> Any:
        """M(y), from the slopes of the positions."""
        ahead = [self.bodies(_moved(y, i, STEP)) for i in range(len(y))]
        behind = [self.bodies(_moved(y, i, -STEP)) for i in range(len(y))]
        M = mpmath.zeros(len(y))
        for b, body in enumerate(self.bodies(y)):
            J = [
                [(getattr(a[b], k) - getattr(c[b], k)) / (2 * STEP) for k in ("x", "y", "angle")]
                for a, c in zip(ahead, behind, strict=True)
            ]
            for i, j in np.ndindex(len(y), len(y)):
                M[i, j] += body.mass * (J[i][0] * J[j][0] + J[i][1] * J[j][1]) + body.inertia * J[i][2] * J[j][2]
        return M

    def accelerations(self, y: Sequence[Any]) -> Any:
        """y'' at rest, without inputs: -M^-1 dV/dy."""
        slope = [
            (self.potential(_moved(y, i, STEP)) - self.potential(_moved(y, i, -STEP))) / (2 * STEP)
            for i in range(len(y))
        ]
        return -mpmath.lu_solve(self.mass(y), mpmath.matrix(slope))


def linearized_at_rest(mechanism: Reduced, y: Sequence[float]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return y'' (P,), d y''/dy (P, P) and M (P, P) at rest."""
    with mpmath.workdps(DIGITS):
        at = [mpmath.mpf(value) for value in y]
        h = mpmath.mpf(10) ** -8
        columns = [
            (mechanism.accelerations(_moved(at, i, h)) - mechanism.accelerations(_moved(at, i, -h))) / (2 * h)
            for i in range(len(at))
        ]
        f = np.array([float(v) for v in mechanism.accelerations(at)])
        A = np.array([[float(v) for v in column] for column in columns]).T
        M = np.array(mechanism.mass(at).tolist(), dtype=float)
    return f, A, M


def circles(first: tuple[Any, Any], r1: Any, second: tuple[Any, Any], r2: Any, *, left: bool) -> tuple[Any, Any]:
    """Return where two circles meet, on the left or right of the way from the first centre to the second."""
    dx, dy = second[0] - first[0], second[1] - first[1]
    d = mpmath.sqrt(dx**2 + dy**2)
    along = (d**2 + r1**2 - r2**2) / (2 * d)
    across = mpmath.sqrt(r1**2 - along**2) * (1 if left else -1)
    return first[0] + (along * dx - across * dy) / d, first[1] + (along * dy + across * dx) / d


def _moved(y: Sequence[Any], i: int, step: Any) -> list[Any]:
    return [value + (step if j == i else 0) for j, value in enumerate(y)]
