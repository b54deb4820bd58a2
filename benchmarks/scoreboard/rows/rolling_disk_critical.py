"""The speed from which on an upright rolling disk no longer falls."""

from __future__ import annotations

from math import sqrt

import numpy as np

from benchmarks.scoreboard.answers import crossing, eigenvalues
from benchmarks.scoreboard.doors import native
from benchmarks.scoreboard.row import Row
from fmilin.model.interface import Model
from fmilin.systems import rolling_disk


def critical_speed(_: Model) -> complex:
    """Return where the sum of the squares of the eigenvalues, 2 lambda^2, passes zero."""

    def growth(speed: float) -> float:
        return float(np.sum(eigenvalues(rolling_disk(speed)) ** 2).real)

    return crossing(growth, 0.2, 1.0)


ROW = Row(
    system="Rolling disk, critical speed",
    source="Peterson, Gede, Hubbard, Symbolic linearization of constrained multibody systems (2015)",
    page="https://doi.org/10.1007/s11044-014-9436-5",
    quantity="speed from which on it stays upright, with r = g = 1",
    published=1 / sqrt(3),
    formula="v* = 1/sqrt(3)",
    answer=critical_speed,
    doors={"native": native(rolling_disk)},
)
