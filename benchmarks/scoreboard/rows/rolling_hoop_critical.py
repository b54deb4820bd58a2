"""The rate of turn from which on a rolling hoop stays upright."""

from __future__ import annotations

from math import sqrt

import numpy as np

from benchmarks.scoreboard.answers import crossing, eigenvalues
from benchmarks.scoreboard.doors import fmu_of_toml, toml
from benchmarks.scoreboard.row import Row
from fmilin.model.interface import Model

RADIUS, g = 0.5, 9.81

TOML = f"""
name = "hoop"
gravity = [0, 0, -{g}]
independent = ["road.x", "road.y", "road.angle", "lean.q", "spin.q", "lean.v", "road.w", "spin.v"]
[[body]]
name = "over_the_road"
massless = true
[[body]]
name = "centre"
massless = true
[[body]]
name = "leaned"
massless = true
[[body]]
name = "hoop"
mass = 2
inertia = [{RADIUS**2}, {2 * RADIUS**2}, {RADIUS**2}]
[[joint]]
name = "road"
type = "planar"
parent = "ground"
child = "over_the_road"
[[joint]]
name = "height"
type = "prismatic"
parent = "over_the_road"
child = "centre"
position = {RADIUS}
[[joint]]
name = "lean"
type = "revolute"
axis = [1, 0, 0]
parent = "centre"
child = "leaned"
[[joint]]
name = "spin"
type = "revolute"
axis = [0, 1, 0]
parent = "leaned"
child = "hoop"
velocity = 2
[[wheel]]
name = "contact"
body = "hoop"
radius = {RADIUS}
"""


def critical_rate(model: Model) -> complex:
    """Return the rate at which the sum of the squares of the eigenvalues passes zero."""

    def growth(rate: float) -> float:
        return float(np.sum(eigenvalues(model, {"spin.v": rate, "road.vx": rate * RADIUS}) ** 2).real)

    return crossing(growth, 1.0, 4.0)


ROW = Row(
    system="Rolling hoop, critical rate",
    source="SCP-116K, a collection of problems with answers, question 873504",
    page="https://gr.inc/question/describe-the-stability-of-motion-of-a-hoop-which-rolls-uniformly-with-angular-ve",
    quantity="rate from which on a hoop of a = 0.5 m stays upright [rad/s]",
    published=sqrt(g / (4 * RADIUS)),
    formula="omega^2 > g/(4 a)",
    answer=critical_rate,
    doors={"TOML": toml(TOML), "FMU": fmu_of_toml(TOML)},
)
