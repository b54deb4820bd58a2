"""python-control's linearize of the swing equation of a generator on an infinite bus."""

from __future__ import annotations

import control
import numpy as np

from benchmarks.scoreboard.peers.common import nearest_of, tell
from benchmarks.scoreboard.rows.generator import F0, PM, REST, ROW, D, E, H, V, X


def rates(_t: float, x: np.ndarray, _u: np.ndarray, _p: object) -> np.ndarray:
    """Return the rates of the rotor's angle and speed; the current is eliminated."""
    return np.array([x[1], np.pi * F0 / H * (PM - E * V / X * np.sin(x[0]) - D * x[1])])


swing = control.nlsys(rates, None, states=2, inputs=1, outputs=2)
linear = swing.linearize([REST, 0.0], [0.0])
tell("control", nearest_of(np.linalg.eigvals(linear.A), ROW.value), "python-control")
