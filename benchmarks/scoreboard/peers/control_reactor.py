"""python-control's linearize of the stirred tank reactor, by differences: ``... ROW``."""

from __future__ import annotations

import control
import numpy as np

from benchmarks.scoreboard.peers.common import chosen_row, nearest_of, tell

REST = {"reactor_middle": (5.518, 339.1), "reactor_cold": (8.564, 311.2)}


def rates(_t: float, x: np.ndarray, _u: np.ndarray, _p: object) -> np.ndarray:
    """Return the balances of concentration and temperature."""
    rate = 9703 * 3600 * np.exp(-11843 / (1.987 * x[1])) * x[0]
    return np.array([10 - x[0] - rate, 298 - x[1] + 5960 / 500 * rate - 150 / 500 * (x[1] - 298)])


module = chosen_row()
tank = control.nlsys(rates, None, states=2, inputs=1, outputs=2)
linear = tank.linearize(REST[module.__name__.rpartition(".")[2]], [0.0])
tell("control", nearest_of(np.linalg.eigvals(linear.A), module.ROW.value), "python-control")
