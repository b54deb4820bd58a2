"""The largest gain of a linear system over a range of frequencies, with a bound that holds between all samples.

gamma is a singular value of G(jw) = C (jw - A)^-1 B + D if and only if jw is an eigenvalue of

    H = [A + B R^-1 D' C,  B R^-1 B'; -C' (I + D R^-1 D') C,  -(A + B R^-1 D' C)'],  R = gamma^2 I - D' D

(Bruinsma and Steinbuch 1990, after Boyd and Balakrishnan), so that levels that no frequency reaches are certain.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from fmilin.ground.signals import FloatArray

__all__ = ["Peak", "StateSpace", "peak_gain"]

_WIDTH = 1e-3
"""Relative distance between what was seen and what is certain."""

_NEAR_AXIS = 1e-6
"""Relative real part of what rounding made of an imaginary eigenvalue: too many crossings cost a look, no result."""


@dataclass(frozen=True)
class StateSpace:
    """The matrices of a continuous linear system."""

    A: FloatArray
    B: FloatArray
    C: FloatArray
    D: FloatArray

    def gain(self, w: float) -> float:
        """Return the largest singular value of G(jw), w in rad/s."""
        if not (self.B.shape[1] and len(self.C)):
            return 0.0
        if np.isinf(w):
            return float(np.linalg.norm(self.D, 2))
        G = self.C @ np.linalg.solve(1j * w * np.eye(len(self.A)) - self.A, self.B) + self.D
        return float(np.linalg.norm(G, 2))


@dataclass(frozen=True)
class Peak:
    """The largest gain in a range."""

    seen: float  # found at ``frequency``
    bound: float  # no frequency of the range has more
    frequency: float  # in rad/s


def peak_gain(system: StateSpace, low: float = 0.0, high: float = float("inf")) -> Peak:
    """Return the largest singular value of G(jw) for low <= w <= high.

    ``system``: without poles on the imaginary axis inside the range. ``low``, ``high``: in rad/s; ``high`` may be
    infinite.
    """
    if not len(system.A):
        level = system.gain(np.inf)
        return Peak(level, level, low)
    poles = np.linalg.eigvals(system.A)
    candidates = [low, high, *(float(abs(p)) for p in poles), *(float(abs(p.imag)) for p in poles)]
    inside = [w for w in candidates if low <= w <= high]
    seen, frequency = max((system.gain(w), w) for w in inside)
    while seen > 0:
        level = (1 + 2 * _WIDTH) * seen
        crossings = _crossings(system, level, low, high)
        middles = [np.sqrt(max(a * b, 0.0)) or (a + b) / 2 for a, b in itertools.pairwise(crossings)]
        best, where = max(((system.gain(w), w) for w in middles if np.isfinite(w)), default=(0.0, low))
        if best <= level:
            return Peak(seen, level, frequency)
        seen, frequency = best, where
    return Peak(0.0, 0.0, frequency)


def _crossings(system: StateSpace, level: float, low: float, high: float) -> list[float]:
    """Return the frequencies in the range where a singular value passes ``level``, and the ends."""
    A, B, C, D = system.A, system.B, system.C, system.D
    R = np.linalg.inv(level**2 * np.eye(B.shape[1]) - D.T @ D)
    K = A + B @ R @ D.T @ C
    H = np.block([[K, B @ R @ B.T], [-C.T @ (np.eye(len(C)) + D @ R @ D.T) @ C, -K.T]])
    values = np.linalg.eigvals(H)
    floor = _NEAR_AXIS * float(np.abs(np.diag(A)).max(initial=0.0))
    near = np.abs(values.real) <= _NEAR_AXIS * (np.abs(values) + floor)
    found = sorted({float(abs(v.imag)) for v in values[near]})
    return [low, *(w for w in found if low < w < high), high]
