"""A railway wheelset: two cones on one axle, which roll on rails without slip."""

from __future__ import annotations

from math import pi, sqrt

from benchmarks.scoreboard.answers import fastest
from benchmarks.scoreboard.doors import fmu, native
from benchmarks.scoreboard.row import Row
from fmilin.model.interface import Model
from fmilin.models import LagrangeModel, SymbolicConstraint

RADIUS, HALF_GAUGE, ANGLE, SPEED = 0.46, 0.75, 0.025, 20.0


def wheelset() -> LagrangeModel:
    """Return the axle at x, y, turned by psi; a wheel's radius where it touches its rail changes by ``phi`` y."""
    rolling = {
        "axle": "v_y*cos(psi) - v_x*sin(psi)",
        "left": "v_x*cos(psi) + v_y*sin(psi) - a*yaw - (r + phi*y)*roll",
        "right": "v_x*cos(psi) + v_y*sin(psi) + a*yaw - (r - phi*y)*roll",
    }
    return LagrangeModel(
        "wheelset",
        {"x": "v_x", "y": "v_y", "psi": "yaw", "theta": "roll"},
        [["m", "0", "0", "0"], ["0", "m", "0", "0"], ["0", "0", "I", "0"], ["0", "0", "0", "J"]],
        ["0", "0", "0", "0"],
        constraints=[SymbolicConstraint(slip, name, "velocity") for name, slip in rolling.items()],
        parameters={"m": 1000.0, "I": 600.0, "J": 80.0, "r": RADIUS, "a": HALF_GAUGE, "phi": ANGLE},
        start={"v_x": SPEED, "roll": SPEED / RADIUS},
    )


def wavelength(model: Model) -> complex:
    """Return the way along the rails in one period."""
    return 2 * pi * SPEED / fastest(model).imag


ROW = Row(
    system="Railway wheelset, Klingel's sinusoidal run",
    source="Tramwayforum, message 23068, after Klingel (1883)",
    page="https://www.tramwayforum.at/index.php?topic=1498.msg23068",
    quantity="wavelength of cones of 0.025 rad, radius r = 0.46 m, contacts 2 a = 1.5 m apart [m]",
    published=2 * pi * sqrt(RADIUS * HALF_GAUGE / ANGLE),
    formula="y'' + phi/(r a) y = 0, T = 2 pi sqrt(r a/phi)",
    answer=wavelength,
    doors={"native": native(wheelset), "FMU": fmu(wheelset)},
    remark=(
        "As Klingel's kinematics, the rolling constraints are of first order in the cone's angle: the axle "
        "stays level. Masses and the speed, 20 m/s, do not matter."
    ),
)
