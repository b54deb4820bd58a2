"""The Puma 560: the torque that holds its shoulder."""

from __future__ import annotations

from math import pi

import fmilin as fl
from benchmarks.published_trims import puma
from benchmarks.scoreboard.doors import fmu, native
from benchmarks.scoreboard.row import Row
from fmilin.model.interface import Model


def shoulder(model: Model) -> complex:
    """Return the torque of the second joint in the nominal configuration."""
    posture = {f"j{i}.q": q for i, q in enumerate((0, pi / 4, pi, 0, pi / 4, 0), start=1)}
    point = fl.trim(model, fixed=posture, free=[f"tau{i}" for i in range(1, 7)])
    return complex(point.inputs[1])


ROW = Row(
    system="Puma 560, held",
    source="Corke, Robotics Toolbox for Python, test_DHRobot.py, test_rne",
    page="https://github.com/petercorke/robotics-toolbox-python",
    quantity="torque of the shoulder in the nominal configuration [N m]",
    published="31.6399",
    answer=shoulder,
    doors={"native": native(puma), "FMU": fmu(puma)},
)
