"""A thin disk that leans and rolls around a circle."""

from __future__ import annotations

from cmath import sqrt
from math import cos, sin

from benchmarks.scoreboard.answers import fastest
from benchmarks.scoreboard.doors import fmu, native
from benchmarks.scoreboard.row import Row
from fmilin.systems import rolling_disk
from fmilin.systems.disk import steady_yaw_rates

SPEED, LEAN = 1.5, 0.3
YAW, SPIN = steady_yaw_rates(SPEED, LEAN)[0], -SPEED

ROW = Row(
    system="Rolling disk, leaning",
    source="Peterson, thesis at the University of California, Davis, chapter 3, section Rolling disk, revisited",
    page="https://doi.org/10.1007/s11044-014-9436-5",
    quantity="wobble at 1.5 m/s and a lean of 0.3 rad, in the slower steady turn, with m = r = g = 1 [1/s]",
    published=sqrt(0.8 * cos(LEAN) - YAW**2 - 2.8 * sin(LEAN) * YAW * SPIN - 2.4 * SPIN**2),
    formula="lambda^2 = 4/5 cos(q2) - q1'^2 - 14/5 sin(q2) q1' q3' - 12/5 q3'^2",
    answer=fastest,
    doors={
        "native": native(lambda: rolling_disk(SPEED, lean=LEAN)),
        "FMU": fmu(lambda: rolling_disk(SPEED, lean=LEAN)),
    },
)
