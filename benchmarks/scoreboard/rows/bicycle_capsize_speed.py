"""The speed from which on the Whipple bicycle falls over slowly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.scoreboard.answers import crossing
from benchmarks.scoreboard.rows.bicycle_weave_speed import ROW as WEAVE
from benchmarks.scoreboard.rows.bicycle_weave_speed import all_at
from fmilin.model.interface import Model


def capsize_speed(model: Model) -> complex:
    """Return where the product of the four eigenvalues of lean and steer, so that a real one, passes zero."""

    def growth(speed: float) -> float:
        return float(np.poly(all_at(model, speed))[4].real)

    return crossing(growth, 5.8, 6.3)


ROW = replace(
    WEAVE,
    system="Whipple bicycle, capsize speed",
    quantity="speed from which on the capsize grows [m/s]",
    published="6.02426201538837",
    answer=capsize_speed,
)
