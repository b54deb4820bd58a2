"""A satellite that gravity's gradient keeps upright: its pitch."""

from __future__ import annotations

from benchmarks.scoreboard.answers import nearest
from benchmarks.scoreboard.doors import fmu, native
from benchmarks.scoreboard.row import Row
from fmilin.models import OdeModel

TRACK, NORMAL, NADIR = 1500.0, 1200.0, 900.0
"""Moments of inertia about axes along the track, along the orbit's normal and downwards, in kg m2."""


def satellite() -> OdeModel:
    """Return the attitude as a quaternion against the orbit's axes, time in turns of the orbit: seven states, six free.

    x is along the track, y against the orbit's normal, z down; w are the rates in inertial space, in body axes.
    """
    down = ["2*(e1*e3 - e0*e2)", "2*(e2*e3 + e0*e1)", "(e0^2 - e1^2 - e2^2 + e3^2)"]
    across = ["2*(e1*e2 + e0*e3)", "(e0^2 - e1^2 + e2^2 - e3^2)", "2*(e2*e3 - e0*e1)"]
    p, q, r = (f"(w{i} + {axis})" for i, axis in enumerate(across, start=1))
    x, y, z = down
    return OdeModel(
        "satellite",
        {
            "e0": f"(-e1*{p} - e2*{q} - e3*{r})/2",
            "e1": f"(e0*{p} + e2*{r} - e3*{q})/2",
            "e2": f"(e0*{q} - e1*{r} + e3*{p})/2",
            "e3": f"(e0*{r} + e1*{q} - e2*{p})/2",
            "w1": f"({NADIR} - {NORMAL})/{TRACK}*(3*{y}*{z} - w2*w3)",
            "w2": f"({TRACK} - {NADIR})/{NORMAL}*(3*{z}*{x} - w3*w1)",
            "w3": f"({NORMAL} - {TRACK})/{NADIR}*(3*{x}*{y} - w1*w2)",
        },
        constraints=["e0^2 + e1^2 + e2^2 + e3^2 - 1"],
        start={"e0": 1.0, "w2": -1.0},
    )


ROW = Row(
    system="Satellite in gravity's gradient",
    source="Public lecture notes on disturbance torques, a bus of 900 kg m2 along nadir, 1500 in track, 1200 normal",
    page="read as a Markdown file of a public repository, which has no lasting address",
    quantity="pitch libration, in parts of the orbital rate",
    published="1.2247j",
    answer=nearest(1.2j),
    doors={"native": native(satellite), "FMU": fmu(satellite)},
    remark="Printed there: omega_p = n sqrt(3 (1500 - 900)/1200) = 1.2247 n.",
)
