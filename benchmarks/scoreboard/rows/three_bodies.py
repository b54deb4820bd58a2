"""The restricted three-body problem: from which mass on a moon drives off what swings about its triangular point."""

from __future__ import annotations

from math import sqrt

import numpy as np

import fmilin as fl
from benchmarks.scoreboard.answers import crossing
from benchmarks.scoreboard.doors import native
from benchmarks.scoreboard.row import Row
from fmilin.model.interface import Model
from fmilin.models import OdeModel


def restricted() -> OdeModel:
    """Return the plane problem in the frame that turns with both bodies; mu is the smaller one's part of the mass."""
    near, far = "((x + mu)^2 + y^2)^1.5", "((x - 1 + mu)^2 + y^2)^1.5"
    return OdeModel(
        "three bodies",
        {
            "x": "u",
            "y": "v",
            "u": f"2*v + x - (1 - mu)*(x + mu)/{near} - mu*(x - 1 + mu)/{far}",
            "v": f"-2*u + y - (1 - mu)*y/{near} - mu*y/{far}",
        },
        parameters={"mu": 0.01},
        start={"y": sqrt(3) / 2},
    )


def critical_mass(model: Model) -> complex:
    """Return where both pairs on the imaginary axis meet: a discriminant of the characteristic polynomial vanishes."""

    def apart(mu: float) -> float:
        tuned = model.with_parameters({"mu": mu})
        at = fl.operating_point(tuned, {"x": 0.5 - mu})
        _, _, middle, _, last = np.poly(fl.linearize(tuned, at).A)
        return float(middle**2 - 4 * last)

    return crossing(apart, 0.01, 0.1)


ROW = Row(
    system="Restricted three-body problem, Routh's mass",
    source="Existence and stability of the Lagrangian point L4 for the Earth-Sun system (abstract)",
    page="https://pith.science/paper/RY7DRV6L2MLTMBGN6GL5SSDK5I",
    quantity="largest part of the mass that leaves L4 stable",
    published="0.03852",
    answer=critical_mass,
    doors={"native": native(restricted)},
)
