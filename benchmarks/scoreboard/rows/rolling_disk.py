"""A thin disk that rolls upright."""

from __future__ import annotations

from math import sqrt

from benchmarks.scoreboard.answers import fastest
from benchmarks.scoreboard.doors import fmu, native
from benchmarks.scoreboard.row import Row
from fmilin.systems import rolling_disk

SPEED = 1.0

ROW = Row(
    system="Rolling disk, upright",
    source="Peterson, Gede, Hubbard, Symbolic linearization of constrained multibody systems (2015)",
    page="https://doi.org/10.1007/s11044-014-9436-5",
    quantity="wobble at v = 1, with m = r = g = 1",
    published=2j * sqrt(3 * SPEED**2 - 1) / sqrt(5),
    formula="lambda = +- 2 sqrt(1 - 3 v^2)/sqrt(5)",
    answer=fastest,
    doors={"native": native(lambda: rolling_disk(SPEED)), "FMU": fmu(lambda: rolling_disk(SPEED))},
)
